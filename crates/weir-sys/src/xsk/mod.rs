//! AF_XDP sockets: packets redirected by an XDP program, and packets to send, in memory that the process shares with
//! the kernel.
//!
//! ```text
//!            fill ring: addresses of empty frames                 one writer: this process
//! process ------------------------------------------> kernel
//!         <------------------------------------------
//!            receive ring: addresses, lengths of full ones        one writer: the kernel
//!
//!            transmit ring: addresses, lengths of full frames     one writer: this process
//! process ------------------------------------------> kernel
//!         <------------------------------------------
//!            completion ring: addresses of those sent             one writer: the kernel
//! ```
//!
//! A [`Frame`] is an owned value: while the kernel has a frame, there is no such value. Frames belong to a [`Umem`],
//! which any number of sockets can share: a packet received on one socket can be sent on another without a copy.
//!
//! The unsafe code below relies on these rules:
//!
//! - **X1** A ring's words and entries are aligned and lie inside its mapping; checked when it is mapped.
//! - **X2** Rings are only accessed with atomic loads and stores; each entry is loaded once, and the copy is checked.
//! - **X3** There is at most one [`Frame`] of each frame, and none while its address is in a ring. `Memory::places`
//!   says which ring has it, and it can only come back from that ring's counterpart.
//!
//! Linux 6.1; the interface is documented in the kernel's Documentation/networking/af_xdp.rst.

#[cfg(not(loom))]
mod ends;
#[cfg(not(loom))]
mod frame;
#[cfg(not(loom))]
mod mapping;
mod memory;
mod ring;
#[cfg(not(loom))]
mod socket;
mod sync;
#[cfg(not(loom))]
mod umem;

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(not(loom))]
pub use ends::XskCounts;
#[cfg(not(loom))]
pub use frame::Frame;
#[cfg(not(loom))]
pub use socket::{XskLoss, XskOptions, XskSocket};
#[cfg(not(loom))]
pub use umem::{FrameSize, Umem, UmemOptions};
