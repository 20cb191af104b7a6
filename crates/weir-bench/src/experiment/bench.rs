//! A benchmark that has a command of its own, in rounds with the others: each round is a run of it. What it holds its targets
//! against is what is kept; its own tables and raw values are on its command.

use std::env;
use std::fs;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{
    About, Better, Experiment, Found, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::bars::Wanted;
use crate::failed;
use crate::failure::Failure;
use crate::program::{OWN, WEIR, find};
use crate::tidy;

/// A benchmark by its command.
pub(crate) struct Bench {
    name: &'static str,
    title: &'static str,
    /// Options that make it short.
    short: &'static [&'static str],
    quick: bool,
    /// As they came.
    found: Vec<Bar>,
}

/// One of its targets, as it writes them.
#[derive(Clone, Debug, Deserialize)]
struct Bar {
    name: String,
    size: Option<u64>,
    wanted: String,
    judged: Option<f64>,
    unit: String,
    worst: bool,
}

/// What all of them write.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    bars: Vec<Bar>,
}

const MORE: &str = "more is better";
const LESS: &str = "less is better";

impl Bench {
    /// `short`: options for `--quick`.
    pub(crate) fn new(
        settings: &Settings,
        name: &'static str,
        title: &'static str,
        short: &'static [&'static str],
    ) -> Self {
        Self { name, title, short, quick: settings.quick, found: Vec::new() }
    }

    fn command(&self, json: &std::path::Path) -> Result<Command, Failure> {
        let own = find(OWN).ok_or_else(|| Failure::new("cannot find this program"))?;
        let mut command = Command::new(own);
        command.args([self.name, "--rounds", "1", "--json"]).arg(json);
        if self.quick {
            command.args(self.short);
        }
        if let Some(weir) = find(WEIR) {
            command.arg("--weir").arg(weir);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }
}

impl Experiment for Bench {
    fn about(&self) -> About {
        let series = |bar: &Bar| Series { name: bar.title(), title: bar.title(), role: Role::Ours };
        About {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            method: format!(
                "What weir-bench {} compares, each round a run of its own; weir-bench {} --help says how.",
                self.name, self.name
            ),
            measures: vec![
                Measure::new(MORE, MORE, "", Better::Higher),
                Measure::new(LESS, LESS, "", Better::Lower),
            ],
            series: self.found.iter().map(series).collect(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        vec![Turn::of(self.name, None)]
    }

    fn take(&mut self, _turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let file = tidy::file_in(&env::temp_dir()).map_err(failed("create a file"))?;
        let status = self
            .command(file.path())?
            .status()
            .map_err(failed(format_args!("run weir-bench {}", self.name)))?;
        let text = fs::read(file.path()).map_err(failed("read its results"))?;
        if text.is_empty() {
            return Err(Failure::new(format_args!("weir-bench {} ended ({status}); see above", self.name)));
        }
        let report: Report = serde_json::from_slice(&text).map_err(failed("read its results"))?;
        let mut taken = Taken::default();
        if !status.success() {
            taken.problems.push(format!("weir-bench {} ended ({status}); see above", self.name));
        }
        let bars = report.bars;
        for bar in &bars {
            let measure = if bar.wanted.starts_with(">=") { MORE } else { LESS };
            taken.found.extend(bar.judged.map(|value| Found::new(&bar.title(), measure, None, value)));
        }
        // Those that a later round knows and an earlier does not are known, too.
        for bar in bars {
            if !self.found.iter().any(|known| known.title() == bar.title()) {
                self.found.push(bar);
            }
        }
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let judged = |bar: &Bar| {
            let (kind, limit) = bar.wanted.split_once(' ')?;
            let limit: f64 = limit.parse().ok()?;
            let (measure, wanted) =
                if kind == ">=" { (MORE, Wanted::AtLeast(limit)) } else { (LESS, Wanted::AtMost(limit)) };
            let values = outcome.rounds_of(&bar.title(), measure, None).into_iter().map(|(_, value)| value);
            let mut judged = if bar.worst {
                Judged::worst(&bar.title(), limit, "", values)
            } else {
                Judged::new(&bar.title(), wanted, "", values)
            };
            judged.unit.clone_from(&bar.unit);
            Some(judged)
        };
        self.found.iter().filter_map(judged).collect()
    }
}

impl Bar {
    fn title(&self) -> String {
        let size = self.size.map(|size| format!(", {size} B")).unwrap_or_default();
        format!("{}{size}", self.name)
    }
}
