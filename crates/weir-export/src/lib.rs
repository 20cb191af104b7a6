//! Takes what weir has written elsewhere, in a program of its own: `weir-export`. It needs libraries, and an async runtime, that do
//! not belong in a process that captures. Without the feature `program` there is only its command line, for `weir ship`,
//! which starts the program.
#![forbid(unsafe_code)]

mod args;
#[cfg(feature = "program")]
mod ship;

pub use self::args::ShipArgs;
#[cfg(feature = "program")]
pub use self::ship::run as ship;
