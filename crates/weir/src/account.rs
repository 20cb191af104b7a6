//! What became of every packet.

use std::time::Duration;

use serde::Serialize;

use crate::handlers::HandlerState;

/// Counters that close: each packet that reaches the hook ends in exactly one of them.
///
/// `seen = filtered + sampled_out + captured + lost + errors`, and
/// `captured = delivered + still queued + discarded`.
///
/// All count packets, but for `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Reached the hook; counted there, by the source.
    pub seen: u64,
    /// Rejected by a filter. `None`: not counted, because the kernel does not tell how many (classic BPF on a packet
    /// socket); then they are not in `seen` either.
    pub filtered: Option<u64>,
    /// Passed over by sampling.
    pub sampled_out: u64,
    /// Laid down as records in the pool.
    pub captured: u64,
    /// Found no room: no empty chunk in the pool, or in the kernel's ring before it.
    pub lost: u64,
    /// Could not be read, or not be given to a queue ([`Strays`]).
    pub errors: u64,
    /// Handed to the handler.
    pub delivered: u64,
    /// Captured but cut off by the handler ([`crate::Chunk::keep_first`]).
    pub discarded: u64,
    /// Surely in the file; filled in by whoever writes one.
    pub written: u64,
    /// Original bytes of the captured packets.
    pub bytes: u64,
}

impl Default for Tally {
    /// Nothing, and all of it counted.
    fn default() -> Self {
        Self {
            seen: 0,
            filtered: Some(0),
            sampled_out: 0,
            captured: 0,
            lost: 0,
            errors: 0,
            delivered: 0,
            discarded: 0,
            written: 0,
            bytes: 0,
        }
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.filtered = self.filtered.zip(other.filtered).map(|(one, other)| one + other);
        self.sampled_out += other.sampled_out;
        self.captured += other.captured;
        self.lost += other.lost;
        self.errors += other.errors;
        self.delivered += other.delivered;
        self.discarded += other.discarded;
        self.written += other.written;
        self.bytes += other.bytes;
    }
}

/// Where a queue's chunks are; they sum to `total` whenever nothing moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolFill {
    /// Empty.
    pub free: u32,
    /// Being written to.
    pub open: u32,
    /// Full, and not yet taken.
    pub ready: u32,
    /// With a handler.
    pub held: u32,
    /// All of the queue.
    pub total: u32,
}

/// One queue's account.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct QueueAccount {
    /// Receive queue; the processor for generic XDP and tc (and for native XDP where [`crate::Interface::detail`] says so), counted
    /// among those that were online when the capture began; 0 for a source that does not tell queues apart. Where packets are
    /// steered to t targets, those of receive queue (or processor) q are q * t to q * t + t - 1.
    pub queue: u32,
    /// Whom its packets are for, where they are steered.
    pub target: Option<u32>,
    /// Packets.
    pub tally: Tally,
    /// Chunks.
    pub pool: PoolFill,
    /// Closed chunks that waited at once when somebody looked, at most.
    pub most_ready: u32,
    /// Closed chunks that waited, on average over time; up to when one was taken last.
    pub mean_ready: f64,
    /// Chunks that were taken by handlers of other queues.
    pub offloaded: u64,
    /// Later fragments of datagrams whose first was not seen, so that they could not follow it, where packets are steered by
    /// flow; for all targets of a receive queue or processor told with the first.
    pub orphans: u64,
}

/// Losses before the hook, as far as the device tells; growth since the capture began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NicCounters {
    /// `rx_missed_errors`: the device had no room.
    pub missed: u64,
    /// `rx_fifo_errors`.
    pub fifo_errors: u64,
    /// `rx_dropped`: dropped in the stack.
    pub dropped: u64,
}

/// Packets that were seen and could not be given to any queue; in the account they are seen, and errors, of the interface's
/// first queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Strays {
    /// On a receive queue that did not exist when the capture began.
    pub no_queue: u64,
    /// Of another interface: a driver has handed the program on, whose receive queues have the same numbers.
    pub foreign: u64,
    /// On a processor that came up after the capture began.
    pub apart: u64,
}

/// One interface's account.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InterfaceAccount {
    /// Number in the capture and in its file.
    pub id: u32,
    /// Name.
    pub name: String,
    /// `xdp`, `tc`, `xdp+tc`, `af_packet` or `af_xdp`.
    pub source: &'static str,
    /// `pass` or `exclusive`.
    pub mode: &'static str,
    /// Per queue.
    pub queues: Vec<QueueAccount>,
    /// Packets that could not be given to any of them.
    pub strays: Strays,
    /// Packets whose driver could not say whether it had taken a VLAN tag off, although it was to: they were captured without.
    pub untold_tags: u64,
    /// Bytes that its pools took, with what its source has beside them for packets.
    pub memory: u64,
    /// Losses before the hook: the last that were told, once the interface is gone; absent for `any`.
    pub nic: Option<NicCounters>,
}

impl InterfaceAccount {
    /// The sum over the queues.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for queue in &self.queues {
            total += queue.tally;
        }
        total
    }
}

/// One handler's account.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HandlerAccount {
    /// Which.
    pub handler: usize,
    /// Where it was asked to run.
    pub processor: Option<u32>,
    /// What has become of it.
    pub state: HandlerState,
    /// Packets that it was given.
    pub packets: u64,
    /// Chunks, or parts of one, that it was given.
    pub chunks: u64,
    /// Those of them that came from queues of other handlers.
    pub taken_over: u64,
    /// Time with a chunk in hand.
    pub busy_seconds: f64,
    /// How long it has had the present one; `None`: it has none.
    pub in_hand_seconds: Option<f64>,
}

/// What became of the order of time ([`crate::Builder::by_time`]). Packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeOrder {
    /// How long packets were held back, at least.
    pub window_seconds: f64,
    /// Handed over behind one with a later time stamp.
    pub late: u64,
    /// Handed over before it was sure that none older would come, since a pool was more than half in use.
    pub early: u64,
}

/// The whole account.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Account {
    /// Since the capture began, until it was stopped.
    #[serde(skip)]
    pub elapsed: Duration,
    /// Per interface.
    pub interfaces: Vec<InterfaceAccount>,
    /// Per handler, where there are any ([`crate::Capture::handlers`]). Their packets are in `delivered` of their queues.
    pub handlers: Vec<HandlerAccount>,
    /// Where packets are handed over in the order of time.
    pub time_order: Option<TimeOrder>,
}

impl Account {
    /// The sums over the queues of each target, where packets are steered.
    pub fn targets(&self) -> Vec<Tally> {
        let mut targets: Vec<Tally> = Vec::new();
        for queue in self.interfaces.iter().flat_map(|interface| &interface.queues) {
            let Some(target) = queue.target.map(|target| target as usize) else { continue };
            targets.resize(targets.len().max(target + 1), Tally::default());
            targets[target] += queue.tally;
        }
        targets
    }

    /// Bytes that the capture took for packets.
    pub fn memory(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.memory).sum()
    }

    /// The sum over the interfaces.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for interface in &self.interfaces {
            total += interface.total();
        }
        total
    }
}
