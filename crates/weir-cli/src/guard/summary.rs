//! What rules have counted, as plain values, for `--json` and the table.
//!
//! Scripts rely on field names: they may be added to, not changed.

use serde::Serialize;
use serde_json::value::RawValue;
use weir::guard::{GuardInfo, Reading};
use weir_service::Stop;
use weir_service::control::Account;
use weir_service::metrics::Measured;
use weir_service::rules::RulesCounted;

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

/// What was counted since the start.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    #[serde(flatten)]
    pub(super) rules: RulesCounted,
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

impl Counted {
    /// `log`: none, if nothing is logged.
    fn of(reading: Reading, log: LogCount) -> Self {
        Self { rules: RulesCounted::of(reading).without_capture(), logged: log.logged, log_lost: log.lost }
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
