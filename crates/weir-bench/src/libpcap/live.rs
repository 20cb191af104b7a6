//! Programs that capture at the full rate of the smallest frames.

use serde::Serialize;

use super::both::{Both, EXCLUSIVE, Library, PACKET, PASS, SYSTEM};
use super::{Part, Plan};
use crate::bars::{Bar, Wanted};
use crate::contestants::{Contestant, Way};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::files::SIZE;
use crate::peers;
use crate::program::Program;
use crate::sample::{Lab, Limits, Sample as Turn};
use crate::spread::Spread;
use crate::style;

/// What a program does.
struct Work {
    name: &'static str,
    title: &'static str,
    part: Part,
    /// Whether it writes to a disk.
    disk: bool,
    program: fn(&Both) -> Program,
}

const fn tcpdump(name: &'static str, title: &'static str, disk: bool, program: fn(&Both) -> Program) -> Work {
    Work { name, title, part: Part::Tcpdump, disk, program }
}

const fn count(name: &'static str, title: &'static str, program: fn(&Both) -> Program) -> Work {
    Work { name, title, part: Part::Count, disk: false, program }
}

const WORKS: [Work; 6] = [
    tcpdump("tcpdump-null", "tcpdump -w /dev/null", false, |_| peers::tcpdump("/dev/null")),
    tcpdump("tcpdump-tmpfs", "tcpdump -w FILE, tmpfs", false, |_| peers::tcpdump("{file}")),
    tcpdump("tcpdump-disk", "tcpdump -w FILE, disk", true, |_| peers::tcpdump("{file}")),
    count("count-loop", "counting, pcap_loop", |both| both.counting("loop")),
    count("count-dispatch", "counting, pcap_dispatch", |both| both.counting("dispatch")),
    count("count-next_ex", "counting, pcap_next_ex", |both| both.counting("next_ex")),
];

const LIBRARIES: [Library; 4] = [SYSTEM, PACKET, PASS, EXCLUSIVE];

/// One turn of a program on one library.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    work: &'static str,
    /// What a person would type.
    command: String,
    /// The library is its contestant.
    #[serde(flatten)]
    pub(super) turn: Turn,
}

impl Sample {
    fn lost_percent(&self) -> f64 {
        self.turn.lost as f64 * 100.0 / self.turn.accepted.max(1) as f64
    }
}

/// All rounds. A turn that fails does not end the others.
pub(super) fn measure(plan: &Plan, both: &Both, faults: &mut Vec<Fault>) -> Result<Vec<Sample>, Failure> {
    let works: Vec<&Work> = WORKS.iter().filter(|work| plan.parts.contains(&work.part)).collect();
    let mut samples = Vec::new();
    if works.is_empty() {
        return Ok(samples);
    }
    let lab = Lab::new()?;
    for round in 1..=plan.rounds {
        for work in &works {
            let limits = Limits::new(plan.duration, if work.disk { plan.disk } else { plan.dir })?;
            for library in &LIBRARIES {
                let head = format!("[{round}] {:<24} {:<21}", work.title, library.title);
                match turn(&lab, work, library, both, round, &limits) {
                    Ok(sample) => {
                        style::say(format_args!("{head} {}", sample.turn));
                        samples.push(sample);
                    }
                    Err(failure) => {
                        style::say(format_args!("{head} {}", style::stderr().red(failure.message())));
                        let failure = Failure::new(format_args!("{}: {}", library.title, failure.message()));
                        faults.push(Fault::new(work.name, &failure));
                    }
                }
            }
        }
    }
    Ok(samples)
}

fn turn(
    lab: &Lab,
    work: &Work,
    library: &Library,
    both: &Both,
    round: u32,
    limits: &Limits,
) -> Result<Sample, Failure> {
    let program = Program { environment: both.environment(library), ..(work.program)(both) };
    let command = program.line().replace(&both.dir().display().to_string(), "DIR");
    let contestant = Contestant {
        name: library.name,
        title: library.title,
        way: Way::Program(program),
        stack: library.stack,
    };
    let mut turn = lab.sample(&contestant, SIZE as usize, round, limits)?;
    if let Some(problem) = unaccounted(&turn) {
        turn.problems.push(problem);
    }
    Ok(Sample { work: work.name, command, turn })
}

/// What the program has got, and what it says that it has not, is all that there was.
fn unaccounted(turn: &Turn) -> Option<String> {
    let Turn { delivered, dropped, accepted, .. } = turn;
    let dropped = dropped.unwrap_or(0);
    let told = delivered + dropped;
    (told != *accepted)
        .then(|| format!("{delivered} captured and {dropped} reported as dropped of {accepted} packets"))
}

/// Rates as a multiple of the system's library, and that none loses more packets than that.
pub(super) fn bars(samples: &[Sample]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for work in &WORKS {
        let rate = |library: &Library, least| {
            let name = format!("{}: {} / {}", work.title, library.title, SYSTEM.title);
            let wanted = Wanted::AtLeast(least);
            let measured =
                compare(samples, work, library, |ours, theirs| Some(ours.turn.rate / theirs.turn.rate));
            // Where packets were lost, a packet has taken less time than it takes to deliver one.
            let undisturbed = compare(samples, work, library, |ours, theirs| {
                let whole = ours.turn.lost + theirs.turn.lost == 0;
                whole.then(|| theirs.turn.kernel_ns / ours.turn.kernel_ns)
            });
            Bar { undisturbed, ..Bar::new(&name, Some(SIZE as usize), wanted, "times", measured) }
        };
        let loss = |library: &Library| {
            let name = format!("{}: lost by {} beyond {}", work.title, library.title, SYSTEM.title);
            let measured = compare(samples, work, library, |ours, theirs| {
                Some((ours.lost_percent() - theirs.lost_percent()).max(0.0))
            });
            Bar::worst(&name, Some(SIZE as usize), 0.0, "% of the packets", measured)
        };
        match work.part {
            Part::Tcpdump => {
                bars.extend([rate(&PASS, 1.5), loss(&PASS), rate(&EXCLUSIVE, 2.0), loss(&EXCLUSIVE)]);
            }
            _ => bars.push(rate(&EXCLUSIVE, 2.5)),
        }
    }
    bars
}

fn of<'a>(samples: &'a [Sample], work: &Work, library: &Library) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |s| s.work == work.name && s.turn.contestant == library.name)
}

/// A library beside the system's, round by round.
fn compare(
    samples: &[Sample],
    work: &Work,
    library: &Library,
    value: impl Fn(&Sample, &Sample) -> Option<f64>,
) -> Option<Spread> {
    let rounds = of(samples, work, library).filter_map(|ours| {
        let theirs = of(samples, work, &SYSTEM).find(|theirs| theirs.turn.round == ours.turn.round)?;
        value(ours, theirs)
    });
    Spread::of(rounds)
}

/// Tables for people: rates, losses, and where the time went.
pub(super) fn tables(samples: &[Sample]) -> Vec<(String, Vec<Vec<String>>)> {
    if samples.is_empty() {
        return Vec::new();
    }
    let spread = |turns: &[&Sample], value: fn(&Sample) -> f64| Spread::of(turns.iter().map(|s| value(s)));
    let size = format!("{SIZE}-byte frames");
    vec![
        (
            format!("{size}, Mpps received: median (range)"),
            rows(samples, |turns| {
                let rate = spread(turns, |sample| sample.turn.rate / 1e6);
                rate.map_or_else(String::new, |rate| rate.to_string())
            }),
        ),
        (
            format!("{size}, lost in each round, %"),
            rows(samples, |turns| {
                let shares: Vec<_> = turns.iter().map(|sample| percent(sample)).collect();
                shares.join(", ")
            }),
        ),
        (
            format!("{size}, CPU time of a packet, ns: kernel + program"),
            rows(samples, |turns| {
                let kernel = spread(turns, |sample| sample.turn.kernel_ns);
                let reader = spread(turns, |sample| sample.turn.reader_ns.unwrap_or(f64::NAN));
                let text = |time: Option<Spread>| {
                    time.map_or_else(|| "-".to_owned(), |time| format!("{:.0}", time.median))
                };
                format!("{} + {}", text(kernel), text(reader))
            }),
        ),
    ]
}

/// No loss is told from a small one.
fn percent(sample: &Sample) -> String {
    if sample.turn.lost == 0 { "0".to_owned() } else { format!("{:.2}", sample.lost_percent()) }
}

/// A row for each work, a column for each library.
fn rows(samples: &[Sample], cell: impl Fn(&[&Sample]) -> String) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(LIBRARIES.iter().map(|library| library.title.to_owned()));
    for work in WORKS.iter().filter(|work| samples.iter().any(|sample| sample.work == work.name)) {
        let cells = LIBRARIES.iter().map(|library| {
            let turns: Vec<_> = of(samples, work, library).collect();
            if turns.is_empty() { "not measured".to_owned() } else { cell(&turns) }
        });
        rows.push([work.title.to_owned()].into_iter().chain(cells).collect());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(work: &Work, library: &Library, round: u32, rate: f64, lost: u64) -> Sample {
        let turn = Turn { rate, lost, accepted: 1000, ..Turn::empty(library.name, 60, round) };
        Sample { work: work.name, command: String::new(), turn }
    }

    fn bar(samples: &[Sample], name: &str) -> (Option<f64>, Option<bool>) {
        let bars = bars(samples);
        let bar = bars.iter().find(|bar| bar.name == name).expect("there is such a bar");
        (bar.judged, bar.met)
    }

    #[test]
    fn rates_and_losses_are_compared_round_by_round() {
        let [null, ..] = &WORKS;
        let mut samples = vec![
            sample(null, &SYSTEM, 1, 1.0, 10),
            sample(null, &EXCLUSIVE, 1, 1.9, 10),
            sample(null, &SYSTEM, 2, 2.0, 0),
            sample(null, &EXCLUSIVE, 2, 4.2, 0),
        ];
        let (rate, loss) = (
            "tcpdump -w /dev/null: weir, xdp, exclusive / libpcap",
            "tcpdump -w /dev/null: lost by weir, xdp, exclusive beyond libpcap",
        );
        assert_eq!(bar(&samples, rate), (Some(2.0), Some(true)));
        assert_eq!(bar(&samples, loss), (Some(0.0), Some(true)));
        samples[3] = sample(null, &EXCLUSIVE, 2, 4.0, 5);
        assert_eq!(bar(&samples, rate), (Some(1.95), Some(false)));
        assert_eq!(bar(&samples, loss), (Some(0.5), Some(false)));
        assert_eq!(bar(&samples, "tcpdump -w /dev/null: weir, xdp / libpcap"), (None, None));
    }

    #[test]
    fn a_packet_is_captured_or_reported_as_dropped() {
        let turn =
            |delivered, dropped| Turn { delivered, dropped, accepted: 10, ..Turn::empty("libpcap", 60, 1) };
        assert_eq!((unaccounted(&turn(10, Some(0))), unaccounted(&turn(7, Some(3)))), (None, None));
        assert!(unaccounted(&turn(7, Some(2))).is_some() && unaccounted(&turn(9, None)).is_some());
    }
}
