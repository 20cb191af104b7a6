//! The result of a check, for people.

use std::fmt::Write;
use std::time::Duration;

use weir_traffic::{Bucket, FrameCounters, Latency, Report, STREAMS, StreamReport, WINDOW};

use super::Findings;
use crate::style::{self, Paint};
use crate::units::{self, grouped};

/// Cells of the longest bar.
const WIDTH: u64 = 40;

pub(super) fn full(findings: &Findings, paint: Paint) -> String {
    let report = &findings.report;
    let mut text = String::from("\n");
    if !report.streams.is_empty() {
        text.push_str(&table(report, paint));
    }
    text.push_str(&frames(report));
    text.push_str(&missing(findings, paint));
    text.push_str(&doubts(report, paint));
    if let Some(latency) = &report.latency {
        text.push_str(&clocks(latency, paint));
        text.push_str(&histogram(&report.histogram));
    }
    text
}

/// Returns a line for each stream, and one for all.
fn table(report: &Report, paint: Paint) -> String {
    let row = |name: String, sequences: String, counters: &FrameCounters, latency: Option<Latency>| {
        let FrameCounters { intact, missing, duplicate, corrupt, reordered, .. } = *counters;
        let mut cells = vec![name, sequences];
        cells.extend([intact, missing, duplicate, corrupt, reordered].map(grouped));
        if let Some(Latency { frames, min_ns, p50_ns, p99_ns, max_ns, .. }) = latency {
            let shown = |time| if frames > 0 { brief(time) } else { "?".to_owned() };
            cells.extend([min_ns, p50_ns, p99_ns, max_ns].map(shown));
        }
        cells
    };
    let mut head = vec!["stream", "sequences", "intact", "missing", "duplicate", "corrupt", "reordered"];
    if report.latency.is_some() {
        head.extend(["min", "p50", "p99", "max"]);
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(report.streams.iter().map(|StreamReport { stream, lowest, highest, counters, latency }| {
        row(stream.to_string(), format!("{} to {}", grouped(*lowest), grouped(*highest)), counters, *latency)
    }));
    rows.push(row("total".to_owned(), String::new(), &report.counters, report.latency));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate();
        let line = cells.map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        let line: String = line.collect();
        let line = match number {
            0 => paint.dim(line),
            _ if number + 1 == rows.len() => paint.bold(line),
            _ => line,
        };
        let _infallible = writeln!(text, "{line}");
    }
    text
}

/// Returns where each frame ended.
fn frames(report: &Report) -> String {
    let Report { frames, other, beyond_streams, counters, .. } = report;
    let FrameCounters { intact, duplicate, corrupt, beyond_window, .. } = counters;
    let mut text = format!(
        "{} = {} intact + {} duplicate + {} corrupt + {} other",
        units::packets(*frames),
        grouped(*intact),
        grouped(*duplicate),
        grouped(*corrupt),
        grouped(*other)
    );
    for (frames, what) in [(beyond_window, "too late to be judged"), (beyond_streams, "in too many streams")]
    {
        if *frames > 0 {
            let _infallible = write!(text, " + {} {what}", grouped(*frames));
        }
    }
    text + "\n"
}

/// Returns how much is missing, beside what the capture itself lost.
fn missing(findings: &Findings, paint: Paint) -> String {
    let Report { expected, unexpected, counters, .. } = &findings.report;
    let mut text = match counters.missing {
        0 => paint.green("Nothing missing"),
        missing => paint.red(format_args!("{} missing", grouped(missing))),
    };
    if let Some(expected) = expected {
        let _infallible = write!(text, " of {} expected", grouped(*expected));
    }
    text.push_str(&match findings.lost_by_capture {
        None => "; the file does not say what its capture lost".to_owned(),
        Some(0) => "; the capture itself lost nothing".to_owned(),
        Some(lost) => paint.red(format_args!("; the capture itself lost {}", units::packets(lost))),
    });
    text.push('\n');
    if *unexpected > 0 {
        let _infallible =
            writeln!(text, "{}", paint.red(format_args!("{} more than expected", grouped(*unexpected))));
    }
    text
}

/// Returns lines on what limits the result.
fn doubts(report: &Report, paint: Paint) -> String {
    let counters = &report.counters;
    let mut text = String::new();
    let mut note = |said: String| {
        let _infallible = writeln!(text, "{}: {said}", paint.cyan("note"));
    };
    let late = report.streams.iter().filter(|stream| stream.lowest > 0);
    for StreamReport { stream, lowest, .. } in late {
        note(format!(
            "stream {stream}: the first {} frames never arrived; start the check before the traffic",
            grouped(*lowest)
        ));
    }
    if counters.reordered > 0 {
        note(format!(
            "reordered frames came at most {} behind the highest number",
            grouped(counters.furthest_behind)
        ));
    }
    if counters.beyond_window > 0 {
        note(format!(
            "frames more than {} numbers behind may be late or duplicates; they are among the missing",
            grouped(WINDOW)
        ));
    }
    if report.beyond_streams > 0 {
        note(format!("only {STREAMS} streams are told apart"));
    }
    if counters.unchecked > 0 {
        note(format!(
            "{} frames could be corrupt unnoticed: no checksum, cut off, a fragment, or left to a card by the sender",
            grouped(counters.unchecked)
        ));
    }
    text
}

/// Returns a line if clocks disagree.
fn clocks(latency: &Latency, paint: Paint) -> String {
    match latency.negative {
        0 => String::new(),
        negative => format!(
            "{}: {} frames arrived up to {} before they were sent: the clocks disagree; latency is without them\n",
            paint.yellow("warning"),
            grouped(negative),
            brief(latency.most_negative_ns.unsigned_abs())
        ),
    }
}

/// Returns a bar for each power of two, from the shortest to the longest time.
fn histogram(buckets: &[Bucket]) -> String {
    let power = |time: u64| time.checked_ilog2().unwrap_or(0);
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return String::new() };
    let bars: Vec<(u64, u64)> = (power(first.from_ns)..=power(last.from_ns))
        .map(|bar| {
            let within = buckets.iter().filter(|bucket| power(bucket.from_ns) == bar);
            (1 << bar, within.map(|bucket| bucket.frames).sum())
        })
        .collect();
    let most = bars.iter().map(|&(_, frames)| frames).max().unwrap_or(1);
    let full = if style::unicode() { "█" } else { "#" };
    let mut text = String::from("latency\n");
    for (from, frames) in bars {
        let cells = u128::from(frames) * u128::from(WIDTH) / u128::from(most);
        // A single frame is visible.
        let cells = usize::try_from(cells).unwrap_or(0).max(usize::from(frames > 0));
        let line = format!(
            "  {:>7} to {:>7}  {:>14}  {}",
            brief(from),
            brief(2 * from),
            grouped(frames),
            full.repeat(cells)
        );
        let _infallible = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn brief(nanoseconds: u64) -> String {
    units::brief(Duration::from_nanos(nanoseconds))
}
