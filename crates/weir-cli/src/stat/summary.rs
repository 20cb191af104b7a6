//! Intervals and the account as plain values, for `--json`, `--csv` and the tables.
//!
//! Scripts rely on field names: they may be added to, not changed.

use serde::Serialize;
use weir::NicCounters;
use weir::statistics::{KeyField, Reading, StatisticsInfo};
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::Account;
use weir_service::metrics::Measured;

use super::rows::{Growth, Line, Row, Rows, SUM, View};

/// A reading of one interface.
#[derive(Clone, Debug)]
pub(super) struct InterfaceReading {
    pub(super) name: String,
    /// The interface is gone, and its last rows were shown.
    pub(super) is_over: bool,
    pub(super) reading: Reading,
}

/// What was counted in an interval.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    /// Always `interval`.
    r#type: &'static str,
    /// Time since the start.
    pub(super) elapsed_seconds: f64,
    /// Length of this interval.
    pub(super) seconds: f64,
    /// On all interfaces.
    #[serde(flatten)]
    pub(super) rows: Rows<Growth>,
    /// On each interface that is there, if there were several at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    interfaces: Option<Vec<OfInterface>>,
}

/// What was counted on an interface in an interval.
#[derive(Debug, Serialize)]
struct OfInterface {
    interface: String,
    #[serde(flatten)]
    rows: Rows<Growth>,
}

/// The account of a whole run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Always `statistics`, which distinguishes it from the accounts of captures.
    r#type: &'static str,
    version: &'static str,
    /// Of all interfaces.
    #[serde(flatten)]
    whole: InterfaceSummary,
    /// Of each interface, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<InterfaceSummary>,
    /// Reason for the end; null while it runs, and at the end of files.
    stopped_by: Option<Stop>,
    /// The error; null if there is none.
    error: Option<String>,
    /// The restrictions of the process; null with `--no-confine`.
    pub(super) confinement: Option<Confinement>,
    /// The fields of keys, for the table.
    #[serde(skip)]
    pub(super) fields: Vec<KeyField>,
}

/// The account of one interface, or of several together.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InterfaceSummary {
    /// Absent for several.
    #[serde(flatten)]
    origin: Option<Origin>,
    pub(super) elapsed_seconds: f64,
    #[serde(flatten)]
    pub(super) rows: Rows<Row>,
    /// Packets that may have lost a VLAN tag, because the driver did not report it.
    pub(super) tag_unknown: u64,
    /// Received packets that the card or its driver has dropped, which nothing could count.
    nic: NicCounters,
}

/// What an interface has counted, or what a file has of it.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) origin: Origin,
    /// The names of the filters, with the filters as shown to people.
    pub(super) filters: Vec<(String, String)>,
    pub(super) reading: Reading,
}

/// Where packets were counted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Origin {
    pub(super) interface: String,
    source: &'static str,
    detail: String,
    why: String,
    /// The interface is gone.
    gone: bool,
}

impl Interval {
    /// Computes the growth from one reading of each interface to the next.
    pub(super) fn between(before: &[InterfaceReading], now: &[InterfaceReading], view: &View) -> Self {
        let sum = |readings: &[InterfaceReading]| -> Reading {
            readings.iter().map(|interface| &interface.reading).sum()
        };
        let (all_before, all) = (sum(before), sum(now));
        let several = now.len() > 1;
        let nothing = Reading::default();
        let of = |(number, interface): (usize, &InterfaceReading)| {
            let before = before.get(number).map_or(&nothing, |interface| &interface.reading);
            let rows = Rows::grown(before, &interface.reading, view, view.apart);
            OfInterface { interface: interface.name.clone(), rows }
        };
        let there = || now.iter().enumerate().filter(|(_, interface)| !interface.is_over).map(of).collect();
        Self {
            r#type: "interval",
            elapsed_seconds: all.elapsed.as_secs_f64(),
            seconds: all.elapsed.saturating_sub(all_before.elapsed).as_secs_f64(),
            rows: Rows::grown(&all_before, &all, view, !(several && view.apart)),
            interfaces: several.then(there),
        }
    }

    /// Returns the rows of each interface and of all, all packets last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_, Growth>> {
        let each = self.interfaces.iter().flatten();
        let each = each.flat_map(|one| one.rows.lines(Some(&one.interface)));
        each.chain(self.rows.lines(self.is_of_several().then_some(SUM)))
    }

    /// Returns whether rows have interfaces.
    pub(super) fn is_of_several(&self) -> bool {
        self.interfaces.is_some()
    }
}

impl Origin {
    /// An interface, which may be gone.
    pub(super) fn live(info: &StatisticsInfo, gone: bool) -> Self {
        Self {
            interface: info.name.clone(),
            source: info.source.as_str(),
            detail: info.detail.clone(),
            why: info.why.clone(),
            gone,
        }
    }

    /// An interface in files.
    pub(super) fn file(interface: String, files: String) -> Self {
        Self { interface, source: "file", detail: files, why: "as requested".to_owned(), gone: false }
    }
}

impl InterfaceSummary {
    fn new(origin: Option<Origin>, reading: &Reading, rows: Rows<Row>) -> Self {
        Self {
            origin,
            elapsed_seconds: reading.elapsed.as_secs_f64(),
            rows,
            tag_unknown: reading.tag_unknown,
            nic: reading.nic,
        }
    }

    /// Returns the packets that the card or its driver had no room for.
    pub(super) fn nic_lost(&self) -> u64 {
        self.nic.missed + self.nic.fifo_errors
    }

    /// Returns the interface; `None`: it is of several.
    pub(super) fn interface(&self) -> Option<&str> {
        self.origin().map(|origin| origin.interface.as_str())
    }

    /// Returns where packets were counted; `None`: it is of several.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }
}

impl Summary {
    /// Makes an account of what each interface has counted.
    pub(super) fn new(counted: &[Counted], view: &View) -> Self {
        let account = |one: &Counted, details| {
            let rows = Rows::whole(&one.reading, &one.filters, view, details);
            InterfaceSummary::new(Some(one.origin.clone()), &one.reading, rows)
        };
        let (whole, interfaces) = match counted {
            [one] => (account(one, true), Vec::new()),
            several => {
                let sum: Reading = several.iter().map(|one| &one.reading).sum();
                let filters = several.first().map_or(&[][..], |one| &one.filters);
                let rows = Rows::whole(&sum, filters, view, !view.apart);
                let each = several.iter().map(|one| account(one, view.apart)).collect();
                (InterfaceSummary::new(None, &sum, rows), each)
            }
        };
        Self {
            r#type: "statistics",
            version: env!("CARGO_PKG_VERSION"),
            whole,
            interfaces,
            stopped_by: None,
            error: None,
            confinement: None,
            fields: view.fields.clone(),
        }
    }

    /// Returns the rows of each interface and of all, all packets last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_, Row>> {
        let each = self.interfaces.iter().flat_map(|one| one.rows.lines(one.interface()));
        each.chain(self.whole.rows.lines((!self.interfaces.is_empty()).then_some(SUM)))
    }

    /// Returns the account of all interfaces.
    pub(super) fn whole(&self) -> &InterfaceSummary {
        &self.whole
    }

    /// Returns the names of the interfaces for whose accounts `holds`.
    pub(super) fn names(&self, holds: impl Fn(&InterfaceSummary) -> bool) -> impl Iterator<Item = &str> {
        self.each()
            .iter()
            .filter(move |one| holds(one))
            .filter_map(|one| Some(&*one.origin.as_ref()?.interface))
    }

    /// Returns the account of each interface.
    pub(super) fn each(&self) -> &[InterfaceSummary] {
        if self.interfaces.is_empty() { std::slice::from_ref(&self.whole) } else { &self.interfaces }
    }

    /// Adds why counting a file ended before the file did.
    pub(super) fn ended_by(&mut self, stop: Option<Stop>) {
        self.stopped_by = stop;
    }

    /// Adds the reason for the end.
    pub(super) fn close(&mut self, result: Result<Stop, &str>) {
        self.stopped_by = Some(result.unwrap_or(Stop::Error));
        self.error = result.err().map(str::to_owned);
    }
}

impl Account for Summary {
    fn interfaces(&self) -> Vec<String> {
        self.each().iter().filter_map(InterfaceSummary::interface).map(str::to_owned).collect()
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

    fn into_metrics(self) -> Option<Box<dyn Measured>> {
        Some(Box::new(self))
    }
}
