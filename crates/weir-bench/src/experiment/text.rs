//! The results on a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::confidence::{LEAST, Side};
use super::digest::{Digest, Versus};
use super::{Axis, Comparison, Estimate, Judged, Measure, Series};
use crate::table::table;

/// A table for each place on the axis, the comparisons and the targets.
pub(crate) fn outcome(digest: &Digest) -> String {
    let about = &digest.about;
    let mut text = format!("\n{}\n", about.title);
    for (title, rows) in tables(digest) {
        text.push('\n');
        if !title.is_empty() {
            let _infallible = writeln!(text, "{title}");
        }
        text.push_str(&table(&rows));
    }
    let versus = versus(digest);
    if !versus.is_empty() {
        text.push('\n');
        text.push_str("In the same rounds\n");
        text.push_str(&table(&versus));
    }
    if !digest.bars.is_empty() {
        text.push_str("\nTargets\n");
        text.push_str(&table(&bars(&digest.bars)));
    }
    for [series, why] in &about.missing {
        let _infallible = writeln!(text, "{series}: {why}");
    }
    for fault in &digest.faults {
        let _infallible = writeln!(text, "{}, round {}: {}", fault.turn, fault.round, fault.message);
    }
    text
}

/// The values, with a title for each table: one or more for each place, or, of a curve, one for each measure.
pub(crate) fn tables(digest: &Digest) -> Vec<(String, Vec<Vec<String>>)> {
    let about = &digest.about;
    let places = digest.places();
    if digest.is_curve() {
        let places: Vec<_> = places.into_iter().filter(Option::is_some).collect();
        let along = |measure| (with_unit(measure), along(digest, measure, &places));
        return about.measures.iter().map(along).collect();
    }
    let of = |at: Option<f64>| {
        let title = at.zip(about.axis.as_ref());
        let title = title.map(|(at, axis)| format!("{}: {}", axis.title, amount(at, &axis.unit)));
        let titles = std::iter::once(title.unwrap_or_default()).chain(std::iter::repeat(String::new()));
        titles.zip(apart(whole(digest, at)))
    };
    places.into_iter().flat_map(of).collect()
}

/// All series and measures at a place.
pub(crate) fn whole(digest: &Digest, at: Option<f64>) -> Vec<Vec<String>> {
    let about = &digest.about;
    let rows = about.series.iter().filter_map(|series| row(digest, series, at));
    std::iter::once(head(&about.measures)).chain(rows).collect()
}

/// A table for all rows in sequence that have columns in common, each with the columns of which it has values.
pub(crate) fn apart(rows: Vec<Vec<String>>) -> Vec<Vec<Vec<String>>> {
    let mut rows = rows.into_iter();
    let Some(head) = rows.next() else { return Vec::new() };
    let columns = |row: &[String]| (1..head.len()).filter(|&column| row[column] != NONE).collect();
    let mut groups: Vec<(BTreeSet<usize>, Vec<Vec<String>>)> = Vec::new();
    for row in rows {
        let filled: BTreeSet<usize> = columns(&row);
        match groups.last_mut().filter(|(known, _)| !known.is_disjoint(&filled)) {
            Some((known, group)) => {
                known.extend(filled);
                group.push(row);
            }
            None => groups.push((filled, vec![row])),
        }
    }
    let table = |(filled, rows): (BTreeSet<usize>, Vec<Vec<String>>)| {
        let all = std::iter::once(&head).chain(&rows);
        let kept = |row: &Vec<String>| {
            let cells = row.iter().enumerate().filter(|(column, _)| *column == 0 || filled.contains(column));
            cells.map(|(_, cell)| cell.clone()).collect()
        };
        all.map(kept).collect()
    };
    groups.into_iter().map(table).collect()
}

/// A cell without a value.
const NONE: &str = "-";

/// One measure along the axis, at these places.
pub(crate) fn along(digest: &Digest, measure: &Measure, places: &[Option<f64>]) -> Vec<Vec<String>> {
    let axis = digest.about.axis.as_ref().map(axis_title).unwrap_or_default();
    let head = std::iter::once(axis).chain(places.iter().flatten().map(|at| number(*at)));
    let row = |series: &Series| {
        let cells = places.iter().map(|at| digest.estimate(&series.name, &measure.name, *at));
        cells_of(series, cells.collect())
    };
    std::iter::once(head.collect()).chain(digest.about.series.iter().filter_map(row)).collect()
}
/// The head of a table of values.
fn head(measures: &[Measure]) -> Vec<String> {
    std::iter::once(String::new()).chain(measures.iter().map(with_unit)).collect()
}

/// What an axis shows: `frame, bytes`.
pub(crate) fn axis_title(Axis { title, unit, .. }: &Axis) -> String {
    if title.starts_with(unit) { title.clone() } else { format!("{title}, {unit}") }
}

fn with_unit(Measure { name, unit, .. }: &Measure) -> String {
    if unit.is_empty() { name.clone() } else { format!("{name}, {unit}") }
}

/// The measurement of a series at a place, if there is one.
fn row(digest: &Digest, series: &Series, at: Option<f64>) -> Option<Vec<String>> {
    let measures = digest.about.measures.iter();
    cells_of(series, measures.map(|measure| digest.estimate(&series.name, &measure.name, at)).collect())
}

fn cells_of(series: &Series, estimates: Vec<Option<Estimate>>) -> Option<Vec<String>> {
    estimates.iter().any(Option::is_some).then(|| {
        let cells = estimates.into_iter().map(|estimate| estimate.map_or_else(|| NONE.to_owned(), interval));
        std::iter::once(series.title.clone()).chain(cells).collect()
    })
}

/// Who is ahead, as a table.
pub(crate) fn versus(digest: &Digest) -> Vec<Vec<String>> {
    digest.versus.iter().map(|versus| compared(digest, versus).to_vec()).collect()
}

/// Both contestants, and the ratio.
pub(crate) fn compared(digest: &Digest, versus: &Versus) -> [String; 4] {
    let about = &digest.about;
    let title = |name: &str| {
        let series = about.series.iter().find(|series| series.name == name);
        series.map_or_else(|| name.to_owned(), |series| series.title.clone())
    };
    let measure = about.measures.first().map_or("", |measure| &measure.name);
    let Comparison { ratio, ahead } = versus.comparison;
    let verdict = match ahead {
        Some(Side::Ours) => "ahead",
        Some(Side::Theirs) => "BEHIND",
        None if ratio.confidence < LEAST => "too few rounds",
        None => "no difference",
    };
    [
        format!("{} / {}", title(&versus.ours), title(&versus.theirs)),
        format!("{measure}{}", digest.place(versus.at)),
        interval(ratio),
        verdict.to_owned(),
    ]
}

impl Digest {
    /// A place on the axis as text behind other: `, 60 bytes`.
    pub(crate) fn place(&self, at: Option<f64>) -> String {
        let place = at.zip(self.about.axis.as_ref());
        place.map(|(at, axis)| format!(", {}", amount(at, &axis.unit))).unwrap_or_default()
    }
}

/// The targets as a table.
pub(crate) fn bars(bars: &[Judged]) -> Vec<Vec<String>> {
    const TIMES: usize = 4;
    let has_times = bars.iter().any(|bar| bar.by_cpu_time.is_some());
    let row = |cells: [String; 6]| {
        let shown = cells.into_iter().enumerate().filter(|(column, _)| has_times || *column != TIMES);
        shown.map(|(_, cell)| cell).collect::<Vec<_>>()
    };
    let head = ["", "wanted", "measured", "min..max", "by CPU time", "met"];
    let rows = bars.iter().map(|bar| {
        let measured = bar.measured.map(|[judged, ..]| format!("{} {}", number(judged), bar.unit));
        let range = bar.measured.map(|[_, min, max]| format!("{}..{}", number(min), number(max)));
        row([
            bar.name.clone(),
            bar.wanted.clone(),
            measured.unwrap_or_else(|| "not measured".to_owned()),
            range.unwrap_or_default(),
            bar.by_cpu_time.map(number).unwrap_or_default(),
            bar.met.map_or("?", |met| if met { "yes" } else { "NO" }).to_owned(),
        ])
    });
    std::iter::once(row(head.map(str::to_owned))).chain(rows).collect()
}

/// The median and its interval.
pub(crate) fn interval(estimate: Estimate) -> String {
    let Estimate { median, low, high, .. } = estimate;
    if low == high {
        number(median)
    } else {
        format!("{} ({}..{})", number(median), number(low), number(high))
    }
}

/// Three significant digits.
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

/// A place on an axis: `60 bytes`, `1 queue`.
pub(crate) fn amount(at: f64, unit: &str) -> String {
    let unit = if at == 1.0 { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
    format!("{} {unit}", number(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_column_in_common_are_apart() {
        let rows = ["|rate|lost|time", "a|1|-|-", "b|2|3|-", "c|-|-|4", "d|-|-|5"];
        let rows = rows.map(|row| row.split('|').map(str::to_owned).collect());
        let tables = apart(rows.to_vec());
        let text = |table: &Vec<Vec<String>>| table.iter().map(|row| row.join("|")).collect::<Vec<_>>();
        let tables: Vec<_> = tables.iter().map(text).collect();
        assert_eq!(tables, [vec!["|rate|lost", "a|1|-", "b|2|3"], vec!["|time", "c|4", "d|5"]]);
    }

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
        assert_eq!(
            [amount(1.0, "queues"), amount(2.0, "queues"), amount(1.0, "%")],
            ["1 queue", "2 queues", "1 %"]
        );
    }
}
