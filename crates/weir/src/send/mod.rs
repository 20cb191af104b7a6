//! Sending packets: single ones, many copies of one, or a queue of packets with their times.
//!
//! ```no_run
//! use weir::send::{Pace, SendQueue, Sender};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut sender = Sender::to("eth0").open()?;
//! let frame = [0xff; 60];
//! sender.send(&frame)?;
//! sender.repeat(&frame, 1000)?;
//!
//! let mut queue = SendQueue::new();
//! queue.push(0, &frame);
//! queue.push(20_000_000, &frame); // 20 ms later
//! let report = sender.transmit(&queue, Pace::Recorded { speed: 2.0 })?;
//! println!("{} packets; gaps were off by up to {:?}", report.sent.packets, report.gaps.max);
//! # Ok(())
//! # }
//! ```
//!
//! Packets begin with the link-layer header of the [`Destination`]. *Sent* means that the kernel has accepted the packet
//! for its device, and has not dropped it in the queue before the device. A packet that finds this queue full waits and
//! is tried again. An error says how many packets were sent before it ([`SendError::sent`]).
//!
//! [`SenderBuilder::live_queue`] has the kernel send copies of packets that it keeps.
//!
//! Every packet has the mark [`MARK`], or the one that was [chosen](SenderBuilder::mark).
//!
//! - `destination`: what an interface takes; `builder`: options.
//! - `live`: frames that the kernel makes itself.
//! - `outlet`: frames on their way, by a ring or in batches (`batch`); `transmission`: when each is due (`pace`), when it
//!   leaves after a late one (`slew`), how far off it was (`spread`).

mod batch;
mod builder;
mod destination;
mod error;
mod live;
mod outlet;
mod pace;
mod queue;
mod sender;
mod slew;
mod spread;
mod transmission;

pub use self::builder::SenderBuilder;
pub use self::destination::Destination;
pub use self::error::{SendError, SendReason, Sent};
pub use self::live::{Due, LiveFrames, LiveReport};
pub use self::outlet::Backend;
pub use self::pace::Pace;
pub use self::queue::SendQueue;
pub use self::sender::Sender;
pub use self::spread::Gaps;
pub use self::transmission::{Report, Transmission};

/// The mark of packets that weir sends (`SO_MARK`): `weir` in ASCII. Programs and filters of this network namespace see
/// it, for instance `tc filter ... fw` and eBPF programs (`skb->mark`).
pub const MARK: u32 = 0x7765_6972;
