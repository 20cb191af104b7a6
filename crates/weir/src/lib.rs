//! Lossless packet capture on stock Linux.
//!
//! ```text
//!            kernel                            | shared memory |           process
//! NIC queue -> [program] -> record in a chunk  |     pool      | -> Capture -> Chunk -> your code, Writer, ...
//!              <- next empty chunk             |  <- ring      | <-------------' dropped
//! ```
//!
//! A [`Builder`] opens a [`Capture`]. A capture yields [`Chunk`]s, and a chunk yields [`Packet`]s: slices of the memory
//! that the kernel wrote. Borrow each chunk in a callback ([`Capture::run`]), or own it and drop it later, on any
//! thread ([`Capture::next`]). Several threads can take chunks at once, each through a [`Handler`]; or one thread can
//! take the packets of all queues in timestamp order ([`Builder::by_time`]). Event loops poll the capture's descriptor and
//! call [`Capture::try_next`]. An [`Account`] says what happened to every packet; an [`Observer`] reads it in another
//! thread, and a [`StopHandle`] stops the capture from anywhere.
//!
//! ```no_run
//! # fn main() -> Result<(), weir::Error> {
//! let mut capture = weir::Capture::builder().interface("eth0").open()?;
//! capture.run(|chunk| {
//!     for packet in chunk {
//!         println!("{} {} bytes", packet.timestamp, packet.data.len());
//!     }
//!     std::ops::ControlFlow::Continue(())
//! })
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod account;
pub mod command;
pub mod filter;
pub mod forward;
pub mod probe;
pub mod reader;
pub mod writer;

/// The network interfaces of this host.
pub mod link {
    pub use weir_sys::link::{Link, links};
}

mod bell;
mod builder;
mod capture;
mod choose;
mod chunk;
mod error;
mod event;
mod file_interface;
mod handlers;
mod interface;
mod memory;
mod merge;
mod namespace;
mod observer;
mod opened;
mod outlet;
mod patience;
mod peer;
mod port;
mod ports;
#[cfg(test)]
mod simulated;
mod site;
mod size;
mod source;
mod steering;
mod stop;
mod waker;

pub use account::{
    Account, HandlerAccount, InterfaceAccount, NicCounters, PoolFill, QueueAccount, Strays, Tally, TimeOrder,
};
pub use builder::{
    Builder, DEFAULT_CHUNK_SIZE, DEFAULT_CHUNKS, DEFAULT_SNAP_LEN, Delivery, Direction, Mode, Opening,
    SourceChoice, Timestamps, Window,
};
pub use capture::Capture;
pub use choose::{Choice, choice, untold_tags};
pub use chunk::{Chunk, Packet, Packets};
pub use error::Error;
pub use event::{Change, Event};
pub use file_interface::FileInterface;
pub use filter::Filter;
pub use forward::Forward;
pub use handlers::{DEFAULT_THRESHOLD, Handler, HandlerState, Order, Plan, Share, SharePackets};
pub use interface::Interface;
pub use memory::pool_of;
pub use namespace::Namespace;
pub use observer::Observer;
pub use steering::{MOST_TARGETS, Steer};
pub use stop::StopHandle;
pub use weir_savefile::Notes;
