//! The order of flows, with any schedule of handlers.

use std::collections::BTreeMap;

use super::*;
use crate::live::handlers::Order;

const FLOWS: u16 = 64;

/// A handler, unless it has left, and its last answer.
type Asked = Option<(Handler, Option<Next<Share>>)>;

#[derive(Clone, Debug)]
enum Move {
    /// Write this many packets to one of the queues, cycling through the flows.
    Write(prop::sample::Index, usize),
    /// A handler finishes its share and asks for the next.
    Ask(prop::sample::Index),
    /// A handler leaves.
    Leave(prop::sample::Index),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => (any::<prop::sample::Index>(), 1usize..200).prop_map(|(queue, packets)| Move::Write(queue, packets)),
        16 => any::<prop::sample::Index>().prop_map(Move::Ask),
        1 => any::<prop::sample::Index>().prop_map(Move::Leave),
    ]
}

/// The shares held by handlers, and the last packet of each flow in each queue.
#[derive(Default)]
struct Judge {
    last: BTreeMap<(u32, u16), u64>,
    holder: BTreeMap<(u32, u16), usize>,
    handled: u64,
}

impl Judge {
    fn begins(&mut self, handler: usize, share: &Share) -> Result<(), TestCaseError> {
        for (flow, number) in contents(share) {
            let flow = (share.queue(), flow);
            let before = self.last.insert(flow, number);
            prop_assert!(before.is_none_or(|before| before < number), "{flow:?}: {number} after {before:?}");
            let holder = *self.holder.entry(flow).or_insert(handler);
            prop_assert_eq!(holder, handler, "two handlers have packets of {:?}", flow);
            self.handled += 1;
        }
        Ok(())
    }

    fn ends(&mut self, handler: usize) {
        self.holder.retain(|_, holder| *holder != handler);
    }
}

/// Traffic of one queue that consists of datagrams in three fragments each, with the flows taking turns.
#[derive(Clone)]
struct Datagrams {
    sent: usize,
    /// By flow: whether the first fragment found no room.
    headless: [bool; Self::FLOWS],
}

impl Datagrams {
    /// Few enough that the fragments of a datagram are never more chunks apart than a division waits for.
    const FLOWS: usize = 40;

    fn new() -> Self {
        Self { sent: 0, headless: [false; Self::FLOWS] }
    }

    /// Writes the next fragment, if its datagram's first was written and there is room.
    fn write(&mut self, producer: &mut Producer, number: u64) -> bool {
        let (flow, round) = (self.sent % Self::FLOWS, self.sent / Self::FLOWS);
        self.sent += 1;
        let place = [0x2000, 0x2001, 2][round % 3];
        if place != 0x2000 && self.headless[flow] {
            return false;
        }
        let short = |number: usize| u16::try_from(number).expect("few datagrams");
        let datagram = short(round / 3 * Self::FLOWS + flow);
        let written = write_fragment(producer, short(flow), number, [datagram, place]);
        self.headless[flow] = place == 0x2000 && !written;
        written
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Each packet is handled once, packets of a flow are in order, and no two handlers have the same flow. This
    /// includes fragments whose first one arrived before the queue was divided.
    #[test]
    fn flows_keep_their_order(
        steps in prop::collection::vec(moves(), 1..400),
        queues in 1u32..8,
        handlers in 2usize..6,
        chunks in 2u32..12,
        percent in 1u8..99,
        fragmented: bool,
    ) {
        let plan = Plan::new(handlers).advanced(percent).order(Order::Flow);
        let Bench { mut producers, group, handlers, lanes, gauges } = bench(queues, chunks, &plan, Delivery::Active);
        let mut handlers: Vec<Asked> =
            handlers.into_iter().map(|handler| Some((handler, None))).collect();
        let (mut judge, mut next, mut written) = (Judge::default(), 0u64, 0);
        let mut datagrams = vec![Datagrams::new(); producers.len()];
        let ask = |place: usize, one: &mut Asked, judge: &mut Judge| {
            if let Some((handler, answer)) = one {
                *answer = None;
                judge.ends(place);
                *answer = Some(handler.next(Duration::ZERO).expect("our own writer"));
                if let Some(Next::Taken(share)) = answer {
                    judge.begins(place, share)?;
                }
            }
            Ok::<(), TestCaseError>(())
        };
        for step in steps {
            match step {
                Move::Write(queue, packets) => {
                    // The first queue has most of the traffic.
                    let queue = queue.index(producers.len()) / 4;
                    for _ in 0..packets {
                        let producer = &mut producers[queue];
                        written += u64::from(match fragmented {
                            true => datagrams[queue].write(producer, next),
                            false => {
                                let flow = u16::try_from(next % u64::from(FLOWS)).expect("few flows");
                                write_of(producer, flow, next)
                            }
                        });
                        next += 1;
                    }
                }
                Move::Ask(handler) => {
                    let place = handler.index(handlers.len());
                    ask(place, &mut handlers[place], &mut judge)?;
                }
                Move::Leave(handler) if handlers.iter().flatten().count() > 1 => {
                    let place = handler.index(handlers.len());
                    // Its share is done first, as when a thread unwinds.
                    if let Some((handler, answer)) = handlers[place].take() {
                        drop(answer);
                        judge.ends(place);
                        drop(handler);
                    }
                }
                Move::Leave(_) => {}
            }
        }
        group.stop();
        let are_done = |handlers: &[Asked]| {
            handlers.iter().flatten().all(|(_, answer)| matches!(answer, Some(Next::Over)))
        };
        for _ in 0..10_000 {
            for (place, one) in handlers.iter_mut().enumerate() {
                ask(place, one, &mut judge)?;
            }
            if are_done(&handlers) {
                break;
            }
        }
        prop_assert!(are_done(&handlers));
        prop_assert!(!group.is_running(), "nobody waits for handlers that are done, but not dropped");
        prop_assert_eq!(judge.handled, written);
        let delivered: u64 = lanes.iter().map(|lane| lane.delivered.load(Ordering::Relaxed)).sum();
        prop_assert_eq!(delivered, written);
        drop(handlers);
        for gauge in &gauges {
            let fill = gauge.fill();
            prop_assert_eq!((fill.ready, fill.held, fill.free + fill.open), (0, 0, chunks));
        }
    }
}

#[test]
fn threads_that_share_a_queue_keep_its_flows_in_order() {
    const PACKETS: u64 = 60_000;
    let plan = Plan::new(3).advanced(40).order(Order::Flow);
    let Bench { mut producers, group, handlers, lanes, .. } = bench(2, 16, &plan, Delivery::Adaptive);
    let watcher = crate::live::handlers::Watcher::start(&group, Vec::new()).unwrap();
    let last: Vec<AtomicU64> = (0..FLOWS).map(|_| AtomicU64::new(0)).collect();
    let handled: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let _stopped = StoppedAtEnd(&group);
        for handler in handlers {
            let (last, handled) = (&last, &handled[handler.number()]);
            scope.spawn(move || {
                handler.run(|share| {
                    for (flow, number) in contents(&share) {
                        let before = last[usize::from(flow)].swap(number + 1, Ordering::Relaxed);
                        assert!(before < number + 1, "flow {flow}: {number} after {before}");
                        handled.fetch_add(1, Ordering::Relaxed);
                    }
                    // Long enough that a single handler is too slow.
                    std::thread::sleep(Duration::from_micros(200));
                    ControlFlow::Continue(())
                })
            });
        }
        for number in 0..PACKETS {
            let flow = u16::try_from(number % u64::from(FLOWS)).unwrap();
            until_there_is_room(|| write_of(&mut producers[0], flow, number));
        }
        group.stop();
    });
    drop(watcher);
    let handled: Vec<u64> = handled.into_iter().map(AtomicU64::into_inner).collect();
    assert_eq!(handled.iter().sum::<u64>(), PACKETS);
    assert!(handled.iter().all(|&packets| packets > 0), "{handled:?}");
    assert!(lanes[0].offloaded.load(Ordering::Relaxed) > 0);
    let stats = group.stats();
    assert!(stats.iter().all(|one| one.state == HandlerState::Ended), "{stats:?}");
}
