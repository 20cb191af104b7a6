//! What was sent, for people and programs.

use std::time::Duration;

use serde::Serialize;
use weir::send::{Report, Sent};

use crate::sending::{Amount, Off};
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
    /// A signal ended it.
    pub(super) stopped: bool,
    /// Null: everything was sent, unless it was stopped.
    pub(super) error: Option<String>,
}

impl<'a> Summary<'a> {
    pub(super) fn new(interface: &'a str, sent: Sent, time: Option<Duration>) -> Self {
        Self {
            interface,
            backend: None,
            dry_run: false,
            amount: Amount::new(sent, time),
            gaps: None,
            timeless: 0,
            backward: 0,
            snapped: 0,
            skipped: 0,
            refused: 0,
            stopped: false,
            error: None,
        }
    }

    pub(super) fn of(interface: &'a str, report: &Report) -> Self {
        let Report { timeless, backward, stopped, .. } = *report;
        let gaps = Off::of(report.gaps);
        Self { gaps, timeless, backward, stopped, ..Self::new(interface, report.sent, Some(report.elapsed)) }
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
        if self.refused > 0 {
            text += &format!("{note}: {} more found no room in the driver\n", units::packets(self.refused));
        }
        if self.stopped {
            text += &format!("{note}: stopped by a signal\n");
        }
        text
    }
}
