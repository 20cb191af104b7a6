//! Errors of a capture, with hints.

pub mod command;
pub(crate) mod holders;
pub(crate) mod kind;
pub(crate) mod setting;
pub(crate) mod size;
pub(crate) mod unsupported;

use std::borrow::Cow;
use std::fmt;

use weir_bpf::LoadError;
use weir_ring::{Corrupt, ShapeError};
use weir_sys::CallError;

use self::holders::Holder;
use self::setting::Setting;
use self::size::binary;
use self::unsupported::Unsupported;
use crate::filter::{ExpressionError, FilterError};
use crate::live::settings::SourceChoice;

/// The capabilities that programs need: for themselves and their maps; for a length as the difference of two pointers,
/// which the verifier allows only to those who may trace the kernel; for attaching; and for promiscuous mode.
pub(crate) const NEEDS: &str = "cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw";

/// Translates the kernel's error when it does not load a program.
pub(crate) fn not_loaded(name: &str, source: LoadError) -> Error {
    if source.is_permission() {
        return Error::Privilege { operation: format!("load eBPF program for `{name}`"), needs: NEEDS };
    }
    Error::Load { name: Some(name.to_owned()), source }
}

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
    /// An interface was named although `any` includes it.
    #[error("`{any}` already includes `{name}`: name only one of them")]
    InterfaceIncluded {
        /// The name that stands for all interfaces.
        any: String,
        /// The interface.
        name: String,
    },
    /// The capture has no interface with this number.
    #[error("the capture has no interface {number}")]
    NoSuchNumber {
        /// The number.
        number: u32,
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
    /// The start was ended, as [`Builder::open_telling`](crate::Builder::open_telling) allows.
    #[error("interrupted with {open} of {all} interfaces open")]
    Interrupted {
        /// How many were open.
        open: usize,
        /// How many were requested.
        all: usize,
    },
    /// A network namespace does not exist, or the name refers to something else.
    #[error("network namespace `{name}`: {source}")]
    Namespace {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        source: Problem,
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
    #[error("{} XDP program{} is attached to `{name}`{}", whose(.holder.as_ref()).0, whose(.holder.as_ref()).1,
        known(*.program, .program_name.as_deref(), .holder.as_ref()))]
    Busy {
        /// The interface.
        name: String,
        /// The program's ID.
        program: Option<u32>,
        /// The program's name, if the kernel reports it, which takes `CAP_SYS_ADMIN`.
        program_name: Option<String>,
        /// A process that holds the program, if this user may see one.
        holder: Option<Holder>,
    },
    /// Another program has an AF_XDP socket on a queue of the interface.
    #[error("interface `{name}`: another program has an AF_XDP socket on the queue ({source})")]
    QueueBusy {
        /// The interface.
        name: String,
        /// The kernel's answer, which names the queue.
        source: CallError,
    },
    /// The interface or its driver does not support what was requested.
    #[error("interface `{name}`: {cause}")]
    Unsupported {
        /// The interface.
        name: String,
        /// What is not supported.
        cause: Unsupported,
        /// The sources that support it.
        sources: &'static [SourceChoice],
        /// What else to do; may be empty.
        otherwise: &'static str,
    },
    /// A filter expression is wrong, or does not apply to packets of this interface.
    #[error("{0}")]
    Filter(#[from] FilterError),
    /// The source cannot run a filter.
    #[error("filter of interface `{name}`: {source}")]
    FilterRefused {
        /// The interface.
        name: String,
        /// Why it cannot.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Members for a set of a filter are invalid.
    #[error("members of `@{set}`: {}", .source.message)]
    Members {
        /// The name of the set.
        set: String,
        /// What is wrong with them.
        source: ExpressionError,
    },
    /// The filter of an interface has no set of the name that was asked for that can be changed.
    #[error("the filter on `{name}` has no set of this name that can be changed")]
    NoSuchSet {
        /// The interface.
        name: String,
    },
    /// Some members of a set may have changed, but not all.
    #[error("set `@{set}` may have changed in part: {source}")]
    SetPartlyChanged {
        /// The name of the set.
        set: String,
        /// Why not all.
        source: Box<Self>,
    },
    /// What is to stay in the kernel without a process cannot be kept, or what has stayed there cannot be used.
    #[error(transparent)]
    Pins(Problem),
    /// Packets cannot be forwarded between two interfaces in their present state.
    #[error(transparent)]
    Forward(Problem),
    /// There are several reasons why packets cannot be forwarded.
    #[error("{}", joined(faults, "; ", |fault| Some(fault.to_string())))]
    ForwardFaults {
        /// All of them.
        faults: Vec<Self>,
    },
    /// A driver does not run the program that forwards packets.
    #[error(transparent)]
    ForwardDriver(Problem),
    /// Forwarded packets would lose their VLAN tags, or the filter needs the lost tags.
    #[error(
        "the driver of `{name}` strips VLAN tags and does not report them to XDP: {}",
        if *.filtered { "the filter cannot match them" } else { "tagged packets would lose their tags" }
    )]
    ForwardTags {
        /// The receiving interface.
        name: String,
        /// The command that keeps the tags.
        keep: String,
        /// Losing the tags was accepted, but the filter needs them.
        filtered: bool,
    },
    /// The kernel already forwards between these interfaces, without a process.
    #[error("the kernel already forwards from `{from}` to `{to}`")]
    AlreadyForwarding {
        /// The receiving interface.
        from: String,
        /// The sending interface.
        to: String,
    },
    /// Another process is starting or ending forwarding between these interfaces at this moment.
    #[error("another process is starting or ending forwarding from `{from}` to `{to}`")]
    ForwardingChanges {
        /// The receiving interface.
        from: String,
        /// The sending interface.
        to: String,
    },
    /// Nothing is forwarded there. The remedy lists what is forwarded.
    #[error(transparent)]
    NotForwarding(Problem),
    /// One of the interfaces whose forwarding was asked for does not exist, or no longer exists.
    #[error("no interface named `{name}`")]
    NoSuchEndpoint {
        /// The name as given.
        name: String,
    },
    /// What the kernel forwards is not visible in this mount namespace.
    #[error("cannot tell what the kernel forwards: {place} is not a bpffs here")]
    ForwardingHidden {
        /// Where the bpffs should be.
        place: &'static str,
        /// The interfaces that were asked for; `None`: all.
        endpoints: Option<[String; 2]>,
    },
    /// An interface did not accept a filter that others had accepted.
    #[error("{source}{}", had_it(back, kept))]
    FilterPutBack {
        /// Interfaces that had it for a moment, and have the previous filter again.
        back: Vec<String>,
        /// Interfaces that keep it because the previous filter could not be restored.
        kept: Vec<KeptFilter>,
        /// Why it was not accepted.
        source: Box<Self>,
    },
    /// A setting has a value that it cannot have here.
    #[error("{why}")]
    Setting {
        /// The setting.
        setting: Setting,
        /// Why it cannot.
        why: String,
    },
    /// Two settings contradict each other.
    #[error("{why}")]
    Conflict {
        /// One of them.
        one: Setting,
        /// The other.
        other: Setting,
        /// Why they do.
        why: String,
    },
    /// No pool can have these dimensions.
    #[error("pool: {0}")]
    Shape(#[from] ShapeError),
    /// There is not enough memory.
    #[error(
        "cannot capture on {interfaces}: {} is needed, but {} is available, of which {} is kept in reserve",
        binary(*.asked), binary(*.available), binary(*.reserve)
    )]
    Memory {
        /// The interfaces that share the memory.
        interfaces: Interfaces,
        /// Bytes needed in total.
        asked: u64,
        /// Bytes available to the machine or to a control group.
        available: u64,
        /// How many of these are kept in reserve.
        reserve: u64,
        /// What would fit.
        fit: Option<Fit>,
    },
    /// Even with the smallest pools, the capture needs more memory than it may use.
    #[error(
        "cannot capture on {interfaces}: at least {} is needed, but the capture may use only {}",
        binary(*.least), binary(*.budget)
    )]
    Budget {
        /// The interfaces that share the memory.
        interfaces: Interfaces,
        /// Bytes needed in total with the smallest pools.
        least: u64,
        /// What was requested, or an eighth of what is available.
        budget: u64,
        /// A budget that suffices, in whole MiB.
        enough: u64,
    },
    /// The last handler has stopped while the capture continues.
    #[error("all handlers have stopped, so nothing processes packets")]
    NoHandlers,
    /// The kernel rejected a program.
    #[error("{}{source}", name.as_ref().map(|name| format!("interface `{name}`: ")).unwrap_or_default())]
    Load {
        /// The interface; `None`: the program was only to be loaded.
        name: Option<String>,
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

/// An interface that keeps a filter, as [`Error::FilterPutBack`] reports it.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptFilter {
    /// The interface.
    pub name: String,
    /// Why the previous filter could not be restored.
    pub why: Error,
}

impl fmt::Display for KeptFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

/// What is wrong, and what to do about it, in words.
#[derive(Debug)]
pub struct Problem {
    what: String,
    remedy: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), source: None }
    }

    /// Makes a problem with the text of `error`, which is its source.
    #[cfg(any(feature = "forward", test))]
    pub(crate) fn of(error: Error, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self::new(error.to_string(), remedy).because(error)
    }

    /// Adds the error behind it.
    pub(crate) fn because(self, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(error)), ..self }
    }

    /// Returns what to do.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|error| error as _)
    }
}

/// The interfaces that need the memory of [`Error::Memory`] or [`Error::Budget`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interfaces {
    /// One, of this name.
    One(String),
    /// This number of them.
    Several(usize),
}

impl fmt::Display for Interfaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(name) => write!(f, "`{name}`"),
            Self::Several(number) => write!(f, "{number} interfaces"),
        }
    }
}

/// Settings for which there is enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// A pool of this size per queue.
    Chunks {
        /// For [`Builder::chunks`](crate::Builder::chunks).
        chunks: u32,
        /// For [`Builder::chunk_size`](crate::Builder::chunk_size).
        chunk_size: u32,
    },
    /// A budget for the whole capture: bytes, in whole MiB, for [`Builder::memory`](crate::Builder::memory).
    Memory(u64),
}

/// Says which interfaces had a filter that others did not accept.
fn had_it(back: &[String], kept: &[KeptFilter]) -> String {
    let mut text = String::new();
    if !back.is_empty() {
        text = format!("; {} ran it briefly; the previous filter is active again", back.join(", "));
    }
    if !kept.is_empty() {
        text += &format!(
            "; it stays active where the previous filter could not be restored ({})",
            kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    text
}

/// Returns what is known about somebody else's program.
fn known(id: Option<u32>, name: Option<&str>, holder: Option<&Holder>) -> String {
    let Some(id) = id else { return String::new() };
    let name = match name {
        None => String::new(),
        Some("xdp_dispatcher") => {
            ", `xdp_dispatcher`: libxdp's, for several programs; weir does not join it".to_owned()
        }
        Some(name) => format!(", `{name}`"),
    };
    let holder = holder.map(|holder| format!("; {holder}")).unwrap_or_default();
    format!(" (id {id}{name}{holder})")
}

/// Returns what is before and behind the words "XDP program".
fn whose(holder: Option<&Holder>) -> (&'static str, &'static str) {
    match holder {
        Some(holder) if holder.is_weir() => ("an", " of another weir"),
        _ => ("another", ""),
    }
}

/// Returns whether one of these capabilities, separated by commas, amounts to root: nobody is advised to give it to a
/// program's file, and so to everybody who may run it.
pub fn is_root(needs: &str) -> bool {
    needs.split(',').any(|one| ["cap_dac_override", "cap_sys_admin", "cap_sys_ptrace"].contains(&one))
}

impl Error {
    /// Returns the error of two settings that contradict each other.
    pub(crate) fn conflict(one: Setting, other: Setting, why: impl Into<String>) -> Self {
        Self::Conflict { one, other, why: why.into() }
    }

    /// Returns the error of a setting with a value that it cannot have.
    pub(crate) fn setting(setting: Setting, why: impl Into<String>) -> Self {
        Self::Setting { setting, why: why.into() }
    }

    /// Returns what to do about the error, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoInterface => Some("name one; `ip link` lists them".into()),
            Self::NoSuchInterface { nearest, others, .. } => {
                let meant =
                    nearest.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
                Some(format!("{meant}available: {}", others.join(", ")))
            }
            Self::InterfaceTwice { .. } => {
                Some("name each interface once, with all of its queues or one range of them".into())
            }
            Self::InterfaceDown { name } => {
                let (inside, name) = command::place(name);
                Some(format!("bring it up: {inside}ip link set {name} up"))
            }
            Self::Namespace { source: problem, .. }
            | Self::Pins(problem)
            | Self::Forward(problem)
            | Self::ForwardDriver(problem)
            | Self::NotForwarding(problem) => Some(problem.remedy().to_owned()),
            Self::ForwardFaults { faults } => Some(joined(faults, "; then: ", Self::hint)),
            Self::ForwardTags { keep, filtered: true, .. } => Some(format!("to keep the tags: {keep}")),
            Self::ForwardTags { keep, .. } => {
                Some(format!("to keep the tags: {keep}; or accept the loss of the tags"))
            }
            Self::AlreadyForwarding { .. } => Some("end it first".into()),
            Self::ForwardingChanges { .. } => Some("try again".into()),
            Self::NoSuchEndpoint { .. } => {
                Some("what stays in the kernel can be listed, even for deleted interfaces".into())
            }
            Self::ForwardingHidden { .. } => Some("`ip netns exec` hides it; run this outside".into()),
            Self::Privilege { needs, .. } if is_root(needs) => Some("run as root".into()),
            Self::Privilege { needs, .. } => Some(format!("run as root, or with the capabilities {needs}")),
            Self::Busy { name, .. } => {
                let (inside, name) = command::place(name);
                Some(format!(
                    "use the tc source, which runs beside it; to see whose it is: {inside}bpftool net show dev {name}"
                ))
            }
            Self::QueueBusy { .. } => Some("end that program, or use the xdp or tc source".into()),
            Self::Unsupported { sources, otherwise, .. } => {
                let names: Vec<_> = sources.iter().map(|source| source.as_str()).collect();
                let sources = (!names.is_empty()).then(|| format!("use the {} source", names.join(" or ")));
                let otherwise = (!otherwise.is_empty()).then(|| (*otherwise).to_owned());
                let advice: Vec<_> = sources.into_iter().chain(otherwise).collect();
                (!advice.is_empty()).then(|| advice.join(", or "))
            }
            Self::Memory { fit: Some(Fit::Chunks { chunks, chunk_size }), .. } => {
                Some(format!("try {chunks} chunks of {} per queue", binary((*chunk_size).into())))
            }
            Self::Memory { fit: Some(Fit::Memory(enough)), .. } | Self::Budget { enough, .. } => {
                Some(format!("let the capture use {}", binary(*enough)))
            }
            Self::Memory { .. } => Some("capture on fewer interfaces, or on all of them as `any`".into()),
            Self::Load { source, .. } if source.is_memory() => Some("try fewer or smaller chunks".into()),
            Self::Load { .. } => Some("use the af_packet source, which needs no eBPF".into()),
            Self::Call(error) if error.operation.starts_with("detach tc filters") => {
                Some("the next capture or guard on the interface removes them; to see them: tc filter show dev IF ingress".into())
            }
            Self::Call(error) if error.operation.starts_with("detach ") => {
                Some("to see what is still attached: bpftool net; what was not to stay goes with the process".into())
            }
            _ => None,
        }
    }
}

/// Returns what `said` returns for all faults.
fn joined(faults: &[Error], between: &str, said: impl Fn(&Error) -> Option<String>) -> String {
    faults.iter().filter_map(said).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::error::holders::tests::holder;

    #[test]
    fn which_interfaces_had_a_filter_is_told() {
        let error = |back: &[&str], kept: &[&str]| {
            let back = back.iter().map(|&name| name.to_owned()).collect();
            let why = || Error::setting(Setting::Filter, "no memory");
            let kept = kept.iter().map(|&name| KeptFilter { name: name.to_owned(), why: why() }).collect();
            let source = Box::new(Error::setting(Setting::Filter, "no"));
            Error::FilterPutBack { back, kept, source }.to_string()
        };
        let back = "no; eth0, eth1 ran it briefly; the previous filter is active again";
        assert_eq!(error(&["eth0", "eth1"], &[]), back);
        let kept = "no; it stays active where the previous filter could not be restored (eth0: no memory)";
        assert_eq!(error(&[], &["eth0"]), kept);
    }

    #[test]
    fn a_problem_says_what_its_cause_does_and_keeps_it() {
        let busy = || Error::Busy { name: "eth0".into(), program: Some(7), program_name: None, holder: None };
        let error = Error::Forward(Problem::of(busy(), "end it"));
        assert_eq!((error.to_string(), error.hint()), (busy().to_string(), Some("end it".into())));
        let source = std::error::Error::source(&error).expect("a cause");
        assert!(matches!(source.downcast_ref(), Some(Error::Busy { program: Some(7), .. })), "{source:?}");

        let gone = CallError::new("open it", std::io::Error::from_raw_os_error(2));
        let source = Problem::new("no such file: x", "look").because(gone);
        let error = Error::Namespace { name: "x".into(), source };
        assert_eq!(error.to_string(), "network namespace `x`: no such file: x");
        let problem = std::error::Error::source(&error).expect("what is wrong");
        assert!(problem.source().expect("a cause").is::<CallError>(), "{problem:?}");
    }

    #[test]
    fn who_is_there_already_is_named_as_far_as_it_is_known() {
        let busy = |program, called: Option<&str>| {
            let program_name = called.map(str::to_owned);
            Error::Busy { name: "eth0".into(), program, program_name, holder: None }.to_string()
        };
        let held = |command: &str, line: &str| {
            let (name, program_name) = ("eth0".to_owned(), Some("capture".to_owned()));
            Error::Busy { name, program: Some(7), program_name, holder: Some(holder(command, line)) }
                .to_string()
        };
        assert_eq!(
            held("weir", "weir capture -i eth0"),
            "an XDP program of another weir is attached to `eth0` (id 7, `capture`; process 4711: weir capture -i eth0)"
        );
        assert_eq!(
            held("xdpdump", ""),
            "another XDP program is attached to `eth0` (id 7, `capture`; process 4711: xdpdump)"
        );
        assert_eq!(busy(None, None), "another XDP program is attached to `eth0`");
        assert_eq!(busy(Some(7), None), "another XDP program is attached to `eth0` (id 7)");
        assert_eq!(busy(Some(7), Some("pass")), "another XDP program is attached to `eth0` (id 7, `pass`)");
        let dispatcher = busy(Some(7), Some("xdp_dispatcher"));
        assert!(dispatcher.contains("libxdp's") && dispatcher.contains("does not join"), "{dispatcher}");
    }
}
