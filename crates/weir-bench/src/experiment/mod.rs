//! Experiments: every contestant is measured in turn, round after round; raw values go to a file, then tables, figures
//! and a report.
//!
//! ```text
//!  experiment: what it asks of whom -> turns -> rounds.rs -> result.rs: raw values, in a file
//!    -> digest.rs: medians -> text.rs, html.rs (figure.rs), compare.rs, document/
//! ```

mod alone;
mod compare;
mod confidence;
mod contest;
mod digest;
mod document;
mod figure;
mod html;
mod place;
mod result;
mod rounds;
mod run;
mod text;

pub(crate) use alone::{How, Sized, Stored, Timed, names};
pub(crate) use compare::{CompareArgs, run as compare};
pub(crate) use confidence::{Comparison, Estimate};
pub(crate) use contest::{Contest, TIME};
pub(crate) use document::{DocumentArgs, run as document};
pub(crate) use result::{About, Axis, Better, Judged, Measure, Outcome, Published, Role, Series};
pub(crate) use run::{RunArgs, run};

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use weir_lab::{Network, Veth};

use crate::failure::{Failure, failed};
use crate::spread::Spread;
use crate::wanted::Wanted;

/// One that can be run by its name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// The question it answers.
    pub(crate) question: &'static str,
    pub(crate) make: fn(&Settings) -> Result<Box<dyn Experiment>, Failure>,
}

/// How to measure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// As short as possible: whether it works, not how fast it is.
    pub(crate) quick: bool,
    /// For files of captures; a tmpfs by default.
    pub(crate) dir: PathBuf,
    /// Interfaces to send and to receive on; none: a private network.
    pub(crate) cards: Option<[String; 2]>,
    /// How long to measure in a turn, instead of the experiment's own time.
    pub(crate) duration: Option<Duration>,
    /// Bytes of frames, instead of the experiment's own.
    pub(crate) sizes: Option<Vec<u16>>,
    /// Names of the only contestants or parts to measure; if empty, all of them.
    pub(crate) only: Vec<String>,
    /// Packets of a file, instead of the experiment's own number.
    pub(crate) packets: Option<u64>,
    /// Work for a packet, as in `weir count`.
    pub(crate) load: Option<u32>,
    /// For files on a disk.
    pub(crate) disk: Option<PathBuf>,
    /// weir's libpcap, if it is not the one beside this program.
    pub(crate) library: Option<PathBuf>,
}

/// Something to measure. Making it prepares everything outside the measurement; dropping it leaves nothing behind.
pub(crate) trait Experiment {
    fn about(&self) -> About;

    /// All that is measured in a round, in this order.
    fn turns(&self) -> Vec<Turn>;

    /// Takes one turn. The result must also be right: whatever is not is among the problems.
    ///
    /// # Errors
    ///
    /// If there is nothing to measure with, or measuring fails. The other turns go on.
    fn take(&mut self, turn: &Turn, round: u32) -> Result<Taken, Failure>;

    /// Targets, and whether they are met.
    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let _none = outcome;
        Vec::new()
    }
}

/// A part of a round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Turn {
    /// Different from those of all other turns.
    pub(crate) name: String,
    pub(crate) series: String,
    /// On the axis: bytes of a frame, packets of a burst.
    pub(crate) at: Option<u64>,
}

impl Settings {
    /// How long to measure in a turn: so many milliseconds, or a twentieth of that.
    pub(crate) fn time(&self, milliseconds: u64) -> Duration {
        let usual = Duration::from_millis(if self.quick { milliseconds / 20 } else { milliseconds });
        self.duration.unwrap_or(usual)
    }

    /// Bytes of frames: all of these, or the first.
    pub(crate) fn sizes(&self, all: &[u16]) -> Vec<u16> {
        self.sizes.clone().unwrap_or_else(|| if self.quick { all[..1].to_vec() } else { all.to_vec() })
    }

    /// The parts that are wanted.
    pub(crate) fn parts<P: ValueEnum>(&self) -> Vec<P> {
        let all = P::value_variants();
        let is_wanted = |part: &&P| {
            self.only.is_empty() || names(&[(*part).clone()]).iter().any(|name| self.only.contains(name))
        };
        all.iter().filter(is_wanted).cloned().collect()
    }

    /// For experiments that do not measure two interfaces: an error if any are given.
    pub(crate) fn without_cards(&self, experiment: &str) -> Result<(), Failure> {
        if self.cards.is_none() {
            return Ok(());
        }
        Err(Failure::new(format_args!(
            "cannot run {experiment} on two interfaces: it does not measure them; try without --rx and --tx"
        )))
    }

    /// The private network of an experiment that needs one of its own.
    pub(crate) fn network(&self, experiment: &str, veth: Veth) -> Result<Network, Failure> {
        self.without_cards(experiment)?;
        Network::new(veth).map_err(|error| failed("create a private network")(error).hint("run as root"))
    }
}

impl Turn {
    /// A turn of `series` at a place on the axis.
    pub(crate) fn of(series: &str, at: Option<u64>) -> Self {
        let name = at.map_or_else(|| series.to_owned(), |at| format!("{series} {at}"));
        Self { name, series: series.to_owned(), at }
    }

    /// Of all series at each place.
    pub(crate) fn each<S: AsRef<str>>(
        places: impl IntoIterator<Item = impl Into<u64>>,
        series: impl IntoIterator<Item = S>,
    ) -> Vec<Self> {
        let series: Vec<S> = series.into_iter().collect();
        let at = |at: u64| series.iter().map(move |series| Self::of(series.as_ref(), Some(at)));
        places.into_iter().flat_map(|place| at(place.into())).collect()
    }
}

/// The result of a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) found: Vec<Found>,
    /// What is wrong; the values are kept, and the run fails.
    pub(crate) problems: Vec<String>,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    series: String,
    measure: String,
    at: Option<f64>,
    value: f64,
}

impl Found {
    pub(crate) fn new(series: &str, measure: &str, at: Option<f64>, value: f64) -> Self {
        Self { series: series.to_owned(), measure: measure.to_owned(), at, value }
    }
}

impl Taken {
    /// Adds a value of the series and place of `turn`.
    pub(crate) fn add(&mut self, turn: &Turn, measure: &str, value: f64) {
        let at = turn.at.map(|at| at as f64);
        self.put(&turn.series, measure, at, value);
    }

    /// Adds a value.
    pub(crate) fn put(&mut self, series: &str, measure: &str, at: Option<f64>, value: f64) {
        self.found.push(Found::new(series, measure, at, value));
    }
}

impl Axis {
    /// Bytes of a frame.
    pub(crate) fn frame() -> Self {
        Self { title: "frame".to_owned(), unit: "bytes".to_owned(), logarithmic: false }
    }
}

impl Series {
    pub(crate) fn new(name: &str, title: &str, role: Role) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), role }
    }
}

impl Published {
    pub(crate) fn new(series: impl Into<String>, measure: &str, at: Option<f64>, value: f64) -> Self {
        Self { series: series.into(), measure: measure.to_owned(), at, value }
    }
}

impl Measure {
    pub(crate) fn new(name: &str, title: &str, unit: &str, better: Better) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), unit: unit.to_owned(), better }
    }

    /// A measure of which more is better.
    pub(crate) fn higher(name: &str, title: &str, unit: &str) -> Self {
        Self::new(name, title, unit, Better::Higher)
    }

    /// A measure of which less is better.
    pub(crate) fn lower(name: &str, title: &str, unit: &str) -> Self {
        Self::new(name, title, unit, Better::Lower)
    }

    /// A measure that is neither good nor bad.
    pub(crate) fn fact(name: &str, title: &str, unit: &str) -> Self {
        Self::new(name, title, unit, Better::Neither)
    }
}

impl Judged {
    /// Judged by the worst value: none may miss the target.
    pub(crate) fn worst(
        name: &str,
        most: f64,
        unit: &'static str,
        measured: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self::by(name, Wanted::AtMost(most), unit, Spread::of(measured), |spread| spread.max)
    }

    /// Judged by the median. `measured`: in each round.
    pub(crate) fn new(
        name: &str,
        wanted: Wanted,
        unit: &'static str,
        measured: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self::by(name, wanted, unit, Spread::of(measured), |spread| spread.median)
    }

    /// Judged by processor time, too: what it would be if nobody else used the processor.
    pub(crate) fn by_cpu_time(self, measured: impl IntoIterator<Item = f64>) -> Self {
        Self { by_cpu_time: Spread::of(measured).map(|spread| spread.median), ..self }
    }

    fn by(
        name: &str,
        wanted: Wanted,
        unit: &'static str,
        measured: Option<Spread>,
        judged: fn(Spread) -> f64,
    ) -> Self {
        Self {
            name: name.to_owned(),
            wanted: wanted.to_string(),
            unit: unit.to_owned(),
            measured: measured.map(|spread| [judged(spread), spread.min, spread.max]),
            met: measured.map(|spread| wanted.is_met(judged(spread))),
            by_cpu_time: None,
        }
    }
}
