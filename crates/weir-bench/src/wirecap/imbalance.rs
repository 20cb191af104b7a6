//! More comes on one queue than its handler can do, while others have time (Fig. 11 and 12).
//!
//! ```text
//!  trace.rs: packets by step and queue -> generator -> one veth pair for each queue -> engine -> a handler for each queue:
//!                                                                                     pace.rs: so much time for a packet
//! ```

use std::thread;
use std::time::{Duration, Instant};

use weir::{Capture, Mode, Plan, SourceChoice};
use weir_lab::{Generator, Network, Pair, Traffic, Veth};

use super::pace::{Over, Pace};
use super::rings::{self, Kind};
use super::trace::{STEP, Trace};
use crate::bars::Wanted;
use crate::experiment::{
    About, Axis, Better, Experiment, Found, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failed;
use crate::failure::Failure;
use crate::queues::{Check, Threads, settle};
use crate::sample::GENERATOR_CPU;

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

const LOST: &str = "lost";
const SMALL: u32 = 100;
const LARGE: u32 = 500;
const SMALL_LAW: &str = "law-100";
/// Of what basic mode loses this much, in percent, advanced mode has to lose nothing.
const MUCH: f64 = 10.0;

/// What takes packets from the queues.
#[derive(Clone, Copy, Debug)]
enum Engine {
    /// Chunks of each queue, and with a threshold in percent advanced mode.
    Pool(u32, Option<u8>),
    Ring(Kind),
}

struct Contestant {
    name: &'static str,
    title: &'static str,
    engine: Engine,
    /// The series of what arithmetic says.
    law: Option<&'static str>,
}

const BASIC: Contestant = Contestant {
    name: "basic-100",
    title: "weir, basic, M = 256, R = 100",
    engine: Engine::Pool(SMALL, None),
    law: Some(SMALL_LAW),
};

const fn advanced(name: &'static str, title: &'static str, chunks: u32, threshold: u8) -> Contestant {
    Contestant { name, title, engine: Engine::Pool(chunks, Some(threshold)), law: None }
}

const FIGURE_11: [Contestant; 6] = [
    BASIC,
    Contestant {
        name: "basic-500",
        title: "weir, basic, M = 256, R = 500",
        engine: Engine::Pool(LARGE, None),
        law: Some("law-500"),
    },
    advanced("advanced-100", "weir, advanced, M = 256, R = 100, T = 60 %", SMALL, 60),
    advanced("advanced-500", "weir, advanced, M = 256, R = 500, T = 60 %", LARGE, 60),
    Contestant {
        name: "ring",
        title: "copying rings without a pool: TPACKET_V3 of 50 MiB each",
        engine: Engine::Ring(Kind::Copying),
        law: None,
    },
    Contestant {
        name: "nic-ring",
        title: "bare rings of a NIC's size: AF_XDP with 4096 frames each",
        engine: Engine::Ring(Kind::Short),
        law: None,
    },
];

const FIGURE_12: [Contestant; 5] = [
    BASIC,
    advanced("t-60", "weir, advanced, M = 256, R = 100, T = 60 %", SMALL, 60),
    advanced("t-70", "weir, advanced, M = 256, R = 100, T = 70 %", SMALL, 70),
    advanced("t-80", "weir, advanced, M = 256, R = 100, T = 80 %", SMALL, 80),
    advanced("t-90", "weir, advanced, M = 256, R = 100, T = 90 %", SMALL, 90),
];

struct Imbalance {
    name: &'static str,
    title: &'static str,
    network: Network,
    contestants: &'static [Contestant],
    queues: &'static [u64],
    steps: u64,
}

/// Figure 11: basic and advanced mode, and rings without either.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(settings, "imbalance", "One queue gets too much (WireCAP, Fig. 11)", &FIGURE_11)
}

/// Figure 12: from which fill on others help.
pub(crate) fn make_threshold(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    prepare(settings, "threshold", "From which fill on others help (WireCAP, Fig. 12)", &FIGURE_12)
}

fn prepare(
    settings: &Settings,
    name: &'static str,
    title: &'static str,
    contestants: &'static [Contestant],
) -> Result<Box<dyn Experiment>, Failure> {
    let queues = if settings.quick { &QUEUES[..1] } else { &QUEUES };
    let ends = || Veth::default().mtu(MTU);
    let mut network = settings.network(name, ends())?;
    for _ in 1..queues.iter().copied().max().unwrap_or(1) {
        network.connect(ends()).map_err(failed("create a private network"))?;
    }
    let steps = if settings.quick { QUICK_STEPS } else { STEPS };
    Ok(Box::new(Imbalance { name, title, network, contestants, queues, steps }))
}

/// What came of a turn.
#[derive(Debug, Default)]
struct Came {
    accepted: u64,
    refused: u64,
    elapsed: Duration,
    received: u64,
    dropped: u64,
    /// Chunks that handlers of other queues took.
    helped: u64,
    problems: Vec<String>,
}

impl Experiment for Imbalance {
    fn about(&self) -> About {
        let series = self.contestants.iter().map(|contestant| Series {
            name: contestant.name.to_owned(),
            title: contestant.title.to_owned(),
            role: if matches!(contestant.engine, Engine::Ring(_)) { Role::Peer } else { Role::Ours },
        });
        let laws = self.contestants.iter().filter_map(|contestant| {
            let title = format!("arithmetic: {}", contestant.title.trim_start_matches("weir, "));
            Some(Series { name: contestant.law?.to_owned(), title, role: Role::Model })
        });
        let rings = self.contestants.iter().filter(|one| matches!(one.engine, Engine::Ring(_)));
        About {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            method: METHOD.to_owned(),
            differs: DIFFERS.map(str::to_owned).to_vec(),
            axis: Some(Axis { title: "queues".to_owned(), unit: "queues".to_owned(), logarithmic: false }),
            measures: vec![
                Measure::new(LOST, "packets lost", "%", Better::Lower),
                Measure::new("sent", "packets that the interfaces took", "packets", Better::Neither),
                Measure::new("received", "packets that handlers have done", "packets", Better::Neither),
                Measure::new(
                    "dropped",
                    "packets that the engine itself counts as lost",
                    "packets",
                    Better::Neither,
                ),
                Measure::new(
                    "helped",
                    "chunks that handlers of other queues took",
                    "chunks",
                    Better::Neither,
                ),
            ],
            series: series.chain(laws).collect(),
            versus: rings.map(|ring| ["advanced-100", ring.name].map(str::to_owned)).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let of = |&queues: &u64| self.contestants.iter().map(move |one| Turn::of(one.name, Some(queues)));
        self.queues.iter().flat_map(of).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |contestant: &&Contestant| contestant.name == turn.series;
        let contestant = self.contestants.iter().find(named).expect("turns are of contestants");
        let queues = turn.at.expect("turns are of so many queues");
        let trace = trace(queues, self.steps);
        let came = match contestant.engine {
            Engine::Pool(chunks, threshold) => self.pools(&trace, chunks, threshold)?,
            Engine::Ring(kind) => self.rings(&trace, kind)?,
        };
        let mut taken = Taken { problems: came.problems.clone(), ..Taken::default() };
        taken.add(turn, LOST, percent(came.accepted.saturating_sub(came.received) as f64, came.accepted));
        for (measure, number) in [
            ("sent", came.accepted),
            ("received", came.received),
            ("dropped", came.dropped),
            ("helped", came.helped),
        ] {
            taken.add(turn, measure, number as f64);
        }
        if came.received + came.dropped != came.accepted {
            taken.problems.push(format!("{came:?}"));
        }
        if let (Some(law), Engine::Pool(chunks, _)) = (contestant.law, contestant.engine) {
            // In the time that it took: a generator that is late leaves more to the handlers.
            let step = came.elapsed.as_secs_f64() / self.steps as f64;
            let lost = trace.lost(f64::from(chunks * CELLS), step / EACH.as_secs_f64());
            taken.found.push(Found::new(law, LOST, Some(queues as f64), percent(lost, came.accepted)));
        }
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
                if let Engine::Pool(_, Some(_)) = contestant.engine {
                    let lost = lost.into_iter().filter(|(round, _)| much(*round)).map(|(_, lost)| lost);
                    bars.push(Judged::worst(&name(&format!("{}: lost", contestant.title)), 0.0, "%", lost));
                } else if let Some(law) = contestant.law {
                    let law = of(law);
                    let off = lost.iter().zip(&law).map(|((_, lost), (_, law))| (lost - law).abs());
                    let what = format!("{}: away from arithmetic", contestant.title);
                    bars.push(Judged::worst(&name(&what), 5.0, "% points", off));
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
        let works = handlers.iter().map(|_| {
            let mut pace = Pace::new(EACH, &over);
            check.of(move |_| pace.packet())
        });
        let works = works.collect();
        let threads = Threads::start(handlers, works);
        let sent = send(pairs, &traffic, trace);
        over.set();
        let sent = sent?;
        settle(&mut capture, sent.accepted)?;
        threads.finish(&mut capture)?;
        let account = capture.account()?;
        let total = account.total();
        let (_, problem) = check.finish(&total, sent.accepted);
        let queues = account.interfaces.iter().flat_map(|interface| &interface.queues);
        let helped = queues.map(|queue| queue.offloaded).sum();
        let problems = sent.problems.into_iter().chain(problem).collect();
        Ok(Came { received: total.delivered, dropped: total.lost, helped, problems, ..sent })
    }

    /// With a ring for each pair.
    fn rings(&self, trace: &Trace, kind: Kind) -> Result<Came, Failure> {
        let queues = trace.queues().len();
        let pairs = &self.network.pairs()[..queues];
        let traffic = traffic()?;
        let (over, check) = (Over::default(), Check::new(&traffic, span(trace) * queues as u64));
        let start = |pair: &Pair| {
            let (mut pace, check) = (Pace::new(EACH, &over), check.clone());
            let each = move |frame: &[u8]| {
                check.frame(frame);
                pace.packet();
            };
            rings::start(kind, &pair.rx, &over, each)
        };
        let threads: Result<Vec<_>, Failure> = pairs.iter().map(start).collect();
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
        for (generator, &packets) in generators.iter_mut().zip(step) {
            let sent = generator.send(packets).map_err(failed("send"))?;
            came.accepted += sent.accepted;
            came.refused += sent.refused;
        }
        next += STEP;
    }
    thread::sleep(next.saturating_duration_since(Instant::now()));
    came.elapsed = began.elapsed();
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

const METHOD: &str = "\
A trace says how many packets come on each queue every 50 ms: 1000 flows whose packets are in proportion to 1 / f^1.5 (Zipf), \
spread over the queues by a hash with a fixed seed; in one step of ten a flow sends four times as much. So one queue gets far more \
than its handler can do, and all together 80 % of what all handlers can. A handler takes 25 microseconds for a packet. It \
waits for them instead of calculating, so that on two processors each handler has what it would have on a processor of its own. \
Frames of 2016 bytes make records of 2 KiB, WireCAP's cells: M cells to a chunk, R chunks to a queue. Every byte of what \
arrives is checked. Arithmetic: what comes on a queue, less what its handler does and what its pool holds, step by step.";

const DIFFERS: [&str; 4] = [
    "The trace is made, not recorded at Fermilab's border router; its skew is chosen so that basic mode loses.",
    "WireCAP's handlers ran a filter 300 times for each packet on a core each; here a handler waits for as long as such work takes.",
    "A queue is an interface (one veth pair for each) instead of a receive queue of one card.",
    "PF_RING, DNA and netmap are not part of a stock kernel. In their place are engines of the same kind: copying rings without a \
     pool, and bare rings as short as those of a NIC.",
];
