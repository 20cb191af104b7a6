//! Who intercepts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::experiment::{Role, Series};
use crate::program::{Counts, OWN, Program};

/// Bytes that each method gets for packets on their way to its reader.
pub(super) const BUFFER: usize = 128 << 20;
/// The netfilter queue, in a namespace that has no other.
pub(super) const QUEUE: u16 = 0;

/// A way to get at packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Method {
    /// Nobody intercepts.
    None,
    /// A C program on the system's libpcap.
    Libpcap,
    Xdp,
    Tc,
    AfPacket,
    InlineXdp,
    InlineTc,
    Nfqueue,
}

impl Method {
    /// In the order of their turns.
    pub(super) const ALL: [Self; 8] = [
        Self::None,
        Self::Libpcap,
        Self::Xdp,
        Self::Tc,
        Self::AfPacket,
        Self::InlineXdp,
        Self::InlineTc,
        Self::Nfqueue,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Libpcap => "libpcap",
            Self::Xdp => "xdp",
            Self::Tc => "tc",
            Self::AfPacket => "af_packet",
            Self::InlineXdp => "inline-xdp",
            Self::InlineTc => "inline-tc",
            Self::Nfqueue => "nfqueue",
        }
    }

    /// For the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let of = |method: &Self| method.name() == text;
        Self::ALL.into_iter().find(of).ok_or_else(|| format!("available: {names}"))
    }

    pub(super) fn series(self) -> Series {
        let (title, role) = match self {
            Self::None => ("nobody intercepts", Role::Limit),
            Self::Libpcap => ("libpcap (WinPcap's place)", Role::Peer),
            Self::Xdp => ("weir xdp, pass", Role::Ours),
            Self::Tc => ("weir tc", Role::Ours),
            Self::AfPacket => ("weir af_packet", Role::Ours),
            Self::InlineXdp => ("XDP program (NDIS's place)", Role::Peer),
            Self::InlineTc => ("tc program (NDIS's place)", Role::Peer),
            Self::Nfqueue => ("netfilter queue (WFP's place)", Role::Peer),
        };
        Series { name: self.name().to_owned(), title: title.to_owned(), role }
    }

    /// Its reader, if there is one. `libpcap`: where that of libpcap was compiled to.
    pub(super) fn reader(self, libpcap: Option<&Path>) -> Option<Program> {
        let ours = Program {
            name: OWN,
            package: "",
            place: None,
            environment: Vec::new(),
            arguments: vec!["intercept", self.name(), "-i", "{interface}", "--address", "{address}"],
            ready: "ready",
            batch: Duration::from_millis(100),
            spins: false,
            parse: |stdout, _| {
                let seen: super::work::Seen = serde_json::from_str(stdout).ok()?;
                Some(Counts { dropped: Some(seen.lost), ..Counts::of(seen.packets) })
            },
        };
        match self {
            Self::None => None,
            Self::Libpcap => Some(Program {
                name: "intercept",
                place: libpcap.map(PathBuf::from),
                arguments: vec!["{interface}", "{address}"],
                // It asks for a time-out of 100 ms.
                batch: Duration::from_millis(300),
                ..ours
            }),
            _ => Some(ours),
        }
    }
}
