//! Errors of a capture, with hints.

use weir_bpf::LoadError;
use weir_ring::{Corrupt, ShapeError};
use weir_sys::CallError;

use crate::filter::FilterError;
use crate::live::command;
use crate::live::size::binary;

/// An error that keeps a capture from starting or continuing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No interface was named.
    #[error("no interface to capture on")]
    NoInterface,
    /// The network namespace has no such interface.
    #[error("no interface named `{name}`")]
    NoSuchInterface {
        /// The name as given.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All names there are.
        others: Vec<String>,
    },
    /// An interface was named twice.
    #[error("interface `{name}` is named twice")]
    InterfaceTwice {
        /// The interface.
        name: String,
    },
    /// An interface is administratively down.
    #[error("interface `{name}` is down")]
    InterfaceDown {
        /// The interface.
        name: String,
    },
    /// An interface disappeared during the capture.
    #[error("interface `{name}` is gone")]
    InterfaceGone {
        /// The interface.
        name: String,
    },
    /// A network namespace does not exist, or the name refers to something else.
    #[error("network namespace `{name}`: {what}")]
    Namespace {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        what: String,
        /// What to do.
        mend: String,
    },
    /// The process lacks privileges.
    #[error("cannot {operation}: permission denied")]
    Privilege {
        /// What was attempted, on which interface.
        operation: String,
        /// The capabilities it takes.
        needs: &'static str,
    },
    /// Another XDP program is attached to the interface; weir never replaces it.
    #[error("another XDP program is attached to `{name}`{}", known(*.program, .what.as_deref()))]
    Busy {
        /// The interface.
        name: String,
        /// The program's ID.
        program: Option<u32>,
        /// The program's name, if the kernel reports it, which takes `CAP_SYS_ADMIN`.
        what: Option<String>,
    },
    /// The interface or its driver does not support what was requested.
    #[error("interface `{name}`: {what}")]
    Unsupported {
        /// The interface.
        name: String,
        /// What is not supported, and why.
        what: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A filter expression is wrong, or does not apply to packets of this interface.
    #[error("{0}")]
    Filter(#[from] FilterError),
    /// The source cannot run a filter.
    #[error("filter of interface `{name}`: {what}")]
    FilterRefused {
        /// The interface.
        name: String,
        /// Why it cannot.
        what: String,
    },
    /// Packets cannot be forwarded between two interfaces in their present state.
    #[error("{what}")]
    Forward {
        /// Why.
        what: String,
        /// What to do.
        mend: String,
    },
    /// An interface did not accept a filter that others had accepted.
    #[error("{source}{}", had_it(back, kept))]
    FilterPutBack {
        /// Interfaces that had it for a moment, and have the previous filter again.
        back: Vec<String>,
        /// Interfaces that keep it because the previous filter could not be restored, and why.
        kept: Vec<String>,
        /// Why it was not accepted.
        source: Box<Self>,
    },
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// No pool can have these dimensions.
    #[error("pool: {0}")]
    Shape(#[from] ShapeError),
    /// There is not enough memory.
    #[error(
        "cannot capture on {what}: {} is needed, but {} is available, of which {} is kept in reserve",
        binary(*.asked), binary(*.available), binary(*.reserve)
    )]
    Memory {
        /// The interface, or how many there are.
        what: String,
        /// Bytes needed in total.
        asked: u64,
        /// Bytes available to the machine or to a control group.
        available: u64,
        /// How many of these are kept in reserve.
        reserve: u64,
        /// An option with which the memory suffices.
        fit: Option<String>,
    },
    /// Even with the smallest pools, the capture needs more memory than it may use.
    #[error(
        "cannot capture on {what}: at least {} is needed, but the capture may use only {}",
        binary(*.least), binary(*.budget)
    )]
    Budget {
        /// The interface, or how many there are.
        what: String,
        /// Bytes needed in total with the smallest pools.
        least: u64,
        /// What was requested, or an eighth of what is available.
        budget: u64,
        /// An option that suffices.
        fit: String,
    },
    /// The last handler has stopped while the capture continues.
    #[error("all handlers have stopped, so nothing processes packets")]
    NoHandlers,
    /// The kernel rejected a program.
    #[error("interface `{name}`: {source}")]
    Load {
        /// The interface.
        name: String,
        /// The messages of the kernel and the verifier.
        source: LoadError,
    },
    /// Shared memory is inconsistent.
    #[error("interface `{name}`: {source}")]
    Corrupt {
        /// The interface.
        name: String,
        /// Where it is inconsistent.
        source: Corrupt,
    },
    /// Another system call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Says which interfaces had a filter that others did not accept.
fn had_it(back: &[String], kept: &[String]) -> String {
    let mut text = String::new();
    if !back.is_empty() {
        text = format!("; {} ran it briefly; the previous filter is active again", back.join(", "));
    }
    if !kept.is_empty() {
        text += &format!(
            "; it stays active where the previous filter could not be restored ({})",
            kept.join(", ")
        );
    }
    text
}

/// Returns what is known about somebody else's program.
fn known(id: Option<u32>, name: Option<&str>) -> String {
    match (id, name) {
        (None, _) => String::new(),
        (Some(id), None) => format!(" (id {id})"),
        (Some(id), Some("xdp_dispatcher")) => {
            format!(" (id {id}, `xdp_dispatcher`: libxdp's, for several programs; weir does not join it)")
        }
        (Some(id), Some(name)) => format!(" (id {id}, `{name}`)"),
    }
}

impl Error {
    /// Returns what to do about the error, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoInterface => Some("name one with -i; `ip link` lists them".into()),
            Self::NoSuchInterface { nearest, others, .. } => {
                let meant =
                    nearest.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
                Some(format!("{meant}available: {}", others.join(", ")))
            }
            Self::InterfaceTwice { .. } => {
                Some("name each interface once; all of its queues are captured".into())
            }
            Self::InterfaceDown { name } => {
                let (inside, name) = command::place(name);
                Some(format!("bring it up: {inside}ip link set {name} up"))
            }
            Self::Namespace { mend, .. } | Self::Forward { mend, .. } => Some(mend.clone()),
            Self::Privilege { needs, .. } => {
                Some(format!("run as root, or grant the capabilities: setcap {needs}+ep $(command -v weir)"))
            }
            Self::Busy { name, .. } => {
                let (inside, name) = command::place(name);
                Some(format!(
                    "use --source tc, which runs beside it; to see whose it is: {inside}bpftool net show dev {name}"
                ))
            }
            Self::Unsupported { instead, .. } => Some((*instead).into()),
            Self::Memory { fit: Some(fit), .. } | Self::Budget { fit, .. } => Some(format!("try {fit}")),
            Self::Memory { .. } => Some("capture on fewer interfaces, or on all with -i any".into()),
            Self::Load { source, .. } if source.is_memory() => {
                Some("try fewer or smaller chunks (--chunks, --chunk-size)".into())
            }
            Self::Load { .. } => Some("use --source af_packet, which needs no eBPF".into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_interfaces_had_a_filter_is_told() {
        let error = |back: &[&str], kept: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let source = Box::new(Error::Options("no".into()));
            Error::FilterPutBack { back: owned(back), kept: owned(kept), source }.to_string()
        };
        let back = "no; eth0, eth1 ran it briefly; the previous filter is active again";
        assert_eq!(error(&["eth0", "eth1"], &[]), back);
        let kept = "no; it stays active where the previous filter could not be restored (eth0: no memory)";
        assert_eq!(error(&[], &["eth0: no memory"]), kept);
    }

    #[test]
    fn who_is_there_already_is_named_as_far_as_it_is_known() {
        let busy = |program, what: Option<&str>| {
            let error = Error::Busy { name: "eth0".into(), program, what: what.map(str::to_owned) };
            error.to_string()
        };
        assert_eq!(busy(None, None), "another XDP program is attached to `eth0`");
        assert_eq!(busy(Some(7), None), "another XDP program is attached to `eth0` (id 7)");
        assert_eq!(busy(Some(7), Some("pass")), "another XDP program is attached to `eth0` (id 7, `pass`)");
        let dispatcher = busy(Some(7), Some("xdp_dispatcher"));
        assert!(dispatcher.contains("libxdp's") && dispatcher.contains("does not join"), "{dispatcher}");
    }
}
