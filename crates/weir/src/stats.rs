//! What happened to every packet.

use std::fmt;
use std::time::Duration;

use crate::{ModeKind, SourceKind};

/// Packet counters that add up: each packet that reaches the source ends in exactly one of them.
///
/// `seen = filtered + sampled_out + counted + captured + lost + errors`, and `captured = delivered + still queued + discarded`.
///
/// All but `bytes` count packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PacketCounters {
    /// Packets that reached the source.
    pub seen: u64,
    /// Rejected by a filter. `None`: not counted, because the kernel does not report them (classic BPF on a packet
    /// socket). They are not part of `seen` then.
    pub filtered: Option<u64>,
    /// Left out by sampling ([`crate::Builder::sample`]).
    pub sampled_out: u64,
    /// Counted with their flow in the kernel, and not captured (`Builder::count_flows`).
    pub counted: u64,
    /// Written to the pool as records.
    pub captured: u64,
    /// Lost for lack of room: there was no empty chunk in the pool, or no room in the kernel's ring before it.
    pub lost: u64,
    /// Unreadable, or could not be assigned to a queue ([`Strays`]).
    pub errors: u64,
    /// Delivered to the handler.
    pub delivered: u64,
    /// Captured but cut off by the handler ([`crate::Chunk::keep_first`]).
    pub discarded: u64,
    /// Known to be in the file; filled in by whoever writes it.
    pub written: u64,
    /// Original bytes of the captured packets.
    pub bytes: u64,
}

impl Default for PacketCounters {
    /// No packets, with all counters available.
    fn default() -> Self {
        Self {
            seen: 0,
            filtered: Some(0),
            sampled_out: 0,
            counted: 0,
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

impl std::ops::AddAssign for PacketCounters {
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.filtered = self.filtered.zip(other.filtered).map(|(one, other)| one + other);
        self.sampled_out += other.sampled_out;
        self.counted += other.counted;
        self.captured += other.captured;
        self.lost += other.lost;
        self.errors += other.errors;
        self.delivered += other.delivered;
        self.discarded += other.discarded;
        self.written += other.written;
        self.bytes += other.bytes;
    }
}

/// Where the chunks of a queue are. The numbers add up to `total` while nothing moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PoolFill {
    /// Empty.
    pub free: u32,
    /// Being written to.
    pub open: u32,
    /// Full, and not yet taken.
    pub ready: u32,
    /// Held by a handler.
    pub held: u32,
    /// All chunks of the queue.
    pub total: u32,
}

/// One queue's account.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct QueueStats {
    /// Number of the receive queue. With generic XDP and tc (and with native XDP if [`crate::Interface::detail`] says
    /// so) it is the index of a CPU among those online when the capture started. It is 0 if the source does not
    /// distinguish queues. If packets are steered to t targets, receive queue (or CPU) q has the numbers q * t to q * t
    /// + t - 1.
    pub queue: u32,
    /// The target of its packets, if they are steered.
    pub target: Option<u32>,
    /// Packet counters.
    pub counters: PacketCounters,
    /// Chunks.
    pub pool: PoolFill,
    /// Highest number of closed chunks that were seen waiting at once.
    pub most_ready: u32,
    /// Average number of closed chunks that waited, over the time until the last one was taken.
    pub mean_ready: f64,
    /// Chunks taken by handlers of other queues.
    pub offloaded: u64,
    /// Later fragments of datagrams whose first fragment was not seen, if packets are steered or sampled by flow: they could not
    /// follow it. Those of all targets of a receive queue or CPU are counted with the first target.
    pub orphans: u64,
}

/// Losses before the source, if the device reports them, since the capture started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NicCounters {
    /// `rx_missed_errors`: the device had no room.
    pub missed: u64,
    /// `rx_fifo_errors`.
    pub fifo_errors: u64,
    /// `rx_dropped`: dropped in the stack.
    pub dropped: u64,
}

/// Packets that could not be assigned to a queue. The account counts them as `seen` and `errors` of the interface's
/// first queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Strays {
    /// Arrived on a receive queue that did not exist when the capture started.
    pub no_queue: u64,
    /// Belong to another interface, for which the driver ran the program too. Its receive queues have the same numbers.
    pub other_interface: u64,
    /// Arrived on a CPU that came online after the capture started.
    pub late_cpu: u64,
}

/// One interface's account.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct InterfaceStats {
    /// Number of the interface in the capture and in its file.
    pub id: u32,
    /// Name of the interface.
    pub name: String,
    /// The source that captures.
    pub source: SourceKind,
    /// What happens to its packets after they are captured.
    pub mode: ModeKind,
    /// One account per queue.
    pub queues: Vec<QueueStats>,
    /// Packets that could not be assigned to a queue.
    pub strays: Strays,
    /// Packets captured without a VLAN tag because the driver, when asked, could not say whether it had stripped one.
    pub tag_unknown: u64,
    /// Packets that the interface has sent and that were not captured, although both directions were asked for: its source
    /// sees received packets only. As far as the driver has counted them, since the capture started.
    pub sent_unseen: u64,
    /// Bytes that its pools and its source use for packets.
    pub memory: u64,
    /// Losses before the source. Once the interface is gone, these are the last that were reported. Absent for `any`.
    pub nic: Option<NicCounters>,
}

impl InterfaceStats {
    /// Returns the account of an interface without queues.
    pub fn new(id: u32, name: impl Into<String>, source: SourceKind, mode: ModeKind) -> Self {
        Self {
            id,
            name: name.into(),
            source,
            mode,
            queues: Vec::new(),
            strays: Strays::default(),
            tag_unknown: 0,
            sent_unseen: 0,
            memory: 0,
            nic: None,
        }
    }

    /// Returns the sum over the queues.
    pub fn total(&self) -> PacketCounters {
        let mut total = PacketCounters::default();
        for queue in &self.queues {
            total += queue.counters;
        }
        total
    }
}

/// The state of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum HandlerState {
    /// It is running.
    Running,
    /// The capture has ended, and it has taken everything left.
    Ended,
    /// It was dropped while the capture continued; others have taken over its queues.
    Left,
    /// It panicked; others have taken over its queues.
    Panicked,
}

/// One handler's account.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HandlerStats {
    /// Number of the handler.
    pub handler: usize,
    /// CPU it was asked to run on.
    pub processor: Option<u32>,
    /// State of the handler.
    pub state: HandlerState,
    /// Packets that it was given.
    pub packets: u64,
    /// Chunks, or parts of one, that it was given.
    pub chunks: u64,
    /// Chunks, or parts of one, that came from queues of other handlers.
    pub taken_over: u64,
    /// Time during which it held a chunk.
    #[cfg_attr(feature = "serde", serde(rename = "busy_seconds", serialize_with = "seconds"))]
    pub busy: Duration,
    /// How long it has held the current chunk, if it has one.
    #[cfg_attr(feature = "serde", serde(rename = "in_hand_seconds", serialize_with = "maybe_seconds"))]
    pub in_hand: Option<Duration>,
}

/// Times are numbers of seconds in JSON.
#[cfg(feature = "serde")]
fn seconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

#[cfg(feature = "serde")]
fn maybe_seconds<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&time.map(|time| time.as_secs_f64()), to)
}

/// Packet counters of delivery in timestamp order ([`crate::Builder::by_time`]).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TimeOrder {
    /// Shortest time for which packets were held back.
    #[cfg_attr(feature = "serde", serde(rename = "window_seconds", serialize_with = "seconds"))]
    pub window: Duration,
    /// Delivered after a packet with a later timestamp.
    pub late: u64,
    /// Delivered while older packets could still arrive, or found older than such packets, because a pool was more than half
    /// in use.
    pub early: u64,
    /// Delivered out of order, if any were: at most as many as are late or early.
    pub unsorted: Option<Unsorted>,
}

/// Packets that were not delivered in timestamp order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unsorted {
    /// Their number.
    pub packets: u64,
    /// The first timestamp of those to be sorted, in nanoseconds since the Unix epoch.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

impl Unsorted {
    #[cfg(feature = "live")]
    pub(crate) fn new(packets: u64, first: u64, last: u64) -> Self {
        Self { packets, first, last }
    }

    /// Adds others.
    #[cfg(feature = "live")]
    pub(crate) fn and(self, other: Self) -> Self {
        Self::new(self.packets + other.packets, self.first.min(other.first), self.last.max(other.last))
    }
}

/// The whole account. As text, it is one line:
///
/// ```
/// # use weir::{CaptureStats, InterfaceStats, ModeKind, QueueStats, SourceKind};
/// let mut eth0 = InterfaceStats::new(0, "eth0", SourceKind::Tc, ModeKind::Pass);
/// let mut queue = QueueStats::default();
/// let counters = &mut queue.counters;
/// (counters.seen, counters.captured, counters.filtered, counters.lost) = (10, 6, Some(3), 1);
/// eth0.queues.push(queue);
/// let mut account = CaptureStats::default();
/// account.interfaces.push(eth0);
/// assert_eq!(account.to_string(), "10 packets seen: 6 captured, 3 filtered, 1 lost");
/// ```
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CaptureStats {
    /// Time since the capture started, until it was stopped.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub elapsed: Duration,
    /// One account per interface.
    pub interfaces: Vec<InterfaceStats>,
    /// One account per handler, if there are any ([`crate::Capture::handlers`]). Their packets are part of `delivered`
    /// of their queues.
    pub handlers: Vec<HandlerStats>,
    /// Set if packets are delivered in timestamp order.
    pub time_order: Option<TimeOrder>,
}

impl CaptureStats {
    /// Returns the sum for each target, if packets are steered.
    pub fn targets(&self) -> Vec<PacketCounters> {
        let mut targets: Vec<PacketCounters> = Vec::new();
        for queue in self.interfaces.iter().flat_map(|interface| &interface.queues) {
            let Some(target) = queue.target.map(|target| target as usize) else { continue };
            targets.resize(targets.len().max(target + 1), PacketCounters::default());
            targets[target] += queue.counters;
        }
        targets
    }

    /// Returns the bytes that the capture uses for packets.
    pub fn memory(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.memory).sum()
    }

    /// Returns the sum over the interfaces.
    pub fn total(&self) -> PacketCounters {
        let mut total = PacketCounters::default();
        for interface in &self.interfaces {
            total += interface.total();
        }
        total
    }
}

impl fmt::Display for CaptureStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PacketCounters { seen, filtered, sampled_out, counted, captured, lost, errors, .. } =
            self.total();
        write!(f, "{seen} packets seen: {captured} captured")?;
        if let Some(filtered) = filtered {
            write!(f, ", {filtered} filtered")?;
        }
        write!(f, ", {lost} lost")?;
        let missed: u64 =
            self.interfaces.iter().filter_map(|interface| interface.nic).map(|nic| nic.missed).sum();
        for (count, what) in [
            (sampled_out, "sampled out"),
            (counted, "counted in flows"),
            (errors, "errors"),
            (missed, "missed by the card"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters that all differ.
    fn counters(base: u64) -> PacketCounters {
        PacketCounters {
            seen: base + 1,
            filtered: Some(base + 2),
            sampled_out: base + 3,
            counted: base + 11,
            captured: base + 4,
            lost: base + 5,
            errors: base + 6,
            delivered: base + 7,
            discarded: base + 8,
            written: base + 9,
            bytes: base + 10,
        }
    }

    #[test]
    fn counters_add_up() {
        let mut sum = counters(100);
        sum += counters(2000);
        let expected = PacketCounters {
            seen: 2102,
            filtered: Some(2104),
            sampled_out: 2106,
            counted: 2122,
            captured: 2108,
            lost: 2110,
            errors: 2112,
            delivered: 2114,
            discarded: 2116,
            written: 2118,
            bytes: 2120,
        };
        assert_eq!(sum, expected);
        // Where one does not count what is filtered, the sum is not known.
        sum += PacketCounters { filtered: None, ..PacketCounters::default() };
        assert_eq!(sum, PacketCounters { filtered: None, ..expected });
    }

    #[test]
    fn an_account_is_the_sum_of_its_parts() {
        let queue = |target, base| QueueStats { target, counters: counters(base), ..QueueStats::default() };
        let mut eth0 = InterfaceStats::new(0, "eth0", SourceKind::Tc, ModeKind::Pass);
        eth0.queues = vec![queue(Some(0), 10), queue(Some(2), 100), queue(Some(0), 1000)];
        eth0.memory = 64;
        let mut eth1 = InterfaceStats::new(1, "eth1", SourceKind::Tc, ModeKind::Pass);
        eth1.queues = vec![queue(Some(2), 10_000), queue(None, 100_000)];
        eth1.memory = 128;
        eth1.nic = Some(NicCounters { missed: 7, fifo_errors: 70, dropped: 700 });
        let mut account = CaptureStats { interfaces: vec![eth0, eth1], ..CaptureStats::default() };
        assert_eq!(account.interfaces[0].total().seen, 1113);
        assert_eq!((account.total().seen, account.memory()), (111_115, 192));
        let targets: Vec<u64> = account.targets().iter().map(|target| target.seen).collect();
        assert_eq!(targets, [1012, 0, 10_102]);
        assert_eq!(
            account.to_string(),
            "111115 packets seen: 111130 captured, 111120 filtered, 111135 lost, 111125 sampled out, 111165 counted in flows, \
             111140 errors, 7 missed by the card"
        );
        account.interfaces[1].queues[0].counters.filtered = None;
        account.interfaces[1].nic = None;
        assert_eq!(
            account.to_string(),
            "111115 packets seen: 111130 captured, 111135 lost, 111125 sampled out, 111165 counted in flows, \
             111140 errors"
        );
        assert_eq!(CaptureStats::default().to_string(), "0 packets seen: 0 captured, 0 filtered, 0 lost");
    }

    #[cfg(feature = "live")]
    #[test]
    fn times_that_are_not_sorted_are_within_those_of_all() {
        let one = Unsorted::new(3, 50, 70);
        let cases = [((40, 60), (40, 70)), ((60, 80), (50, 80)), ((40, 80), (40, 80)), ((55, 60), (50, 70))];
        for ((first, last), all) in cases {
            let other = Unsorted::new(4, first, last);
            assert_eq!([one.and(other), other.and(one)], [Unsorted::new(7, all.0, all.1); 2]);
        }
    }
}
