//! Tests of the merge with simulated queues and a clock of its own.

use std::cell::Cell;

use proptest::prelude::*;
use weir_ring::{Gauge, Producer};

use super::*;
use crate::live::source::simulated;

const WINDOW: Duration = Duration::from_micros(1000);

struct Bench {
    producers: Vec<Producer>,
    outlets: Vec<Outlet>,
    merge: Merge,
    /// Start of the clock.
    began: Instant,
}

fn bench(queues: u32, chunks: u32, window: Duration) -> Bench {
    let (producers, outlets) = simulated::queues(queues, chunks);
    Bench { producers, outlets, merge: Merge::new(window), began: Instant::now() }
}

impl Bench {
    /// Writes a packet with `number` and a timestamp `stamp` microseconds after the start.
    fn write(&mut self, queue: usize, stamp: u64, number: u64) -> bool {
        let mut packet = [0; 140];
        packet[..8].copy_from_slice(&number.to_be_bytes());
        simulated::write(&mut self.producers[queue], stamp, &packet)
    }

    /// Takes a look at `time`, in microseconds.
    fn look(&mut self, time: u64) {
        let now = self.began + Duration::from_micros(time);
        self.merge.look(&mut self.outlets, || now).expect("our own writers");
    }

    /// Returns timestamps and numbers of the next packets.
    fn next(&mut self) -> Option<Vec<(u64, u64)>> {
        self.merge.next().map(|chunk| contents(&chunk))
    }

    /// Returns everything that is due.
    fn due(&mut self) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| self.next()).flatten().collect()
    }

    /// Returns everything that is left.
    fn rest(&mut self) -> Vec<(u64, u64)> {
        let next = || self.merge.rest(&mut self.outlets).expect("our own writers");
        std::iter::from_fn(next).flat_map(|chunk| contents(&chunk)).collect()
    }

    fn gauges(&self) -> impl Iterator<Item = &Gauge> {
        self.outlets.iter().map(Outlet::gauge)
    }

    fn delivered(&self) -> u64 {
        self.outlets.iter().map(|outlet| outlet.lane.delivered.load(Ordering::Relaxed)).sum()
    }

    /// Whether all chunks are back in their pools.
    fn is_at_rest(&self) -> bool {
        self.gauges().all(|gauge| (gauge.fill().ready, gauge.fill().held) == (0, 0))
    }
}

fn contents(chunk: &Chunk) -> Vec<(u64, u64)> {
    let number = |data: &[u8]| u64::from_be_bytes(*data.first_chunk().expect("packets bear numbers"));
    chunk.packets().map(|packet| (packet.timestamp, number(packet.data))).collect()
}

/// Counts the packets after one with a later timestamp.
fn out_of_order(packets: &[(u64, u64)]) -> u64 {
    let mut newest = 0;
    let goes_back = |&&(stamp, _): &&(u64, u64)| {
        newest = newest.max(stamp);
        stamp < newest
    };
    packets.iter().filter(goes_back).count() as u64
}

/// A packet: its queue, the time since the previous packet, and the time until it is visible. In microseconds.
#[derive(Clone, Debug)]
struct Sent {
    queue: prop::sample::Index,
    gap: u64,
    lag: u64,
}

fn sent(longest_lag: u64) -> impl Strategy<Value = Sent> {
    (any::<prop::sample::Index>(), prop_oneof![3 => 0u64..3, 1 => 0u64..400], 0..=longest_lag)
        .prop_map(|(queue, gap, lag)| Sent { queue, gap, lag })
}

/// An event with its time: a look, after which this many chunks are taken, or a packet that becomes visible.
enum Event {
    Look(usize),
    Packet { queue: usize, stamp: u64, number: u64 },
}

fn history(queues: u32, packets: &[Sent], looks: &[(u64, usize)]) -> Vec<(u64, Event)> {
    let mut events = Vec::new();
    let mut stamp = 0;
    for (packet, number) in packets.iter().zip(0..) {
        stamp += packet.gap;
        // Some queues are busier than others.
        let queue = packet.queue.index(queues as usize * 2) % queues.div_ceil(2).max(1) as usize;
        let queue = if number % 7 == 0 { queues as usize - 1 } else { queue };
        events.push((stamp + packet.lag, Event::Packet { queue, stamp, number }));
    }
    let mut time = 0;
    for &(gap, chunks) in looks {
        time += gap;
        events.push((time, Event::Look(chunks)));
    }
    events.sort_by_key(|(time, _)| *time);
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever arrives on any queue: packets that are visible within the window come out sorted, even if they are out
    /// of order within a queue. Later ones are counted.
    #[test]
    fn packets_come_in_the_order_of_time(
        packets in prop_oneof![
            prop::collection::vec(sent(1000), 1..700),
            prop::collection::vec(sent(1500), 1..700),
        ],
        looks in prop::collection::vec((0u64..700, 0usize..200), 1..60),
        queues in 1u32..=64,
    ) {
        let mut bench = bench(queues, 40, WINDOW);
        let mut found = Vec::new();
        for (time, event) in history(queues, &packets, &looks) {
            match event {
                Event::Packet { queue, stamp, number } => prop_assert!(bench.write(queue, stamp, number)),
                Event::Look(chunks) => {
                    bench.look(time);
                    for _ in 0..chunks {
                        found.extend(bench.next().unwrap_or_default());
                    }
                }
            }
            prop_assert_eq!(bench.delivered(), found.len() as u64, "what is held back is not delivered");
        }
        found.extend(bench.rest());
        let order = bench.merge.counts().stats();
        prop_assert_eq!((order.late, order.early), (out_of_order(&found), 0));
        if packets.iter().all(|packet| packet.lag <= 1000) {
            prop_assert_eq!(order.late, 0);
        }
        let mut numbers: Vec<u64> = found.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..packets.len() as u64), "each packet once");
        prop_assert!(bench.is_at_rest());
        prop_assert_eq!(bench.delivered(), packets.len() as u64);
    }

    /// If pools are small for a window's packets, none stays more than half full, so none loses packets for which it
    /// would have had room. Packets that went early are counted.
    #[test]
    fn a_pool_that_fills_is_relieved(
        bursts in prop::collection::vec((any::<prop::sample::Index>(), 1usize..60), 1..100),
        queues in 1u32..16,
        chunks in 2u32..9,
    ) {
        let mut bench = bench(queues, chunks, LONG);
        let (mut time, mut written, mut found) = (0, 0, Vec::new());
        for (queue, packets) in bursts {
            for _ in 0..packets {
                time += 1;
                written += u64::from(bench.write(queue.index(queues as usize), time, written));
            }
            bench.look(time);
            loop {
                bench.merge.relieve(&bench.outlets);
                let Some(packets) = bench.next() else { break };
                found.extend(packets);
            }
            for gauge in bench.gauges() {
                let fill = gauge.fill();
                prop_assert_eq!(fill.free + fill.open + fill.ready + fill.held, chunks);
                prop_assert!(fill.free >= fill.held + fill.open || fill.held == 0, "{fill:?}");
            }
        }
        let early = found.len() as u64;
        found.extend(bench.rest());
        let order = bench.merge.counts().stats();
        prop_assert_eq!((order.late, order.early), (0, early));
        prop_assert!(found.iter().map(|(_, number)| *number).eq(0..written));
        prop_assert!(bench.is_at_rest());
    }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_quiet_queue_delays_a_busy_one_by_the_window() {
    let mut bench = bench(2, 8, WINDOW);
    assert!(bench.write(0, 10, 0));
    bench.look(10);
    bench.look(1009);
    assert_eq!(bench.due(), []);
    bench.look(1010);
    assert_eq!(bench.due(), [(10, 0)]);
}

#[test]
fn what_comes_too_late_goes_next_and_is_counted() {
    let mut bench = bench(2, 8, WINDOW);
    (100..110).for_each(|stamp| assert!(bench.write(0, stamp, stamp)));
    bench.look(110);
    assert!(bench.write(0, 1500, 1500));
    bench.look(1500);
    assert_eq!(bench.due().len(), 10);
    (90..93).for_each(|stamp| assert!(bench.write(1, stamp, stamp)));
    bench.look(1600);
    bench.look(2600);
    let stamps: Vec<u64> = bench.due().into_iter().map(|(stamp, _)| stamp).collect();
    assert_eq!(stamps, [90, 91, 92, 1500]);
    assert_eq!((bench.merge.counts().stats().late, bench.merge.counts().stats().early), (3, 0));
}

#[test]
fn packets_that_come_next_are_one_chunk_where_they_lie() {
    let mut bench = bench(2, 8, WINDOW);
    (0..20).for_each(|stamp| assert!(bench.write(0, stamp, stamp)));
    assert!(bench.write(1, 12, 99));
    bench.look(20);
    bench.look(2000);
    let next = |bench: &mut Bench| bench.merge.next().expect("it is due");
    let (first, other, second) = (next(&mut bench), next(&mut bench), next(&mut bench));
    assert_eq!((first.len(), other.len(), second.len()), (13, 1, 7));
    assert_eq!((first.queue(), other.queue(), second.queue()), (0, 1, 0));
    assert_eq!(first.bytes().as_ptr_range().end, second.bytes().as_ptr());
    assert!(bench.merge.next().is_none());
}

#[test]
fn a_wall_clock_that_is_set_back_holds_nothing_back() {
    let mut bench = bench(1, 8, WINDOW);
    assert!(bench.write(0, 1_000_000_000, 0));
    bench.look(1);
    assert!(bench.write(0, 5, 1));
    bench.look(2);
    bench.look(1001);
    assert_eq!(bench.due(), [(5, 1), (1_000_000_000, 0)]);
    assert!(bench.write(0, 6, 2) && bench.write(0, 7, 3));
    bench.look(1002);
    bench.look(2002);
    assert_eq!(bench.due(), [(6, 2), (7, 3)]);
    assert_eq!(bench.merge.counts().stats().late, 2);
}

#[test]
fn whoever_stops_early_leaves_no_chunk_behind() {
    let mut bench = bench(3, 8, LONG);
    (0..90)
        .zip([0, 1, 2].into_iter().cycle())
        .for_each(|(stamp, queue)| assert!(bench.write(queue, stamp, stamp)));
    bench.look(100);
    assert!(!bench.is_at_rest());
    bench.merge = Merge::new(WINDOW);
    // The chunks being written are still open.
    assert!(bench.gauges().all(|gauge| gauge.fill().held == 0));
}

#[test]
fn a_single_queue_in_order_waits_for_nothing() {
    let mut bench = bench(1, 8, Duration::ZERO);
    bench.merge = Merge::new(Duration::ZERO).in_order();
    assert!(bench.write(0, 10, 0) && bench.write(0, 20, 1));
    bench.look(30);
    assert_eq!(bench.due(), [(10, 0), (20, 1)]);
}

/// A bench whose merge looks for lulls, and a clock that goes on by a microsecond whenever it is read.
fn counted(queues: u32) -> (Bench, impl Fn() -> Instant) {
    let mut bench = bench(queues, 8, LONG);
    bench.merge = Merge::new(LONG).counted();
    let (began, reads) = (bench.began, Cell::new(0));
    let clock = move || {
        reads.set(reads.get() + 1);
        began + Duration::from_micros(reads.get())
    };
    (bench, clock)
}

#[test]
fn in_a_lull_a_packet_need_not_wait() {
    let (mut bench, clock) = counted(2);
    assert!(bench.write(0, 10, 0));
    bench.merge.look(&mut bench.outlets, &clock).expect("our own writers");
    let written = |outlet: &Outlet| Some(u64::from(outlet.lane.queue == 0));
    bench.merge.lull(&mut bench.outlets, written, &clock).expect("our own writers");
    assert_eq!(bench.due(), [(10, 0)]);
}

#[test]
fn a_packet_waits_while_another_is_on_its_way() {
    let (mut bench, clock) = counted(2);
    assert!(bench.write(0, 10, 0));
    bench.merge.look(&mut bench.outlets, &clock).expect("our own writers");
    // Queue 1 has counted a packet that is not written yet.
    let working = |outlet: &Outlet| (outlet.lane.queue == 0).then_some(1);
    bench.merge.lull(&mut bench.outlets, working, &clock).expect("our own writers");
    assert_eq!(bench.due(), []);
    // It is written and counted, but the look does not find it: it is published a moment later.
    bench.merge.lull(&mut bench.outlets, |_| Some(1), &clock).expect("our own writers");
    assert_eq!(bench.due(), []);
    assert!(bench.write(1, 9, 1));
    bench.merge.lull(&mut bench.outlets, |_| Some(1), &clock).expect("our own writers");
    assert_eq!(bench.due(), [(9, 1), (10, 0)]);
    assert_eq!(bench.merge.counts().stats().late, 0);
}

#[test]
fn what_comes_during_a_lull_waits_for_its_own() {
    let (mut bench, clock) = counted(2);
    assert!(bench.write(0, 10, 0));
    bench.merge.look(&mut bench.outlets, &clock).expect("our own writers");
    assert!(bench.write(1, 20, 1));
    bench.merge.lull(&mut bench.outlets, |_| Some(1), &clock).expect("our own writers");
    assert_eq!(bench.due(), [(10, 0)]);
    bench.merge.lull(&mut bench.outlets, |_| Some(1), &clock).expect("our own writers");
    assert_eq!(bench.due(), [(20, 1)]);
}

#[test]
fn no_lull_is_looked_for_among_many_packets_or_without_counts() {
    let (mut bench, clock) = counted(1);
    (0..40).for_each(|stamp| assert!(bench.write(0, stamp, stamp)));
    let at_rest = |_: &Outlet| -> Option<u64> { panic!("it is not asked for") };
    bench.merge.look(&mut bench.outlets, &clock).expect("our own writers");
    bench.merge.lull(&mut bench.outlets, at_rest, &clock).expect("our own writers");
    assert_eq!(bench.due(), []);
    bench.rest();

    let (mut bench, clock) = counted(1);
    bench.merge.counted = false;
    assert!(bench.write(0, 10, 0));
    bench.merge.look(&mut bench.outlets, &clock).expect("our own writers");
    bench.merge.lull(&mut bench.outlets, at_rest, &clock).expect("our own writers");
    assert_eq!(bench.due(), []);
}

/// Returns whether the packets of each queue are in order: their numbers begin with the queue.
fn each_queue_is_in_order(packets: &[(u64, u64)]) -> bool {
    let of = |queue: u64| packets.iter().filter(move |(_, number)| number % 2 == queue);
    (0..2).all(|queue| of(queue).is_sorted())
}

/// Alternates between two queues, until no pool has room for more.
fn fill(bench: &mut Bench, from: u64) -> u64 {
    (from..).take_while(|&number| bench.write((number % 2) as usize, number, number)).count() as u64
}

#[test]
fn in_a_rush_packets_go_as_they_came_until_nothing_waits() {
    let mut bench = bench(2, 8, LONG);
    bench.merge = Merge::new(LONG).counted().giving_up();
    let written = fill(&mut bench, 0);
    let chunks: Vec<_> =
        std::iter::from_fn(|| bench.merge.rushed(&mut bench.outlets).expect("our own writers")).collect();
    assert!(chunks.iter().all(|chunk| chunk.len() > 10), "whole chunks: {chunks:?}");
    let mut found: Vec<_> = chunks.iter().flat_map(contents).collect();
    drop(chunks);
    assert!(each_queue_is_in_order(&found) && out_of_order(&found) > 0);
    let told = bench.merge.counts().stats();
    assert_eq!((told.late, told.early), (0, found.len() as u64));
    let unsorted = told.unsorted.expect("it is out of order");
    // The first chunk alone is in order.
    assert!(unsorted.packets < told.early && unsorted.packets >= out_of_order(&found), "{unsorted:?}");
    let last = found.iter().map(|(stamp, _)| *stamp).max();
    assert_eq!(Some(unsorted.last), last);
    assert_eq!(bench.merge.counts().news(), Some(unsorted));
    assert_eq!(bench.merge.counts().news(), None, "it was told");

    // There is time again. What comes next is sorted among itself.
    bench.look(1);
    assert!(bench.merge.rushed(&mut bench.outlets).expect("our own writers").is_none());
    assert_eq!(bench.due(), []);
    let rest = bench.rest();
    assert!(rest.is_sorted());
    found.extend(rest);
    assert_eq!(found.len() as u64, written);
    assert_eq!(bench.delivered(), written);
    assert!(bench.is_at_rest());
    // Those that others have overtaken went out of order because of the rush, too.
    assert_eq!(bench.merge.counts().stats().late, 0);
}

#[test]
fn what_is_held_back_goes_first_in_a_rush() {
    let mut bench = bench(2, 8, LONG);
    bench.merge = Merge::new(LONG).counted().giving_up();
    (0..40).for_each(|number| assert!(bench.write((number % 2) as usize, number, number)));
    bench.look(1);
    fill(&mut bench, 40);
    let next = |bench: &mut Bench| bench.merge.rushed(&mut bench.outlets).expect("our own writers");
    let found: Vec<_> = std::iter::from_fn(|| next(&mut bench)).flat_map(|chunk| contents(&chunk)).collect();
    assert_eq!(found[0], (0, 0));
    assert!(each_queue_is_in_order(&found));
}

#[test]
fn without_leave_to_give_up_everything_is_sorted() {
    let mut bench = bench(2, 8, LONG);
    let written = fill(&mut bench, 0);
    assert!(bench.merge.rushed(&mut bench.outlets).expect("our own writers").is_none());
    let found = bench.rest();
    assert_eq!(found.len() as u64, written);
    assert!(found.is_sorted());
    assert_eq!(bench.merge.counts().stats().unsorted, None);
}

#[test]
fn a_busy_queue_beside_an_idle_one_stays_in_order_in_a_rush() {
    let mut bench = bench(2, 8, LONG);
    bench.merge = Merge::new(LONG).counted().giving_up();
    let written = (0..).take_while(|&number| bench.write(0, number, number)).count();
    let next = |bench: &mut Bench| bench.merge.rushed(&mut bench.outlets).expect("our own writers");
    let found: Vec<_> = std::iter::from_fn(|| next(&mut bench)).flat_map(|chunk| contents(&chunk)).collect();
    assert!(found.len() > written / 2 && found.is_sorted());
    let told = bench.merge.counts().stats();
    assert_eq!((told.early, told.unsorted), (found.len() as u64, None));
}

#[test]
fn what_is_held_back_for_the_window_alone_is_no_rush() {
    let fill = |free, ready, held| Fill { free, open: 1, ready, held };
    assert!(is_rushed(fill(31, 32, 0)) && is_rushed(fill(20, 13, 30)));
    assert!(!is_rushed(fill(32, 31, 0)), "half of it is free");
    assert!(!is_rushed(fill(3, 0, 60)) && !is_rushed(fill(3, 1, 59)), "hardly any waits");
}
