//! The results on a terminal.

use std::fmt::Write as _;

use super::confidence::Side;
use super::{Better, Comparison, Estimate, Judged, Measure, Outcome, Series};
use crate::table::table;

/// A table for each place on the axis, the comparisons and the targets.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    let about = &outcome.about;
    let mut text = format!("\n{}\n", about.title);
    for (title, rows) in tables(outcome) {
        text.push('\n');
        if !title.is_empty() {
            let _infallible = writeln!(text, "{title}");
        }
        text.push_str(&table(&rows));
    }
    let versus = versus(outcome);
    if !versus.is_empty() {
        text.push('\n');
        text.push_str("In the same rounds\n");
        text.push_str(&table(&versus.iter().map(Versus::row).collect::<Vec<_>>()));
    }
    if !outcome.bars.is_empty() {
        text.push_str("\nTargets\n");
        text.push_str(&table(&bars(&outcome.bars)));
    }
    for [series, why] in &about.missing {
        let _infallible = writeln!(text, "{series}: {why}");
    }
    for fault in &outcome.faults {
        let _infallible = writeln!(text, "{}, round {}: {}", fault.turn, fault.round, fault.message);
    }
    text
}

/// The values, with a title for each table: one for each place, or, of a curve, one for each measure.
pub(crate) fn tables(outcome: &Outcome) -> Vec<(String, Vec<Vec<String>>)> {
    let about = &outcome.about;
    let shown: Vec<&Measure> =
        about.measures.iter().filter(|measure| measure.better != Better::Neither).collect();
    if outcome.is_curve() {
        return shown
            .into_iter()
            .map(|measure| (head(&[measure])[1].clone(), along(outcome, measure)))
            .collect();
    }
    let of = |at: Option<f64>| {
        let title = at.zip(about.axis.as_ref());
        let title = title.map(|(at, axis)| format!("{}: {} {}", axis.title, number(at), axis.unit));
        let rows = about.series.iter().filter_map(|series| row(outcome, series, &shown, at));
        (title.unwrap_or_default(), std::iter::once(head(&shown)).chain(rows).collect())
    };
    outcome.places().into_iter().map(of).collect()
}

/// One measure along the axis.
fn along(outcome: &Outcome, measure: &Measure) -> Vec<Vec<String>> {
    let places: Vec<f64> = outcome.places().into_iter().flatten().collect();
    let head = std::iter::once(String::new()).chain(places.iter().map(|at| number(*at))).collect();
    let row = |series: &Series| {
        let cells = places.iter().map(|at| estimate(outcome, &series.name, &measure.name, Some(*at)));
        let cells: Vec<_> = cells.map(|cell| cell.map_or_else(|| "-".to_owned(), interval)).collect();
        cells
            .iter()
            .any(|cell| cell != "-")
            .then(|| std::iter::once(series.title.clone()).chain(cells).collect())
    };
    std::iter::once(head).chain(outcome.about.series.iter().filter_map(row)).collect()
}

/// The head of a table of values.
fn head(measures: &[&Measure]) -> Vec<String> {
    let title = |measure: &&Measure| {
        let Measure { name, unit, .. } = measure;
        if unit.is_empty() { name.clone() } else { format!("{name}, {unit}") }
    };
    std::iter::once(String::new()).chain(measures.iter().map(title)).collect()
}

/// What was measured of a series at a place; none where nothing was.
pub(crate) fn row(
    outcome: &Outcome,
    series: &Series,
    measures: &[&Measure],
    at: Option<f64>,
) -> Option<Vec<String>> {
    let estimates: Vec<_> =
        measures.iter().map(|measure| estimate(outcome, &series.name, &measure.name, at)).collect();
    estimates.iter().any(Option::is_some).then(|| {
        let cells = estimates.iter().map(|estimate| estimate.map_or_else(|| "-".to_owned(), interval));
        std::iter::once(series.title.clone()).chain(cells).collect()
    })
}

/// What the rounds say of one value.
pub(crate) fn estimate(outcome: &Outcome, series: &str, measure: &str, at: Option<f64>) -> Option<Estimate> {
    Estimate::of(outcome.rounds_of(series, measure, at).into_iter().map(|(_, value)| value))
}

/// A comparison of two who do the same work.
pub(crate) struct Versus {
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// Measure and place.
    pub(crate) what: String,
    pub(crate) comparison: Comparison,
}

/// By the first measure, at every place.
pub(crate) fn versus(outcome: &Outcome) -> Vec<Versus> {
    let about = &outcome.about;
    let Some(measure) = about.measures.first() else { return Vec::new() };
    let title = |name: &str| {
        let series = about.series.iter().find(|series| series.name == name);
        series.map_or_else(|| name.to_owned(), |series| series.title.clone())
    };
    let pairs = about.versus.iter().flat_map(|pair| outcome.places().into_iter().map(move |at| (pair, at)));
    pairs
        .filter_map(|([ours, theirs], at)| {
            let of = |series: &str| outcome.rounds_of(series, &measure.name, at);
            let comparison = Comparison::of(&of(ours), &of(theirs), measure.better != Better::Lower)?;
            let place =
                at.zip(about.axis.as_ref()).map(|(at, axis)| format!(", {} {}", number(at), axis.unit));
            let what = format!("{}{}", measure.name, place.unwrap_or_default());
            Some(Versus { ours: title(ours), theirs: title(theirs), what, comparison })
        })
        .collect()
}

impl Versus {
    /// Both, and by how much.
    pub(crate) fn row(&self) -> Vec<String> {
        let Self { ours, theirs, what, comparison } = self;
        let verdict = match comparison.ahead {
            Some(Side::Ours) => "ahead",
            Some(Side::Theirs) => "BEHIND",
            None if comparison.ratio.confidence < super::confidence::LEAST => "too few rounds",
            None => "no difference",
        };
        vec![format!("{ours} / {theirs}"), what.clone(), interval(comparison.ratio), verdict.to_owned()]
    }
}

/// The targets as a table.
pub(crate) fn bars(bars: &[Judged]) -> Vec<Vec<String>> {
    let mut rows = vec![["", "wanted", "measured", "min..max", "met"].map(str::to_owned).to_vec()];
    rows.extend(bars.iter().map(|bar| {
        let measured = bar.measured.map(|[judged, ..]| format!("{} {}", number(judged), bar.unit));
        let range = bar.measured.map(|[_, min, max]| format!("{}..{}", number(min), number(max)));
        vec![
            bar.name.clone(),
            bar.wanted.clone(),
            measured.unwrap_or_else(|| "not measured".to_owned()),
            range.unwrap_or_default(),
            bar.met.map_or("?", |met| if met { "yes" } else { "NO" }).to_owned(),
        ]
    }));
    rows
}

/// The median, and where it lies.
pub(crate) fn interval(estimate: Estimate) -> String {
    let Estimate { median, low, high, .. } = estimate;
    if low == high {
        number(median)
    } else {
        format!("{} ({}..{})", number(median), number(low), number(high))
    }
}

/// Three digits that mean something.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        ..0.1 => 4,
        ..1.0 => 3,
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_mean_something() {
        for (value, expected) in [
            (0.0, "0"),
            (0.056_78, "0.0568"),
            (0.5678, "0.568"),
            (5.678, "5.68"),
            (567.8, "567.8"),
            (56_789.1, "56789"),
            (60.0, "60"),
        ] {
            assert_eq!(number(value), expected);
        }
    }
}
