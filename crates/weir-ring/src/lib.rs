//! The pool: memory shared with a kernel program or another thread, behind safe types.
//!
//! A pool has chunks, and per queue two rings that carry the indices of empty chunks to the producer: a short *warm* ring
//! with the chunks returned last, which is used first, and a *cold* ring with the rest. Each queue has three parties:
//!
//! ```text
//!              slots: 1 + position | chunk                progress: position, commit
//!   holders ------------------------------> producer --------------------------------> consumer
//!   (any thread gives a chunk back)   (kernel program, or Producer)          (Consumer: parts of chunks)
//!      ^                                                                        |
//!      '------------------------------- Part, dropped <-------------------------'
//! ```
//!
//! There is no ring of full chunks. A producer opens the chunks of each ring in order, so the next open chunk is the next
//! of one ring or the other. The consumer remembers which chunks it gave; the chunks themselves tell which one is open,
//! and how far it is filled.
//!
//! Several threads share a consumer through a [`Claim`]. Where their work must be done in order, [`Strands`] decide who
//! may do what. Which queue of several is helped is decided by [`Limit`] and [`Neediest`].
//!
//! # Invariants
//!
//! Each `SAFETY` comment names the ones it relies on.
//!
//! - **R1** Each queue has one producer and one [`Consumer`]. Neither is `Clone`; both are made once, with the pool.
//!   Threads that share a consumer take turns through a [`Claim`].
//! - **R2** A chunk is in one place: in a ring, open, or held by consumers. It enters a ring only when its count of
//!   holders has dropped to zero.
//! - **R3** Bytes below a chunk's committed offset do not change until the chunk is in a ring again.
//! - **R4** Bytes at and above the committed offset belong to the producer alone while the chunk is open.
//! - **R5** Values written by the other side are loaded once and checked; indices come from private memory. Chunk `c`
//!   occupies bytes `c * stride .. (c + 1) * stride` of the data region, with `c` below the number of chunks.
//! - **R6** A ring has at least as many slots as its queue has chunks, so a slot is empty before it is filled again.

#![warn(missing_docs)]

mod claim;
mod consumer;
mod layout;
mod need;
mod pool;
mod producer;
mod strands;
mod sync;
#[cfg(not(loom))]
mod ways;
mod words;

pub mod shared;

#[cfg(not(loom))]
mod doorbell;
#[cfg(not(loom))]
mod region;

pub use claim::{Claim, Claimed};
pub use consumer::{Consumer, Corrupt, Gauge, Part};
pub use layout::{Shape, ShapeError};
pub use need::{FULL, Limit, Neediest};
pub use pool::{Fill, Pool};
pub use producer::Producer;
pub use strands::{Lease, Piece, Strands, Taken};

#[cfg(not(loom))]
pub use doorbell::Doorbell;
#[cfg(not(loom))]
pub use layout::Counters;
#[cfg(not(loom))]
pub use pool::SharedMaps;
#[cfg(not(loom))]
pub use ways::{Tally, Ways};

#[cfg(all(test, not(loom)))]
mod hostile_tests;
#[cfg(all(test, loom))]
mod loom_tests;
