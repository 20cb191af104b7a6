//! `weir-bench look`: packets on the screen, as lines and objects.
//!
//! ```text
//!  processor 1                                              | processor 0
//!  generator -> veth -> NAPI -> program or packet socket  --|-> weir, tcpdump, tshark -> file, pipe or terminal
//! ```
//!
//! In each round the programs take turns.

mod lines;
mod lone;
mod pty;
mod terminal;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::experiment::{
    self, About, Entry, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::Failure;
use crate::program::installed;
use crate::sample::Lab;
use crate::units;

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir-bench look --json look.json
        Run everything, five rounds (about twenty minutes).
  weir-bench look --only lone --rounds 9
        Run selected parts.
  weir-bench look --quick
        Check that the benchmark works; the figures mean little.

Requires root, tcpdump, tshark and two otherwise idle processors. Runs in a private network that is \
removed at the end.";

#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    how: experiment::How,

    /// Sending time at each rate, three times as long with a terminal; default: 1s, with --quick 50ms.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Run only these parts.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<LookPart>,

    /// Directory for files; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,
}

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LookPart {
    /// The highest rate at which every packet gets its line or object in a file.
    Lines,
    /// The time until a lone packet's line is in a pipe.
    Lone,
    /// What a terminal costs a capture to a file.
    Terminal,
}

/// Runs the command.
pub(crate) fn run(args: &LookArgs, all: &'static [Entry]) -> Result<(), Failure> {
    let (duration, dir) = (args.duration, args.dir.clone());
    let settings = Settings { duration, dir, only: experiment::names(&args.only), ..args.how.settings() };
    args.how.run(settings, &["look"], all)
}

/// The network, and how to measure.
struct Look {
    lab: Lab,
    parts: Vec<LookPart>,
    duration: Duration,
    /// Steps to the highest rate.
    steps: u32,
    /// Lone packets for each program.
    lone: usize,
    dir: PathBuf,
    /// Packets a second that the interface takes, in this round.
    fastest: Option<(u32, f64)>,
}

/// Makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("look")?;
    let parts = settings.parts();
    if parts != [LookPart::Terminal] {
        installed("tcpdump", "tcpdump")?;
    }
    if parts.contains(&LookPart::Lines) {
        installed("tshark", "tshark")?;
    }
    let (steps, lone) = if settings.quick { (1, 20) } else { (8, 400) };
    let (duration, dir) = (settings.time(1000), settings.dir.clone());
    Ok(Box::new(Look { lab: Lab::new()?, parts, duration, steps, lone, dir, fastest: None }))
}

impl Look {
    /// Part and title of each turn.
    fn all(&self) -> Vec<(LookPart, &'static str)> {
        let lines = lines::contestants().map(|contestant| (LookPart::Lines, contestant.title));
        let lone = lone::contestants().map(|contestant| (LookPart::Lone, contestant.title));
        let terminal = terminal::OUTPUTS.map(|output| (LookPart::Terminal, output.title()));
        let all = lines.into_iter().chain(lone).chain(terminal);
        all.filter(|(part, _)| self.parts.contains(part)).collect()
    }

    fn fastest(&mut self, round: u32) -> Result<f64, Failure> {
        match self.fastest {
            Some((number, fastest)) if number == round => Ok(fastest),
            _ => {
                let fastest = lines::fastest(&self.lab)?;
                self.fastest = Some((round, fastest));
                Ok(fastest)
            }
        }
    }
}

impl Experiment for Look {
    fn about(&self) -> About {
        let series = |(_, title): &(LookPart, &str)| {
            let is_peer = title.contains("tcpdump") || title.contains("tshark");
            Series::new(title, title, if is_peer { Role::Peer } else { Role::Ours })
        };
        About {
            name: "look".to_owned(),
            title: "Lines on a terminal".to_owned(),
            method: "The highest rate at which every packet gets its line or object in a file, by bisection; the time from the call \
                     that sends a lone packet until its line is read from a pipe; and what lines on a terminal cost a capture to a \
                     file at full rate, while the terminal scrolls and while its output is stopped. Every line is looked at, and \
                     lines and packets that were not printed have to be all packets."
                .to_owned(),
            measures: vec![
                Measure::higher("rate", "packets printed without loss, or written", "kpps"),
                Measure::lower("p50", "lone packet to line, half of them", "ms"),
                Measure::lower("p99", "lone packet to line, 99 % of them", "ms"),
                Measure::lower("longest", "lone packet to line", "ms"),
                Measure::lower("lost", "packets that are not in the file", "%"),
                Measure::lower("kernel", "processor time of a packet in the kernel", "ns"),
                Measure::fact("tried", "rates tried", "rates"),
                Measure::fact("sent", "packets sent", "packets"),
                Measure::fact("written", "packets in the file", "packets"),
                Measure::fact("lines", "lines on the terminal", "packets"),
                Measure::fact("not-printed", "packets that the terminal says were not printed", "packets"),
                Measure::fact("unaccounted", "packets about which the terminal says too little or too much", "packets"),
            ],
            series: self.all().iter().map(series).collect(),
            versus: lines::VERSUS.map(|pair| pair.map(str::to_owned)).to_vec(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        self.all().iter().map(|(_, title)| Turn::of(title, None)).collect()
    }

    fn take(&mut self, turn: &Turn, round: u32) -> Result<Taken, Failure> {
        if let Some(contestant) = lines::contestants().iter().find(|one| one.title == turn.series) {
            let fastest = self.fastest(round)?;
            return lines::measure(self, contestant, fastest, turn);
        }
        if let Some(contestant) = lone::contestants().iter().find(|one| one.title == turn.series) {
            return lone::measure(self, contestant, turn);
        }
        let output = terminal::OUTPUTS.into_iter().find(|output| output.title() == turn.series);
        terminal::measure(self, output.expect("turns are of contestants"), turn)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        [lines::bars(outcome), lone::bars(outcome), terminal::bars(outcome)].concat()
    }
}
