//! The exact rules of a guard, as a table or as objects.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use weir::guard::{ExactEntry, ExactFlow};
use weir_render::json;
use weir_service::control::{ExactDone, ExactOrder};

use super::TargetArgs;
use crate::ctl::answers::refused;
use crate::failure::{Failure, printed};
use crate::{out, style, units};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Print one JSON object for each rule.
    #[arg(long)]
    json: bool,
}

/// A rule, as an object.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    /// Its packets, as `remove` takes them.
    packets_of: String,
    vlan: Option<u16>,
    protocol: u8,
    source: String,
    source_port: u16,
    destination: String,
    destination_port: u16,
    /// `pass`, `block`, `bounce` or `reflect IF`; in a dry run, what would happen.
    fate: String,
    /// The rule that has learned it; null: it was added.
    learned_by: Option<&'a str>,
    /// Null: they are counted for the rule that has learned it.
    packets: Option<u64>,
    bytes: Option<u64>,
    /// When the last packet came, in seconds since the epoch; null: there was none, or it was learned.
    last: Option<String>,
    /// Null: without end.
    seconds_left: Option<f64>,
    /// It ends when it has had no packet for so long; null: its packets make no difference.
    idle_seconds: Option<f64>,
}

/// Prints all exact rules in force.
pub(in crate::ctl) fn list(args: &ListArgs) -> Result<(), Failure> {
    let guard = args.target.find()?;
    let mut rows = Vec::new();
    let mut behind = None;
    loop {
        let ExactDone::Listed(rules) = guard.exact(ExactOrder::List { behind }).map_err(refused)? else {
            return Err(Failure::new("cannot list exact rules: unexpected answer"));
        };
        let Some(last) = rules.last() else { break };
        behind = Some(last.flow);
        if args.json {
            let mut lines = Vec::new();
            printed(rules.iter().try_for_each(|rule| json::line(&mut lines, &listed(rule))))?;
            out::print(&lines)?;
        } else {
            rows.extend(rules.iter().map(row));
        }
    }
    if args.json { Ok(()) } else { out::print(table(rows).as_bytes()) }
}

fn listed(rule: &ExactEntry) -> Listed<'_> {
    const SECOND: u64 = 1_000_000_000;
    let ExactFlow { from, to, protocol, vlan, .. } = rule.flow;
    Listed {
        packets_of: text(rule.flow),
        vlan,
        protocol,
        source: from.ip().to_string(),
        source_port: from.port(),
        destination: to.ip().to_string(),
        destination_port: to.port(),
        fate: rule.fate.to_string(),
        learned_by: rule.by.as_deref(),
        packets: rule.count.map(|count| count.packets),
        bytes: rule.count.map(|count| count.bytes),
        last: rule
            .count
            .and_then(|count| count.last)
            .map(|time| format!("{}.{:09}", time / SECOND, time % SECOND)),
        seconds_left: rule.left.map(|left| left.as_secs_f64()),
        idle_seconds: rule.idle.map(|idle| idle.as_secs_f64()),
    }
}

fn text(ExactFlow { from, to, protocol, vlan, .. }: ExactFlow) -> String {
    weir_rules::ExactFlow { vlan, protocol, from, to }.to_string()
}

const COLUMNS: usize = 7;

fn row(rule: &ExactEntry) -> [String; COLUMNS] {
    let count = |number: fn(u64) -> String, of: Option<u64>| of.map_or_else(|| "-".to_owned(), number);
    let last = rule.count.and_then(|count| count.last).map(units::local_time).unwrap_or_default();
    [
        text(rule.flow),
        rule.fate.to_string(),
        rule.by.as_deref().map_or_else(|| "added".to_owned(), |by| format!("learned by {by}")),
        count(units::grouped, rule.count.map(|count| count.packets)),
        count(units::bytes, rule.count.map(|count| count.bytes)),
        last.split('.').next().unwrap_or_default().to_owned(),
        left(rule),
    ]
}

/// Says how long a rule stays in force: `9 min 58 s`, `9 min 58 s of 10 min 00 s idle`.
fn left(rule: &ExactEntry) -> String {
    let Some(left) = rule.left.map(units::elapsed) else { return "no end".to_owned() };
    match rule.idle.map(units::elapsed) {
        Some(idle) => format!("{left} of {idle} idle"),
        None => left,
    }
}

fn table(mut rows: Vec<[String; COLUMNS]>) -> String {
    rows.insert(0, ["packets of", "fate", "rule", "packets", "bytes", "last", "left"].map(str::to_owned));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, [packets_of, fate, by, packets, bytes, last, left]) in rows.iter().enumerate() {
        let [of, is, who, many, size, when, _] = widths;
        let line = format!(
            "{packets_of:<of$}  {fate:<is$}  {by:<who$}  {packets:>many$}  {bytes:>size$}  {last:<when$}  {left}"
        );
        let line = if number == 0 { style::stdout().dim(line) } else { style::visible(&line) };
        let _infallible = writeln!(text, "{line}");
    }
    text
}
