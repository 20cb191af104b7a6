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
//! call [`Capture::try_next`]. A [`CaptureStats`] says what happened to every packet; an [`Observer`] reads it in another
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
//!
//! [`Statistics`] counts packets and bytes by filter in the kernel and captures none. [`Guard`] blocks packets, as rules say.
//!
//! A packet's bytes begin with the header of its interface's *link type*, a number of
//! [tcpdump.org's list](https://www.tcpdump.org/linktypes.html): 1 is Ethernet, 101 begins with IP. Live, it is in
//! [`Capture::interfaces`], of a file in [`reader::Reader::interfaces`]; [`Packet::interface`] is the index. This crate does not parse headers.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut capture = weir::Capture::builder().interface("eth0").open()?;
//! let link_types: Vec<u16> = capture.interfaces().iter().map(|interface| interface.link_type).collect();
//! capture.run(|chunk| {
//!     for packet in chunk {
//!         if link_types[packet.interface as usize] == 1 && packet.data.len() >= 14 {
//!             println!("to {:02x?}", &packet.data[..6]);
//!         }
//!     }
//!     std::ops::ControlFlow::Continue(())
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! An error's text ([`Display`](std::fmt::Display)) says what failed, and on which object; [`Error::hint`] says what to do. `main` prints the other form
//! ([`Debug`](std::fmt::Debug)) of an error that it returns, whose fields are for programmers; so print the text: `eprintln!("{error}")`.
//!
//! # Features
//!
//! | feature | adds | needs |
//! |---|---|---|
//! | `live` | [`Capture`], [`send`] and everything else about interfaces; brings `serde` | clang, libelf and zlib, for libbpf |
//! | `forward` | [`Forward`]; brings `live` | |
//! | `flows` | [`flows`]: flows of packets, live or from files | |
//! | `jit` | compiles filters of files and sockets to machine code; without it they are interpreted, which is many times slower | Cranelift |
//! | `zstd`, `lz4`, `gzip` | reading and writing of files with this compression | for `zstd` a C compiler |
//! | `serde` | `Serialize` for accounts, and filters that another process can compile | |
//!
//! All are on by default, so that the crate captures and reads every file that the program `weir` writes. Reading, merging,
//! filtering and writing files work without any of them and need only Rust; the error for a compressed file names the
//! feature that it needs.
//!
//! ```toml
//! weir = { path = "weir/crates/weir", default-features = false, features = ["gzip"] }
//! ```

#![forbid(unsafe_code)]

pub mod filter;
#[cfg(feature = "flows")]
pub mod flows;
#[cfg(feature = "forward")]
pub mod forward;
pub mod reader;
#[cfg(feature = "live")]
pub mod send;
pub mod stats;
pub mod who;
pub mod writer;

/// Replacing the filter of a running capture, or the members of its sets, from any thread.
#[cfg(feature = "live")]
pub mod filter_control {
    pub use weir_bpf::filter::{Changed, SetChange};

    pub use crate::live::filter_control::sets::{MemberKind, PortableMembers, SetLabel};
    pub use crate::live::filter_control::{FilterControl, FilterTarget};
}

/// Packets and bytes by filter, counted in the kernel; see [`Statistics`].
#[cfg(feature = "live")]
pub mod statistics {
    pub use crate::live::statistics::{
        Bucket, Count, Counts, FilterCounts, Key, KeyCounts, KeyField, MOST_FILTERS, Reading,
        StatisticsBuilder, StatisticsInfo, Switch,
    };
}

/// Rules that block packets of an interface or let them pass; see [`Guard`]. They also say which packets are captured; see
/// [`Builder::rules`].
#[cfg(feature = "live")]
pub mod guard {
    pub use crate::live::guard::{GuardBuilder, GuardInfo, KeptRules, OnExit};
    pub use crate::live::rules::{
        Action, CaptureAction, Count, ExactEntry, ExactError, ExactFlow, ExactRule, Fate, FateCounts, Learn,
        Limit, LimitKey, LogAction, LoggedPacket, PortableRules, Reading, RuleCount, RuleInfo, Rules, Unkept,
    };
}

/// The network interfaces of this host.
pub mod link {
    pub use weir_sys::link::{Link, links};
}

#[cfg_attr(not(feature = "live"), expect(dead_code, reason = "only a capture makes chunks"))]
mod chunk;
mod codec;
#[cfg(feature = "live")]
mod copies;
mod deadline;
mod file_interface;
mod format;
mod kind;
#[cfg(feature = "live")]
mod live;
#[doc(hidden)]
pub mod parts;
mod units;

pub use chunk::{Chunk, DEFAULT_SNAP_LEN, Direction, Packet, Packets};
#[cfg(feature = "live")]
pub use copies::Copies;
pub use file_interface::FileInterface;
pub use filter::Filter;
#[cfg(feature = "forward")]
pub use forward::Forward;
pub use kind::{ModeKind, SourceKind};
#[cfg(feature = "live")]
pub use live::{
    capture::Capture,
    capture::builder::{Builder, SocketCookie},
    capture::observer::Observer,
    error::holders::Holder,
    error::kind::ErrorKind,
    error::setting::Setting,
    error::unsupported::{LiveRefusal, SendRefusal, TagUse, Unsupported},
    error::{Error, Fit, Interfaces, KeptFilter, Problem},
    guard::Guard,
    handlers::{DEFAULT_THRESHOLD, Handler, Order, Plan, Share, SharePackets},
    interface::Interface,
    interface::event::{Change, Event},
    interface::warning::InterfaceWarning,
    namespace::Namespace,
    request::Opening,
    request::sampling::Sample,
    request::steering::{MOST_TARGETS, Steer},
    settings::{DEFAULT_CHUNK_SIZE, DEFAULT_CHUNKS, Delivery, Mode, SourceChoice, Timestamps, Window},
    statistics::Statistics,
    wait::next::Next,
    wait::stop::StopHandle,
};
pub use stats::{
    CaptureStats, HandlerState, HandlerStats, InterfaceStats, NicCounters, PacketCounters, PoolFill,
    QueueStats, Strays, TimeOrder, Unsorted,
};
// Errors of lower crates that ours contain.
#[cfg(feature = "live")]
pub use weir_bpf::LoadError;
#[cfg(feature = "live")]
pub use weir_ring::{Corrupt, ShapeError};
pub use weir_savefile::Notes;
pub use weir_savefile::record::Malformed;
#[cfg(feature = "live")]
pub use weir_sys::CallError;
