//! What was sent, for people and programs.

use std::time::Duration;

use serde::Serialize;
use weir::send::{Gaps, Report, Sent};

use crate::{style, units};

/// The summary of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    pub(super) interface: &'a str,
    /// Null: nothing was to be sent.
    pub(super) backend: Option<String>,
    pub(super) dry_run: bool,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// With `--dry-run` null if nobody knows.
    pub(super) seconds: Option<f64>,
    pub(super) packets_per_second: Option<f64>,
    pub(super) bits_per_second: Option<f64>,
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
    /// A signal ended it.
    pub(super) stopped: bool,
    /// Null: everything was sent, unless it was stopped.
    pub(super) error: Option<String>,
}

/// How far gaps were off, in nanoseconds.
#[derive(Debug, Serialize)]
pub(super) struct Off {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl Off {
    fn of(gaps: Gaps) -> Option<Self> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let Gaps { count, p50, p99, max, .. } = gaps;
        (count > 0).then(|| Self { count, p50_ns: ns(p50), p99_ns: ns(p99), max_ns: ns(max) })
    }
}

impl<'a> Summary<'a> {
    pub(super) fn new(interface: &'a str, sent: Sent, time: Option<Duration>) -> Self {
        let seconds = time.map(|time| time.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
        let per_second = |count: u64| seconds.filter(|&time| time > 0.0).map(|time| count as f64 / time);
        Self {
            interface,
            backend: None,
            dry_run: false,
            packets: sent.packets,
            bytes: sent.bytes,
            seconds,
            packets_per_second: per_second(sent.packets),
            bits_per_second: per_second(sent.bytes.saturating_mul(8)),
            gaps: None,
            timeless: 0,
            backward: 0,
            snapped: 0,
            skipped: 0,
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
        let mut text = format!(
            "{}{}, {} {} on {}",
            if self.dry_run { "would send " } else { "" },
            units::packets(self.packets),
            units::bytes(self.bytes),
            if self.dry_run { "in all" } else { "sent" },
            style::visible(self.interface),
        );
        if let Some(backend) = &self.backend {
            text += &format!(" ({backend})");
        }
        match self.seconds {
            Some(seconds) => text += &format!(" in {}", units::brief(Duration::from_secs_f64(seconds))),
            None => text += " as fast as possible",
        }
        if let (Some(packets), Some(bits)) = (self.packets_per_second, self.bits_per_second) {
            text += &format!(": {}pps, {}bit/s", units::scaled(packets), units::scaled(bits));
        }
        text.push('\n');
        if let Some(Off { p50_ns, p99_ns, max_ns, .. }) = self.gaps {
            let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(|ns| units::brief(Duration::from_nanos(ns)));
            text += &format!("gaps off by {p50} (p50), {p99} (p99), {max} (max)\n");
        }
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
        if self.stopped {
            text += &format!("{note}: stopped by a signal\n");
        }
        text
    }
}
