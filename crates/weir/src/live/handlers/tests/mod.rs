//! Handlers of simulated queues: random schedules, many queues, handlers that leave or are held up.

mod order;
mod steering;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use weir_ring::{Gauge, Producer};

use super::{Handler, Plan, Share, WorkerGroup};
use crate::chunk::Lane;
use crate::live::settings::Delivery;
use crate::live::source::simulated;
use crate::live::wait::next::Next;
use crate::stats::HandlerState;

/// Size of a packet in bytes: 24 records fill a chunk of 4 KiB.
const PACKET: usize = 140;

struct Bench {
    producers: Vec<Producer>,
    group: Arc<WorkerGroup>,
    handlers: Vec<Handler>,
    lanes: Vec<Arc<Lane>>,
    gauges: Vec<Gauge>,
}

fn bench(queues: u32, chunks: u32, plan: &Plan, delivery: Delivery) -> Bench {
    let (producers, outlets) = simulated::queues(queues, chunks);
    let lanes = outlets.iter().map(|outlet| Arc::clone(&outlet.lane)).collect();
    let gauges = outlets.iter().map(|outlet| outlet.gauge().clone()).collect();
    let assignment = plan.fit(outlets.len(), None, 64).expect("the plan can be");
    let group = Arc::new(WorkerGroup::new(outlets, assignment));
    let handlers = Handler::all(&group, delivery);
    Bench { producers, group, handlers, lanes, gauges }
}

/// Writes a UDP packet with this `number`, in flow `flow`.
fn write_of(producer: &mut Producer, flow: u16, number: u64) -> bool {
    write_fragment(producer, flow, number, [0, 0])
}

/// Writes a fragment, with its datagram's identification, and its offset as in the header. Later fragments have no
/// ports; the flow is stored in the same place for the test.
fn write_fragment(producer: &mut Producer, flow: u16, number: u64, [datagram, place]: [u16; 2]) -> bool {
    let mut packet = [0; PACKET];
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14] = 0x45;
    packet[18..20].copy_from_slice(&datagram.to_be_bytes());
    packet[20..22].copy_from_slice(&place.to_be_bytes());
    packet[23] = 17;
    packet[34..36].copy_from_slice(&flow.to_be_bytes());
    packet[NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
    simulated::write(producer, number, &packet)
}

fn write(producer: &mut Producer, number: u64) -> bool {
    write_of(producer, 0, number)
}

/// Where a packet stores its number, after the headers.
const NUMBER: usize = 42;

/// Returns the flow and number of each packet.
fn contents(share: &Share) -> Vec<(u16, u64)> {
    let contents = |packet: crate::Packet<'_>| {
        let flow = u16::from_be_bytes(*packet.data[34..].first_chunk().expect("packets bear ports"));
        (flow, u64::from_be_bytes(*packet.data[NUMBER..].first_chunk().expect("packets bear numbers")))
    };
    share.packets().map(contents).collect()
}

fn numbers(share: &Share) -> Vec<u64> {
    contents(share).into_iter().map(|(_, number)| number).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// Write this many packets to one of the queues.
    Write(prop::sample::Index, usize),
    /// A handler asks for its next share.
    Ask(prop::sample::Index),
    /// A chunk that was taken is dropped.
    Drop(prop::sample::Index),
    /// A handler leaves.
    Leave(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (any::<prop::sample::Index>(), 1usize..60).prop_map(|(queue, packets)| Step::Write(queue, packets)),
        12 => any::<prop::sample::Index>().prop_map(Step::Ask),
        10 => any::<prop::sample::Index>().prop_map(Step::Drop),
        1 => any::<prop::sample::Index>().prop_map(Step::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For any order of events, each packet is handled once, packets of a queue are in order within a chunk, each chunk
    /// goes back, and only packets without room are lost.
    #[test]
    fn every_packet_is_handled_once(
        steps in prop::collection::vec(step(), 1..400),
        queues in 1u32..=64,
        handlers in 2usize..9,
        chunks in 2u32..7,
        percent in 1u8..99,
    ) {
        let plan = Plan::new(handlers).advanced(percent);
        let Bench { mut producers, group, handlers, lanes, gauges } = bench(queues, chunks, &plan, Delivery::Active);
        let mut handlers: Vec<Option<Handler>> = handlers.into_iter().map(Some).collect();
        let (mut next, mut written) = (0, Vec::new());
        let (mut held, mut handled): (Vec<Share>, Vec<u64>) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Write(queue, packets) => {
                    // A few queues receive nearly all traffic.
                    let queue = queue.index(producers.len()) / 8;
                    for _ in 0..packets {
                        if write(&mut producers[queue], next) {
                            written.push(next);
                        }
                        next += 1;
                    }
                }
                Step::Ask(handler) => {
                    let place = handler.index(handlers.len());
                    let ask = |handler: &mut Handler| handler.next(Duration::ZERO).expect("our own writer");
                    match handlers[place].as_mut().map(ask) {
                        Some(Next::Taken(chunk)) => {
                            handled.extend(numbers(&chunk));
                            held.push(chunk);
                        }
                        Some(Next::NotYet) | None => {}
                        Some(Next::Over) => prop_assert!(false, "nobody has stopped it"),
                    }
                }
                Step::Drop(chunk) if !held.is_empty() => _ = held.swap_remove(chunk.index(held.len())),
                Step::Leave(handler) if handlers.iter().flatten().count() > 1 => {
                    let place = handler.index(handlers.len());
                    handlers[place] = None;
                }
                Step::Drop(_) | Step::Leave(_) => {}
            }
            for gauge in &gauges {
                let fill = gauge.fill();
                prop_assert_eq!(fill.free + fill.open + fill.ready + fill.held, chunks);
            }
        }
        held.clear();
        group.stop();
        for handler in handlers.iter_mut().flatten() {
            let mut last = handler.next(Duration::ZERO).expect("our own writer");
            while let Next::Taken(chunk) = last {
                handled.extend(numbers(&chunk));
                last = handler.next(Duration::ZERO).expect("our own writer");
            }
            prop_assert!(matches!(last, Next::Over));
        }
        handled.sort_unstable();
        prop_assert_eq!(&handled, &written);
        let stats = group.stats();
        prop_assert_eq!(stats.iter().map(|one| one.packets).sum::<u64>(), written.len() as u64);
        let offloaded: u64 = lanes.iter().map(|lane| lane.offloaded.load(Ordering::Relaxed)).sum();
        prop_assert_eq!(stats.iter().map(|one| one.taken_over).sum::<u64>(), offloaded);
        let delivered: u64 = lanes.iter().map(|lane| lane.delivered.load(Ordering::Relaxed)).sum();
        prop_assert_eq!(delivered, written.len() as u64);
        for gauge in &gauges {
            prop_assert_eq!((gauge.fill().ready, gauge.fill().held), (0, 0));
        }
    }
}

/// Writes `packets` packets to a queue, as fast as there is room.
fn fill(producer: &mut Producer, packets: u64) {
    (0..packets).for_each(|number| until_there_is_room(|| write(producer, number)));
}

/// Writes as soon as there is room.
fn until_there_is_room(mut write: impl FnMut() -> bool) {
    let began = Instant::now();
    while !write() {
        assert!(began.elapsed() < Duration::from_secs(30), "no handler makes room");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Stops a group when dropped, even by a panic, so that its handlers end and the panic is reported.
struct StoppedAtEnd<'a>(&'a WorkerGroup);

impl Drop for StoppedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[test]
fn in_basic_mode_a_queue_has_one_handler() {
    let Bench { mut producers, group, handlers, .. } = bench(4, 8, &Plan::new(2), Delivery::Active);
    for (queue, producer) in (0u64..).zip(&mut producers) {
        (0..100).for_each(|_| assert!(write(producer, queue)));
    }
    group.stop();
    for (number, mut handler) in (0u64..).zip(handlers) {
        while let Some(chunk) = handler.next(Duration::ZERO).unwrap().taken() {
            assert_eq!(u64::from(chunk.queue()) % 2, number);
        }
    }
    assert!(group.stats().iter().all(|one| one.packets == 200 && one.taken_over == 0));
}

#[test]
fn a_handler_that_is_held_up_is_relieved() {
    const PACKETS: u64 = 20_000;
    let Bench { mut producers, group, handlers, lanes, .. } =
        bench(2, 8, &Plan::new(2).advanced(50), Delivery::Adaptive);
    let watcher = super::Watcher::start(&group, Vec::new()).unwrap();
    let handled = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let _stopped = StoppedAtEnd(&group);
        let mut handlers = handlers.into_iter();
        let (stuck, buddy) = (handlers.next().unwrap(), handlers.next().unwrap());
        let (release, held) = std::sync::mpsc::channel::<()>();
        let handled = &handled;
        scope.spawn(move || {
            stuck.run(|chunk| {
                let _until_the_other_has_done_the_rest = held.recv();
                handled.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                ControlFlow::Continue(())
            })
        });
        scope.spawn(move || {
            buddy.run(|chunk| {
                handled.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                ControlFlow::Continue(())
            })
        });
        // Many times what the pool holds: this only finishes if somebody reads.
        fill(&mut producers[0], PACKETS);
        drop(release);
        group.stop();
    });
    drop(watcher);
    assert_eq!(handled.into_inner(), PACKETS);
    assert!(lanes[0].offloaded.load(Ordering::Relaxed) > 100, "{lanes:?}");
    let stats = group.stats();
    assert!(stats.iter().all(|one| one.state == HandlerState::Ended), "{stats:?}");
    assert!(stats[1].taken_over > 100 && stats[1].busy > Duration::ZERO, "{stats:?}");
}

#[test]
fn a_handler_that_panics_leaves_its_chunks_and_its_queues() {
    const PACKETS: u64 = 20_000;
    // In basic mode too, since nobody else would ever read that queue.
    for plan in [Plan::new(3), Plan::new(3).advanced(50)] {
        let Bench { mut producers, group, handlers, gauges, .. } = bench(3, 8, &plan, Delivery::Adaptive);
        let watcher = super::Watcher::start(&group, Vec::new()).unwrap();
        let handled = AtomicU64::new(0);
        let mut cut_short = 0;
        std::thread::scope(|scope| {
            let _stopped = StoppedAtEnd(&group);
            let threads: Vec<_> = handlers
                .into_iter()
                .map(|handler| {
                    let (number, handled) = (handler.number(), &handled);
                    scope.spawn(move || {
                        let mut in_hand = 0;
                        let run = std::panic::AssertUnwindSafe(|| {
                            handler.run(|chunk| {
                                if number == 0 {
                                    in_hand = chunk.len() as u64;
                                    std::panic::resume_unwind(Box::new("a handler that panics"));
                                }
                                handled.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                                ControlFlow::Continue(())
                            })
                        });
                        let _panic = std::panic::catch_unwind(run);
                        in_hand
                    })
                })
                .collect();
            fill(&mut producers[0], PACKETS);
            group.stop();
            cut_short = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        });
        drop(watcher);
        assert_eq!(handled.into_inner() + cut_short, PACKETS, "{plan:?}");
        let stats = group.stats();
        assert_eq!(stats[0].state, HandlerState::Panicked, "{stats:?}");
        assert_eq!(stats.iter().map(|one| one.packets).sum::<u64>(), PACKETS);
        assert!(gauges.iter().all(|gauge| gauge.fill().held == 0));
    }
}
