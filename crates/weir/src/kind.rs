//! The names of sources and modes, as accounts and interfaces carry them.

use std::fmt;

/// The source that captures on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SourceKind {
    /// An XDP program.
    Xdp,
    /// Programs between interface and stack.
    Tc,
    /// `Xdp` for received packets and `Tc` for sent ones.
    #[cfg_attr(feature = "serde", serde(rename = "xdp+tc"))]
    XdpTc,
    /// A packet socket.
    AfPacket,
    /// AF_XDP sockets.
    AfXdp,
    /// The program that forwards packets, and copies them.
    Forward,
}

/// What happens to the packets of an interface after they are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ModeKind {
    /// They continue to the host's stack.
    Pass,
    /// They end in the pool, and the host does not see them.
    Exclusive,
    /// They leave through another interface.
    Forward,
}

impl SourceKind {
    /// Returns its name: `xdp`, `tc`, `xdp+tc`, `af_packet`, `af_xdp` or `forward`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Tc => "tc",
            Self::XdpTc => "xdp+tc",
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
            Self::Forward => "forward",
        }
    }

    /// Returns whether it sees received packets only.
    #[cfg(feature = "live")]
    pub(crate) fn receives_only(self) -> bool {
        matches!(self, Self::Xdp | Self::AfXdp | Self::Forward)
    }
}

impl ModeKind {
    /// Returns its name: `pass`, `exclusive` or `forward`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Exclusive => "exclusive",
            Self::Forward => "forward",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for ModeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_names() {
        use SourceKind::{AfPacket, AfXdp, Tc, Xdp, XdpTc};
        for source in [Xdp, Tc, XdpTc, AfPacket, AfXdp, SourceKind::Forward] {
            assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
        }
        for mode in [ModeKind::Pass, ModeKind::Exclusive, ModeKind::Forward] {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
    }
}
