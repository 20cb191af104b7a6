//! The pool: memory that is shared with a kernel program, or with another thread, behind safe types.
//!
//! A pool has chunks, and per queue two rings that carry the indices of empty ones to whoever fills them: a short *warm* one
//! with the chunks that came back last, which is used first, and a *cold* one with the rest. Three parties meet at a
//! queue:
//!
//! ```text
//!              slots: 1 + position | chunk                progress: position, commit
//!   holders ------------------------------> writer --------------------------------> reader
//!   (any thread gives a chunk back)   (kernel program, or Writer)          (Reader: parts of chunks)
//!      ^                                                                        |
//!      '------------------------------- Part, dropped <-------------------------'
//! ```
//!
//! There is no ring of full chunks. A writer opens the chunks of a ring in order, so the next one opened *is* the next of
//! one ring or of the other; the reader remembers what it gave, and asks the chunks themselves which it is and how far it
//! has come.
//!
//! Many threads take from one reader by a [`Claim`]; where what they took has to be done in order, [`Strands`] tell who may do
//! what.
//!
//! # Invariants
//!
//! Each `SAFETY` comment names the ones it relies on.
//!
//! - **R1** One writer and one [`Reader`] per queue. Neither is `Clone`; both are made once, with the pool. Threads that
//!   take turns at a reader do so by a [`Claim`].
//! - **R2** A chunk is in one place: in a ring, open, or in the hands of readers. It enters a ring only when its count
//!   of holders has fallen to zero.
//! - **R3** Bytes below a chunk's committed offset do not change until the chunk is in a ring again.
//! - **R4** Bytes at and above the committed offset belong to the writer alone while the chunk is open.
//! - **R5** What the other side wrote is loaded once and checked; indices come from private memory. Chunk `c`'s bytes are
//!   `c * stride .. (c + 1) * stride` of the data region, with `c` below the number of chunks.
//! - **R6** A ring has at least as many slots as its queue has chunks, so a slot is empty before it is filled again.

#![warn(missing_docs)]

mod claim;
mod layout;
mod pool;
mod reader;
mod strands;
mod sync;
mod words;
mod writer;

#[cfg(not(loom))]
mod doorbell;
#[cfg(not(loom))]
mod region;

pub use claim::{Claim, Claimed};
pub use layout::{Shape, ShapeError};
pub use pool::{Fill, Pool};
pub use reader::{Corrupt, Gauge, Part, Reader};
pub use strands::{Lease, Piece, Strands, Taken};
pub use writer::Writer;

#[cfg(not(loom))]
pub use doorbell::Doorbell;
#[cfg(not(loom))]
pub use layout::Counters;
#[cfg(not(loom))]
pub use pool::SharedMaps;

#[cfg(all(test, not(loom)))]
mod hostile_tests;
#[cfg(all(test, loom))]
mod loom_tests;
