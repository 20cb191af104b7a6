//! Private networks for tests and measurements, with traffic that is known packet by packet.
//!
//! A [`Network`] consists of two namespaces, `tx` and `rx`, connected by veth pairs. A [`Generator`] fills a pair with
//! numbered frames at full or limited rate, a [`FrameSender`] sends any frame of any size, and [`tcp_transfer`] moves
//! bytes between real sockets. A [`SequenceCheck`] proves that nothing received is missing, duplicated, out of order or
//! changed. A [`Hook`] is the smallest possible receiver, the upper limit for all others.
//!
//! Namespaces, devices and programs have no names in the system and need no cleanup: they disappear with the process
//! that created them, however it ends.
//!
//! ```no_run
//! use weir_lab::{Generator, Hook, Network, Traffic, Action, Veth};
//!
//! # fn main() -> Result<(), weir_lab::Error> {
//! let network = Network::new(Veth::default())?;
//! let hook = Hook::attach(&network.pair().rx, Action::Drop)?;
//! let traffic = Traffic::new(60)?.flows(8)?.between(network.pair());
//! let report = Generator::new(network.pair(), &traffic)?.send(1_000_000)?;
//! assert_eq!(hook.packets(), report.accepted);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod borrowed;
mod counters;
mod error;
mod generator;
#[cfg(feature = "hooks")]
mod hook;
mod network;
#[cfg(feature = "hooks")]
pub mod programs;
mod refuse;
mod root;
mod sender;
mod sequence;
#[cfg(feature = "hooks")]
mod tagging;
mod tcp;
mod traffic;
mod udp;

pub use counters::{LinkCounters, StackCounters};
pub use error::Error;
pub use generator::{Generator, Rate, SendReport};
#[cfg(feature = "hooks")]
pub use hook::{FrameCheck, Hook};
pub use network::Network;
#[cfg(feature = "hooks")]
pub use programs::hooks::{Action, Checked};
pub use refuse::{Call, refuse};
pub use root::{require_kernel, require_root};
pub use sender::FrameSender;
pub use sequence::{FlowCounters, SequenceCheck, SequenceReport};
#[cfg(feature = "hooks")]
pub use tagging::Tagging;
pub use tcp::{TcpReport, tcp_transfer};
pub use traffic::{Checker, Corrupt, Traffic};
pub use udp::UdpSink;
pub use weir_lab_macros::root_test;
pub use weir_sys::netns::NetNs;
pub use weir_sys::pair::{Pair, Port, Veth};
