//! The file from which documents are made: summaries of rounds, without the raw values, of each experiment's newest
//! run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::experiment::Estimate;
use crate::experiment::digest::Digest;
use crate::experiment::result::{Run, load};
use crate::experiment::text::number;
use crate::failure::Failure;

/// The first word of the file, so that nothing else is taken for one.
const FORMAT: &str = "weir-bench results 2";

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Results {
    format: String,
    /// From the oldest to the newest.
    runs: Vec<Measured>,
}

/// What documents show of one run.
#[derive(Debug, Deserialize, Serialize)]
struct Measured {
    /// The machine in one line, and the day.
    summary: String,
    /// The same by fields.
    machine: serde_json::Value,
    /// Rounds too short for figures that mean anything.
    quick: bool,
    /// Only experiments that no later run has.
    outcomes: Vec<Digest>,
}

impl Results {
    pub(super) fn empty() -> Self {
        Self { format: FORMAT.to_owned(), runs: Vec::new() }
    }

    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        load(path, FORMAT)
    }

    /// Adds the results of a run; those of other experiments stay.
    pub(super) fn add(&mut self, run: &Run) {
        let is_measured = |name: &str| run.outcomes.iter().any(|outcome| outcome.about.name == name);
        for old in &mut self.runs {
            old.outcomes.retain(|digest| !is_measured(&digest.about.name));
        }
        self.runs.push(Measured {
            summary: run.summary.clone(),
            machine: run.machine.clone(),
            quick: run.quick,
            outcomes: run.outcomes.iter().map(|outcome| brief(Digest::of(outcome))).collect(),
        });
        self.runs.retain(|run| !run.outcomes.is_empty());
    }

    /// What is known of an experiment, and where, when and how often it was measured: `2026-11-28, 2 x AMD EPYC, ...; 5
    /// rounds`.
    pub(super) fn find(&self, name: &str) -> Option<(&Digest, String)> {
        let mut all = self.runs.iter().flat_map(|run| run.outcomes.iter().map(move |digest| (run, digest)));
        let (run, digest) = all.find(|(_, digest)| digest.about.name == name)?;
        let rounds = match digest.rounds {
            1 => "one round".to_owned(),
            rounds => format!("{rounds} rounds"),
        };
        let rounds = if run.quick { format!("--quick, {rounds}: the figures mean little") } else { rounds };
        Some((digest, format!("{}; {rounds}", run.summary)))
    }

    /// Names of the experiments that were run.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().flat_map(|run| &run.outcomes).map(|digest| digest.about.name.as_str())
    }
}

/// What documents show of it: along an axis only the first measure, only the printed digits, and no sentences.
fn brief(mut digest: Digest) -> Digest {
    let of_targets = digest.is_of_targets();
    let about = &mut digest.about;
    about.method.clear();
    about.differs.clear();
    about.versus.clear();
    if about.axis.is_some() {
        about.measures.truncate(1);
    }
    if of_targets {
        about.series.clear();
        digest.estimates.clear();
    }
    for measures in digest.estimates.values_mut() {
        measures.retain(|name, _| digest.about.measures.iter().any(|measure| measure.name == *name));
        for (_, estimate) in measures.values_mut().flatten() {
            *estimate = shown(*estimate);
        }
    }
    for versus in &mut digest.versus {
        versus.comparison.ratio = shown(versus.comparison.ratio);
    }
    for bar in &mut digest.bars {
        bar.measured = bar.measured.map(|values| values.map(digits));
    }
    digest.drift = digest.drift.map(digits);
    digest
}

fn shown(estimate: Estimate) -> Estimate {
    <[f64; 4]>::from(estimate).map(digits).into()
}

fn digits(value: f64) -> f64 {
    number(value).parse().unwrap_or(value)
}
