//! `weir-bench run flows-live`: flows of packets that come at full rate, taken by a probe that copies each packet, and by one that has the
//! kernel count them.
//!
//! One processor makes frames and receives them: its rate falls by what the program at the receiving end costs. The probe has the other.

use std::process::Stdio;
use std::time::Duration;

use weir_lab::{Action, Generator, Hook, Network, SendReport, Traffic, Veth};

use crate::experiment::{
    About, Axis, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::program::{Counts, Program, WEIR};
use crate::sample::GENERATOR_CPU;
use crate::units;
use crate::wanted::Wanted;

/// Bytes of a frame.
const SIZE: usize = 60;
/// Flows in turn.
const FLOWS: [u64; 3] = [100, 10_000, 1 << 20];
const QUICK: [u64; 1] = [100];

const LIMIT: &str = "limit";
const COUNT: &str = "count";
const COPY: &str = "copy";
const KERNEL: &str = "kernel";

const SERIES: [(&str, &str, Role); 4] = [
    (LIMIT, "XDP drop: the limit", Role::Limit),
    (COUNT, "weir count", Role::Ours),
    (COPY, "weir flows", Role::Ours),
    (KERNEL, "weir flows --kernel", Role::Ours),
];

struct Live {
    network: Network,
    flows: &'static [u64],
    time: Duration,
}

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let network = settings.network("flows-live", Veth::default())?;
    let flows: &[u64] = if settings.quick { &QUICK } else { &FLOWS };
    Ok(Box::new(Live { network, flows, time: settings.time(2000).max(Duration::from_millis(100)) }))
}

/// A command of weir that takes packets away from the host.
fn program(words: &[&'static str], parse: fn(&str, &str) -> Option<Counts>) -> Program {
    let how = ["-i", "{interface}", "--source", "xdp", "--mode", "exclusive"];
    Program::new([WEIR, ""], "source xdp", 0, [words, &how].concat(), parse)
}

/// Flows go on longer than the turn.
const LASTING: [&str; 5] =
    ["flows", "--no-names", "--idle-timeout=1h", "--active-timeout=2h", "--flows=1100k"];

fn of(series: &str) -> Option<Program> {
    match series {
        COUNT => Some(program(&["count", "--json"], counted)),
        COPY => Some(program(&LASTING, flows)),
        KERNEL => Some(program(&[&LASTING[..], &["--kernel"]].concat(), flows)),
        _ => None,
    }
}

/// What `weir count --json` has counted.
fn counted(stdout: &str, _: &str) -> Option<Counts> {
    let last: serde_json::Value = serde_json::from_str(stdout.lines().last()?).ok()?;
    let of = |field: &str| last[field].as_u64();
    Some(Counts { dropped: of("lost"), ..Counts::of(of("captured")?) })
}

/// What `weir flows` has in flows.
fn flows(_: &str, stderr: &str) -> Option<Counts> {
    let line = stderr.lines().find_map(|line| line.strip_prefix("Packets: "))?;
    Some(Counts::of(line.split_once(' ')?.0.replace(',', "").parse().ok()?))
}

impl Live {
    fn send(&self, flows: u64) -> Result<SendReport, Failure> {
        let flows = u32::try_from(flows).expect("few");
        let traffic = Traffic::new(SIZE).and_then(|traffic| traffic.flows(flows));
        let traffic = traffic.map_err(failed("describe frames"))?.between(self.network.pair());
        let generator = Generator::new(self.network.pair(), &traffic).map_err(failed("prepare to send"))?;
        generator.cpu(GENERATOR_CPU).send_for(self.time).map_err(failed("send"))
    }
}

impl Experiment for Live {
    fn about(&self) -> About {
        let what = "frames of 60 bytes, each of the next flow; packets are taken away from the host";
        About {
            name: "flows-live".to_owned(),
            title: "Flows of packets that come at full rate".to_owned(),
            method: format!(
                "One processor makes and receives {what}. The other has the probe. `copy` is `weir flows`, `kernel` `weir flows --kernel`, both \
                 without names; no flow ends."
            ),
            axis: Some(Axis { title: "flows".to_owned(), unit: "flows".to_owned(), logarithmic: true }),
            measures: vec![
                Measure::new(
                    "rate",
                    "packets in flows, or counted",
                    "Mpps",
                    crate::experiment::Better::Higher,
                ),
                Measure::lower("lost", "packets lost", "%"),
                Measure::lower("time", "processor time of the probe for a packet", "ns"),
            ],
            series: SERIES.iter().map(|(name, title, role)| Series::new(name, title, *role)).collect(),
            versus: [[KERNEL, LIMIT], [COPY, COUNT], [KERNEL, COPY]]
                .map(|pair| pair.map(str::to_owned))
                .to_vec(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        Turn::each(self.flows.iter().copied(), SERIES.iter().map(|(name, ..)| *name))
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let flows = turn.at.expect("turns are of flows");
        let mut taken = Taken::default();
        let Some(program) = of(&turn.series) else {
            let _hook =
                Hook::attach(&self.network.pair().rx, Action::Drop).map_err(failed("attach a program"))?;
            let sent = self.send(flows)?;
            taken.add(turn, "rate", sent.accepted as f64 / sent.elapsed.as_secs_f64() / 1e6);
            return Ok(taken);
        };
        // Lines for flows at the end are not part of it.
        let out = if turn.series == COUNT { Stdio::piped() } else { Stdio::null() };
        let reader = program.start_to(&self.network.pair().rx, None, out)?;
        let before = reader.cpu_time()?;
        let sent = self.send(flows)?;
        let busy = reader.settle()?;
        let time = reader.cpu_time()?.saturating_sub(before);
        let counts = reader.finish()?;
        let seconds = (sent.elapsed + busy).as_secs_f64();
        taken.add(turn, "rate", counts.delivered as f64 / seconds / 1e6);
        let lost = sent.accepted.saturating_sub(counts.delivered);
        taken.add(turn, "lost", 100.0 * lost as f64 / sent.accepted.max(1) as f64);
        taken.add(turn, "time", time.as_secs_f64() * 1e9 / counts.delivered.max(1) as f64);
        if counts.delivered > sent.accepted {
            let told = [counts.delivered, sent.accepted].map(units::grouped);
            taken.problems.push(format!("{} packets taken of {} that were sent", told[0], told[1]));
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let at = |flows: u64, pair: [&str; 2], measure: &str, wanted: Wanted| {
            let name = format!("{}, {}, {} flows", pair.join(" / "), measure, units::grouped(flows));
            Judged::new(&name, wanted, "times", outcome.ratios(pair, measure, Some(flows as f64)))
        };
        let each = self.flows.iter().flat_map(|&flows| {
            [
                at(flows, [KERNEL, LIMIT], "rate", Wanted::AtLeast(0.5)),
                at(flows, [COPY, COUNT], "rate", Wanted::AtLeast(0.6)),
                at(flows, [KERNEL, COPY], "time", Wanted::AtMost(0.1)),
            ]
        });
        each.collect()
    }
}
