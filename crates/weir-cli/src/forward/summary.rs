//! The account as plain values, for `--json` and the tables.
//!
//! Scripts rely on field names: they may be added to, not changed.

use std::path::Path;

use serde::Serialize;
use weir::NicCounters;
use weir::forward::{DirectionInfo, ForwardCounters, ForwardStats, SendCounters};
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::Account;
use weir_service::rules::RulesCounted;

use super::copying::CopySummary;

/// The account of a whole run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Always `forward`, which distinguishes it from the accounts of captures.
    r#type: &'static str,
    version: &'static str,
    #[serde(flatten)]
    pub(super) counters: Counters,
    pub(super) elapsed_seconds: f64,
    /// Reason for the end; null while it runs.
    stopped_by: Option<Stop>,
    /// The error; null if there is none.
    error: Option<String>,
    /// The path in a bpffs by which the kernel keeps forwarding without this process; null if it does not.
    pub(super) goes_on: Option<String>,
    /// The requested copy, once it has ended.
    pub(super) copy: Option<CopySummary>,
    /// The restrictions of the process; null with `--no-confine`.
    pub(super) confinement: Option<Confinement>,
    pub(super) directions: Vec<DirectionSummary>,
    pub(super) queues: Vec<QueueSummary>,
    /// What rules have counted, in both directions together; absent without --rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rules: Option<RulesCounted>,
}

/// The counters of [`ForwardCounters`] and values derived from them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counters {
    #[serde(flatten)]
    pub(super) packets: ForwardCounters,
    /// Packets that should have been forwarded but were not: no room, too long, unable, errors, vanished.
    pub(super) lost: u64,
    /// Packets that are being handed over.
    pub(super) in_flight: u64,
    /// Packets that were still being handed over at the end.
    pub(super) vanished: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct DirectionSummary {
    pub(super) from: String,
    to: String,
    /// How packets are forwarded; empty for a run that was not monitored from the start.
    detail: String,
    filter: Option<String>,
    #[serde(flatten)]
    counters: Counters,
    /// Packets that may have lost a VLAN tag, because the driver did not report it.
    pub(super) tag_unknown: u64,
    nic: Option<NicCounters>,
    sender: Option<SendCounters>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct QueueSummary {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) queue: u32,
    #[serde(flatten)]
    pub(super) counters: Counters,
}

impl From<ForwardCounters> for Counters {
    fn from(counters: ForwardCounters) -> Self {
        Self { packets: counters, lost: counters.lost(), in_flight: counters.in_flight(), vanished: 0 }
    }
}

impl Account for Summary {
    fn interfaces(&self) -> Vec<String> {
        self.directions
            .first()
            .map(|direction| vec![direction.from.clone(), direction.to.clone()])
            .unwrap_or_default()
    }

    fn filter(&self) -> Option<String> {
        self.directions.first()?.filter.clone()
    }

    fn file(&self) -> Option<String> {
        None
    }

    fn json(&self) -> serde_json::Result<Box<serde_json::value::RawValue>> {
        serde_json::value::to_raw_value(self)
    }
}

impl DirectionSummary {
    /// Returns how many packets the card or its driver has dropped.
    pub(super) fn nic_lost(&self) -> u64 {
        self.nic.map_or(0, |nic| nic.missed + nic.fifo_errors)
    }
}

impl Summary {
    /// Combines the account with the descriptions of the directions, in the same order if there are any.
    pub(super) fn new(infos: &[DirectionInfo], account: &ForwardStats, goes_on: Option<&Path>) -> Self {
        let mut infos = infos.iter();
        let mut directions = Vec::new();
        let mut queues = Vec::new();
        for direction in &account.directions {
            let info = infos.next();
            directions.push(DirectionSummary {
                from: direction.from.clone(),
                to: direction.to.clone(),
                detail: info.map(|info| info.detail.clone()).unwrap_or_default(),
                filter: info.and_then(|info| info.filter.clone()),
                counters: direction.total().into(),
                tag_unknown: direction.tag_unknown,
                nic: direction.nic,
                sender: direction.sender,
            });
            queues.extend(direction.queues.iter().map(|queue| QueueSummary {
                from: direction.from.clone(),
                to: direction.to.clone(),
                queue: queue.queue,
                counters: queue.counters.into(),
            }));
        }
        Self {
            r#type: "forward",
            version: env!("CARGO_PKG_VERSION"),
            counters: account.total().into(),
            elapsed_seconds: account.elapsed.as_secs_f64(),
            stopped_by: None,
            error: None,
            goes_on: goes_on.map(|path| path.display().to_string()),
            copy: None,
            confinement: None,
            directions,
            queues,
            rules: None,
        }
    }

    /// Completes the account with the result of the run, or the message of its error. Packets in flight are lost, unless forwarding continues.
    pub(super) fn close(&mut self, result: Result<Stop, &str>) {
        if self.goes_on.is_none() {
            self.end_flights();
        }
        match result {
            Ok(stop) => self.stopped_by = Some(stop),
            Err(error) => {
                self.stopped_by = Some(Stop::Error);
                self.error = Some(error.to_owned());
            }
        }
    }

    /// Counts packets that seem to be in flight as vanished, since none can be any more.
    pub(super) fn end_flights(&mut self) {
        let directions = self.directions.iter_mut().map(|direction| &mut direction.counters);
        let queues = self.queues.iter_mut().map(|queue| &mut queue.counters);
        for counters in directions.chain(queues).chain([&mut self.counters]) {
            counters.vanished = std::mem::take(&mut counters.in_flight);
            counters.lost += counters.vanished;
        }
    }

    /// Returns the number of packets that the network cards or drivers of the receiving interfaces had no room for.
    pub(super) fn nic_lost(&self) -> u64 {
        self.directions.iter().map(DirectionSummary::nic_lost).sum()
    }

    /// Sets the filter in force.
    pub(super) fn set_filter(&mut self, filter: Option<&String>) {
        self.directions.iter_mut().for_each(|direction| direction.filter = filter.cloned());
    }
}
