//! `weir-bench stat`: how fast packets are counted by filter, side by side with an XDP program that only drops, and with
//! libpcap.
//!
//! ```text
//!  processor 1                                    | processor 0
//!  generator -> veth -> NAPI -> program of weir  -|-> weir stat reads counters once a second
//!                            -> packet socket    -|-> a C program counts in user space
//! ```
//!
//! The frames match some filters and not the others. weir's counts have to say so, and be those of all frames sent.

use std::path::Path;

use serde::Deserialize;
use weir_lab::Action;

use crate::contestants::{Contestant, ContestantKind};
use crate::experiment::{About, Contest, Experiment, Judged, Outcome, Settings, TIME};
use crate::failure::{Failure, failed};
use crate::files::SIZE;
use crate::libpcap::counter;
use crate::program::{Counts, Program, WEIR};
use crate::tidy;
use crate::wanted::Wanted;

/// The name of a filter says what it matches of the frames: all of them, or none.
const FILTERS: [&str; 10] = [
    "all of the service: udp dst port 9",
    "all udp: udp",
    "none of dns: port 53",
    "none of the web: tcp port 443",
    "all of the net: dst net 198.19.0.0/16",
    "all to the host: host 198.19.0.1",
    "all small: less 100",
    "none of arp: arp",
    "none of ip6: ip6",
    "none of ping: icmp",
];
/// The first of them, as libpcap gets it.
const FIRST: &str = "udp dst port 9";

const LIMIT: &str = "XDP drop: the limit";
const EXCLUSIVE: [&str; 3] =
    ["weir, exclusive, no filter", "weir, exclusive, 1 filter", "weir, exclusive, 10 filters"];
const STACK: &str = "stack alone";
const PASS: &str = "XDP pass: the limit with a stack";
const XDP: [&str; 2] = ["weir, xdp, 1 filter", "weir, xdp, 10 filters"];
const TC: [&str; 2] = ["weir, tc, 1 filter", "weir, tc, 10 filters"];
const LIBPCAP: &str = "libpcap, 1 filter";

/// All of them, in the order of their turns. `counting`: the C program.
fn contestants(counting: &Path) -> Vec<Contestant> {
    let other = |title, kind, stack| Contestant { name: title, title, kind, stack };
    let ours = |title, how: &[&'static str], filters: usize| {
        other(
            title,
            ContestantKind::Program(counting_by(how, &FILTERS[..filters])),
            !how.contains(&"exclusive"),
        )
    };
    let exclusive: &[&str] = &["--source", "xdp", "--mode", "exclusive"];
    let (xdp, tc): (&[&str], &[&str]) = (&["--source", "xdp"], &["--source", "tc"]);
    let mut libpcap = counter::counting(counting.to_owned(), "loop");
    libpcap.arguments.push(FIRST);
    vec![
        other(LIMIT, ContestantKind::Hook(Action::Drop), false),
        ours(EXCLUSIVE[0], exclusive, 0),
        ours(EXCLUSIVE[1], exclusive, 1),
        ours(EXCLUSIVE[2], exclusive, 10),
        other(STACK, ContestantKind::Stack, true),
        other(PASS, ContestantKind::Hook(Action::Pass), true),
        ours(XDP[0], xdp, 1),
        ours(XDP[1], xdp, 10),
        ours(TC[0], tc, 1),
        ours(TC[1], tc, 10),
        other(LIBPCAP, ContestantKind::Program(libpcap), true),
    ]
}

/// What a user types to count by these filters.
pub(super) fn counting_by(how: &[&'static str], filters: &[&'static str]) -> Program {
    let words = [&["stat", "--json", "-i", "{interface}"], how, filters].concat();
    Program::new([WEIR, ""], "source ", 50, words, |stdout, _| StatSummary::read(stdout)?.counted())
}

/// The last line of `weir stat --json`.
#[derive(Debug, Deserialize)]
struct StatSummary {
    total: Row,
    filters: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    name: Option<String>,
    packets: u64,
    bytes: u64,
}

impl StatSummary {
    fn read(stdout: &str) -> Option<Self> {
        serde_json::from_str(stdout.lines().last()?).ok()
    }

    /// What it has counted; none if a filter has counted what it does not match, or missed what it does.
    fn counted(&self) -> Option<Counts> {
        let Row { packets, bytes, .. } = self.total;
        let right = |row: &Row| {
            let name = row.name.as_deref().unwrap_or_default();
            let due = if name.starts_with("all") { (packets, bytes) } else { (0, 0) };
            (row.packets, row.bytes) == due
        };
        let whole = bytes == packets * u64::from(SIZE);
        (whole && self.filters.iter().all(right)).then(|| Counts::of(packets))
    }
}

/// Compiles the C program and makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let contestants = contestants(&counter::compile(dir.path())?);
    let about = About {
        name: "stat".to_owned(),
        title: "Counting by filter".to_owned(),
        method: "The frames match some filters and not the others; counts have to say so, and be those of all frames sent. \
                 libpcap's program counts in user space what its filter leaves."
            .to_owned(),
        versus: [XDP[0], TC[0]].map(|ours| [ours, LIBPCAP].map(str::to_owned)).to_vec(),
        ..About::default()
    };
    Ok(Box::new(Contest::new(settings, about, contestants, &[60], dir, bars)?))
}

/// Each is a median of ratios within a round.
fn bars(outcome: &Outcome) -> Vec<Judged> {
    let at = Some(f64::from(SIZE));
    let rate = |ours: &str, theirs: &str, least| {
        let name = format!("{ours} / {theirs}, {SIZE} B");
        let ratios = outcome.ratios([ours, theirs], "rate", at);
        Judged::new(&name, Wanted::AtLeast(least), "times", ratios)
    };
    let cost = |ours: &str| {
        let name = format!("CPU time beyond the stack's: {ours} / {LIBPCAP}, {SIZE} B");
        let shares = outcome.shares([ours, STACK], [LIBPCAP, STACK], TIME, at);
        Judged::new(&name, Wanted::AtMost(0.1), "times", shares)
    };
    vec![
        rate(EXCLUSIVE[1], LIMIT, 0.8),
        rate(EXCLUSIVE[2], LIMIT, 0.6),
        rate(EXCLUSIVE[1], LIBPCAP, 4.0),
        rate(XDP[0], LIBPCAP, 4.0),
        rate(TC[0], LIBPCAP, 4.0),
        cost(XDP[0]),
        cost(TC[0]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_has_counted_wrongly_is_no_count() {
        let counted = |filter: &str| {
            let line = format!(r#"{{"total":{{"name":null,"packets":7,"bytes":420}},"filters":[{filter}]}}"#);
            (counting_by(&[], &[]).parse)(&format!("{{\"type\":\"interval\"}}\n{line}\n"), "")
        };
        let all = r#"{"name":"all udp","packets":7,"bytes":420}"#;
        let none = r#"{"name":"none of dns","packets":0,"bytes":0}"#;
        assert_eq!(counted(&format!("{all},{none}")), Some(Counts::of(7)));
        for wrong in [all.replace('7', "6"), all.replace("420", "421"), none.replace(":0,", ":1,")] {
            assert_eq!(counted(&wrong), None, "{wrong}");
        }
    }
}
