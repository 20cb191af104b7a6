//! What a file is, and what is in it.

use std::fmt;

use weir_savefile::ByteOrder;
use weir_savefile::decode::{Header, TimeUnit};

use super::InterfaceStatistics;
use crate::Packet;

/// What kind of file a [`Reader`](super::Reader) reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFormat {
    /// pcap or pcapng.
    pub kind: FileKind,
    /// Of the numbers in the file; of pcapng, in the present section.
    pub byte_order: ByteOrder,
    /// What time stamps count; of pcapng those of the first interface, once it is known.
    pub resolution: Option<TimeUnit>,
    /// How the file is compressed.
    pub compression: Compression,
}

/// pcap or pcapng.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Classic pcap; what its header says.
    Pcap(Header),
    /// pcapng.
    Pcapng,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip (RFC 1952), one or several members.
    Gzip,
    /// zstd (RFC 8878), one or several frames.
    Zstd,
    /// The frame format of lz4, one or several frames.
    Lz4,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        })
    }
}

/// What comes next in a file.
#[derive(Debug, Clone)]
pub enum Item<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// An interface, by its number in [`Reader::interfaces`](super::Reader::interfaces); comes before its first packet.
    Interface(u32),
    /// Counters of an interface.
    Statistics(InterfaceStatistics),
    /// Any other block of pcapng, such as name resolution or decryption secrets, in native byte order. Of a file in
    /// foreign order those whose inside is not known are left out, with a warning.
    Block {
        /// Block type.
        kind: u32,
        /// What is between the lengths.
        body: &'a [u8],
    },
}
