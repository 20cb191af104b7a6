//! The measurements as a file keeps them: raw values, and everything needed to make tables and figures of them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, failed};
use crate::tidy;

/// The first word of the file, so that nothing else is taken for one.
const FORMAT: &str = "weir-bench 1";

/// All experiments of one run. Field names are a promise to scripts.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Run {
    format: String,
    /// The machine and the date, in one line.
    pub(crate) summary: String,
    /// The same by fields.
    pub(crate) machine: serde_json::Value,
    /// Rounds too short for figures that mean anything.
    pub(crate) quick: bool,
    pub(crate) outcomes: Vec<Outcome>,
}

/// One experiment.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Outcome {
    pub(crate) about: About,
    /// Rounds that were asked for. The last is followed by a repetition of the first, numbered 0.
    pub(crate) rounds: u32,
    pub(crate) values: Vec<Value>,
    pub(crate) bars: Vec<Judged>,
    /// Turns that gave no result, and those whose result is wrong.
    pub(crate) faults: Vec<Fault>,
    /// Time that it took.
    pub(crate) seconds: f64,
}

/// The question of an experiment, and its contestants.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct About {
    /// On the command line.
    pub(crate) name: String,
    pub(crate) title: String,
    /// The method, in a few sentences.
    pub(crate) method: String,
    /// Differences from the published experiment, a sentence each.
    pub(crate) differs: Vec<String>,
    /// What the values depend on besides the series, if anything.
    pub(crate) axis: Option<Axis>,
    /// The first is the one that figures show.
    pub(crate) measures: Vec<Measure>,
    pub(crate) series: Vec<Series>,
    /// Series that cannot be measured here, and why.
    pub(crate) missing: Vec<[String; 2]>,
    /// Pairs that do the same work, ours first.
    pub(crate) versus: Vec<[String; 2]>,
    pub(crate) published: Vec<Published>,
}

/// The horizontal axis.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) logarithmic: bool,
}

/// A quantity.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Measure {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
}

/// Which values are good.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Higher,
    Lower,
    /// A fact that is neither.
    Neither,
}

/// One of those that are measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) role: Role,
}

/// The role of a series.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Ours,
    Peer,
    /// What the machine can do without a capture.
    Limit,
    /// Expected by arithmetic.
    Model,
}

/// A figure of the published experiment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Published {
    /// In the words of the publication.
    pub(crate) series: String,
    pub(crate) measure: String,
    pub(crate) at: Option<f64>,
    pub(crate) value: f64,
}

/// One measured value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Value {
    pub(crate) series: String,
    pub(crate) measure: String,
    /// On the axis.
    pub(crate) at: Option<f64>,
    pub(crate) round: u32,
    pub(crate) value: f64,
    /// The turn that it comes from.
    pub(crate) turn: String,
}

/// A target, and its outcome.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Judged {
    pub(crate) name: String,
    pub(crate) wanted: String,
    pub(crate) unit: String,
    /// Median, or the worst, and the range; none if what it compares was not measured.
    pub(crate) measured: Option<[f64; 3]>,
    pub(crate) met: Option<bool>,
    /// The same from the processor time of a packet: what it would be if nobody else used the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by_cpu_time: Option<f64>,
}

/// Something that could not be measured, or whose result is wrong.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Fault {
    pub(crate) turn: String,
    pub(crate) round: u32,
    pub(crate) message: String,
}

impl Run {
    pub(crate) fn new(summary: String, machine: serde_json::Value, quick: bool) -> Self {
        Self { format: FORMAT.to_owned(), summary, machine, quick, outcomes: Vec::new() }
    }

    /// Reads a file that [`Run::save`] has written.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        load(path, FORMAT)
    }

    /// Replaces the file, which is whole at any time.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        replace(path, &json(self)?)
    }
}

/// Reads JSON whose field `format` says what it is.
pub(super) fn load<T: DeserializeOwned>(path: &Path, format: &str) -> Result<T, Failure> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }
    let text = fs::read(path).map_err(failed(format_args!("read {}", path.display())))?;
    let wrong = || failed(format!("read {} as results of weir-bench", path.display()));
    let head: Head = serde_json::from_slice(&text).map_err(wrong())?;
    if head.format != format {
        let (path, found) = (path.display(), head.format);
        return Err(Failure::new(format_args!(
            "cannot read {path}: its format is {found:?}, not {format:?}"
        )));
    }
    serde_json::from_slice(&text).map_err(wrong())
}

/// A line of JSON.
pub(super) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map(|text| text + "\n").map_err(failed("make JSON"))
}

/// Replaces a file, which is whole at any time.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let write = || {
        let mut file = tidy::file_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(PermissionsExt::from_mode(0o644))?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map(drop).map_err(failed(format_args!("write {}", path.display())))
}

impl Outcome {
    /// The values of one series and measure by round, without the repetition.
    pub(crate) fn rounds_of(&self, series: &str, measure: &str, at: Option<f64>) -> Vec<(u32, f64)> {
        let of = |value: &&Value| {
            value.round > 0 && value.series == series && value.measure == measure && value.at == at
        };
        self.values.iter().filter(of).map(|value| (value.round, value.value)).collect()
    }

    /// The same without the numbers of rounds.
    pub(crate) fn values_of(&self, series: &str, measure: &str, at: Option<f64>) -> Vec<f64> {
        self.rounds_of(series, measure, at).into_iter().map(|(_, value)| value).collect()
    }

    /// The ratio of `ours` to `theirs`, in each round that has both.
    pub(crate) fn ratios(&self, pair: [&str; 2], measure: &str, at: Option<f64>) -> Vec<f64> {
        let both = self.in_rounds(pair, measure, at);
        both.map(|(_, [ours, theirs])| ours / theirs).collect()
    }

    /// The first minus the second, in each round that has both.
    pub(crate) fn added(&self, pair: [&str; 2], measure: &str, at: Option<f64>) -> Vec<(u32, f64)> {
        let both = self.in_rounds(pair, measure, at);
        both.map(|(round, [with, without])| (round, with - without)).collect()
    }

    /// The difference of the first pair, as a share of the second's. Rounds in which the second's is not above 0 are
    /// left out.
    pub(crate) fn shares(
        &self,
        ours: [&str; 2],
        theirs: [&str; 2],
        measure: &str,
        at: Option<f64>,
    ) -> Vec<f64> {
        let theirs = self.added(theirs, measure, at);
        let share = |(round, ours): (u32, f64)| {
            let (_, theirs) = theirs.iter().find(|(other, theirs)| *other == round && *theirs > 0.0)?;
            Some(ours / theirs)
        };
        self.added(ours, measure, at).into_iter().filter_map(share).collect()
    }

    #[cfg(test)]
    pub(crate) fn put(&mut self, series: &str, measure: &str, at: Option<f64>, round: u32, value: f64) {
        let [series, measure, turn] = [series, measure, series].map(str::to_owned);
        self.values.push(Value { series, measure, at, round, value, turn });
    }

    fn in_rounds(
        &self,
        pair: [&str; 2],
        measure: &str,
        at: Option<f64>,
    ) -> impl Iterator<Item = (u32, [f64; 2])> {
        let [one, other] = pair.map(|series| self.rounds_of(series, measure, at));
        one.into_iter().filter_map(move |(round, one)| {
            let (_, other) = other.iter().find(|(number, _)| *number == round)?;
            Some((round, [one, *other]))
        })
    }
}
