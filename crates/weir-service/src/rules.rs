//! What rules have counted, as plain values, for `--json`, tables and metrics.
//!
//! Scripts rely on field names: they may be added to, not changed.

use serde::{Deserialize, Serialize};
use weir::guard::{Action, CaptureAction, Count, FateCounts, Reading, RuleCount, Unkept};

/// The rules of a capture's interface.
#[derive(Clone, Debug, Serialize)]
pub struct RulesSummary {
    /// Name of the interface.
    pub interface: String,
    /// What they have counted.
    #[serde(flatten)]
    pub counted: RulesCounted,
}

/// What was counted since the start. Each packet is in one row; all rows add up to `total`.
#[derive(Clone, Debug, Serialize)]
pub struct RulesCounted {
    /// Time since the start.
    pub elapsed_seconds: f64,
    /// By rule, in order.
    pub rules: Vec<RuleRow>,
    /// The packets of rules that are no longer there.
    pub replaced: Packets,
    /// The packets that exact rules have decided about which `weir ctl rules add` has added.
    pub exact: Packets,
    /// The packets that no rule matched.
    pub no_rule: Packets,
    /// All packets.
    pub total: Packets,
    /// Those that a capture was to take; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured: Option<u64>,
    /// The same by what happens to them.
    #[serde(skip)]
    pub fates: FateCounts,
    /// Packets for which something could not be remembered.
    pub unkept: Unkept,
}

/// What a rule has counted.
#[derive(Clone, Debug, Serialize)]
pub struct RuleRow {
    /// Its name.
    pub name: String,
    /// Its filter.
    pub filter: String,
    /// What a capture does: `capture`, `sample 1/100`, `first 20 of each flow`; absent if it takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<String>,
    /// `pass`, `block`, `bounce` or `reflect IF`; in a dry run, what would happen.
    pub fate: String,
    /// Whether the next rules are asked, too; its packets are not in `total` a second time.
    pub r#continue: bool,
    /// The limit beyond which that happens: `100/s by src`; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Its packets beyond that limit; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<Beyond>,
    /// What it does.
    #[serde(skip)]
    pub action: Action,
    /// Its packets.
    #[serde(flatten)]
    pub packets: Packets,
    /// Those that a capture was to take; absent if it takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured: Option<u64>,
    /// The packets that exact rules have decided about, which it has learned; absent if it does not learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned: Option<Packets>,
    /// What happens to those; absent if it does not learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learns: Option<String>,
}

/// Packets beyond a limit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Beyond {
    /// Their number.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Packets.
#[derive(Clone, Debug, Serialize)]
pub struct Packets {
    /// Their number.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the last one came, in seconds since the epoch; null: there was none.
    pub last: Option<String>,
}

impl Packets {
    /// Takes a count.
    pub fn of(count: Count) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let seconds = |time: u64| format!("{}.{:09}", time / SECOND, time % SECOND);
        Self { packets: count.packets, bytes: count.bytes, last: count.last.map(seconds) }
    }
}

impl RuleRow {
    /// Takes what was counted for a rule.
    pub fn of(RuleCount { name, filter, action, count, learned, captured, over, .. }: RuleCount) -> Self {
        let captures = action.capture != CaptureAction::Ignore;
        let learns = |learn: &weir::guard::Learn| match learn.capture {
            true => format!("capture, {}", learn.fate),
            false => learn.fate.to_string(),
        };
        Self {
            name,
            filter,
            capture: captures.then(|| action.capture.to_string()),
            fate: action.fate.to_string(),
            r#continue: action.continues,
            over: action.over.map(|limit| limit.to_string()),
            beyond: action.over.map(|_| Beyond { packets: over.packets, bytes: over.bytes }),
            packets: Packets::of(count),
            captured: captures.then_some(captured),
            learned: action.learn.is_some().then(|| Packets::of(learned)),
            learns: action.learn.as_ref().map(learns),
            action,
        }
    }
}

impl RulesCounted {
    /// Leaves out what a capture does, where there is none.
    #[must_use]
    pub fn without_capture(mut self) -> Self {
        self.captured = None;
        for row in &mut self.rules {
            (row.capture, row.captured) = (None, None);
            row.learns = row.action.learn.as_ref().map(|learn| learn.fate.to_string());
        }
        self
    }

    /// Takes what was counted.
    pub fn of(reading: Reading) -> Self {
        let (elapsed_seconds, total) = (reading.elapsed.as_secs_f64(), Packets::of(reading.total()));
        Self {
            elapsed_seconds,
            replaced: Packets::of(reading.replaced),
            exact: Packets::of(reading.exact),
            no_rule: Packets::of(reading.no_rule),
            total,
            captured: Some(reading.captured),
            fates: reading.fates,
            unkept: reading.unkept,
            rules: reading.rules.into_iter().map(RuleRow::of).collect(),
        }
    }
}
