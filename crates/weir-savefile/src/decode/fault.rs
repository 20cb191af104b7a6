//! Errors in the contents of a capture file.

use super::{MOST_DESCRIPTIONS, MOST_INTERFACES};
use crate::ByteOrder;

/// The reason why bytes cannot be read as part of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The first four bytes do not match any known format.
    #[error("not a capture file: it begins with {}", hex(.0))]
    Magic([u8; 4]),
    /// A format of which only the name is known.
    #[error("cannot read {0}: its format is not publicly documented")]
    Undocumented(&'static str),
    /// An unknown version.
    #[error("unknown version {major}.{minor}")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// A section header without a valid byte-order magic.
    #[error("a section header with byte-order magic {}", hex(.0))]
    ByteOrder([u8; 4]),
    /// A block before the first section header.
    #[error("a block of type {0:#x} where a section header is required")]
    NoSection(u32),
    /// A length that is invalid for this type of block.
    #[error("a block of type {kind:#x} cannot have {length} bytes")]
    Length {
        /// Block type.
        kind: u32,
        /// Length at the start of the block.
        length: u32,
    },
    /// A block or packet that is longer than any real one.
    #[error("a length of {length} bytes, which exceeds the limit of {limit}")]
    TooLong {
        /// Length that it claims.
        length: u32,
        /// Longest length that is accepted; for blocks, [`LONGEST_BLOCK`](super::LONGEST_BLOCK).
        limit: u32,
    },
    /// Zeros in place of a pcap record.
    #[error("zeros where a packet should be")]
    Zeros,
    /// Another pcap file's header in place of a record.
    #[error("another file begins here: two files were concatenated")]
    AnotherFile,
    /// The two lengths of a block differ.
    #[error("a block of type {kind:#x} begins with length {length} and ends with {tail}")]
    Tail {
        /// Block type.
        kind: u32,
        /// Length at the start of the block.
        length: u32,
        /// Length at the end of the block.
        tail: u32,
    },
    /// The fixed part of a block is longer than the block.
    #[error("a block of type {kind:#x} is too short for its contents")]
    Short {
        /// Block type.
        kind: u32,
    },
    /// A packet that is longer than its block.
    #[error("a packet of {0} bytes does not fit in its block")]
    Captured(u32),
    /// A packet of an undescribed interface.
    #[error("interface {id} is not described: the section has {count} so far")]
    Interface {
        /// Interface number in the block.
        id: u32,
        /// Number of interfaces that the section has described so far.
        count: u32,
    },
    /// Too many interface descriptions.
    #[error(
        "more than {MOST_INTERFACES} interfaces, or more than {MOST_DESCRIPTIONS} bytes of interface descriptions"
    )]
    Descriptions,
}

/// A whole packet or description with a field that cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// An option that is longer than its block, or whose length is invalid for its code.
    #[error("the options of a block of type {0:#x} are damaged and were ignored")]
    Options(u32),
    /// A timestamp before 1970 or after 2554.
    #[error("a timestamp is out of range and was set to the nearest possible one")]
    Time,
    /// A timestamp resolution finer than a nanosecond.
    #[error("timestamps are finer than nanoseconds and were truncated")]
    Finer,
    /// A link type with undefined bits set.
    #[error("the link type {0:#x} has undefined bits, which were ignored")]
    LinkType(u32),
    /// A time zone. Nobody has ever used this field.
    #[error(
        "the header says that timestamps are off by {0} seconds; weir ignores this, as other programs do"
    )]
    Zone(i32),
    /// A block that can only be read in the byte order of its writer.
    #[error("a block of type {kind:#x} in {order} order was skipped: its layout is unknown")]
    Foreign {
        /// Block type.
        kind: u32,
        /// Byte order of its section.
        order: ByteOrder,
    },
}

fn hex(bytes: &[u8; 4]) -> String {
    let [a, b, c, d] = bytes;
    format!("{a:02x} {b:02x} {c:02x} {d:02x}")
}
