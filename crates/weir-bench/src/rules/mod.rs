//! `weir-bench rules`, `rules-exact`, `rules-changes`: what rules cost, beside a bare XDP program and nftables, and what their changes do.
//!
//! ```text
//!  processor 1
//!  generator -> veth -> NAPI -> weir guard, by XDP -> network stack
//!                            -> nftables, ingress  -> network stack
//! ```
//!
//! Each of many rules is about a network and a range of ports of the sender, or about one flow; all but the last are about
//! others than those that send. Each contestant counts by rule. What is dropped may not reach the stack, and everything that
//! passes has to.

mod added;
mod changes;
mod nft;
mod set;

use std::path::Path;

use serde::Deserialize;
use weir_lab::Action;

pub(super) use self::added::{AddedArgs, run as run_added};
pub(super) use self::changes::make as make_changes;
pub(super) use self::nft::{NftArgs, run as run_nft};
use self::set::{Ends, RuleTexts};
use crate::contestants::{Contestant, ContestantKind};
use crate::experiment::{About, Contest, Experiment, Judged, Outcome, Settings, TIME};
use crate::failure::{Failure, failed};
use crate::files::SIZE;
use crate::program::{Counts, OWN, Program, WEIR};
use crate::tidy;
use crate::wanted::Wanted;

const LIMIT: &str = "XDP drop: the limit";
const STACK: &str = "stack alone";
const GUARD: [&str; 4] = [
    "weir guard, 1 rule, blocks",
    "weir guard, 100 rules, blocks",
    "weir guard, 1,000 rules, blocks",
    "weir guard, 10,000 rules, blocks",
];
const GUARD_PASSES: &str = "weir guard, 100 rules, passes";
const NFT_SET: &str = "nft, set of 1,000 ranges, drops";
const NFT_LIST: &str = "nft, list of 1,000 rules, drops";
const NFT_PASSES: &str = "nft, set of 100 ranges, passes";

const EXACT: [&str; 3] = [
    "weir guard, 100 rules, blocks",
    "weir guard, 10,000 rules, blocks",
    "weir guard, 10,000 exact rules, blocks",
];
const NFT_EXACT: &str = "nft, set of 10,000 flows, drops";

/// Flows that send in `rules-exact`.
const FLOWS: u32 = 10_000;
const FLOWS_TEXT: &str = "10000";

/// Rules of networks and ranges of ports, and frames of one flow.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("rules")?;
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let guard = |title, rules: usize, ends| guard(title, dir.path(), &RuleTexts::ranges(rules, ends), ends);
    let nft = |title, rules: usize, ends, text| {
        by_nft(title, dir.path(), &RuleTexts::ranges(rules, ends), ends, text)
    };
    let contestants = vec![
        limit(),
        guard(GUARD[0], 1, Ends::Blocked)?,
        guard(GUARD[1], 100, Ends::Blocked)?,
        guard(GUARD[2], 1000, Ends::Blocked)?,
        guard(GUARD[3], 10_000, Ends::Blocked)?,
        nft(NFT_SET, 1000, Ends::Blocked, RuleTexts::nft_set)?,
        nft(NFT_LIST, 1000, Ends::Blocked, RuleTexts::nft_list)?,
        Contestant { name: STACK, title: STACK, kind: ContestantKind::Stack, stack: true },
        guard(GUARD_PASSES, 100, Ends::Passes)?,
        nft(NFT_PASSES, 100, Ends::Passes, RuleTexts::nft_set)?,
    ];
    let about = About {
        name: "rules".to_owned(),
        title: "Rules of networks and ranges of ports".to_owned(),
        method: "Each rule is about a network and a range of ports of the sender; the frames, of one flow, meet the last one, or none. \
                 Every contestant counts packets and bytes by rule."
            .to_owned(),
        versus: vec![[GUARD[2], NFT_SET].map(str::to_owned), [GUARD_PASSES, NFT_PASSES].map(str::to_owned)],
        ..About::default()
    };
    Ok(Box::new(Contest::new(settings, about, contestants, &[60], dir, judge)?))
}

/// Rules that each are about a flow, and frames of 10,000 flows.
pub(super) fn make_exact(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("rules-exact")?;
    let dir = tidy::folder().map_err(failed("create a folder"))?;
    let all = RuleTexts::flows(FLOWS as usize);
    let contestants = vec![
        limit(),
        guard(EXACT[0], dir.path(), &RuleTexts::ranges(100, Ends::Blocked), Ends::Blocked)?,
        guard(EXACT[1], dir.path(), &all, Ends::Blocked)?,
        added(EXACT[2]),
        by_nft(NFT_EXACT, dir.path(), &all, Ends::Blocked, RuleTexts::nft_timeouts)?,
    ];
    let about = About {
        name: "rules-exact".to_owned(),
        title: "Rules of single flows".to_owned(),
        method: "As many rules as flows, each about both addresses and ports of one; frames come from all flows in random order. \
                 weir has them in its file, or as exact rules that were added. Beside them, 100 rules of which the last is about all flows."
            .to_owned(),
        versus: vec![[EXACT[2], NFT_EXACT].map(str::to_owned)],
        ..About::default()
    };
    Ok(Box::new(Contest::new(settings, about, contestants, &[60], dir, judge_exact)?.flows(FLOWS)))
}

fn limit() -> Contestant {
    Contestant { name: LIMIT, title: LIMIT, kind: ContestantKind::Hook(Action::Drop), stack: false }
}

/// `weir guard`, as a user types it.
fn guard(title: &'static str, dir: &Path, rules: &RuleTexts, ends: Ends) -> Result<Contestant, Failure> {
    let file = write(dir, title, &rules.weir())?;
    let words =
        vec!["guard", "--json", "--source", "xdp", "--direction", "in", "-i", "{interface}", "--rules", file];
    let program =
        Program::new([WEIR, ""], "source ", 50, words, |stdout, _| Summary::read(stdout)?.counted());
    Ok(Contestant::program(title, title, ends == Ends::Passes, program))
}

/// A guard with exact rules, which a process of this program adds.
fn added(title: &'static str) -> Contestant {
    let words = vec!["added", "-i", "{interface}", "--flows", FLOWS_TEXT];
    let parse = |stdout: &str, _: &str| stdout.trim().parse().ok().map(Counts::of);
    Contestant::program(title, title, false, Program::new([OWN, ""], "ready", 50, words, parse))
}

/// nft, whose rules a process of this program makes and takes away.
fn by_nft(
    title: &'static str,
    dir: &Path,
    rules: &RuleTexts,
    ends: Ends,
    text: fn(&RuleTexts) -> String,
) -> Result<Contestant, Failure> {
    let file = write(dir, title, &text(rules))?;
    let words = vec!["nft", "-i", "{interface}", "--rules", file];
    let parse = |stdout: &str, _: &str| stdout.trim().parse().ok().map(Counts::of);
    let program = Program::new([OWN, ""], "ready", 50, words, parse);
    Ok(Contestant::program(title, title, ends == Ends::Passes, program))
}

/// Writes a file for as long as the folder exists. Arguments of programs live as long as this process.
fn write(dir: &Path, title: &str, text: &str) -> Result<&'static str, Failure> {
    let file = dir.join(title.replace([' ', ','], "-"));
    std::fs::write(&file, text).map_err(failed(format_args!("write {}", file.display())))?;
    Ok(file.to_string_lossy().into_owned().leak())
}

/// The last line of `weir guard --json`.
#[derive(Debug, Deserialize)]
struct Summary {
    total: Row,
    rules: Vec<Row>,
    no_rule: Row,
}

#[derive(Debug, Deserialize)]
struct Row {
    packets: u64,
    bytes: u64,
}

impl Summary {
    fn read(stdout: &str) -> Option<Self> {
        serde_json::from_str(stdout.lines().last()?).ok()
    }

    /// What it has counted; none if its rows do not add up, or frames have other lengths.
    fn counted(&self) -> Option<Counts> {
        let rows = self.rules.iter().chain([&self.no_rule]);
        let (packets, bytes) =
            rows.fold((0, 0), |(packets, bytes), row| (packets + row.packets, bytes + row.bytes));
        let adds_up = (packets, bytes) == (self.total.packets, self.total.bytes);
        (adds_up && bytes == packets * u64::from(SIZE)).then(|| Counts::of(packets))
    }
}

/// A ratio of rates within a round.
fn rate(outcome: &Outcome, ours: &str, theirs: &str, least: f64) -> Judged {
    let name = format!("{ours} / {theirs}, {SIZE} B");
    Judged::new(
        &name,
        Wanted::AtLeast(least),
        "times",
        outcome.ratios([ours, theirs], "rate", Some(f64::from(SIZE))),
    )
}

fn judge(outcome: &Outcome) -> Vec<Judged> {
    let added = outcome.shares([GUARD_PASSES, STACK], [NFT_PASSES, STACK], TIME, Some(f64::from(SIZE)));
    let name =
        format!("processor time added to a packet that passes: {GUARD_PASSES} / {NFT_PASSES}, {SIZE} B");
    vec![
        rate(outcome, GUARD[1], LIMIT, 0.8),
        rate(outcome, GUARD[2], GUARD[0], 0.7),
        rate(outcome, GUARD[3], GUARD[1], 0.5),
        rate(outcome, GUARD[2], NFT_SET, 2.0),
        rate(outcome, GUARD[2], NFT_LIST, 20.0),
        Judged::new(&name, Wanted::AtMost(0.5), "times", added),
    ]
}

fn judge_exact(outcome: &Outcome) -> Vec<Judged> {
    let of = |ours| [rate(outcome, ours, NFT_EXACT, 2.0), rate(outcome, ours, EXACT[0], 0.6)];
    [EXACT[2], EXACT[1]].into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_add_up_are_no_count() {
        let counted = |total: u64, bytes: u64| {
            let text = format!(
                r#"{{"total":{{"packets":{total},"bytes":{bytes}}},"rules":[{{"packets":3,"bytes":180}}],"no_rule":{{"packets":4,"bytes":240}}}}"#
            );
            Summary::read(&text).expect("JSON").counted()
        };
        assert_eq!(counted(7, 420), Some(Counts::of(7)));
        assert_eq!(counted(8, 420), None);
        assert_eq!(counted(7, 421), None);
    }
}
