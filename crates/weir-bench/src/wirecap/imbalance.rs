//! More comes on one queue than its handler can do, while others have time (Fig. 11, 12 and 13).
//!
//! ```text
//!  trace.rs: packets by step and queue -> generator -> one veth pair for each queue -> engine -> a handler for each queue:
//!                                                                                     pace.rs: so much time for a packet
//! ```

use std::thread;
use std::time::{Duration, Instant};

use weir::{Capture, Mode, Plan, SourceChoice};
use weir_lab::{FrameSender, Generator, LinkCounters, Network, Pair, Traffic, Veth};

use super::contestants::{self, BASIC, Contestant, Engine, FIGURE_11, FIGURE_12, FIGURE_13, LOST};
use super::pace::{Over, Pace};
use super::rings::{self, Kind};
use super::simulate::engine::{Arrival, Design};
use super::trace::{STEP, Trace};
use crate::experiment::{About, Experiment, Judged, Outcome, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::queues::{Check, Threads, settle};
use crate::sample::GENERATOR_CPU;
use crate::wanted::Wanted;

/// Of a frame whose record is as long as a cell of WireCAP.
const FRAME: usize = 2016;
const MTU: u32 = 2048;
/// Cells of a chunk, and their bytes.
const CELLS: u32 = 256;
const CHUNK: u32 = CELLS << 11;
const SNAP_LEN: u32 = 2048;
/// What a handler takes for a packet: 40,000 a second.
const EACH: Duration = Duration::from_micros(25);
/// What comes, as a part of what all handlers can do.
const COMES: f64 = 0.8;
const QUEUES: [u64; 3] = [4, 5, 6];
/// Time for which packets come: in five seconds 128,000 cells, the larger pool, are full.
const STEPS: u64 = 100;
const QUICK_STEPS: u64 = 16;
/// Where basic mode loses at least this share, in percent, advanced mode must lose nothing.
const MUCH: f64 = 10.0;

struct Imbalance {
    name: &'static str,
    title: &'static str,
    network: Network,
    contestants: &'static [Contestant],
    queues: &'static [u64],
    steps: u64,
    /// Whether handlers send on what they have done, each through a pair of its own.
    forwards: bool,
}

/// Figure 11: basic and advanced mode, and rings without either.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(settings, "imbalance", "One queue gets too much (WireCAP, Fig. 11)", &FIGURE_11, false)
}

/// Figure 12: from which fill on others help.
pub(crate) fn make_threshold(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(
        settings,
        "threshold",
        "How full a queue is before others help (WireCAP, Fig. 12)",
        &FIGURE_12,
        false,
    )
}

/// Figure 13: as Figure 11, and what is done is forwarded.
pub(crate) fn make_forwarding(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(settings, "forwarding", "One queue gets too much to forward (WireCAP, Fig. 13)", &FIGURE_13, true)
}

fn prepare(
    settings: &Settings,
    name: &'static str,
    title: &'static str,
    contestants: &'static [Contestant],
    forwards: bool,
) -> Result<Box<dyn Experiment>, Failure> {
    let queues = if settings.quick { &QUEUES[..1] } else { &QUEUES };
    let ends = || Veth::default().mtu(MTU);
    let mut network = settings.network(name, ends())?;
    let most = queues.iter().copied().max().unwrap_or(1);
    for _ in 1..if forwards { 2 * most } else { most } {
        network.connect(ends()).map_err(failed("create a private network"))?;
    }
    let steps = if settings.quick { QUICK_STEPS } else { STEPS };
    Ok(Box::new(Imbalance { name, title, network, contestants, queues, steps, forwards }))
}

/// What came of a turn.
#[derive(Debug, Default)]
struct Came {
    accepted: u64,
    /// When each step began.
    began: Vec<Duration>,
    /// When the last was over.
    ended: Duration,
    received: u64,
    dropped: u64,
    /// Chunks that handlers of other queues took.
    helped: u64,
    /// Packets that arrived behind the handlers, if they forward.
    forwarded: Option<u64>,
    problems: Vec<String>,
}

impl Came {
    /// Packets that a handler can do from each step to the next: those of a generator that is late come closer together.
    fn handled(&self) -> Vec<f64> {
        let ends = self.began.iter().skip(1).chain([&self.ended]);
        let times = self.began.iter().zip(ends).map(|(began, ended)| ended.saturating_sub(*began));
        times.map(|time| time.as_secs_f64() / EACH.as_secs_f64()).collect()
    }

    /// All of `trace` as it came.
    fn arrivals(&self, trace: &Trace) -> impl Iterator<Item = Arrival> {
        self.began.iter().zip(trace.steps()).flat_map(|(began, step)| {
            let at = began.as_secs_f64() * 1e9;
            step.iter().enumerate().map(move |(queue, &packets)| Arrival { at, queue, packets })
        })
    }
}

impl Experiment for Imbalance {
    fn about(&self) -> About {
        let mut about = contestants::about(self.name, self.title, self.contestants);
        if self.forwards {
            about.method.push_str(FORWARDS);
        }
        about
    }

    fn turns(&self) -> Vec<Turn> {
        Turn::each(self.queues.iter().copied(), self.contestants.iter().map(|one| one.name))
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |contestant: &&Contestant| contestant.name == turn.series;
        let contestant = self.contestants.iter().find(named).expect("turns are of contestants");
        let queues = turn.at.expect("turns are of so many queues");
        let trace = trace(queues, self.steps);
        let before = self.forwarded()?;
        let mut came = match contestant.engine {
            Engine::Pool(chunks, threshold) => self.pools(&trace, chunks, threshold)?,
            Engine::Ring(kind) => self.rings(&trace, kind)?,
        };
        came.forwarded = self.forwards.then_some(self.forwarded()? - before);
        let mut taken = Taken { problems: came.problems.clone(), ..Taken::default() };
        let arrived = came.forwarded.unwrap_or(came.received);
        taken.add(turn, LOST, percent(came.accepted.saturating_sub(arrived) as f64, came.accepted));
        if let Some(forwarded) = came.forwarded {
            taken.add(turn, "forwarded", forwarded as f64);
        }
        for (measure, number) in [
            ("sent", came.accepted),
            ("received", came.received),
            ("dropped", came.dropped),
            ("helped", came.helped),
        ] {
            taken.add(turn, measure, number as f64);
        }
        if came.received + came.dropped != came.accepted || arrived > came.received {
            taken.problems.push(format!("{came:?}"));
        }
        let Engine::Pool(chunks, threshold) = contestant.engine else { return Ok(taken) };
        let mut model = |series: &str, lost: f64| {
            let lost = percent(lost, came.accepted);
            taken.put(series, LOST, Some(queues as f64), lost);
        };
        let alone = trace.lost(f64::from(chunks * CELLS), &came.handled());
        if let Some(law) = contestant.law {
            model(law, alone);
        }
        if let Some(series) = contestant.simulated() {
            let (queues, each) = (u32::try_from(queues).unwrap_or(u32::MAX), EACH.as_secs_f64() * 1e9);
            let design = Design { queues, chunks, cells: CELLS, threshold, each };
            model(&series, design.simulate(came.arrivals(&trace))?.lost as f64);
        }
        taken.add(turn, "alone", percent(alone, came.accepted));
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let mut bars = Vec::new();
        for &queues in self.queues {
            let of = |series: &str| outcome.rounds_of(series, LOST, Some(queues as f64));
            let basic = of(BASIC.name);
            let name = |what: &str| format!("{what}, {queues} queues");
            let values = basic.iter().map(|(_, lost)| *lost);
            bars.push(Judged::new(&name("basic, R = 100: lost"), Wanted::AtLeast(MUCH), "%", values));
            let much = |round: u32| basic.iter().any(|(number, lost)| *number == round && *lost > MUCH);
            for contestant in self.contestants {
                let lost = of(contestant.name);
                let off = |model: &str| {
                    let off = outcome.added([contestant.name, model], LOST, Some(queues as f64));
                    off.into_iter().map(|(_, off)| off.abs()).collect()
                };
                let mut bar = |what: &str, most, unit, values: Vec<f64>| {
                    let name = name(&format!("{}: {what}", contestant.title));
                    bars.push(Judged::worst(&name, most, unit, values));
                };
                if let Engine::Pool(_, Some(_)) = contestant.engine {
                    let lost = lost.iter().filter(|(round, _)| much(*round)).map(|(_, lost)| *lost);
                    bar("lost", 0.0, "%", lost.collect());
                }
                if let Some(law) = contestant.law {
                    bar("away from arithmetic", 5.0, "percentage points", off(law));
                }
                if let Some(simulated) = contestant.simulated() {
                    bar("away from the simulation", 5.0, "percentage points", off(&simulated));
                }
            }
        }
        bars
    }
}

impl Imbalance {
    /// With weir: a queue for each pair, with a pool of its own.
    fn pools(&self, trace: &Trace, chunks: u32, threshold: Option<u8>) -> Result<Came, Failure> {
        let queues = trace.queues().len();
        let pairs = &self.network.pairs()[..queues];
        let builder = pairs.iter().fold(Capture::builder(), |builder, pair| builder.interface(&pair.rx.name));
        let builder = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).snap_len(SNAP_LEN);
        let mut capture = self.network.rx().run(|| builder.chunks(chunks).chunk_size(CHUNK).open())?;
        let plan = Plan::new(queues);
        let handlers = capture.handlers(&threshold.into_iter().fold(plan, Plan::advanced))?;
        let traffic = traffic()?;
        let (over, check) = (Over::default(), Check::new(&traffic, span(trace) * queues as u64));
        let work = |number: usize| {
            let mut work = self.work(number, &over)?;
            Ok(check.of(move |packet| work(packet.data)))
        };
        let works: Result<Vec<_>, Failure> = (0..handlers.len()).map(work).collect();
        let works = works?;
        let threads = Threads::start(handlers, works);
        let sent = send(pairs, &traffic, trace);
        over.set();
        let sent = sent?;
        settle(&mut capture, sent.accepted)?;
        threads.finish(&mut capture)?;
        let account = capture.stats()?;
        let total = account.total();
        let (_, problem) = check.finish(&total, sent.accepted);
        let queues = account.interfaces.iter().flat_map(|interface| &interface.queues);
        let helped = queues.map(|queue| queue.offloaded).sum();
        let problems = sent.problems.into_iter().chain(problem).collect();
        Ok(Came { received: total.delivered, dropped: total.lost, helped, problems, ..sent })
    }

    /// The work of one handler.
    fn work(&self, number: usize, over: &Over) -> Result<impl FnMut(&[u8]) + Send + 'static, Failure> {
        let out = self.ways_out().get(number).map(|pair| FrameSender::new(&pair.tx)).transpose();
        let out = out.map_err(failed("prepare to forward"))?;
        // What is forwarded is forwarded at this speed to the end: the way out is short.
        let over = if out.is_some() { Over::default() } else { over.clone() };
        let mut pace = Pace::new(EACH, &over);
        Ok(move |frame: &[u8]| {
            pace.packet();
            if let Some(out) = &out {
                // What is not sent does not arrive, and that is counted.
                let _missed = out.send(frame);
            }
        })
    }

    /// A pair for each handler that forwards.
    fn ways_out(&self) -> &[Pair] {
        let pairs = self.network.pairs();
        &pairs[if self.forwards { pairs.len() / 2 } else { pairs.len() }..]
    }

    /// Packets that have arrived behind the handlers so far.
    fn forwarded(&self) -> Result<u64, Failure> {
        let arrived = |pair: &Pair| LinkCounters::read(&pair.rx).map(|counters| counters.rx_packets);
        self.ways_out()
            .iter()
            .map(arrived)
            .sum::<Result<u64, _>>()
            .map_err(failed("read the counters of interfaces"))
    }

    /// With a ring for each pair.
    fn rings(&self, trace: &Trace, kind: Kind) -> Result<Came, Failure> {
        let queues = trace.queues().len();
        let pairs = &self.network.pairs()[..queues];
        let traffic = traffic()?;
        let (over, check) = (Over::default(), Check::new(&traffic, span(trace) * queues as u64));
        let start = |(number, pair): (usize, &Pair)| {
            let (mut work, check) = (self.work(number, &over)?, check.clone());
            let each = move |frame: &[u8]| {
                check.frame(frame);
                work(frame);
            };
            rings::start(kind, &pair.rx, &over, each)
        };
        let threads: Result<Vec<_>, Failure> = pairs.iter().enumerate().map(start).collect();
        let sent = send(pairs, &traffic, trace);
        over.set();
        let mut came = sent?;
        for thread in threads? {
            let counts = thread.join().map_err(|_panic| Failure::new("a thread at a ring panicked"))??;
            came.received += counts.received;
            came.dropped += counts.lost;
        }
        let report = check.report();
        if report.total.received != came.received || report.total.duplicated + report.corrupt > 0 {
            came.problems.push(format!("{} received, {report:?}", came.received));
        }
        Ok(came)
    }
}

/// Sends each step at its time.
fn send(pairs: &[Pair], traffic: &Traffic, trace: &Trace) -> Result<Came, Failure> {
    let generator = |(queue, pair): (u64, &Pair)| {
        let generator = Generator::numbered_from(queue * span(trace), pair, traffic);
        Ok(generator.map_err(failed("prepare to send"))?.cpu(GENERATOR_CPU))
    };
    let generators: Result<Vec<_>, Failure> = (0..).zip(pairs).map(generator).collect();
    let mut generators = generators?;
    let (mut came, began, mut next) = (Came::default(), Instant::now(), Instant::now());
    for step in trace.steps() {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        came.began.push(began.elapsed());
        for (generator, &packets) in generators.iter_mut().zip(step) {
            let sent = generator.send(packets).map_err(failed("send"))?;
            came.accepted += sent.accepted;
        }
        next += STEP;
    }
    thread::sleep(next.saturating_duration_since(Instant::now()));
    came.ended = began.elapsed();
    Ok(came)
}

fn trace(queues: u64, steps: u64) -> Trace {
    let of_one = STEP.as_secs_f64() / EACH.as_secs_f64();
    Trace::new(queues, steps, COMES * of_one * queues as f64)
}

/// Frames that are numbered for each queue: none has more.
fn span(trace: &Trace) -> u64 {
    trace.queues().into_iter().max().unwrap_or(0)
}

fn traffic() -> Result<Traffic, Failure> {
    Traffic::new(FRAME).map_err(failed("describe frames"))
}

fn percent(part: f64, of: u64) -> f64 {
    100.0 * part / of.max(1) as f64
}

const FORWARDS: &str = "\
 Each handler sends on what it has done through a pair of its own, at its own speed to the last packet. Lost is what does not \
arrive at its far end, wherever it was lost.";
