//! What can go wrong while a network is made or used.

use std::io;
use std::time::Duration;

use weir_bpf::LoadError;
use weir_sys::CallError;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kernel call has failed.
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Call(#[from] CallError),
    /// The driver does not count what the lab needs.
    #[error("the driver of {interface} has no counter {counter}: the generator needs veth")]
    NoCounter {
        /// The interface.
        interface: String,
        /// The counter's name.
        counter: String,
    },
    /// The kernel did not take an eBPF program.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Something with files or sockets has failed.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried.
        operation: String,
        /// The answer.
        source: io::Error,
    },
    /// An interface has no carrier.
    #[error("interface {interface} did not come up within {waited:?}")]
    NoCarrier {
        /// The interface.
        interface: String,
        /// How long it had.
        waited: Duration,
    },
    /// A number that cannot be.
    #[error("{what} of {value}: must be from {least} to {most}")]
    OutOfRange {
        /// What the number says.
        what: &'static str,
        /// The number.
        value: u64,
        /// The smallest that can be.
        least: u64,
        /// The largest that can be.
        most: u64,
    },
    /// A frame for the generator is too long.
    #[error(
        "frames of {size} bytes do not fit into a page as live frames must (about 3400 of 4096 bytes): send them one by one, with a FrameSender"
    )]
    TooLongForLiveFrames {
        /// Bytes of a frame.
        size: usize,
    },
}

/// What can be done about an answer of the kernel, where that is known.
fn remedy(error: &CallError) -> &'static str {
    match error.errno() {
        libc::EPERM => ": run as root, or with CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_BPF",
        libc::ENOSPC if error.operation.contains("namespace") => ": see /proc/sys/user/max_net_namespaces",
        libc::EOPNOTSUPP if error.operation.contains("veth pair") => ": load the module veth",
        _ if error.operation.starts_with("switch feature") => ": `ethtool -k` has what can be switched",
        _ => "",
    }
}

impl Error {
    /// Gives an `io::Error` the operation that met it; for `map_err`.
    pub(crate) fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Io { operation, source }
    }

    /// `value` if it lies in the range, else the error that says so.
    pub(crate) fn check_range(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), Self> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(Self::OutOfRange { what, value, least, most })
    }
}
