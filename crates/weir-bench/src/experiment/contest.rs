//! Experiments in which contestants take the same frames in turn: [`Lab::sample`] by size.

use super::{About, Axis, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn};
use crate::contestants::{Contestant, ContestantKind};
use crate::failure::Failure;
use crate::sample::{Lab, Limits, Sample};

const MIB: f64 = (1 << 20) as f64;
/// Processor time of a packet, in the kernel and in the program.
pub(crate) const TIME: &str = "time";

/// The network, and who takes part.
pub(crate) struct Contest {
    about: About,
    contestants: Vec<Contestant>,
    /// Bytes of a frame.
    sizes: Vec<u16>,
    lab: Lab,
    limits: Limits,
    judge: fn(&Outcome) -> Vec<Judged>,
    /// Programs compiled for it, removed at the end.
    _programs: tempfile::TempDir,
}

impl Contest {
    /// A second for each turn. `programs`: a folder that lasts as long as the contest.
    pub(crate) fn new(
        settings: &Settings,
        about: About,
        contestants: Vec<Contestant>,
        sizes: &[u16],
        programs: tempfile::TempDir,
        judge: fn(&Outcome) -> Vec<Judged>,
    ) -> Result<Self, Failure> {
        let lab = Lab::on(settings.cards.as_ref())?;
        let limits = Limits::new(settings.time(1000), &settings.dir)?;
        let is_wanted = |contestant: &Contestant| {
            settings.only.is_empty() || settings.only.iter().any(|name| name == contestant.name)
        };
        let contestants: Vec<Contestant> = contestants.into_iter().filter(is_wanted).collect();
        let series = contestants.iter().map(|contestant| {
            let role = match contestant.kind {
                ContestantKind::Program(_) if contestant.title.starts_with("weir") => Role::Ours,
                ContestantKind::Program(_) => Role::Peer,
                ContestantKind::Stack | ContestantKind::Hook(_) => Role::Limit,
            };
            Series::new(contestant.name, contestant.title, role)
        });
        let missing = contestants
            .iter()
            .filter_map(|contestant| Some([contestant.title.to_owned(), contestant.missing()?]));
        let about = About {
            axis: Some(Axis::frame()),
            measures: vec![
                Measure::higher("rate", "packets that reached the reader", "Mpps"),
                Measure::lower(
                    "kernel",
                    "processor time of a packet in the kernel, with the generator's",
                    "ns",
                ),
                Measure::lower("reader", "processor time of a packet in the program", "ns"),
                Measure::lower("lost", "packets lost", "packets"),
                Measure::lower("memory", "memory of the program beyond its pool", "MiB"),
                Measure::fact(TIME, "processor time of a packet, in both", "ns"),
                Measure::fact("sent", "packets that the interface took", "packets"),
                Measure::fact("received", "packets that reached the reader", "packets"),
                Measure::fact("stack", "packets that reached the network stack", "packets"),
            ],
            series: series.collect(),
            missing: missing.collect(),
            ..about
        };
        Ok(Self { about, contestants, sizes: settings.sizes(sizes), lab, limits, judge, _programs: programs })
    }

    /// Has the frames be of so many flows, in random order, instead of one.
    pub(crate) fn flows(mut self, flows: u32) -> Self {
        self.lab.flows = flows;
        self
    }
}

impl Experiment for Contest {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn turns(&self) -> Vec<Turn> {
        let present = self.contestants.iter().filter(|contestant| contestant.missing().is_none());
        Turn::each(self.sizes.iter().copied(), present.map(|contestant| contestant.name))
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let named = |contestant: &&Contestant| contestant.name == turn.series;
        let contestant = self.contestants.iter().find(named).expect("turns are of contestants");
        let size = usize::try_from(turn.at.unwrap_or_default()).unwrap_or_default();
        let sample = self.lab.sample(contestant, size, &self.limits)?;
        let mut taken = Taken { problems: sample.problems.clone(), ..Taken::default() };
        taken.add(turn, "rate", sample.rate / 1e6);
        taken.add(turn, "kernel", sample.kernel_ns);
        if let Some(time) = sample.reader_ns {
            taken.add(turn, "reader", time);
        }
        taken.add(turn, TIME, sample.kernel_ns + sample.reader_ns.unwrap_or(0.0));
        if let Some(bytes) = sample.beyond_pool {
            taken.add(turn, "memory", bytes as f64 / MIB);
        }
        for (measure, packets) in [
            ("lost", sample.lost),
            ("sent", sample.accepted),
            ("received", sample.delivered),
            ("stack", sample.stack),
        ] {
            taken.add(turn, measure, packets as f64);
        }
        let is_ours = contestant.title.starts_with("weir");
        if let Some(dropped) = sample.dropped.filter(|dropped| is_ours && *dropped != sample.lost) {
            taken.problems.push(format!("{} packets lost, {dropped} by its own account", sample.lost));
        }
        if sample.accepted != sample.delivered + sample.lost {
            let Sample { accepted, delivered, lost, .. } = sample;
            taken.problems.push(format!("{accepted} packets sent, {delivered} received and {lost} lost"));
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        (self.judge)(outcome)
    }
}
