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

/// In the order of their turns, with their titles.
const ALL: [(Method, &str, &str, Role); 8] = [
    (Method::None, "none", "nobody intercepts", Role::Limit),
    (Method::Libpcap, "libpcap", "libpcap (WinPcap's place)", Role::Peer),
    (Method::Xdp, "xdp", "weir xdp, pass", Role::Ours),
    (Method::Tc, "tc", "weir tc", Role::Ours),
    (Method::AfPacket, "af_packet", "weir af_packet", Role::Ours),
    (Method::InlineXdp, "inline-xdp", "XDP program (NDIS's place)", Role::Peer),
    (Method::InlineTc, "inline-tc", "tc program (NDIS's place)", Role::Peer),
    (Method::Nfqueue, "nfqueue", "netfilter queue (WFP's place)", Role::Peer),
];

impl Method {
    /// In the order of their turns.
    pub(super) fn all() -> [Self; 8] {
        ALL.map(|(method, ..)| method)
    }

    fn known(self) -> (Self, &'static str, &'static str, Role) {
        ALL.into_iter().find(|(method, ..)| *method == self).expect("all methods are there")
    }

    pub(super) fn name(self) -> &'static str {
        self.known().1
    }

    /// For the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let names = Self::all().map(Self::name).join(", ");
        let of = |method: &Self| method.name() == text;
        Self::all().into_iter().find(of).ok_or_else(|| format!("available: {names}"))
    }

    pub(super) fn series(self) -> Series {
        let (_, name, title, role) = self.known();
        Series::new(name, title, role)
    }

    /// Its reader, if there is one. `libpcap`: where that of libpcap was compiled to.
    pub(super) fn reader(self, libpcap: Option<&Path>) -> Option<Program> {
        let words = vec!["intercept", self.name(), "-i", "{interface}", "--address", "{address}"];
        let ours = Program::new([OWN, ""], "ready", 100, words, |stdout, _| {
            let seen: super::work::Seen = serde_json::from_str(stdout).ok()?;
            Some(Counts { dropped: Some(seen.lost), ..Counts::of(seen.packets) })
        });
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
