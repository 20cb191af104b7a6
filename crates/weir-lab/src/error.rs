//! What can go wrong while a network is made or used.

use std::io;
use std::time::Duration;

use weir_bpf::LoadError;
use weir_sys::CallError;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that the lab runs is not there.
    #[error("`{tool}` was not found: install it (`apt-get install {package}`)")]
    MissingTool {
        /// The program.
        tool: String,
        /// Debian's name of the package that has it.
        package: &'static str,
    },
    /// A program that the lab runs has failed.
    #[error("`{command}`: {message}")]
    Tool {
        /// The command line, or the lines of a batch.
        command: String,
        /// What it printed.
        message: String,
    },
    /// A kernel call has failed.
    #[error(transparent)]
    Call(#[from] CallError),
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
