//! What can be wrong with the bytes of a capture file.

use super::{MOST_DESCRIPTIONS, MOST_INTERFACES};
use crate::ByteOrder;

/// Why bytes are no part of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The first four bytes are those of no format that is known.
    #[error("not a capture file: it begins with {}", hex(.0))]
    Magic([u8; 4]),
    /// A format that is known by name only.
    #[error("cannot read {0}: its format is not publicly documented")]
    Undocumented(&'static str),
    /// A version that nothing is known of.
    #[error("unknown version {major}.{minor}")]
    Version {
        /// In front of the dot.
        major: u16,
        /// Behind it.
        minor: u16,
    },
    /// A section header without a byte order.
    #[error("a section header whose byte-order magic is {}", hex(.0))]
    ByteOrder([u8; 4]),
    /// A block before the first section header.
    #[error("a block of type {0:#x} where a section header is required")]
    NoSection(u32),
    /// A length that no block of this type has.
    #[error("a block of type {kind:#x} cannot have {length} bytes")]
    Length {
        /// Block type.
        kind: u32,
        /// As it begins.
        length: u32,
    },
    /// A block or packet that is longer than any real one.
    #[error("a length of {length} bytes; more than {limit} counts as damage")]
    TooLong {
        /// As it says.
        length: u32,
        /// The longest that is read: for blocks [`LONGEST_BLOCK`](super::LONGEST_BLOCK).
        limit: u32,
    },
    /// A run of zeros where a record of pcap has to be.
    #[error("zeros where a packet should be")]
    Zeros,
    /// The header of another pcap file where a record has to be.
    #[error("another file begins here: two files were concatenated")]
    AnotherFile,
    /// The two lengths of a block differ.
    #[error("a block of type {kind:#x} begins with length {length} and ends with {tail}")]
    Tail {
        /// Block type.
        kind: u32,
        /// As it begins.
        length: u32,
        /// As it ends.
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
    /// A packet of an interface that is not described.
    #[error("interface {id} is not described: the section has {count} so far")]
    Interface {
        /// As the block says.
        id: u32,
        /// How many the section has described so far.
        count: u32,
    },
    /// Descriptions of interfaces without end.
    #[error(
        "more than {MOST_INTERFACES} interfaces, or more than {MOST_DESCRIPTIONS} bytes that describe them"
    )]
    Descriptions,
}

/// A packet or description that is whole, but about which something cannot be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// An option is longer than its block, or not as long as its code asks for.
    #[error("the options of a block of type {0:#x} are damaged and were ignored")]
    Options(u32),
    /// Before 1970 or after 2554.
    #[error("a timestamp is out of range and was set to the nearest possible one")]
    Time,
    /// A resolution below a nanosecond.
    #[error("timestamps are finer than nanoseconds and were truncated")]
    Finer,
    /// Bits that nobody has given a meaning.
    #[error("the link type {0:#x} has undefined bits, which were ignored")]
    LinkType(u32),
    /// A time zone, which nobody ever used.
    #[error(
        "the header says that timestamps are off by {0} seconds; weir ignores this, as other programs do"
    )]
    Zone(i32),
    /// A block that only makes sense in the byte order of its writer.
    #[error("a block of type {kind:#x} in {order} order was skipped: its layout is unknown")]
    Foreign {
        /// Block type.
        kind: u32,
        /// Of its section.
        order: ByteOrder,
    },
}

fn hex(bytes: &[u8; 4]) -> String {
    let [a, b, c, d] = bytes;
    format!("{a:02x} {b:02x} {c:02x} {d:02x}")
}
