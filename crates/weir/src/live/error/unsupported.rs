//! What interfaces, drivers and kernels do not support.

use std::io;

use weir_bpf::LoadError;
use weir_sys::CallError;

/// What an interface, its driver or the kernel does not support, as [`Error::Unsupported`](crate::Error) reports it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// Packets with this link-layer header cannot be captured.
    #[error("its link layer (ARPHRD {hardware}) is not supported")]
    LinkLayer {
        /// The kernel's number for it.
        hardware: u16,
    },
    /// The device strips VLAN tags and does not report them to XDP, but they are needed.
    #[error("the device strips VLAN tags and does not report them to XDP{needed}; to keep them: {keep}")]
    Tags {
        /// What they are needed for.
        needed: TagUse,
        /// The command that keeps the tags.
        keep: String,
    },
    /// The driver runs native XDP in a way that the source cannot use.
    #[error("{why}")]
    NativeXdp {
        /// How it does.
        why: &'static str,
    },
    /// The driver rejects native XDP in the interface's present configuration.
    #[error("driver {} rejects native XDP in this configuration ({answer}; MTU {mtu})",
        .driver.as_deref().unwrap_or("(unknown)"))]
    Configuration {
        /// The driver, if it says what it is.
        driver: Option<String>,
        /// The MTU of the interface.
        mtu: u32,
        /// The driver's answer.
        answer: io::Error,
    },
    /// A program attaches to one interface, not to `any`.
    #[error("a program attaches to one interface, not to all")]
    AllInterfaces,
    /// The kernel cannot attach programs to tc.
    #[error("the kernel has neither tcx (Linux 6.6) nor clsact with eBPF filters (CONFIG_NET_CLS_BPF)")]
    Tc,
    /// The kernel has no AF_XDP.
    #[error("the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)")]
    AfXdp,
    /// The MTU allows packets that are longer than one frame of AF_XDP, and the kernel does not.
    #[error("packets that span several frames (MTU {mtu}) require Linux 6.6: {answer}")]
    LongPackets {
        /// The MTU of the interface.
        mtu: u32,
        /// The kernel's answer.
        answer: CallError,
    },
    /// Statistics that are attached by clsact, for lack of tcx, cannot be switched off and on.
    #[error("cannot switch its statistics: they are attached by clsact, for lack of tcx (Linux 6.6)")]
    Switch,
    /// The kernel rejects the program that counts, or decides about packets.
    #[error("{0}")]
    Program(LoadError),
    /// Rules are for Ethernet frames, and the interface has others.
    #[error("cannot guard it: rules are for Ethernet frames, which it has not")]
    NoEthernet,
    /// Rules that are attached by clsact, for lack of tcx, cannot be replaced.
    #[error("cannot replace its rules: they are attached by clsact, for lack of tcx (Linux 6.6)")]
    Replacement,
    /// The rules to be replaced are off.
    #[error("cannot replace its rules: they are off already")]
    RulesOff,
    /// The interface cannot send packets.
    #[error("cannot send: {0}")]
    Sending(SendRefusal),
    /// The interface cannot send live frames.
    #[error("cannot send live frames: {0}")]
    LiveFrames(LiveRefusal),
}

/// What VLAN tags are needed for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TagUse {
    /// Captured packets would lack them.
    #[error("")]
    Packets,
    /// Packets are steered by VLAN.
    #[error(", so packets cannot be steered by VLAN")]
    Steering,
    /// The filter tests for them.
    #[error(", so the filter cannot match them{}", .name.as_ref().map(|name| format!(" (`{name}`)")).unwrap_or_default())]
    Filter {
        /// The filter's name, if there are several.
        name: Option<String>,
    },
    /// Packets are counted by VLAN.
    #[error(", so packets cannot be counted by VLAN")]
    Counting,
}

/// Why an interface cannot send packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendRefusal {
    /// Packets with this link-layer header cannot be sent.
    #[error("its link layer (ARPHRD {hardware}) is not supported")]
    LinkLayer {
        /// The kernel's number for it.
        hardware: u16,
    },
    /// No cable is plugged in, or the other end is down.
    #[error("it has no carrier, so that the kernel would drop every packet")]
    NoCarrier,
}

/// Why an interface cannot send live frames.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveRefusal {
    /// There are no packets.
    #[error("there are no packets")]
    NoPackets,
    /// The interface does not take one of the packets, for this reason: a [`SendReason`](crate::send::SendReason).
    #[error("{0}")]
    Packet(Box<dyn std::error::Error + Send + Sync>),
    /// A packet is longer than a frame.
    #[error("a packet has {bytes} bytes, and a frame has room for {most}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest length.
        most: usize,
    },
    /// The driver takes no redirected packets.
    #[error("its driver takes no redirected packets")]
    Driver,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_sentences() {
        let tags = |needed| Unsupported::Tags { needed, keep: "ethtool -K eth0 rxvlan off".into() };
        let einval = || io::Error::from_raw_os_error(22);
        let driver = |driver: Option<&str>| Unsupported::Configuration {
            driver: driver.map(str::to_owned),
            mtu: 9000,
            answer: einval(),
        };
        let strips = "the device strips VLAN tags and does not report them to XDP";
        let keep = "; to keep them: ethtool -K eth0 rxvlan off";
        for (cause, told) in [
            (tags(TagUse::Packets), format!("{strips}{keep}")),
            (tags(TagUse::Steering), format!("{strips}, so packets cannot be steered by VLAN{keep}")),
            (
                tags(TagUse::Filter { name: None }),
                format!("{strips}, so the filter cannot match them{keep}"),
            ),
            (
                tags(TagUse::Filter { name: Some("dns".into()) }),
                format!("{strips}, so the filter cannot match them (`dns`){keep}"),
            ),
            (
                driver(Some("veth")),
                "driver veth rejects native XDP in this configuration (Invalid argument (os error 22); MTU 9000)"
                    .into(),
            ),
            (
                driver(None),
                "driver (unknown) rejects native XDP in this configuration (Invalid argument (os error 22); MTU 9000)"
                    .into(),
            ),
            (
                Unsupported::LongPackets { mtu: 9000, answer: CallError::new("bind it", einval()) },
                "packets that span several frames (MTU 9000) require Linux 6.6: cannot bind it: Invalid argument (os error 22)"
                    .into(),
            ),
            (
                Unsupported::LiveFrames(LiveRefusal::Packet("it is too short".into())),
                "cannot send live frames: it is too short".into(),
            ),
            (
                Unsupported::Sending(SendRefusal::LinkLayer { hardware: 7 }),
                "cannot send: its link layer (ARPHRD 7) is not supported".into(),
            ),
        ] {
            assert_eq!(cause.to_string(), told);
        }
    }
}
