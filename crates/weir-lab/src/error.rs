//! Errors of making and using a network.

use std::io;

use weir::send::SendError;
use weir_bpf::LoadError;
use weir_sys::{CallError, pair};

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kernel call failed.
    #[error("{0}{remedy}", remedy = pair::remedy(.0))]
    Call(#[from] CallError),
    /// The driver lacks a counter that the lab needs.
    #[error("the driver of {interface} has no counter {counter}: the generator needs veth")]
    NoCounter {
        /// Interface name.
        interface: String,
        /// Counter name.
        counter: String,
    },
    /// The kernel rejected an eBPF program.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The generator cannot be opened.
    #[error(transparent)]
    Open(#[from] weir::Error),
    /// The generator failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A file or socket operation failed.
    #[error("{operation}: {source}")]
    Io {
        /// The operation.
        operation: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A number outside its range.
    #[error("{what} of {value}: must be from {least} to {most}")]
    OutOfRange {
        /// Meaning of the number.
        what: &'static str,
        /// The number.
        value: u64,
        /// The smallest valid number.
        least: u64,
        /// The largest valid number.
        most: u64,
    },
    /// A frame for the generator is too long.
    #[error(
        "frames of {size} bytes do not fit into a page as live frames must (about 3400 of 4096 bytes): send them one by one, with a FrameSender"
    )]
    TooLongForLiveFrames {
        /// Frame length in bytes.
        size: usize,
    },
}

impl Error {
    /// Adds the failed operation to an `io::Error`; for `map_err`.
    pub(crate) fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Io { operation, source }
    }

    /// Returns `value` if it is in the range, otherwise an error that names the range.
    pub(crate) fn check_range(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), Self> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(Self::OutOfRange { what, value, least, most })
    }
}
