//! What can go wrong with a capture, with what to do about it.

use weir_bpf::LoadError;
use weir_ring::{Corrupt, ShapeError};
use weir_sys::CallError;

use crate::command;
use crate::filter::FilterError;
use crate::size::binary;

/// A capture that cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No interface was named.
    #[error("no interface to capture on")]
    NoInterface,
    /// An interface that this network namespace does not have.
    #[error("no interface named `{name}`")]
    NoSuchInterface {
        /// As asked for.
        name: String,
        /// The one with the most similar name.
        nearest: Option<String>,
        /// All that there are.
        others: Vec<String>,
    },
    /// The same interface twice.
    #[error("interface `{name}` is named twice")]
    InterfaceTwice {
        /// Its name.
        name: String,
    },
    /// An interface that is administratively down.
    #[error("interface `{name}` is down")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// An interface that has disappeared while being captured.
    #[error("interface `{name}` is gone")]
    InterfaceGone {
        /// Its name.
        name: String,
    },
    /// A network namespace that is not there, or no namespace at all.
    #[error("network namespace `{name}`: {what}")]
    Namespace {
        /// As asked for.
        name: String,
        /// What is wrong with it.
        what: String,
        /// What to do.
        mend: String,
    },
    /// The process may not do this.
    #[error("{operation}: permission denied")]
    Privilege {
        /// What was tried, on which interface.
        operation: String,
        /// Capabilities that it takes.
        needs: &'static str,
    },
    /// Another program's XDP program is on the interface; it is never replaced.
    #[error("another XDP program is attached to `{name}`{}", known(*.program, .what.as_deref()))]
    Busy {
        /// The interface.
        name: String,
        /// The program's id.
        program: Option<u32>,
        /// The program's name, where the kernel tells it: that takes `CAP_SYS_ADMIN`.
        what: Option<String>,
    },
    /// The interface or its driver cannot do what was asked.
    #[error("interface `{name}`: {what}")]
    Unsupported {
        /// The interface.
        name: String,
        /// What it cannot do, and why.
        what: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A filter expression that is wrong, or not for packets of this interface.
    #[error("{0}")]
    Filter(#[from] FilterError),
    /// A filter that the source cannot run.
    #[error("filter of interface `{name}`: {what}")]
    FilterRefused {
        /// The interface.
        name: String,
        /// Why it cannot.
        what: String,
    },
    /// Interfaces that packets cannot be forwarded between, as things are.
    #[error("{what}")]
    Forward {
        /// Why.
        what: String,
        /// What to do.
        mend: String,
    },
    /// A filter that one interface did not take after others had.
    #[error("{source}{}", had_it(back, kept))]
    FilterPutBack {
        /// Interfaces that had it for a moment, and have the filter before again.
        back: Vec<String>,
        /// Interfaces that have it still, as what was before could not be put there again, and why.
        kept: Vec<String>,
        /// Why it was not taken.
        source: Box<Self>,
    },
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// Measures that no pool can have.
    #[error("pool: {0}")]
    Shape(#[from] ShapeError),
    /// More memory than there is.
    #[error(
        "cannot capture on {what}: it needs {}, but {} is available, of which {} is kept in reserve",
        binary(*.asked), binary(*.available), binary(*.reserve)
    )]
    Memory {
        /// The interface, or how many there are.
        what: String,
        /// Bytes that all of it takes.
        asked: u64,
        /// Bytes that are available: to the machine, or to a control group.
        available: u64,
        /// Those of them that are left to others.
        reserve: u64,
        /// An option that there is memory for.
        fit: Option<String>,
    },
    /// More memory, with the smallest pools, than the capture may take.
    #[error(
        "cannot capture on {what}: it needs at least {}, but the capture may use only {}",
        binary(*.least), binary(*.budget)
    )]
    Budget {
        /// The interface, or how many there are.
        what: String,
        /// Bytes that all of it takes, with the smallest pools.
        least: u64,
        /// What was asked for, or an eighth of what is available.
        budget: u64,
        /// An option that is enough.
        fit: String,
    },
    /// Handlers were asked for, and the last of them has gone while the capture went on.
    #[error("all handlers have stopped, and nothing takes packets")]
    NoHandlers,
    /// A program that the kernel did not take.
    #[error("interface `{name}`: {source}")]
    Load {
        /// The interface.
        name: String,
        /// The kernel's and the verifier's words.
        source: LoadError,
    },
    /// Shared memory that contradicts itself.
    #[error("interface `{name}`: {source}")]
    Corrupt {
        /// The interface.
        name: String,
        /// Where.
        source: Corrupt,
    },
    /// Any other call that failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Which interfaces had a filter that was not taken by all.
fn had_it(back: &[String], kept: &[String]) -> String {
    let mut text = String::new();
    if !back.is_empty() {
        text = format!("; {} had it briefly; the previous filter is in force again", back.join(", "));
    }
    if !kept.is_empty() {
        text += &format!(
            "; it stays in force where the previous filter could not be restored ({})",
            kept.join(", ")
        );
    }
    text
}

/// What there is to say of another's program.
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
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoInterface => Some("name one with -i; `ip link` lists them".into()),
            Self::NoSuchInterface { nearest, others, .. } => {
                let meant =
                    nearest.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
                Some(format!("{meant}there are: {}", others.join(", ")))
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
            Self::Load { .. } => Some("--source af_packet needs no eBPF".into()),
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
        let back = "no; eth0, eth1 had it briefly; the previous filter is in force again";
        assert_eq!(error(&["eth0", "eth1"], &[]), back);
        let kept = "no; it stays in force where the previous filter could not be restored (eth0: no memory)";
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
