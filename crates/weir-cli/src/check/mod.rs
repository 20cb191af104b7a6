//! `--check`: what became of test traffic, live (`weir count`) and in files (`weir read`).

mod text;

use clap::Args;
use serde::Serialize;
use weir::Packet;
use weir_traffic::{Checker, Frame, FrameCounters, Report};

use crate::failure::Failure;
use crate::style::Paint;
use crate::units;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct CheckArgs {
    /// Check test traffic: loss, order, duplicates, corruption, latency.
    ///
    /// Each frame of test traffic carries a signature: its stream, its number and when it was sent.
    /// Every packet is then one of these: the first intact one of its number; a duplicate; corrupt,
    /// if a checksum of IPv4, UDP, TCP, ICMP or ICMPv6 is wrong; other, if it has no intact
    /// signature. Numbers from 0 to the highest that never arrived are missing, and what the
    /// capture itself lost is shown beside them. A frame is reordered if a higher number arrived
    /// before it (RFC 4737). Checksums that a sender on this host left to its card are not judged.
    /// Latency is the time from sending to capture: across hosts, it is as exact as their clocks
    /// agree. 64 streams are told apart, and in each the last 1,048,576 numbers.
    #[arg(long)]
    check: bool,

    /// With --check: N frames were sent, so that the last ones can be missing, too.
    ///
    /// N counts the frames of all streams.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = units::count, requires = "check", allow_hyphen_values = true)]
    expect: Option<u64>,
}

impl CheckArgs {
    /// Returns whether packets are checked.
    pub(crate) fn is_on(&self) -> bool {
        self.check
    }

    /// Returns a check that has seen no packet, if one is wanted.
    pub(crate) fn start(&self) -> Option<Check> {
        self.check.then(|| Check { checker: Checker::new(), expected: self.expect })
    }
}

/// A check in progress.
#[derive(Debug)]
pub(crate) struct Check {
    checker: Checker,
    expected: Option<u64>,
}

/// Its result.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    /// All that was sent has arrived once and intact.
    perfect: bool,
    /// Packets lost by the capture, not by the network; null: a file does not say.
    lost_by_capture: Option<u64>,
    #[serde(flatten)]
    report: Report,
}

impl Check {
    /// Adds a packet. Packets have to come in the order in which they arrived.
    pub(crate) fn packet(&mut self, link_type: u16, packet: &Packet<'_>) {
        let Packet { data, original_len, timestamp, .. } = *packet;
        let time = (timestamp > 0).then_some(timestamp);
        self.checker.add(&Frame { link_type, data, original_len, time });
    }

    /// Returns what is known so far. `lost`: how many packets the capture lost.
    pub(crate) fn findings(&self, lost: Option<u64>) -> Findings {
        let report = self.checker.report(self.expected);
        Findings { perfect: report.is_perfect(), lost_by_capture: lost, report }
    }
}

impl Findings {
    /// Returns the table, the histogram of latency, and what has to be said about both.
    pub(crate) fn text(&self, paint: Paint) -> String {
        text::full(self, paint)
    }

    /// Fails unless everything arrived once and intact.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        if self.perfect {
            return Ok(());
        }
        let Report { counters, beyond_streams, unexpected, .. } = &self.report;
        let FrameCounters { intact, duplicate, corrupt, missing, beyond_window, .. } = counters;
        let named = [
            (*missing, "missing"),
            (*duplicate, "duplicate"),
            (*corrupt, "corrupt"),
            (*beyond_window, "too late to be judged"),
            (*beyond_streams, "in too many streams"),
            (*unexpected, "more than expected"),
        ];
        let mut said: Vec<String> = named
            .iter()
            .filter(|(frames, _)| *frames > 0)
            .map(|(frames, what)| format!("{} {what}", units::grouped(*frames)))
            .collect();
        if *intact == 0 {
            said.push("no intact frame with a signature arrived".to_owned());
        }
        let failure = Failure::new(format_args!("test traffic is not as it was sent: {}", said.join(", ")));
        Err(match self.lost_by_capture {
            Some(lost) if lost > 0 && *missing > 0 => failure.hint(format!(
                "up to {} of the missing frames reached this host: the capture lost them; try a larger pool (-B)",
                units::grouped(lost.min(*missing))
            )),
            _ if *intact + *corrupt == 0 => failure.hint(
                "`weir gen` sends frames with signatures; `weir gen --template FILE --sign` puts them into packets of yours",
            ),
            _ => failure,
        })
    }
}
