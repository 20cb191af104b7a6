//! Takes what weir has written elsewhere, in a program of its own: `weir-export`. It needs libraries, and an async runtime, that do
//! not belong in a process that captures. Without the feature `program` there is only what weir needs to start and use the program: its command
//! line, and what it is told.
#![forbid(unsafe_code)]

mod args;
mod kafka;
#[cfg(feature = "program")]
mod ship;

pub use self::args::ShipArgs;
#[cfg(feature = "program")]
pub use self::kafka::run as kafka;
pub use self::kafka::{KafkaArgs, wire};
#[cfg(feature = "program")]
pub use self::ship::run as ship;
