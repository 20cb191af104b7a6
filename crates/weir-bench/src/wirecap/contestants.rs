//! Who takes packets from the queues, and what is asked of them.

use super::rings::{BYTES, Kind};
use crate::experiment::{About, Axis, Measure, Role, Series};

pub(super) const LOST: &str = "lost";
const SMALL: u32 = 100;
const LARGE: u32 = 500;
const SMALL_LAW: &str = "law-100";

/// What takes packets from the queues.
#[derive(Clone, Copy, Debug)]
pub(super) enum Engine {
    /// Chunks of each queue, and with a threshold in percent advanced mode.
    Pool(u32, Option<u8>),
    Ring(Kind),
}

pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) engine: Engine,
    /// The series of what arithmetic says.
    pub(super) law: Option<&'static str>,
}

const fn contestant(
    name: &'static str,
    title: &'static str,
    engine: Engine,
    law: Option<&'static str>,
) -> Contestant {
    Contestant { name, title, engine, law }
}

pub(super) const BASIC: Contestant =
    contestant("basic-100", "weir, basic, M = 256, R = 100", Engine::Pool(SMALL, None), Some(SMALL_LAW));

const fn advanced(name: &'static str, title: &'static str, chunks: u32, threshold: u8) -> Contestant {
    contestant(name, title, Engine::Pool(chunks, Some(threshold)), None)
}

/// Basic and advanced mode, and rings without either.
pub(super) const FIGURE_11: [Contestant; 6] = [
    BASIC,
    contestant("basic-500", "weir, basic, M = 256, R = 500", Engine::Pool(LARGE, None), Some("law-500")),
    advanced("advanced-100", "weir, advanced, M = 256, R = 100, T = 60 %", SMALL, 60),
    advanced("advanced-500", "weir, advanced, M = 256, R = 500, T = 60 %", LARGE, 60),
    contestant(
        "ring",
        "copying rings without a pool: TPACKET_V3 of 50 MiB each",
        Engine::Ring(Kind::Copying(BYTES)),
        None,
    ),
    contestant(
        "nic-ring",
        "bare rings of a NIC's size: AF_XDP with 4096 frames each",
        Engine::Ring(Kind::Short),
        None,
    ),
];

/// Thresholds.
pub(super) const FIGURE_12: [Contestant; 5] = [
    BASIC,
    advanced("t-60", "weir, advanced, M = 256, R = 100, T = 60 %", SMALL, 60),
    advanced("t-70", "weir, advanced, M = 256, R = 100, T = 70 %", SMALL, 70),
    advanced("t-80", "weir, advanced, M = 256, R = 100, T = 80 %", SMALL, 80),
    advanced("t-90", "weir, advanced, M = 256, R = 100, T = 90 %", SMALL, 90),
];

/// Those that forward. A pool of 500 chunks that nobody helps with is not empty for seconds after the last packet.
pub(super) const FIGURE_13: [Contestant; 5] = {
    let [basic, _, advanced, large, ring, nic_ring] = FIGURE_11;
    [basic, advanced, large, ring, nic_ring]
};

impl Contestant {
    /// The series of what the simulation says of it.
    pub(super) fn simulated(&self) -> Option<String> {
        matches!(self.engine, Engine::Pool(..)).then(|| format!("simulated-{}", self.name))
    }
}

pub(super) fn about(name: &str, title: &str, contestants: &[Contestant]) -> About {
    let series = contestants.iter().map(|one| {
        let role = if matches!(one.engine, Engine::Ring(_)) { Role::Peer } else { Role::Ours };
        Series::new(one.name, one.title, role)
    });
    let models = contestants.iter().flat_map(|contestant| {
        let model = |name: String, how: &str| {
            let title = format!("{how}: {}", contestant.title.trim_start_matches("weir, "));
            Series { name, title, role: Role::Model }
        };
        let law = contestant.law.map(|law| model(law.to_owned(), "arithmetic"));
        law.into_iter().chain(contestant.simulated().map(|name| model(name, "simulation")))
    });
    let rings = contestants.iter().filter(|one| matches!(one.engine, Engine::Ring(_)));
    About {
        name: name.to_owned(),
        title: title.to_owned(),
        method: METHOD.to_owned(),
        differs: DIFFERS.map(str::to_owned).to_vec(),
        axis: Some(Axis { title: "queues".to_owned(), unit: "queues".to_owned(), logarithmic: false }),
        measures: vec![
            Measure::lower(LOST, "packets lost", "%"),
            Measure::fact("sent", "packets that the interfaces took", "packets"),
            Measure::fact("received", "packets that handlers have done", "packets"),
            Measure::fact("dropped", "packets that the engine itself counts as lost", "packets"),
            Measure::fact("helped", "chunks that handlers of other queues took", "chunks"),
            Measure::fact("alone", "packets lost by arithmetic if nobody helps, as they came", "%"),
        ],
        series: series.chain(models).collect(),
        versus: rings.map(|ring| ["advanced-100", ring.name].map(str::to_owned)).collect(),
        ..About::default()
    }
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
    "PF_RING, DNA and netmap are not part of a stock kernel. Engines of the same kind stand in for them: copying rings without a \
     pool, and bare rings as short as those of a NIC.",
];
