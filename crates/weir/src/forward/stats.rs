//! What happened to packets that were to be forwarded.

use std::time::Duration;

use serde::Serialize;
use weir_bpf::forward::Counters;

use crate::stats::NicCounters;

/// Counters that add up: each packet that reaches the program ends in exactly one of them.
///
/// `seen = filtered + blocked + bounced + forwarded + dropped + passed + no_room + too_long + unable + errors`. While packets arrive, those
/// [`in_flight`](Self::in_flight) have to be added.
///
/// All of them count packets, except `bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ForwardCounters {
    /// Packets that reached the program.
    pub seen: u64,
    /// Rejected by the filter and left to this host's stack.
    pub filtered: u64,
    /// Went no further, as [rules](super::ForwardBuilder::rules) say.
    pub blocked: u64,
    /// Went back to where they came from, as rules say.
    pub bounced: u64,
    /// Accepted by the driver of the other interface.
    pub forwarded: u64,
    /// Packets changed by a handler, among those forwarded or on their way out.
    pub changed: u64,
    /// Dropped by a handler.
    pub dropped: u64,
    /// Passed to this host's stack by a handler.
    pub passed: u64,
    /// Lost: the other driver had no room, or the handler took too long.
    pub no_room: u64,
    /// Lost: longer than the MTU of the other interface.
    pub too_long: u64,
    /// Lost: the other interface was down, or its driver could not send redirected packets.
    pub unable: u64,
    /// Lost: the packet could not be processed, or the other interface was gone.
    pub errors: u64,
    /// Total length of the packets to be forwarded, in bytes.
    pub bytes: u64,
}

/// The account of one receive queue.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ForwardQueue {
    /// The number of the queue.
    pub queue: u32,
    /// Its counters.
    pub counters: ForwardCounters,
}

/// Counters of the sending device since forwarding began. They may include packets that its driver did not accept, and
/// packets from other senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SendCounters {
    /// `tx_errors`.
    pub errors: u64,
    /// `tx_dropped`.
    pub dropped: u64,
}

/// The account of one direction.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DirectionStats {
    /// The receiving interface.
    pub from: String,
    /// The sending interface.
    pub to: String,
    /// One entry per receive queue.
    pub queues: Vec<ForwardQueue>,
    /// Packets for which the driver did not report whether it had stripped a VLAN tag; they were forwarded without one.
    pub tag_unknown: u64,
    /// Losses before the program; absent unless they were watched from the beginning.
    pub nic: Option<NicCounters>,
    /// Counters of the sending device; absent in the same case.
    pub sender: Option<SendCounters>,
}

/// The account of forwarding.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ForwardStats {
    /// Time from the beginning until forwarding was stopped; zero if unknown.
    #[serde(skip)]
    pub elapsed: Duration,
    /// One entry per direction.
    pub directions: Vec<DirectionStats>,
}

impl ForwardCounters {
    /// Returns the number of packets that should have been forwarded but were not.
    pub fn lost(&self) -> u64 {
        self.no_room + self.too_long + self.unable + self.errors
    }

    /// Returns the number of packets being handed over or processed by a handler. Any that remain after forwarding has
    /// stopped are lost: a handler panicked, its process was killed, or the kernel dropped them without counting them.
    pub fn in_flight(&self) -> u64 {
        let ruled = self.blocked + self.bounced;
        let ended = self.filtered + ruled + self.forwarded + self.dropped + self.passed + self.lost();
        self.seen.saturating_sub(ended)
    }
}

impl ForwardCounters {
    /// Converts the counters of the program.
    pub(super) fn of(counters: Counters) -> Self {
        let Counters {
            seen,
            filtered,
            bytes,
            errors,
            forwarded,
            no_room,
            too_long,
            unable,
            handed: _,
            blocked,
            bounced,
        } = counters;
        Self {
            seen,
            filtered,
            blocked,
            bounced,
            forwarded,
            no_room,
            too_long,
            unable,
            errors,
            bytes,
            ..Self::default()
        }
    }
}

impl std::ops::AddAssign for ForwardCounters {
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.filtered += other.filtered;
        self.blocked += other.blocked;
        self.bounced += other.bounced;
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

impl DirectionStats {
    /// Returns the sum over all queues.
    pub fn total(&self) -> ForwardCounters {
        let mut total = ForwardCounters::default();
        self.queues.iter().for_each(|queue| total += queue.counters);
        total
    }
}

impl ForwardStats {
    /// Returns the sum over both directions.
    pub fn total(&self) -> ForwardCounters {
        let mut total = ForwardCounters::default();
        self.directions.iter().for_each(|direction| total += direction.total());
        total
    }
}
