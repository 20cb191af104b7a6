//! Two devices forwarded both ways at once, by queues (Fig. 14), beside what the machine's memory allows.

mod about;
mod bandwidth;
mod engines;
mod field;

use std::thread;
use std::time::Duration;

use self::about::{CONTESTANTS, Contestant, MEMORIES};
use self::bandwidth::copying;
use self::engines::{CELLS, Engine};
use self::field::{Field, Totals};
use super::simulate::engine::Design;
use super::simulate::skewed;
use crate::experiment::{About, Experiment, Settings, Taken, Turn};
use crate::failure::Failure;

const RATE: &str = "rate";
const LOST: &str = "lost";
const MPPS: f64 = 1e6;
/// Of memory.
const LINE: usize = 64;
/// Queues of machines that are simulated where this one has fewer processors.
const SIMULATED: [u32; 3] = [4, 8, MOST];
const MOST: u32 = 16;
/// Bits a second of a simulated device, and the bytes of a frame that are on its wire only: preamble, checksum and gap.
const WIRE: f64 = 10e9;
const WIRE_BYTES: usize = 24;
/// Memory of a thread that measures memory.
const SET: usize = 256 << 20;
const QUICK_SET: usize = 64 << 20;

struct Scaling {
    name: &'static str,
    /// Bytes of a frame.
    size: usize,
    processors: u32,
    /// By the number of queues.
    fields: Vec<(u32, Field)>,
    /// Of a turn.
    time: Duration,
    /// Of virtual time, and of memory.
    simulated: Duration,
    copied: Duration,
    set: usize,
}

/// Frames of 60 bytes.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(settings, "scaling", 60)
}

/// Frames of 96 bytes.
pub(crate) fn make_longer(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(settings, "scaling-96", 96)
}

fn prepare(settings: &Settings, name: &'static str, size: usize) -> Result<Box<dyn Experiment>, Failure> {
    let processors = thread::available_parallelism().map_or(1, |processors| processors.get());
    let processors = u32::try_from(processors).unwrap_or(u32::MAX);
    let field = |queues| Ok((queues, Field::new(settings, name, queues, processors, size)?));
    let mut all = queues(processors);
    if settings.quick {
        all = vec![processors.min(2)];
    }
    let fields = all.into_iter().map(field).collect::<Result<_, Failure>>()?;
    Ok(Box::new(Scaling {
        name,
        size,
        processors,
        fields,
        time: settings.time(2000),
        simulated: settings.time(1000),
        copied: settings.time(400),
        set: if settings.quick { QUICK_SET } else { SET },
    }))
}

/// Powers of two, and as many as there are processors, but no more than are simulated.
fn queues(processors: u32) -> Vec<u32> {
    let most = processors.min(MOST);
    let mut all: Vec<u32> = (0..).map(|power| 1 << power).take_while(|queues| *queues < most).collect();
    all.push(most);
    all
}

/// Packets a second that so many bytes read and written a second allow, if each packet is moved so many times: read once and
/// written once each time, in whole lines.
fn allowed(bandwidth: f64, size: usize, times: u32) -> f64 {
    let moved = 2 * size.next_multiple_of(LINE);
    bandwidth / (moved as f64 * f64::from(times))
}

impl Experiment for Scaling {
    fn about(&self) -> About {
        about::about(self.name, self.size, &self.simulated_queues())
    }

    fn turns(&self) -> Vec<Turn> {
        let memory = Turn { name: "memory".to_owned(), ..Turn::of(MEMORIES[0].name, None) };
        let queues = self.fields.iter().map(|(queues, _)| *queues);
        [vec![memory], Turn::each(queues, CONTESTANTS.iter().map(|one| one.name))].concat()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let Some(queues) = turn.at else { return self.memory() };
        let named = |contestant: &&Contestant| contestant.name == turn.series;
        let contestant = CONTESTANTS.iter().find(named).expect("turns are of contestants");
        let field = self.fields.iter_mut().find(|(number, _)| u64::from(*number) == queues);
        let (_, field) = field.expect("turns are of so many queues");
        let (mut taken, each) = forward(field, contestant.engine, turn, self.size, self.time)?;
        let is_first = self.fields.first().is_some_and(|(fewest, _)| u64::from(*fewest) == queues);
        if let Some((name, each)) = contestant.simulated().zip(each).filter(|_| is_first) {
            self.simulate(contestant.engine, &name, each, &mut taken)?;
        }
        Ok(taken)
    }
}

/// Forwards for `time`. Gives also the nanoseconds of a packet, where there are handlers that tell.
fn forward(
    field: &mut Field,
    engine: Engine,
    turn: &Turn,
    size: usize,
    time: Duration,
) -> Result<(Taken, Option<f64>), Failure> {
    let before = field.totals()?;
    let running = engine.start(&field.network, size)?;
    let sent = field.send(time);
    field.settle();
    // Whatever became of them, it has to end.
    let said = running.finish(sent.as_ref().map(|sent| sent.accepted).unwrap_or_default())?;
    let sent = sent?;
    let no_room = |now: &Totals, way: usize| {
        if said.knows_way_out { 0 } else { now.no_room[way] - before.no_room[way] }
    };
    let now = field.totals()?;
    let due = |way: usize| sent.accepted[way].saturating_sub(said.lost[way] + no_room(&now, way));
    field.wait_for([0, 1].map(|way| before.arrived[way] + due(way)));
    let now = field.totals()?;
    let mut taken = Taken::default();
    let arrived = [0, 1].map(|way: usize| now.arrived[way] - before.arrived[way]);
    let out = [0, 1].map(|way| no_room(&now, way));
    for way in [0, 1] {
        let (came, lost, out) = (arrived[way], said.lost[way], out[way]);
        if came == 0 || sent.accepted[way] != came + lost + out {
            taken.problems.push(format!(
                "way {way}: {} packets sent, {came} arrived, {lost} lost by the engine, {out} at the way out",
                sent.accepted[way]
            ));
        }
    }
    taken.problems.extend(said.problem);
    let [sent_all, arrived, lost, out] =
        [sent.accepted, arrived, said.lost, out].map(|ways| ways.iter().sum::<u64>() as f64);
    let window = sent.window;
    taken.add(turn, RATE, window.arrived as f64 / window.seconds / MPPS);
    taken.add(turn, LOST, 100.0 * (sent_all - arrived).max(0.0) / sent_all.max(1.0));
    if window.arrived > 0 {
        taken.add(turn, "cpu", window.busy.as_secs_f64() * 1e9 / window.arrived as f64);
    }
    taken.add(turn, "offered", sent_all / sent.seconds.max(f64::MIN_POSITIVE) / MPPS);
    for (measure, number) in [("sent", sent_all), ("received", arrived), ("dropped", lost), ("no-room", out)]
    {
        taken.add(turn, measure, number);
    }
    Ok((taken, said.each))
}

impl Scaling {
    /// Those that this machine has no processors for.
    fn simulated_queues(&self) -> Vec<u32> {
        SIMULATED.into_iter().filter(|queues| *queues > self.processors).collect()
    }

    /// What memory allows, at all places that are measured.
    fn memory(&self) -> Result<Taken, Failure> {
        let mut taken = Taken::default();
        let all = usize::try_from(self.processors).unwrap_or(1);
        let one = copying(1, self.set, self.copied)?;
        let all = copying(all, self.set, self.copied)?;
        for memory in &MEMORIES {
            let bandwidth = if memory.all { all } else { one };
            for (queues, _) in &self.fields {
                let at = Some(f64::from(*queues));
                let rate = allowed(bandwidth, self.size, memory.times) / MPPS;
                taken.put(memory.name, RATE, at, rate);
                taken.put(memory.name, "bandwidth", at, bandwidth / 1e9);
            }
        }
        Ok(taken)
    }

    /// One way at the rate of the wire, since both are alike: handlers that take `each` nanoseconds for a packet, on a processor each.
    fn simulate(&self, engine: Engine, name: &str, each: f64, taken: &mut Taken) -> Result<(), Failure> {
        let Engine::Pools(chunks, threshold) = engine else { return Ok(()) };
        let wire = WIRE / (8 * (self.size + WIRE_BYTES)) as f64;
        for queues in self.simulated_queues() {
            let design = Design { queues, chunks, cells: CELLS, threshold, each };
            let came = design.simulate(skewed(queues, 0.0, wire, self.simulated, CELLS))?;
            let seconds = self.simulated.as_secs_f64().max(came.ended as f64 / 1e9);
            let at = Some(f64::from(queues));
            let lost = 100.0 * came.lost as f64 / came.packets.max(1) as f64;
            taken.put(name, RATE, at, 2.0 * came.done as f64 / seconds / MPPS);
            taken.put(name, LOST, at, lost);
            if came.packets != came.done + came.lost {
                taken.problems.push(format!("simulation, {queues} queues: {came:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_moved_in_whole_lines() {
        // A GB/s, and 64 bytes read and written for each packet.
        assert_eq!(allowed(1e9, 60, 1), 1e9 / 128.0);
        assert_eq!(allowed(1e9, 64, 1), allowed(1e9, 60, 1));
        assert_eq!(allowed(1e9, 96, 1), 1e9 / 256.0);
        assert_eq!(allowed(1e9, 96, 3), 1e9 / 768.0);
    }

    #[test]
    fn queues_go_up_to_the_processors() {
        assert_eq!(queues(1), [1]);
        assert_eq!(queues(2), [1, 2]);
        assert_eq!(queues(6), [1, 2, 4, 6]);
        assert_eq!(queues(64), [1, 2, 4, 8, 16]);
    }
}
