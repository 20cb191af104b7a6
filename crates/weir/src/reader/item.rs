//! The format of a file, and the items in it.

use weir_savefile::ByteOrder;
use weir_savefile::decode::{Header, TimeUnit};

use super::InterfaceStatistics;
use crate::Packet;
use crate::codec::CompressionKind;

/// The format of a file that a [`Reader`](super::Reader) reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFormat {
    /// pcap or pcapng.
    pub kind: FileKind,
    /// Byte order of the file; for pcapng, of the current section.
    pub byte_order: ByteOrder,
    /// Resolution of the timestamps; for pcapng, of the first interface, once that is known.
    pub resolution: Option<TimeUnit>,
    /// How the file is compressed.
    pub compression: CompressionKind,
}

/// pcap or pcapng.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// Classic pcap, with its header.
    Pcap(Header),
    /// pcapng.
    Pcapng,
}

/// The next item in a file.
#[derive(Debug, Clone)]
pub enum Item<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// An interface, by its index in [`Reader::interfaces`](super::Reader::interfaces); precedes its first packet.
    Interface(u32),
    /// The counters of an interface.
    Statistics(InterfaceStatistics),
    /// Any other pcapng block, such as name resolution or decryption secrets, in native byte order; in one about sockets
    /// ([`who`](crate::who)), interfaces are numbered as here. From a file in the
    /// other byte order, blocks of unknown structure are skipped with a warning.
    Block {
        /// Block type.
        kind: u32,
        /// The body, between the two lengths.
        body: &'a [u8],
    },
    /// Nothing: the next item has not arrived yet, and reading it waits. Only after
    /// [`Reader::pausing`](super::Reader::pausing).
    Pause,
}
