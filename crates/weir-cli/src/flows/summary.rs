//! The account: what became of every packet, and of every flow.

use std::fmt::Write as _;

use serde::Serialize;
use weir::flows::{Counts, EndReason};
use weir_service::control::Account;
use weir_service::metrics::{Measured, Page};
use weir_service::summary::Summary;

use super::exports::ExportCounts;
use super::outlet::OutletCounts;
use crate::{report, style, units};

/// What was captured, and the flows of it.
#[derive(Debug, Serialize)]
pub(crate) struct FlowsSummary {
    #[serde(flatten)]
    pub(crate) capture: Summary,
    /// `None`: nobody counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flows: Option<FlowCounts>,
}

impl FlowsSummary {
    /// Returns the flows' account as lines; none if nobody counts them.
    pub(crate) fn text(&self) -> String {
        self.flows.as_ref().map(FlowCounts::text).unwrap_or_default()
    }

    /// Returns what was lost of packets, else of flows, if anything was.
    pub(crate) fn loss(&self) -> Option<String> {
        report::loss(&self.capture).or_else(|| self.flows.as_ref().and_then(FlowCounts::loss))
    }
}

/// What became of packets and flows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowCounts {
    /// `packets = exported_packets + table_packets + not_ip + cut`.
    pub(super) packets: u64,
    pub(super) exported_packets: u64,
    pub(super) table_packets: u64,
    not_ip: u64,
    cut: u64,
    /// Bytes of IP packets.
    bytes: u64,
    /// Flows that have ended; their sum.
    pub(super) ended: u64,
    idle: u64,
    active: u64,
    closed: u64,
    forced: u64,
    no_room: u64,
    /// Flows that have not ended.
    pub(super) open: u64,
    orphans: u64,
    restarts: u64,
    /// Where flows go: `given = sent + queued + lost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<OutletCounts>,
    /// Collectors and directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exports: Vec<ExportCounts>,
}

impl FlowCounts {
    pub(super) fn new(counts: &Counts, printed: Option<OutletCounts>, exports: Vec<ExportCounts>) -> Self {
        let of = |reason: EndReason| counts.ended[usize::from(reason.number()) - 1];
        Self {
            packets: counts.packets,
            exported_packets: counts.exported,
            table_packets: counts.in_table,
            not_ip: counts.not_ip,
            cut: counts.cut,
            bytes: counts.bytes,
            ended: counts.all_ended(),
            idle: of(EndReason::Idle),
            active: of(EndReason::Active),
            closed: of(EndReason::Closed),
            forced: of(EndReason::Forced),
            no_room: of(EndReason::NoRoom),
            open: counts.flows,
            orphans: counts.orphans,
            restarts: counts.restarts,
            printed,
            exports,
        }
    }

    /// Returns what was lost of flows, if anything was.
    pub(super) fn loss(&self) -> Option<String> {
        let printed = self.printed.filter(|printed| printed.lost > 0);
        let printed =
            printed.map(|printed| format!("{} flows were not printed", units::grouped(printed.lost)));
        printed.or_else(|| self.exports.iter().find_map(ExportCounts::loss))
    }

    /// Returns the account as lines.
    pub(super) fn text(&self) -> String {
        let reasons = [
            ("idle", self.idle),
            ("active too long", self.active),
            ("closed", self.closed),
            ("at the end", self.forced),
            ("for lack of room", self.no_room),
        ];
        let reasons: Vec<_> = reasons
            .iter()
            .filter(|(_, flows)| *flows > 0)
            .map(|(reason, flows)| format!("{} {reason}", units::grouped(*flows)))
            .collect();
        let mut text = format!("Flows: {} ended", units::grouped(self.ended));
        if !reasons.is_empty() {
            let _infallible = write!(text, " ({})", reasons.join(", "));
        }
        if self.open > 0 {
            let _infallible = write!(text, ", {} go on", units::grouped(self.open));
        }
        let parts = [
            ("in flows that have ended", self.exported_packets),
            ("in flows that go on", self.table_packets),
            ("not IP", self.not_ip),
            ("refused: headers cut", self.cut),
        ];
        let parts: Vec<_> = parts
            .iter()
            .enumerate()
            .filter(|(index, (_, packets))| *index == 0 || *packets > 0)
            .map(|(_, (what, packets))| format!("{} {what}", units::grouped(*packets)))
            .collect();
        let _infallible =
            writeln!(text, "\nPackets: {} = {}", units::grouped(self.packets), parts.join(" + "));
        if self.orphans > 0 {
            let _infallible = writeln!(
                text,
                "{} in flows without ports: fragments whose first was not seen",
                units::packets(self.orphans)
            );
        }
        if self.restarts > 0 {
            let _infallible = writeln!(
                text,
                "{}: the packets' clock went back {} times, and all flows ended",
                style::stderr().yellow("note"),
                units::grouped(self.restarts)
            );
        }
        if let Some(lost) = self.printed.map(|printed| printed.lost).filter(|lost| *lost > 0) {
            let _infallible = writeln!(
                text,
                "{}: {} flows not printed: standard output is too slow",
                style::stderr().red("lost"),
                units::grouped(lost)
            );
        }
        self.exports.iter().for_each(|export| text += &export.text());
        text
    }

    fn put(&self, page: &mut Page) {
        page.counter("weir_flows_packets", "Packets by what became of them.");
        let packets = [("exported", self.exported_packets), ("not_ip", self.not_ip), ("cut", self.cut)];
        for (place, packets) in packets {
            page.count("weir_flows_packets", &[("place", &place)], packets);
        }
        page.gauge("weir_flows_table_packets", "Packets in flows that have not ended.");
        page.sample("weir_flows_table_packets", &[], self.table_packets);
        page.gauge("weir_flows_open", "Flows that have not ended.");
        page.sample("weir_flows_open", &[], self.open);
        page.counter("weir_flows_ended", "Flows that have ended, by reason.");
        let ended = [
            ("idle", self.idle),
            ("active", self.active),
            ("closed", self.closed),
            ("forced", self.forced),
            ("no_room", self.no_room),
        ];
        for (reason, flows) in ended {
            page.count("weir_flows_ended", &[("reason", &reason)], flows);
        }
        page.counter("weir_flows_bytes", "Bytes of IP packets.");
        page.count("weir_flows_bytes", &[], self.bytes);
        if let Some(printed) = self.printed {
            page.counter("weir_flows_printed", "Flows printed.");
            page.count("weir_flows_printed", &[], printed.sent);
            page.counter("weir_flows_not_printed", "Flows lost because standard output was too slow.");
            page.count("weir_flows_not_printed", &[], printed.lost);
        }
        self.exports.iter().enumerate().for_each(|(index, export)| {
            if index == 0 {
                page.counter(
                    "weir_flows_exported",
                    "Flows by collector or directory and what became of them.",
                );
            }
            for (place, flows) in [("sent", export.flows.sent), ("lost", export.flows.lost)] {
                page.count("weir_flows_exported", &[("to", &export.to), ("place", &place)], flows);
            }
        });
        if !self.exports.is_empty() {
            page.gauge(
                "weir_flows_queued",
                "Flows that have ended and are not yet sent, by collector or directory.",
            );
        }
        for export in &self.exports {
            page.sample("weir_flows_queued", &[("to", &export.to)], export.flows.queued);
        }
        let lines: Vec<_> = self.exports.iter().filter_map(|to| Some((&to.to, to.line()?))).collect();
        if !lines.is_empty() {
            page.counter(
                "weir_flows_refusals",
                "Connections that were not made, or datagrams that nobody took.",
            );
        }
        for (to, line) in &lines {
            page.count("weir_flows_refusals", &[("to", to)], line.refusals);
        }
        let connected = lines.iter().filter_map(|(to, line)| Some((to, line.connections?)));
        for (index, (to, connections)) in connected.enumerate() {
            if index == 0 {
                page.counter("weir_flows_connections", "Connections made to collectors.");
            }
            page.count("weir_flows_connections", &[("to", to)], connections);
        }
    }
}

impl Account for FlowsSummary {
    fn interfaces(&self) -> Vec<String> {
        self.capture.interfaces()
    }

    fn filter(&self) -> Option<String> {
        self.capture.filter()
    }

    fn file(&self) -> Option<String> {
        self.capture.file()
    }

    fn json(&self) -> serde_json::Result<Box<serde_json::value::RawValue>> {
        serde_json::value::to_raw_value(self)
    }

    fn into_metrics(self) -> Option<Box<dyn Measured>> {
        Some(Box::new(self))
    }
}

impl Measured for FlowsSummary {
    fn put(&self, page: &mut Page) {
        self.capture.put(page);
        self.flows.iter().for_each(|flows| flows.put(page));
    }
}
