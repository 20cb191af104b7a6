//! The formats in which files are written.

use weir_savefile::pcap::Resolution;

/// The format of a file written by a [`Writer`](crate::writer::Writer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// pcapng: several interfaces, losses and statistics in one file.
    #[default]
    Pcapng,
    /// Classic pcap: packets of a single link type and nothing else.
    Pcap {
        /// Whether timestamps have nanosecond precision; otherwise microseconds, which older readers require.
        nanoseconds: bool,
    },
}

impl Format {
    /// The timestamp resolution of a pcap file; `None`: not a pcap file.
    pub(crate) fn pcap(self) -> Option<Resolution> {
        match self {
            Self::Pcapng => None,
            Self::Pcap { nanoseconds: true } => Some(Resolution::Nano),
            Self::Pcap { nanoseconds: false } => Some(Resolution::Micro),
        }
    }
}
