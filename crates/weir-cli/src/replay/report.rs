//! What was sent, for people and programs.

use std::time::Duration;

use serde::Serialize;
use weir::send::{Pace, Report, Sender, Sent};
use weir_traffic::Copies;

use super::survey::Survey;
use crate::rewriting::Kept;
use crate::sending::{Amount, Asked, Off};
use crate::{style, units};

/// The summary of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    pub(super) interface: &'a str,
    /// Null: nothing was to be sent.
    pub(super) backend: Option<String>,
    pub(super) dry_run: bool,
    /// With `--dry-run` its time is null if nobody knows.
    #[serde(flatten)]
    pub(super) amount: Amount,
    /// On both interfaces together.
    #[serde(flatten)]
    asked: Asked,
    /// Null: there is one interface.
    pub(super) second: Option<Second>,
    /// Null without gaps.
    pub(super) gaps: Option<Off>,
    /// Packets that were sent at once because they had no time.
    pub(super) timeless: u64,
    /// Packets that were sent at once because their time was before that of an earlier one.
    pub(super) backward: u64,
    /// Packets of which the capture kept only the first bytes.
    pub(super) snapped: u64,
    /// Those that were left out.
    pub(super) skipped: u64,
    /// Packets from the kernel for which the driver had no room.
    pub(super) refused: u64,
    /// Packets that were cut, and the segments that were made of them.
    pub(super) cut: u64,
    pub(super) segments: u64,
    /// Packets with headers that are cut, malformed or authenticated, so that not everything is right.
    pub(super) headers_kept: u64,
    /// Packets with ports that stay, as the fragment with the checksum came before.
    pub(super) ports_kept: u64,
    /// Packets to a single host that keep the MAC address of a multicast group.
    pub(super) group_macs_kept: u64,
    /// Packets with addresses or tags of the link layer that stay, as it is not Ethernet.
    pub(super) links_kept: u64,
    /// Packets with another packet inside (tunnels), whose addresses stay.
    pub(super) tunnels_kept: u64,
    /// Packets of protocols that tell addresses, which stay.
    pub(super) messages_kept: u64,
    /// Packets that are neither IP nor ARP, whose addresses were to change.
    pub(super) foreign_kept: u64,
    /// Packets that were anonymised, but for their payloads.
    pub(super) payloads_kept: u64,
    /// Packets of which only the length is left, as their link layer is not understood, or has addresses that stay.
    pub(super) emptied: u64,
    /// Packets of each round that are the same in all, although each was to have its own flows.
    pub(super) same: u64,
    #[serde(skip)]
    kept: Kept,
    /// A signal ended it.
    pub(super) stopped: bool,
    /// Null: everything was sent, unless it was stopped.
    pub(super) error: Option<String>,
}

impl<'a> Summary<'a> {
    pub(super) fn new(interface: &'a str, sent: Sent, time: Option<Duration>) -> Self {
        let amount = Amount::new(sent, time);
        Self {
            interface,
            backend: None,
            dry_run: false,
            asked: Asked::of(Pace::Top, &amount),
            amount,
            second: None,
            gaps: None,
            timeless: 0,
            backward: 0,
            snapped: 0,
            skipped: 0,
            refused: 0,
            cut: 0,
            segments: 0,
            headers_kept: 0,
            ports_kept: 0,
            group_macs_kept: 0,
            links_kept: 0,
            tunnels_kept: 0,
            messages_kept: 0,
            foreign_kept: 0,
            payloads_kept: 0,
            emptied: 0,
            same: 0,
            kept: Kept::default(),
            stopped: false,
            error: None,
        }
    }

    pub(super) fn of(sender: &'a Sender, report: &Report) -> Self {
        let Report { timeless, backward, stopped, .. } = *report;
        let (gaps, backend) = (Off::of(report.gaps), Some(sender.backend().to_string()));
        let sent = Self::new(&sender.destination().name, report.sent, Some(report.elapsed));
        Self { gaps, backend, timeless, backward, stopped, ..sent }
    }

    /// Compares what was sent on all interfaces with the pace that was asked for.
    pub(super) fn asked(&mut self, pace: Pace, reports: &[&Report]) {
        let sum = |of: fn(&Sent) -> u64| reports.iter().map(|report| of(&report.sent)).sum();
        let sent = Sent { packets: sum(|sent| sent.packets), bytes: sum(|sent| sent.bytes) };
        let elapsed = reports.iter().map(|report| report.elapsed).max();
        self.asked = Asked::of(pace, &Amount::new(sent, elapsed));
    }

    /// Adds what was found in the files.
    pub(super) fn surveyed(&mut self, survey: &Survey) {
        (self.snapped, self.skipped) = (survey.snapped, survey.skipped);
        self.kept = survey.kept.clone();
        (self.cut, self.segments) = (self.kept.cut, self.kept.segments);
        (self.headers_kept, self.ports_kept) = (self.kept.headers, self.kept.ports);
        (self.group_macs_kept, self.links_kept) = (self.kept.group_macs, self.kept.links);
        (self.tunnels_kept, self.messages_kept) = (self.kept.tunnels.total(), self.kept.messages.total());
        (self.foreign_kept, self.payloads_kept) = (self.kept.foreign, self.kept.payloads);
        self.emptied = self.kept.emptied;
        self.same = survey.copies.as_ref().map_or(0, Copies::same);
    }

    /// Returns the summary as lines.
    pub(super) fn text(&self) -> String {
        let mut what = if self.dry_run { "in all on " } else { "sent on " }.to_owned();
        what += &style::visible(self.interface);
        if let Some(backend) = &self.backend {
            what += &format!(" ({backend})");
        }
        let mut text = if self.dry_run { "would send " } else { "" }.to_owned();
        text += &self.amount.text(&what);
        text.push('\n');
        text += &self.gaps.as_ref().map(Off::text).unwrap_or_default();
        text += &self.second.as_ref().map(Second::text).unwrap_or_default();
        text += &self.asked.text();
        let note = style::stderr().cyan("note");
        let mut tell = |packets: u64, what: &str| {
            if packets > 0 {
                text += &format!("{note}: {} {what}\n", units::packets(packets));
            }
        };
        tell(self.timeless, "without a time: sent at once");
        tell(self.backward, "with a time before that of an earlier packet: sent at once");
        tell(self.skipped, "left out: the capture kept only their first bytes");
        let sent_snapped = self.snapped - self.skipped;
        tell(sent_snapped, "of which the capture kept only the first bytes");
        tell(self.same, "that stay the same in each round: no address is that of a single host");
        for line in self.kept.lines() {
            text += &format!("{note}: {line}\n");
        }
        if self.refused > 0 && self.error.is_none() {
            text += &format!("{note}: {} more found no room in the driver\n", units::packets(self.refused));
        }
        if self.stopped {
            text += &format!("{note}: stopped by a signal\n");
        }
        text
    }
}

/// What was sent on the second interface.
#[derive(Debug, Serialize)]
pub(super) struct Second {
    interface: String,
    backend: String,
    #[serde(flatten)]
    amount: Amount,
    gaps: Option<Off>,
}

impl Second {
    pub(super) fn of(sender: &Sender, report: &Report) -> Self {
        Self {
            interface: sender.destination().name.clone(),
            backend: sender.backend().to_string(),
            amount: Amount::new(report.sent, Some(report.elapsed)),
            gaps: Off::of(report.gaps),
        }
    }

    fn text(&self) -> String {
        let what = format!("sent on {} ({})", style::visible(&self.interface), self.backend);
        self.amount.text(&what) + "\n" + &self.gaps.as_ref().map(Off::text).unwrap_or_default()
    }
}
