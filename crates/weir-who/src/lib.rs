#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! the kernel's reports, /proc --> sighting --> register --> owner
//!                                    ^            |
//!                                    '- process   '- packet: what is asked
//!  bytes of a file <---- wire ----> news
//! ```

#![forbid(unsafe_code)]

mod counts;
mod digest;
mod news;
mod owner;
mod packet;
mod placed;
mod process;
mod register;
mod settings;
mod sighting;
mod whose;
mod wire;

pub use self::counts::Counts;
pub use self::digest::Digest;
pub use self::news::News;
pub use self::owner::{Certainty, Owner, Processes};
pub use self::packet::{Question, Side};
pub use self::placed::{container, unit};
pub use self::process::{Container, Process, ProcessId};
pub use self::register::Register;
pub use self::settings::Settings;
pub use self::sighting::{Cause, Sighting, SocketKind};
pub use self::whose::Whose;
pub use self::wire::{WireError, decode, encode};
