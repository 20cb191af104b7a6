//! Handlers and their queues in virtual time: the engine's own pool, and its own decisions about who helps whom
//! ([`weir_ring::Limit`], [`weir_ring::Neediest`]), driven by a clock that jumps from one event to the next.
//!
//! A handler is awake the moment there is work, and takes whole chunks. All else is as in the engine: it helps before it
//! takes from its own queue, whole chunks are taken from the front, and a chunk goes back when all its packets are done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_ring::{Consumer, FULL, Gauge, Limit, Neediest, Part, Pool, Producer, Shape};

use crate::failure::{Failure, failed};

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(in crate::wirecap) struct Design {
    /// Each with a handler.
    pub(in crate::wirecap) queues: u32,
    /// Of a queue.
    pub(in crate::wirecap) chunks: u32,
    /// Packets of a chunk.
    pub(in crate::wirecap) cells: u32,
    /// Percent; none: basic mode.
    pub(in crate::wirecap) threshold: Option<u8>,
    /// Nanoseconds that a handler takes for a packet.
    pub(in crate::wirecap) each: f64,
}

/// Packets that come on a queue at once, at so many nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::wirecap) struct Arrival {
    pub(in crate::wirecap) at: f64,
    pub(in crate::wirecap) queue: usize,
    pub(in crate::wirecap) packets: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::wirecap) struct Came {
    pub(in crate::wirecap) packets: u64,
    pub(in crate::wirecap) lost: u64,
    /// Done by handlers, those after the last arrival included.
    pub(in crate::wirecap) done: u64,
    /// Chunks that handlers of other queues took.
    pub(in crate::wirecap) helped: u64,
    /// Chunks that were not empty at once, at most.
    pub(in crate::wirecap) most_in_use: u32,
    /// When the last whole chunk was done: nanoseconds.
    pub(in crate::wirecap) ended: u64,
}

/// Bytes that a chunk is written with, of one record that stands for all of its packets: the fewest that a pool allows.
const CHUNK: u32 = 4096;

struct Simulation {
    design: Design,
    limit: Limit,
    queues: Vec<Queue>,
    /// What a handler holds; none: it is idle.
    held: Vec<Option<Part>>,
    /// Handlers that are busy, by when they are done: nanoseconds.
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    /// Whether any queue may be too full.
    alarm: bool,
    in_use: u32,
    came: Came,
}

struct Queue {
    producer: Producer,
    consumer: Consumer,
    gauge: Gauge,
    /// Packets of the chunk that is being written.
    written: u32,
}

impl Design {
    /// `arrivals`: in the order of time.
    pub(in crate::wirecap) fn simulate(
        self,
        arrivals: impl IntoIterator<Item = Arrival>,
    ) -> Result<Came, Failure> {
        let mut simulation = Simulation::new(self)?;
        for arrival in arrivals {
            simulation.until(Some(crate::units::whole(arrival.at)))?;
            simulation.arrive(arrival)?;
        }
        simulation.until(None)?;
        // What was not a whole chunk is taken as the engine does: after a while.
        let rest: u64 = simulation.queues.iter().map(|queue| u64::from(queue.written)).sum();
        let Simulation { came, .. } = simulation;
        Ok(Came { done: came.done + rest, ..came })
    }
}

impl Simulation {
    fn new(design: Design) -> Result<Self, Failure> {
        let Design { queues, chunks, threshold, .. } = design;
        let shape = Shape::new(queues, chunks, CHUNK, 0).map_err(failed("simulate such a pool"))?;
        let (producers, consumers) = Pool::private(shape).map_err(failed("get memory for such a pool"))?;
        let queue = |(producer, consumer): (Producer, Consumer)| {
            let gauge = consumer.gauge();
            Queue { producer, consumer, gauge, written: 0 }
        };
        Ok(Self {
            design,
            limit: Limit::new(chunks, threshold.unwrap_or(100)),
            queues: producers.into_iter().zip(consumers).map(queue).collect(),
            held: (0..queues).map(|_| None).collect(),
            busy: BinaryHeap::new(),
            alarm: false,
            in_use: 0,
            came: Came::default(),
        })
    }

    /// Lets handlers end what they have until then; without a time, all that is left.
    fn until(&mut self, time: Option<u64>) -> Result<(), Failure> {
        while let Some(&Reverse((at, handler))) = self.busy.peek()
            && time.is_none_or(|time| at <= time)
        {
            self.busy.pop();
            self.held[handler] = None;
            self.in_use -= 1;
            self.came.ended = at;
            self.came.done += u64::from(self.design.cells);
            self.begin(handler, at)?;
        }
        Ok(())
    }

    /// Fills chunks, and wakes who has nothing to do.
    fn arrive(&mut self, arrival: Arrival) -> Result<(), Failure> {
        let Arrival { at, queue: number, packets } = arrival;
        self.came.packets += packets;
        let (mut left, cells) = (packets, self.design.cells);
        while left > 0 {
            let queue = &mut self.queues[number];
            if queue.written == 0 {
                if queue.producer.room().is_none() {
                    self.came.lost += left;
                    break;
                }
                self.in_use += 1;
                self.came.most_in_use = self.came.most_in_use.max(self.in_use);
            }
            let some = left.min(u64::from(cells - queue.written));
            queue.written += u32::try_from(some).unwrap_or(cells);
            left -= some;
            if queue.written == cells {
                queue.producer.commit(CHUNK);
                queue.written = 0;
                self.wake(number, crate::units::whole(at))?;
            }
        }
        Ok(())
    }

    /// The handler of the queue, and if that has too much to do, all.
    fn wake(&mut self, number: usize, now: u64) -> Result<(), Failure> {
        if self.held[number].is_none() {
            self.begin(number, now)?;
        }
        let waiting = self.queues[number].gauge.fill().ready;
        if self.design.threshold.is_some() && self.limit.is_exceeded_by(waiting) {
            self.alarm = true;
            for handler in 0..self.held.len() {
                if self.held[handler].is_none() {
                    self.begin(handler, now)?;
                }
            }
        }
        Ok(())
    }

    /// Has an idle handler take a chunk: of the queue that needs help most, or else of its own.
    fn begin(&mut self, handler: usize, now: u64) -> Result<(), Failure> {
        let needy = self.needy(handler);
        let part = self.queues[needy.unwrap_or(handler)].consumer.take().map_err(failed("take a chunk"))?;
        if let Some(part) = part {
            self.came.helped += u64::from(needy.is_some());
            self.held[handler] = Some(part);
            let time = f64::from(self.design.cells) * self.design.each;
            self.busy.push(Reverse((now.saturating_add(crate::units::whole(time).max(1)), handler)));
        }
        Ok(())
    }

    fn needy(&mut self, handler: usize) -> Option<usize> {
        if !self.alarm {
            return None;
        }
        let (mut neediest, mut calm) = (Neediest::default(), true);
        let fullness = |queue: &Queue| self.limit.fullness(queue.gauge.fill().ready);
        for (number, queue) in self.queues.iter().enumerate() {
            let fullness = fullness(queue);
            calm &= fullness <= FULL;
            if number != handler {
                neediest.look(number, fullness);
            }
        }
        self.alarm = !calm;
        neediest.beyond([fullness(&self.queues[handler])])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESIGN: Design = Design { queues: 1, chunks: 100, cells: 256, threshold: None, each: 1000.0 };

    /// So many packets a microsecond on the first queue, one after the other, for 0.1 s.
    fn steady(rate: u64) -> impl Iterator<Item = Arrival> {
        (0..100_000 * rate).map(move |number| Arrival {
            at: number as f64 * 1000.0 / rate as f64,
            queue: 0,
            packets: 1,
        })
    }

    /// Twice as much as one handler does: what comes less what it does less what the pool holds, but for a chunk that is
    /// held until it is done, and one that is being written.
    #[test]
    fn a_single_queue_loses_what_arithmetic_says() {
        for chunks in [2, 10, 100, 300] {
            let came = Design { chunks, ..DESIGN }.simulate(steady(2)).expect("it runs");
            let law = 200_000 - 100_000 - 256 * i64::from(chunks);
            let off = i64::try_from(came.lost).expect("few") - law;
            assert!(off.abs() <= 2 * 256 || chunks == 2 && off >= 0, "{came:?}: {law}");
            assert_eq!((came.packets, came.done, came.helped), (200_000, 200_000 - came.lost, 0));
            assert_eq!(came.most_in_use, chunks);
        }
        let came = DESIGN.simulate(steady(1)).expect("it runs");
        assert_eq!((came.lost, came.done), (0, 100_000));
    }

    #[test]
    fn handlers_help_beyond_the_threshold_and_not_before() {
        let with = |queues, threshold| Design { queues, threshold, ..DESIGN }.simulate(steady(2));
        let alone = with(2, None).expect("it runs");
        let helped = with(2, Some(60)).expect("it runs");
        assert!(alone.lost > 70_000 && alone.helped == 0, "{alone:?}");
        assert_eq!((helped.lost, helped.done), (0, 200_000), "two can do it");
        // Half of the chunks, but for those before the threshold.
        assert!((300..400).contains(&helped.helped), "{helped:?}");
        assert!(helped.most_in_use < 65, "{helped:?}");
        let few = with(3, Some(60)).expect("it runs");
        assert_eq!(few.lost, 0);
    }

    #[test]
    fn packets_that_come_at_once_fill_what_there_is() {
        let burst = [Arrival { at: 5.0, queue: 0, packets: 30_000 }];
        let came = DESIGN.simulate(burst).expect("it runs");
        assert_eq!((came.packets, came.lost, came.done), (30_000, 30_000 - 25_600, 25_600));
    }
}
