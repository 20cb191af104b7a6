//! Bursts that meet a reader who is held up (Fig. 10): a pool of R chunks with M cells of 2 KiB loses nothing of R M packets, and
//! of P more than that the share 1 - R M / P.
//!
//! Frames of 2016 bytes make records of 2 KiB, so that a chunk of weir's holds as many as one of WireCAP's with M cells. Of short
//! frames the same memory holds many more, since records are as long as their packets: a series of its own.

use rustix::process::Signal;
use weir_lab::{Generator, Network, Traffic, Veth};

use crate::contestants::held_up;
use crate::experiment::{
    About, Axis, Experiment, Judged, Measure, Outcome, Published, Role, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::peers;
use crate::program::Program;
use crate::sample::{GENERATOR_CPU, QUEUES};

/// Cells of a queue's pool: 50 MiB.
const CELLS: u64 = 25_600;
/// Bytes of a frame whose record is as long as a cell.
const CELL_FRAME: usize = 2016;
const SHORT_FRAME: usize = 60;
/// Bytes of a short frame's record.
const SHORT_RECORD: u64 = 92;
/// Of the interface: frames of a cell have to fit.
const MTU: u32 = 2048;
/// Packets of a burst; the longest is that of the published figure.
const BURSTS: [u64; 8] = [1_000, 10_000, 25_000, 30_000, 50_000, 100_000, 1_000_000, 10_000_000];
const QUICK: [u64; 3] = [1_000, 25_000, 100_000];

const LAW: &str = "law";
const SHORT_LAW: &str = "short-law";
const LOST: &str = "lost";

/// Who is held up.
struct Contestant {
    name: &'static str,
    title: &'static str,
    role: Role,
    frame: usize,
    /// Packets that it has room for.
    room: Option<u64>,
    program: Program,
}

fn contestants() -> Vec<Contestant> {
    let ours = |name, title, chunks, chunk_size| Contestant {
        name,
        title,
        role: Role::Ours,
        frame: CELL_FRAME,
        room: Some(CELLS),
        program: held_up(chunks, chunk_size),
    };
    let short =
        ours("weir-short", "weir, M = 256, R = 100, 60-byte frames in the same memory", "100", "524288");
    vec![
        ours("weir-64-400", "weir, M = 64, R = 400", "400", "131072"),
        ours("weir-128-200", "weir, M = 128, R = 200", "200", "262144"),
        ours("weir-256-100", "weir, M = 256, R = 100", "100", "524288"),
        Contestant { frame: SHORT_FRAME, room: Some(CELLS * 2048 / SHORT_RECORD), ..short },
        Contestant {
            name: "ring",
            title: "a copying ring without a pool: TPACKET_V3 of 50 MiB (tcpdump)",
            role: Role::Peer,
            frame: CELL_FRAME,
            room: None,
            program: peers::tcpdump_with("51200", "/dev/null"),
        },
        Contestant {
            name: "nic-ring",
            title: "a bare ring of a NIC's size: AF_XDP with 4096 frames, 60-byte packets",
            role: Role::Peer,
            // A longer one finds no room behind the headroom of a frame. The ring has as many of any size.
            frame: SHORT_FRAME,
            room: None,
            program: crate::contestants::af_xdp_ring("4096"),
        },
    ]
}

struct Bursts {
    network: Network,
    contestants: Vec<Contestant>,
    bursts: &'static [u64],
}

/// Makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let ends = Veth::default().queues(QUEUES).mtu(MTU).macs([2, 0x77, 1, 0, 0, 1], [2, 0x77, 1, 0, 0, 2]);
    let network = settings.network("bursts", ends)?;
    let bursts: &[u64] = if settings.quick { &QUICK } else { &BURSTS };
    Ok(Box::new(Bursts { network, contestants: contestants(), bursts }))
}

/// What is lost of a burst by arithmetic, in percent.
fn law(room: u64, burst: u64) -> f64 {
    100.0 * (1.0 - room as f64 / burst as f64).max(0.0)
}

impl Experiment for Bursts {
    fn about(&self) -> About {
        let series = self.contestants.iter().map(|one| Series::new(one.name, one.title, one.role));
        let short = "arithmetic: 60-byte frames, records of 92 bytes in 50 MiB";
        let models = [(LAW, "arithmetic: 1 - R M / P"), (SHORT_LAW, short)];
        let models = models.map(|(name, title)| Series::new(name, title, Role::Model));
        let published = [(100_000.0, 74.4), (1_000_000.0, 97.4)].map(|(at, value)| {
            Published::new("WireCAP-B, R M = 25,600 (from its own formula)", LOST, Some(at), value)
        });
        About {
            name: "bursts".to_owned(),
            title: "Bursts while the reader is held up (WireCAP, Fig. 10)".to_owned(),
            method: "P packets come at full rate while the reader's process is stopped (SIGSTOP); then it goes on and takes what \
                     was kept. Every pool has 50 MiB for the queue: R chunks with room for M frames of 2016 bytes, whose \
                     records of 2 KiB are WireCAP's cells."
                .to_owned(),
            differs: vec![
                "WireCAP's handlers went on, at a fraction of the wire's rate; here they stand still, so that the arithmetic has \
                 no speed in it."
                    .to_owned(),
                "Frames come from a veth pair at the rate of one processor, not from 10 GbE.".to_owned(),
                "PF_RING, DNA and netmap are not part of a stock kernel. Engines of the same kind stand in for them: a copying \
                 ring without a pool, and a bare ring as short as that of a NIC."
                    .to_owned(),
            ],
            axis: Some(Axis { title: "burst".to_owned(), unit: "packets".to_owned(), logarithmic: true }),
            measures: vec![
                Measure::lower(LOST, "packets lost", "%"),
                Measure::fact("sent", "packets that the interface took", "packets"),
                Measure::fact("received", "packets that reached the reader", "packets"),
                Measure::fact("dropped", "packets that the engine itself counts as lost", "packets"),
                Measure::fact("arrived", "rate of the burst", "Mpps"),
            ],
            series: series.chain(models).collect(),
            versus: ["ring", "nic-ring"].map(|peer| ["weir-256-100", peer].map(str::to_owned)).to_vec(),
            missing: Vec::new(),
            published: published.to_vec(),
        }
    }

    fn turns(&self) -> Vec<Turn> {
        Turn::each(self.bursts.iter().copied(), self.contestants.iter().map(|one| one.name))
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |contestant: &&Contestant| contestant.name == turn.series;
        let contestant = self.contestants.iter().find(named).expect("turns are of contestants");
        let burst = turn.at.expect("turns are of a burst");
        let pair = self.network.pair();
        let traffic = Traffic::new(contestant.frame).map_err(failed("describe frames"))?;
        let generator = Generator::new(pair, &traffic).map_err(failed("prepare to send"))?;
        let reader = contestant.program.start(&pair.rx, None)?;
        reader.signal(Signal::STOP)?;
        let sent = generator.cpu(GENERATOR_CPU).send(burst).map_err(failed("send"))?;
        reader.signal(Signal::CONT)?;
        reader.settle()?;
        let counts = reader.finish()?;
        let lost = sent.accepted.saturating_sub(counts.delivered);
        let mut taken = Taken::default();
        taken.add(turn, LOST, 100.0 * lost as f64 / sent.accepted.max(1) as f64);
        taken.add(turn, "sent", sent.accepted as f64);
        taken.add(turn, "received", counts.delivered as f64);
        taken.add(turn, "arrived", sent.accepted as f64 / sent.elapsed.as_secs_f64() / 1e6);
        if let Some(dropped) = counts.dropped {
            taken.add(turn, "dropped", dropped as f64);
            if counts.delivered + dropped != sent.accepted {
                let told = format!(
                    "{} packets sent, {} received and {dropped} lost",
                    sent.accepted, counts.delivered
                );
                taken.problems.push(told);
            }
        }
        if let Some(room) = contestant.room {
            let model = if contestant.frame == SHORT_FRAME { SHORT_LAW } else { LAW };
            taken.put(model, LOST, Some(burst as f64), law(room, sent.accepted));
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let ours = self.contestants.iter().filter(|contestant| contestant.room.is_some());
        ours.map(|contestant| {
            let off = self.bursts.iter().flat_map(|&burst| {
                let lost = outcome.values_of(contestant.name, LOST, Some(burst as f64));
                let room = contestant.room.unwrap_or_default();
                lost.into_iter().map(move |lost| (lost - law(room, burst)).abs()).collect::<Vec<_>>()
            });
            Judged::worst(
                &format!("{}: away from arithmetic", contestant.title),
                5.0,
                "percentage points",
                off,
            )
        })
        .collect()
    }
}
