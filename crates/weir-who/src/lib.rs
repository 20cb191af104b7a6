#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! the kernel's reports, /proc --> news --> register --> owner
//!                                  ^ |
//!           bytes of a file <-- wire '
//!
//!  register --> known --> packet      what is asked: ends, or what the kernel does by itself
//!                 |-----> addresses   which ends are here
//!                 |-----> sockets --> chain --> key      the table, and by what sockets are found
//!                 |          '------> socket             one life: its ends and who did what, as time went by
//!                 '-----> found ----> processes          those whose it may be, as they were then
//! ```

#![forbid(unsafe_code)]

mod addresses;
mod chain;
mod counts;
mod digest;
mod found;
mod key;
mod known;
mod news;
mod owner;
mod packet;
mod placed;
mod process;
mod processes;
mod register;
mod settings;
mod sighting;
mod socket;
mod sockets;
mod whose;
mod wire;

#[cfg(test)]
mod tests;

pub use self::counts::Counts;
pub use self::digest::Digest;
pub use self::news::News;
pub use self::owner::{Certainty, Owner, Processes};
pub use self::packet::{Question, Side};
pub use self::placed::Placed;
pub use self::process::{Container, Process, ProcessId};
pub use self::register::Register;
pub use self::settings::Settings;
pub use self::sighting::{Cause, Sighting, SocketKind};
pub use self::whose::Whose;
pub use self::wire::{WireError, decode, encode};
