//! What a program that captures packets needs around the capture, whether it is `weir` or another one: confinement, the
//! processes that open its files, connect, start programs and find names, requests from outside, metrics, and the account of a run.
//!
//! Nothing here reads a command line or prints, but for the last words of a process that is interrupted again
//! ([`stop_on_signals`]). Errors and warnings are values; what a program should tell its users about options of its own is up
//! to the program.
#![forbid(unsafe_code)]

pub mod archive;
pub mod broker;
pub mod confine;
pub mod connector;
pub mod control;
pub mod describer;
mod error;
pub mod launcher;
pub mod metrics;
mod page;
mod ready;
pub mod resolver;
pub mod rules;
pub mod session;
mod signals;
pub mod summary;
mod until;

pub use self::error::{ClientError, Error, Warning};
pub use self::signals::stop_on_signals;
pub use self::until::{Budget, Stop, Until};
