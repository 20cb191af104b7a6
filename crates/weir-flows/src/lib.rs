#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! frame -> seen -> table -> flow, to your code
//!            |       |
//!            |       '- entry    what is kept of a flow, packed
//!            |       '- wheel    when to look at it again
//!            |       '- names    what the application said
//!            |             |- quic  decrypts what QUIC's client says
//!            |             '- ja4   which program has said it
//!            |- fragments        ports of later fragments
//!            '- losses           what was lost when
//! ```
//!
//! - `flow`: a flow as it is handed out, and why it has ended.
//! - `community`: a name for it that other programs have, too.
//! - `settings`: what can be chosen.
//! - `counts`: what became of every packet.
//! - `counted`: packets that others have counted, in the kernel.
//! - [`export`]: flows as messages of IPFIX and NetFlow.

#![forbid(unsafe_code)]

mod community;
mod counted;
mod counts;
mod entry;
pub mod export;
mod flow;
mod fragments;
mod ja4;
mod losses;
mod names;
mod quic;
mod seen;
mod settings;
mod table;
mod wheel;

pub use self::counted::Counted;
pub use self::counts::Counts;
pub use self::flow::{EndReason, Flow, Icmp, Names, Rank, Side, Tcp};
pub use self::seen::Observation;
pub use self::settings::Settings;
pub use self::table::Table;
