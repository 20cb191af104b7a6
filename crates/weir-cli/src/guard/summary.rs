//! What rules have counted, as plain values, for `--json` and the table.
//!
//! Scripts rely on field names: they may be added to, not changed.

use serde::Serialize;
use serde_json::value::RawValue;
use weir::guard::{Action, Count, FateCounts, GuardInfo, Reading, RuleCount, Unkept};
use weir_service::Stop;
use weir_service::control::Account;
use weir_service::metrics::Measured;

/// What was counted so far, at the end of an interval.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    /// Always `interval`.
    r#type: &'static str,
    #[serde(flatten)]
    counted: Counted,
}

/// The account.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Always `guard`.
    r#type: &'static str,
    version: &'static str,
    pub(super) interface: String,
    /// The source that decides about received packets; null: they do not meet the rules.
    received: Option<&'static str>,
    /// Whether sent packets meet the rules.
    sent: bool,
    detail: String,
    why: String,
    /// Every packet passed.
    pub(super) dry_run: bool,
    /// The interface is gone.
    gone: bool,
    /// The guard has ended, and its rules are still in force.
    pub(super) stays_in_force: bool,
    /// Within how many seconds the rules have to be confirmed; null: they need not be.
    pub(super) confirm_within: Option<f64>,
    #[serde(flatten)]
    pub(super) counted: Counted,
    /// Reason for the end; null while it runs.
    stopped_by: Option<Stop>,
    /// The error; null if there is none.
    error: Option<String>,
}

/// What was counted since the start. Each packet is in one row; all rows add up to `total`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    pub(super) elapsed_seconds: f64,
    pub(super) rules: Vec<Row>,
    /// The packets of rules that are no longer there.
    pub(super) replaced: Packets,
    /// The packets that exact rules have decided about which `weir ctl rules add` has added.
    pub(super) exact: Packets,
    /// The packets that no rule matched.
    pub(super) no_rule: Packets,
    pub(super) total: Packets,
    #[serde(skip)]
    pub(super) fates: FateCounts,
    /// Packets for which something could not be remembered.
    pub(super) unkept: Unkept,
    /// Packets in the log.
    pub(super) logged: u64,
    /// Packets that are missing in the log: there was no room, or the file has failed.
    pub(super) log_lost: u64,
}

/// What became of the packets to log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogCount {
    /// Those that are in the file, or will be.
    pub(super) logged: u64,
    /// Those that are not: the kernel's ring had no room, or the file has failed.
    pub(super) lost: u64,
}

/// What a rule has counted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    filter: String,
    /// `pass`, `block`, `bounce` or `reflect IF`; in a dry run, what would happen.
    pub(super) fate: String,
    /// Whether the next rules are asked, too; its packets are not in `total` a second time.
    r#continue: bool,
    /// The limit beyond which that happens: `100/s by src`; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<String>,
    #[serde(skip)]
    pub(super) action: Action,
    #[serde(flatten)]
    pub(super) packets: Packets,
    /// The packets that exact rules have decided about, which it has learned; absent if it does not learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) learned: Option<Packets>,
    /// What happens to those; absent if it does not learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) learns: Option<String>,
}

#[cfg(test)]
impl Row {
    /// A rule with so many packets of 60 bytes, and as many that it has learned to decide about.
    pub(super) fn counted(name: &str, action: &Action, packets: u64) -> Self {
        let packets = Packets { packets, bytes: 60 * packets, last: None };
        Self {
            name: name.to_owned(),
            filter: String::new(),
            fate: action.fate.to_string(),
            r#continue: action.continues,
            over: action.over.map(|limit| limit.to_string()),
            action: action.clone(),
            learned: action.learn.is_some().then(|| packets.clone()),
            learns: action.learn.as_ref().map(|learn| learn.fate.to_string()),
            packets,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Packets {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// When the last one came, in seconds since the epoch; null: there was none.
    pub(super) last: Option<String>,
}

impl Packets {
    fn of(count: Count) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let seconds = |time: u64| format!("{}.{:09}", time / SECOND, time % SECOND);
        Self { packets: count.packets, bytes: count.bytes, last: count.last.map(seconds) }
    }
}

impl Counted {
    /// `log`: none, if nothing is logged.
    fn of(reading: Reading, log: LogCount) -> Self {
        let (elapsed_seconds, total) = (reading.elapsed.as_secs_f64(), Packets::of(reading.total()));
        let row = |rule: RuleCount| Row {
            name: rule.name,
            filter: rule.filter,
            fate: rule.action.fate.to_string(),
            r#continue: rule.action.continues,
            over: rule.action.over.map(|limit| limit.to_string()),
            packets: Packets::of(rule.count),
            learned: rule.action.learn.is_some().then(|| Packets::of(rule.learned)),
            learns: rule.action.learn.as_ref().map(|learn| learn.fate.to_string()),
            action: rule.action,
        };
        Self {
            elapsed_seconds,
            replaced: Packets::of(reading.replaced),
            exact: Packets::of(reading.exact),
            no_rule: Packets::of(reading.no_rule),
            total,
            fates: reading.fates,
            unkept: reading.unkept,
            logged: log.logged,
            log_lost: log.lost,
            rules: reading.rules.into_iter().map(row).collect(),
        }
    }
}

impl Interval {
    pub(super) fn new(reading: Reading, log: LogCount) -> Self {
        Self { r#type: "interval", counted: Counted::of(reading, log) }
    }

    pub(super) fn counted(&self) -> &Counted {
        &self.counted
    }
}

impl Summary {
    pub(super) fn new(info: &GuardInfo, gone: bool, reading: Reading, log: LogCount) -> Self {
        Self {
            r#type: "guard",
            version: env!("CARGO_PKG_VERSION"),
            interface: info.name.clone(),
            received: info.received.map(|source| source.as_str()),
            sent: info.sent,
            detail: info.detail.clone(),
            why: info.why.clone(),
            dry_run: info.dry_run,
            gone,
            stays_in_force: false,
            confirm_within: None,
            counted: Counted::of(reading, log),
            stopped_by: None,
            error: None,
        }
    }

    /// Notes how it ended.
    pub(super) fn close(&mut self, end: Result<Stop, &str>) {
        self.stopped_by = Some(end.unwrap_or(Stop::Error));
        self.error = end.err().map(str::to_owned);
    }
}

impl Account for Summary {
    fn interfaces(&self) -> Vec<String> {
        vec![self.interface.clone()]
    }

    fn filter(&self) -> Option<String> {
        None
    }

    fn file(&self) -> Option<String> {
        None
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(self)
    }

    fn into_metrics(self) -> Option<Box<dyn Measured>> {
        Some(Box::new(self))
    }
}
