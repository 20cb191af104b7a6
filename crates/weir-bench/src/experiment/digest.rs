//! Summaries of an experiment's rounds, from which tables, figures, the report and documents are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::confidence::{Comparison, Estimate};
use super::result::{About, Better, Fault, Judged, Outcome};

/// With fewer places on the axis, bars are easier to read.
const LINES: usize = 4;

/// By places on the axis.
type ByPlace = Vec<(Option<f64>, Estimate)>;

/// An outcome without its raw values.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Digest {
    /// Without the measures that are neither good nor bad.
    pub(crate) about: About,
    pub(crate) rounds: u32,
    /// The relative change from the first round to its repetition: 0.01 for a percent more.
    pub(crate) drift: Option<f64>,
    /// By series and measure.
    pub(super) estimates: BTreeMap<String, BTreeMap<String, ByPlace>>,
    /// By the first measure.
    pub(crate) versus: Vec<Versus>,
    pub(crate) bars: Vec<Judged>,
    pub(crate) faults: Vec<Fault>,
}

/// A comparison of two series that do the same work.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Versus {
    /// Series.
    pub(crate) ours: String,
    pub(crate) theirs: String,
    pub(crate) at: Option<f64>,
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
}

impl Digest {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let mut about = outcome.about.clone();
        about.measures.retain(|measure| measure.better != Better::Neither);
        let mut digest = Self {
            about,
            rounds: outcome.rounds,
            drift: outcome.drift(),
            estimates: BTreeMap::new(),
            versus: Vec::new(),
            bars: outcome.bars.clone(),
            faults: outcome.faults.clone(),
        };
        digest.estimate_all(outcome);
        digest.versus = digest.compare_all(outcome);
        digest
    }

    fn estimate_all(&mut self, outcome: &Outcome) {
        let places = outcome.places();
        for series in &self.about.series {
            for measure in &self.about.measures {
                let at = |&at: &Option<f64>| {
                    let values = outcome.values_of(&series.name, &measure.name, at);
                    Some((at, Estimate::of(values)?))
                };
                let found: Vec<_> = places.iter().filter_map(at).collect();
                if !found.is_empty() {
                    let of_series = self.estimates.entry(series.name.clone()).or_default();
                    of_series.insert(measure.name.clone(), found);
                }
            }
        }
    }

    fn compare_all(&self, outcome: &Outcome) -> Vec<Versus> {
        let Some(measure) = self.about.measures.first() else { return Vec::new() };
        let places = outcome.places();
        let pairs = self.about.versus.iter().flat_map(|pair| places.iter().map(move |&at| (pair, at)));
        pairs
            .filter_map(|([ours, theirs], at)| {
                let of = |series: &str| outcome.rounds_of(series, &measure.name, at);
                let comparison = Comparison::of(&of(ours), &of(theirs), measure.better != Better::Lower)?;
                Some(Versus { ours: ours.clone(), theirs: theirs.clone(), at, comparison })
            })
            .collect()
    }

    /// What the rounds say of one value.
    pub(crate) fn estimate(&self, series: &str, measure: &str, at: Option<f64>) -> Option<Estimate> {
        let places = self.estimates.get(series)?.get(measure)?;
        places.iter().find(|(place, _)| *place == at).map(|(_, estimate)| *estimate)
    }

    /// The places on the axis, in order; one that is no place if there is no axis.
    pub(crate) fn places(&self) -> Vec<Option<f64>> {
        let measured = self.estimates.values().flat_map(BTreeMap::values).flatten();
        in_order(measured.map(|(at, _)| *at))
    }

    /// Whether places are points of lines rather than groups of bars.
    pub(crate) fn is_curve(&self) -> bool {
        self.about.axis.as_ref().is_some_and(|axis| axis.logarithmic || self.places().len() >= LINES)
    }

    /// Whether the targets say it all: values of many kinds, with a target each.
    pub(crate) fn is_of_targets(&self) -> bool {
        !self.bars.is_empty() && self.about.measures.first().is_some_and(|measure| measure.unit.is_empty())
    }
}

impl Outcome {
    /// The places on the axis, in order; one that is no place if there is no axis.
    pub(crate) fn places(&self) -> Vec<Option<f64>> {
        in_order(self.values.iter().map(|value| value.at))
    }
}

/// Each place once.
pub(crate) fn in_order(places: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let mut places: Vec<_> = places.collect();
    places.sort_by(|a, b| a.unwrap_or(f64::MIN).total_cmp(&b.unwrap_or(f64::MIN)));
    places.dedup();
    places
}
