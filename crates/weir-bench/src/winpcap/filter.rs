//! Receiving through a filter that accepts nothing, which leaves only the path to the filter, and the filter itself.

use std::path::{Path, PathBuf};

use super::DIFFERS;
use crate::contestants::{Contestant, ContestantKind, receiving};
use crate::experiment::{About, Axis, Better, Experiment, Measure, Role, Series, Settings, Taken, Turn};
use crate::failed;
use crate::failure::Failure;
use crate::files::SIZE;
use crate::libpcap::counter;
use crate::peers;
use crate::program::Program;
use crate::sample::{Lab, Limits};
use crate::tidy;

/// Filters, and instructions of libpcap's program: of the first, the three that run for a packet; of the second, all 13, of
/// which only the one that accepts does not run.
const FILTERS: [(u64, &str); 2] = [(3, "arp"), (13, "ip and udp port 53")];

const STACK: &str = "stack";
const LIBPCAP: &str = "libpcap";
const TCPDUMP: &str = "tcpdump";
/// weir's sources.
const OURS: [(&str, &str, &str); 3] = [
    ("weir-xdp", "weir xdp", "xdp"),
    ("weir-tc", "weir tc", "tc"),
    ("weir-af-packet", "weir af_packet", "af_packet"),
];

struct Filtering {
    lab: Lab,
    limits: Limits,
    counting: PathBuf,
    /// Holds the C program; removed at the end.
    _dir: tempfile::TempDir,
}

/// Compiles the C program and makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let counting = counter::compile(dir.path())?;
    let limits = Limits::new(settings.time(1000), &settings.dir)?;
    Ok(Box::new(Filtering { lab: Lab::on(settings.cards.as_ref())?, limits, counting, _dir: dir }))
}

fn contestants(counting: &Path, filter: &'static str) -> Vec<Contestant> {
    let with = |program: Program, words: &[&'static str]| Program {
        arguments: [&program.arguments[..], words].concat(),
        ..program
    };
    let program = |name, title, program| Contestant::program(name, title, true, program);
    let libpcap = with(counter::counting(counting.to_owned(), "loop"), &[filter]);
    let tcpdump = with(peers::tcpdump("/dev/null"), &[filter]);
    let ours = OURS.map(|(name, title, source)| {
        program(name, title, with(receiving(source, "pass", false), &["--filter", filter]))
    });
    let stack = Contestant { name: STACK, title: "stack alone", kind: ContestantKind::Stack, stack: true };
    let others = [program(LIBPCAP, "libpcap", libpcap), program(TCPDUMP, "tcpdump", tcpdump)];
    [stack].into_iter().chain(ours).chain(others).collect()
}

impl Experiment for Filtering {
    fn about(&self) -> About {
        let contestants = contestants(&self.counting, FILTERS[0].1);
        let missing = contestants
            .iter()
            .filter_map(|contestant| Some([contestant.title.to_owned(), contestant.missing()?]));
        let series = contestants.iter().map(|contestant| Series {
            name: contestant.name.to_owned(),
            title: contestant.title.to_owned(),
            role: match contestant.name {
                STACK => Role::Limit,
                LIBPCAP | TCPDUMP => Role::Peer,
                _ => Role::Ours,
            },
        });
        let [(_, short), (_, long)] = FILTERS;
        About {
            name: "winpcap-filter".to_owned(),
            title: "Filters that accept nothing (WinPcap)".to_owned(),
            method: format!(
                "Frames of 60 bytes come at full rate to programs whose filter accepts none of them: \"{short}\", of which libpcap's \
                 program runs 3 instructions for such a frame, and \"{long}\", whose program has 13. The filter runs in the kernel, \
                 on the processor that sends; the rate is what gets through. The stack must get all packets and the program none, and \
                 weir must count all as filtered."
            ),
            differs: vec![
                DIFFERS.to_owned(),
                "Linux compiles all of these filters to machine code.".to_owned(),
            ],
            axis: Some(Axis {
                title: "filter".to_owned(),
                unit: "instructions".to_owned(),
                logarithmic: false,
            }),
            measures: vec![
                Measure::new(
                    "rate",
                    "packets sent, filtered, and received by the stack",
                    "Mpps",
                    Better::Higher,
                ),
                Measure::new(
                    "kernel",
                    "processor time of a packet in the kernel, with the generator's",
                    "ns",
                    Better::Lower,
                ),
                Measure::new("sent", "packets that the interface took", "packets", Better::Neither),
                Measure::new(
                    "filtered",
                    "packets that weir says it has rejected",
                    "packets",
                    Better::Neither,
                ),
                Measure::new("received", "packets that reached the program", "packets", Better::Neither),
                Measure::new("stack", "packets that reached the network stack", "packets", Better::Neither),
            ],
            series: series.collect(),
            missing: missing.collect(),
            versus: OURS
                .iter()
                .flat_map(|(ours, ..)| [LIBPCAP, TCPDUMP].map(|peer| [*ours, peer].map(str::to_owned)))
                .collect(),
            published: Vec::new(),
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let of = |&(instructions, filter): &(u64, &'static str)| {
            let present = contestants(&self.counting, filter).into_iter();
            let present = present.filter(|contestant| contestant.missing().is_none());
            present.map(move |contestant| Turn::of(contestant.name, Some(instructions)))
        };
        FILTERS.iter().flat_map(of).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let filter = FILTERS.iter().find(|(instructions, _)| Some(*instructions) == turn.at);
        let (_, filter) = *filter.expect("turns are of filters");
        let mut all = contestants(&self.counting, filter).into_iter();
        let contestant = all.find(|contestant| contestant.name == turn.series);
        let contestant = contestant.expect("turns are of contestants");
        let sample = self.lab.sample(&contestant, SIZE as usize, &self.limits)?;
        let received = if contestant.name == STACK { 0 } else { sample.delivered };
        let mut taken = Taken { problems: sample.problems.clone(), ..Taken::default() };
        if received + sample.dropped.unwrap_or_default() > 0 {
            taken.problems.push(format!("{received} packets were accepted, {:?} lost", sample.dropped));
        }
        if let Some(filtered) = sample.filtered {
            taken.add(turn, "filtered", filtered as f64);
            if filtered != sample.accepted {
                taken.problems.push(format!("{} packets sent, {filtered} filtered", sample.accepted));
            }
        }
        taken.add(turn, "rate", sample.offered_rate / 1e6);
        taken.add(turn, "kernel", sample.kernel_ns);
        taken.add(turn, "sent", sample.accepted as f64);
        taken.add(turn, "received", received as f64);
        taken.add(turn, "stack", sample.stack as f64);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_judge::{Libpcap, Setup};

    /// libpcap decides how long its programs are. In the first, one instruction accepts and never runs.
    #[test]
    fn filters_have_so_many_instructions() {
        let libpcap = Libpcap::open().expect("libpcap");
        let setup = Setup { optimise: true, ..Setup::new(1) };
        let length = |text| libpcap.compile(text, &setup).expect("a program").instructions().len();
        assert_eq!(FILTERS.map(|(_, text)| length(text)), [4, 13]);
    }
}
