//! The contents of a block: a table, with published values; targets, who is ahead, and where it was measured.

use std::fmt::Write as _;

use super::results::Results;
use crate::experiment::confidence::{LEAST, Side};
use crate::experiment::digest::{Digest, in_order};
use crate::experiment::result::Fault;
use crate::experiment::text::{along, apart, bars, compared, interval, number, whole};
use crate::experiment::{Estimate, Judged, Measure, Published};
use crate::table::markdown;

/// Of one experiment, in Markdown.
pub(super) fn of(results: &Results, name: &str) -> String {
    let Some((digest, origin)) = results.find(name) else { return format!("**{name}**: not measured.\n") };
    let Tables { title, tables } = Tables::of(digest);
    let mut text = format!("**{name}**: {}", escape(&title));
    text.push_str("\n\n");
    for rows in tables {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
        text.push_str(&markdown(&rows));
        text.push('\n');
    }
    let mut lines = Vec::new();
    elsewhere(digest, &mut lines);
    targets(digest, &mut lines);
    ahead(digest, &mut lines);
    for [series, why] in &digest.about.missing {
        lines.push(format!("Not measured: {series}: {why}"));
    }
    for Fault { turn, round, message } in &digest.faults {
        lines.push(format!("Failed or wrong: {turn}, round {round}: {message}"));
    }
    lines.push(format!("Measured: {origin}."));
    for line in lines {
        let _infallible = writeln!(text, "- {}", escape(&line));
    }
    text
}

struct Tables {
    title: String,
    tables: Vec<Vec<Vec<String>>>,
}

impl Tables {
    fn of(digest: &Digest) -> Self {
        let about = &digest.about;
        if digest.is_of_targets() {
            return Self { title: about.title.clone(), tables: vec![bars(&digest.bars)] };
        }
        let Some(measure) = about.measures.first().filter(|_| !digest.places().is_empty()) else {
            return Self { title: "not measured".to_owned(), tables: Vec::new() };
        };
        if about.axis.is_none() {
            let mut rows = whole(digest, None);
            rows.extend(published(digest, &about.measures, &[None]));
            return Self { title: about.title.clone(), tables: apart(rows) };
        }
        let others = about.published.iter().filter(|value| value.measure == measure.name);
        let others = others.map(|value| value.at);
        let places = in_order(digest.places().into_iter().chain(others).filter(Option::is_some));
        let mut rows = along(digest, measure, &places);
        rows.extend(published(digest, std::slice::from_ref(measure), &places));
        Self { title: format!("{}, {}", measure.title, measure.unit), tables: vec![rows] }
    }
}

/// Published values, a row for each series, in the columns of ours.
fn published(digest: &Digest, measures: &[Measure], places: &[Option<f64>]) -> Vec<Vec<String>> {
    let shown: Vec<&Published> =
        digest.about.published.iter().filter(|value| is_in_table(digest, value)).collect();
    let mut series: Vec<&str> = Vec::new();
    for value in &shown {
        if !series.contains(&value.series.as_str()) {
            series.push(&value.series);
        }
    }
    let row = |series: &&str| {
        let cell = |measure: &Measure, at: Option<f64>| {
            let is_it = |value: &&&Published| {
                value.series == *series && value.measure == measure.name && value.at == at
            };
            shown.iter().find(is_it).map_or_else(|| "-".to_owned(), |value| number(value.value))
        };
        let cells = measures.iter().flat_map(|measure| places.iter().map(move |at| cell(measure, *at)));
        std::iter::once(format!("published: {series}")).chain(cells).collect()
    };
    series.iter().map(row).collect()
}

/// Whether a published value has a column there.
fn is_in_table(digest: &Digest, value: &Published) -> bool {
    let about = &digest.about;
    let mut measures = about.measures.iter();
    match about.axis {
        Some(_) => value.at.is_some() && measures.next().is_some_and(|first| first.name == value.measure),
        None => value.at.is_none() && measures.any(|measure| measure.name == value.measure),
    }
}

/// Published values that fit no column: a line for each measure and place.
fn elsewhere(digest: &Digest, lines: &mut Vec<String>) {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for value in digest.about.published.iter().filter(|value| !is_in_table(digest, value)) {
        let what = format!("{}{}", value.measure, digest.place(value.at));
        let text = format!("{} {}", value.series, number(value.value));
        match told.iter_mut().find(|(known, _)| *known == what) {
            Some((_, texts)) => texts.push(text),
            None => told.push((what, vec![text])),
        }
    }
    lines.extend(told.iter().map(|(what, texts)| format!("Published ({what}): {}", texts.join("; "))));
}

/// How many targets were met, and which were missed, unless the table says so.
fn targets(digest: &Digest, lines: &mut Vec<String>) {
    if digest.bars.is_empty() {
        return;
    }
    let count = |met: Option<bool>| digest.bars.iter().filter(|bar| bar.met == met).count();
    let (met, missed, unknown) = (count(Some(true)), count(Some(false)), count(None));
    let unknown = if unknown == 0 { String::new() } else { format!(", {unknown} not measured") };
    lines.push(format!("Targets: {met} met, {missed} missed{unknown}."));
    if digest.is_of_targets() {
        return;
    }
    for bar in digest.bars.iter().filter(|bar| bar.met == Some(false)) {
        let Judged { name, wanted, unit, measured, .. } = bar;
        let measured = measured.map_or_else(String::new, |[median, low, high]| {
            format!(", measured {}", interval(Estimate { median, low, high, confidence: 0.0 }))
        });
        lines.push(format!("Missed: {name}: wanted {wanted} {unit}{measured}"));
    }
}

/// In how many comparisons weir is ahead, and in which it is behind.
fn ahead(digest: &Digest, lines: &mut Vec<String>) {
    let versus = &digest.versus;
    if versus.is_empty() {
        return;
    }
    if versus.iter().all(|one| one.comparison.ratio.confidence < LEAST) {
        lines.push("Too few rounds to say who is ahead.".to_owned());
        return;
    }
    let count = |side| versus.iter().filter(|one| one.comparison.ahead == Some(side)).count();
    let (ours, theirs) = (count(Side::Ours), count(Side::Theirs));
    lines.push(format!(
        "Of {} comparisons within rounds, weir is ahead in {ours} and behind in {theirs}.",
        versus.len()
    ));
    for one in versus.iter().filter(|one| one.comparison.ahead == Some(Side::Theirs)) {
        let [pair, what, ratio, _] = compared(digest, one);
        lines.push(format!("Behind: {pair}, {what}: {ratio}"));
    }
}

/// Text that Markdown shows as it is, in one line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '|' | '*' | '[' | ']' | '<' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}
