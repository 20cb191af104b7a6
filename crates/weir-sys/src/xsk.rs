//! AF_XDP sockets: packets that an XDP program redirects, and packets to send, in memory that the process gave the
//! kernel.
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
//! A [`Frame`] is an owned value: either there is one, or the kernel has that frame. Frames belong to a [`Umem`], which any
//! number of sockets share: what one has received another sends, without a copy.
//!
//! What the unsafe code below relies on:
//!
//! - **X1** A ring's words and entries lie inside of its mapping, aligned; checked when it is mapped.
//! - **X2** Rings are only touched by atomic loads and stores, each entry is loaded once, and the copy is checked.
//! - **X3** There is at most one [`Frame`] of each frame, and none while its address is in a ring: `Memory::places` says which
//!   ring has it, and only out of that ring's counterpart does it come again.
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
pub use frame::Frame;
#[cfg(not(loom))]
pub use socket::{XskCounts, XskLoss, XskOptions, XskSocket};
#[cfg(not(loom))]
pub use umem::{FrameSize, Umem, UmemOptions};
