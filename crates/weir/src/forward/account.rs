//! What became of packets that were to be forwarded.

use std::time::Duration;

use serde::Serialize;
use weir_bpf::forward::Counters;

use crate::account::NicCounters;

/// Counters that close: each packet that reaches the program ends in exactly one of them.
///
/// `seen = filtered + forwarded + dropped + passed + no_room + too_long + unable + errors`, and while packets arrive those that are just
/// being handed over ([`in_flight`](Self::in_flight)).
///
/// All count packets, but for `bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForwardTally {
    /// Reached the program.
    pub seen: u64,
    /// Not wanted by the filter: gone on to the stack.
    pub filtered: u64,
    /// Taken by the driver of the other interface.
    pub forwarded: u64,
    /// Of those forwarded, or still on their way out, the ones that a handler has changed.
    pub changed: u64,
    /// Ended by a handler.
    pub dropped: u64,
    /// Given to this host's stack by a handler.
    pub passed: u64,
    /// Lost: that driver had no room, or the handler took too long.
    pub no_room: u64,
    /// Lost: longer than the other interface's MTU allows.
    pub too_long: u64,
    /// Lost: the other interface was down, or its driver could not take redirected packets.
    pub unable: u64,
    /// Lost: could not be worked on, or the other interface was gone.
    pub errors: u64,
    /// Lengths of the packets that were to be forwarded.
    pub bytes: u64,
}

/// One receive queue's account.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ForwardQueue {
    /// Its number.
    pub queue: u32,
    /// Packets.
    pub tally: ForwardTally,
}

/// What the device that sends tells of itself; growth since forwarding began. Packets that its driver has not taken may be
/// among them, and those that others have sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SendCounters {
    /// `tx_errors`.
    pub errors: u64,
    /// `tx_dropped`.
    pub dropped: u64,
}

/// The account of one way.
#[derive(Clone, Debug, Serialize)]
pub struct WayAccount {
    /// The interface that receives.
    pub from: String,
    /// The interface that sends.
    pub to: String,
    /// Per receive queue.
    pub queues: Vec<ForwardQueue>,
    /// Packets of which the driver could not say whether it had taken a VLAN tag off: they went without.
    pub untold_tags: u64,
    /// Losses before the program; absent where nobody has looked from the beginning.
    pub nic: Option<NicCounters>,
    /// Of the device that sends; absent in the same case.
    pub sender: Option<SendCounters>,
}

/// The whole account.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ForwardAccount {
    /// Since it began, until it was stopped; zero where nobody knows.
    #[serde(skip)]
    pub elapsed: Duration,
    /// Per way.
    pub ways: Vec<WayAccount>,
}

impl ForwardTally {
    /// Packets that were to be forwarded and were not.
    pub fn lost(&self) -> u64 {
        self.no_room + self.too_long + self.unable + self.errors
    }

    /// Packets that are being handed over, or are with a handler. What is left of them once it was stopped is lost: a handler has
    /// panicked, its process was killed, or the kernel dropped them and told nobody.
    pub fn in_flight(&self) -> u64 {
        let ended = self.filtered + self.forwarded + self.dropped + self.passed + self.lost();
        self.seen.saturating_sub(ended)
    }
}

impl From<Counters> for ForwardTally {
    fn from(counters: Counters) -> Self {
        let Counters { seen, filtered, bytes, errors, forwarded, no_room, too_long, unable, handed: _ } =
            counters;
        Self { seen, filtered, forwarded, no_room, too_long, unable, errors, bytes, ..Self::default() }
    }
}

impl std::ops::AddAssign for ForwardTally {
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.filtered += other.filtered;
        self.forwarded += other.forwarded;
        self.changed += other.changed;
        self.dropped += other.dropped;
        self.passed += other.passed;
        self.no_room += other.no_room;
        self.too_long += other.too_long;
        self.unable += other.unable;
        self.errors += other.errors;
        self.bytes += other.bytes;
    }
}

impl WayAccount {
    /// The sum over the queues.
    pub fn total(&self) -> ForwardTally {
        let mut total = ForwardTally::default();
        self.queues.iter().for_each(|queue| total += queue.tally);
        total
    }
}

impl ForwardAccount {
    /// The sum over the ways.
    pub fn total(&self) -> ForwardTally {
        let mut total = ForwardTally::default();
        self.ways.iter().for_each(|way| total += way.total());
        total
    }
}
