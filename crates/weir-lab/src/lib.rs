//! Private networks for tests, demonstrations and measurements, and traffic whose every packet is known beforehand.
//!
//! A [`Network`] is two namespaces, `tx` and `rx`, joined by veth pairs. A [`Generator`] fills a pair with numbered
//! frames at the full rate of the machine or at a chosen one, a [`FrameSender`] sends any frame of any size, and
//! [`tcp_transfer`] moves bytes between real sockets. A [`SequenceCheck`] proves of what was received that nothing is
//! missing, doubled, out of order or changed. A [`Hook`] is the smallest possible receiver, the limit for all others.
//!
//! Nothing of it has a name in the system and nothing has to be removed: namespaces, devices and programs are gone when
//! the process that made them is, however it ends.
//!
//! ```no_run
//! use weir_lab::{Generator, Hook, Network, Traffic, Verdict, Veth};
//!
//! # fn main() -> Result<(), weir_lab::Error> {
//! let network = Network::new(Veth::default())?;
//! let hook = Hook::attach(&network.pair().rx, Verdict::Drop)?;
//! let traffic = Traffic::new(60)?.flows(8)?.between(network.pair());
//! let report = Generator::new(network.pair(), &traffic)?.send(1_000_000)?;
//! assert_eq!(hook.packets(), report.accepted);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod counters;
mod error;
mod generator;
mod hook;
mod network;
mod refuse;
mod root;
mod sender;
mod sequence;
mod tagging;
mod tcp;
mod traffic;
mod udp;

pub use counters::{LinkCounters, StackCounters};
pub use error::Error;
pub use generator::{Generator, Rate, SendReport};
pub use hook::{FrameCheck, Hook};
pub use network::{Network, Pair, Port, Veth};
pub use refuse::{Call, refuse};
pub use root::{require_kernel, require_root};
pub use sender::FrameSender;
pub use sequence::{FlowTally, SequenceCheck, SequenceReport};
pub use tagging::Tagging;
pub use tcp::{TcpReport, tcp_transfer};
pub use traffic::{Checker, Corrupt, Traffic};
pub use udp::UdpSink;
pub use weir_bpf::lab::{Checked, Verdict};
pub use weir_sys::netns::NetNs;
