//! Intervals and the account as plain values, for `--json`, `--csv` and the tables.
//!
//! Scripts rely on field names: they may be added to, not changed.

use serde::Serialize;
use weir::NicCounters;
use weir::statistics::{Counts, Reading, StatisticsInfo};
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::Told;

use crate::live::rate;

/// What was counted in an interval.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    /// Always `interval`.
    r#type: &'static str,
    /// Time since the start.
    pub(super) elapsed_seconds: f64,
    /// Length of this interval.
    pub(super) seconds: f64,
    /// All packets.
    pub(super) total: Growth,
    /// By filter.
    pub(super) filters: Vec<Growth>,
}

/// The packets of an interval that match a filter.
#[derive(Debug, Serialize)]
pub(super) struct Growth {
    #[serde(flatten)]
    pub(super) row: Row,
    pub(super) packets_per_second: f64,
    pub(super) bits_per_second: f64,
}

/// Packets that match a filter.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Name of the filter; null for all packets.
    pub(super) name: Option<String>,
    /// In both directions.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

/// The account of a whole run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Always `statistics`, which distinguishes it from the accounts of captures.
    r#type: &'static str,
    version: &'static str,
    interface: String,
    source: &'static str,
    detail: String,
    why: String,
    elapsed_seconds: f64,
    pub(super) total: Row,
    pub(super) filters: Vec<Counted>,
    /// Packets that may have lost a VLAN tag, because the driver did not report it.
    pub(super) untold_tags: u64,
    /// Received packets that the card or its driver has dropped, which nothing could count.
    nic: NicCounters,
    /// Reason for the end; null while it runs.
    stopped_by: Option<Stop>,
    /// The error; null if there is none.
    error: Option<String>,
    /// The restrictions of the process; null with `--no-confine`.
    pub(super) confinement: Option<Confinement>,
}

/// A filter with its packets.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    #[serde(flatten)]
    pub(super) row: Row,
    /// The expression.
    filter: String,
}

impl Row {
    fn new(name: Option<&str>, counts: Counts) -> Self {
        let total = counts.total();
        let name = name.map(str::to_owned);
        Self { name, packets: total.packets, bytes: total.bytes, counts }
    }

    /// Returns the name for people.
    pub(super) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or("(all)")
    }
}

impl Interval {
    /// Computes the growth from one reading to the next.
    pub(super) fn between(before: &Reading, now: &Reading) -> Self {
        let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
        let growth = |name: Option<&str>, counts: Counts| {
            let row = Row::new(name, counts);
            Growth {
                packets_per_second: rate(0, row.packets, seconds),
                bits_per_second: rate(0, row.bytes, seconds) * 8.0,
                row,
            }
        };
        let filters = now.filters.iter().enumerate().map(|(number, filter)| {
            let before = before.filters.get(number).map(|filter| filter.counts).unwrap_or_default();
            growth(Some(&filter.name), filter.counts - before)
        });
        Self {
            r#type: "interval",
            elapsed_seconds: now.elapsed.as_secs_f64(),
            seconds,
            total: growth(None, now.total - before.total),
            filters: filters.collect(),
        }
    }

    /// Returns the filters, followed by all packets.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Growth> {
        self.filters.iter().chain([&self.total])
    }
}

impl Summary {
    pub(super) fn new(info: &StatisticsInfo, reading: &Reading) -> Self {
        let counted = |((name, filter), counts): (&(String, String), Counts)| Counted {
            row: Row::new(Some(name), counts),
            filter: filter.clone(),
        };
        let counts = reading.filters.iter().map(|filter| filter.counts);
        Self {
            r#type: "statistics",
            version: env!("CARGO_PKG_VERSION"),
            interface: info.name.clone(),
            source: info.source.as_str(),
            detail: info.detail.clone(),
            why: info.why.clone(),
            elapsed_seconds: reading.elapsed.as_secs_f64(),
            total: Row::new(None, reading.total),
            filters: info.filters.iter().zip(counts).map(counted).collect(),
            untold_tags: reading.untold_tags,
            nic: reading.nic,
            stopped_by: None,
            error: None,
            confinement: None,
        }
    }

    /// Returns the filters, followed by all packets.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.filters.iter().map(|counted| &counted.row).chain([&self.total])
    }

    /// Returns the packets that the card or its driver had no room for.
    pub(super) fn nic_lost(&self) -> u64 {
        self.nic.missed + self.nic.fifo_errors
    }

    /// Adds the reason for the end.
    pub(super) fn close(&mut self, result: Result<Stop, &str>) {
        self.stopped_by = Some(result.unwrap_or(Stop::Error));
        self.error = result.err().map(str::to_owned);
    }
}

impl Told for Summary {
    fn interfaces(&self) -> Vec<String> {
        vec![self.interface.clone()]
    }

    fn filter(&self) -> Option<String> {
        None
    }

    fn file(&self) -> Option<String> {
        None
    }

    fn json(&self) -> serde_json::Result<Box<serde_json::value::RawValue>> {
        serde_json::value::to_raw_value(self)
    }
}
