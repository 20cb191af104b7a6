//! What commands that send packets have in common: by which way, how fast, and what they say in the end.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use weir::Namespace;
use weir::send::{Backend, Gaps, LiveReport, MARK, Pace, SendError, Sender, SenderBuilder, Sent};
use weir_render::json;

use crate::failure::{self, Failure};
use crate::{out, style, units};

#[derive(Debug, Args)]
#[command(next_help_heading = "Sending")]
pub(crate) struct SendingArgs {
    /// How packets reach the kernel.
    #[arg(hide_short_help = true, long, value_enum, default_value_t)]
    backend: BackendArg,

    /// Mark the packets with this number (SO_MARK); 0: not at all.
    ///
    /// Filters of this host see the mark. Default: 0x77656972.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = mark, default_value_t = MARK)]
    #[arg(hide_default_value = true)]
    mark: u32,
}

/// What to do with packets that were captured in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Snapped {
    /// Send nothing if there are any.
    #[default]
    Refuse,
    /// Leave them out.
    Skip,
    /// Send the bytes that there are.
    Cut,
    /// Append zeros up to the original length.
    Pad,
}

impl Snapped {
    /// Returns what is sent of a packet with these bytes of `original_len`; `None`: nothing.
    pub(crate) fn apply<'a>(
        self,
        data: &'a [u8],
        original_len: u32,
        padded: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let original_len = original_len as usize;
        match self {
            _ if data.len() >= original_len => Some(data),
            Self::Skip => None,
            Self::Pad => {
                padded.clear();
                padded.extend_from_slice(data);
                padded.resize(original_len, 0);
                Some(padded)
            }
            Self::Refuse | Self::Cut => Some(data),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum BackendArg {
    /// With `weir gen` at full speed live, where possible; otherwise plain, which takes less time than a ring.
    #[default]
    Auto,
    /// A ring that is shared with the kernel (PACKET_TX_RING).
    Ring,
    /// System calls with one or many packets each (send, sendmmsg).
    Plain,
    /// Frames that an eBPF program makes in the kernel, from 5.18 on (live frames): test traffic, or with `weir
    /// replay --top-speed` copies of the packets, which are read into memory first. They go to the driver
    /// directly: captures and queueing on this host do not see them, they have no mark, and weir is not confined.
    Live,
}

impl SendingArgs {
    /// Returns a builder for a sender to this interface.
    pub(crate) fn builder(&self, namespace: Option<&Namespace>, name: &str) -> SenderBuilder {
        let builder = Sender::to(name).namespace(namespace);
        let builder = builder.mark(Some(self.mark).filter(|&mark| mark != 0));
        match self.backend {
            BackendArg::Ring => builder.backend(Backend::Ring),
            BackendArg::Auto | BackendArg::Plain | BackendArg::Live => builder.backend(Backend::Plain),
        }
    }

    /// Whether only live frames will do.
    pub(crate) fn is_live(&self) -> bool {
        self.backend == BackendArg::Live
    }

    /// Whether live frames will do.
    pub(crate) fn may_be_live(&self) -> bool {
        matches!(self.backend, BackendArg::Auto | BackendArg::Live)
    }
}

/// Parses a number of 32 bits, decimal or hexadecimal.
fn mark(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "allowed: a number of 32 bits, such as 7 or 0x77656972".to_owned())
}

/// Parses `--rate`.
pub(crate) fn rate(text: &str) -> Result<Pace, String> {
    let (rate, bits) = units::rate(text)?;
    Ok(if bits { Pace::BitsPerSecond(rate) } else { Pace::PacketsPerSecond(rate) })
}

/// Parses a MAC address.
pub(crate) fn mac(text: &str) -> Result<[u8; 6], String> {
    let byte = |part: &str| {
        // Not a sign.
        let digits = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(part, 16).ok().filter(|_| digits)
    };
    let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "allowed: a MAC address, such as 02:00:00:00:00:02".to_owned())
}

/// Prints the summary for programs, if that was requested.
pub(crate) fn print_summary(json: bool, summary: &impl Serialize) -> Result<(), Failure> {
    if json { failure::printed(json::line(out::stdout(), summary)) } else { Ok(()) }
}

pub(crate) fn failure(error: SendError) -> Failure {
    Failure::new(style::visible(&error.to_string()))
}

/// Returns what was sent of the live frames made. Of several sizes, bytes are those of the average frame.
pub(crate) fn sent(report: &LiveReport) -> Sent {
    let Sent { packets, bytes } = report.made;
    let bytes = u128::from(bytes) * u128::from(report.sent) / u128::from(packets.max(1));
    Sent { packets: report.sent, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
}

/// Returns an error if the driver has not sent all live frames made. `exact`: there was a number to be sent.
pub(crate) fn all_taken(name: &str, report: &LiveReport, exact: bool) -> Result<(), Failure> {
    let (made, sent) = (report.made.packets, report.sent);
    let name = style::visible(name);
    if sent == 0 && made > 0 {
        let why = format!("its driver took none of {}", units::packets(made));
        return Err(Failure::new(format_args!("cannot send live frames on `{name}`: {why}"))
            .hint("try --backend plain"));
    }
    if sent < made && exact {
        let why =
            format!("its driver had no room for {} of {}", units::grouped(made - sent), units::packets(made));
        let failure = Failure::new(format_args!("cannot send all live frames on `{name}`: {why}"));
        return Err(failure.hint("try --backend plain, which waits for room"));
    }
    Ok(())
}

/// Whether packets of this link type can be sent where packets of the other one are sent.
pub(crate) fn fits(link_type: u16, there: u16) -> bool {
    const RAW: u16 = 101;
    const IPV4: u16 = 228;
    const IPV6: u16 = 229;
    link_type == there || (there == RAW && matches!(link_type, IPV4 | IPV6))
}

/// How much was sent, and how fast.
#[derive(Debug, Serialize)]
pub(crate) struct Amount {
    packets: u64,
    bytes: u64,
    /// Null if nobody knows.
    seconds: Option<f64>,
    packets_per_second: Option<f64>,
    bits_per_second: Option<f64>,
}

impl Amount {
    pub(crate) fn new(sent: Sent, time: Option<Duration>) -> Self {
        let seconds = time.map(|time| time.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
        let per_second = |count: u64| seconds.filter(|&time| time > 0.0).map(|time| count as f64 / time);
        Self {
            packets: sent.packets,
            bytes: sent.bytes,
            seconds,
            packets_per_second: per_second(sent.packets),
            bits_per_second: per_second(sent.bytes.saturating_mul(8)),
        }
    }

    /// Returns packets and bytes as text. `what` was done with them: `sent on eth0`.
    pub(crate) fn brief(&self, what: &str) -> String {
        format!("{}, {} {what}", units::packets(self.packets), units::bytes(self.bytes))
    }

    /// Returns it all as text.
    pub(crate) fn text(&self, what: &str) -> String {
        let mut text = self.brief(what);
        match self.seconds {
            Some(seconds) => text += &format!(" in {}", units::brief(Duration::from_secs_f64(seconds))),
            None => text += " as fast as possible",
        }
        if let (Some(packets), Some(bits)) = (self.packets_per_second, self.bits_per_second) {
            text += &format!(": {}pps, {}bit/s", units::scaled(packets), units::scaled(bits));
        }
        text
    }
}

/// The rate that was asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Asked {
    /// Null: as fast as possible, or a rate in bits.
    #[serde(rename = "asked_packets_per_second")]
    pub(crate) packets_per_second: Option<f64>,
    #[serde(rename = "asked_bits_per_second")]
    pub(crate) bits_per_second: Option<f64>,
    /// Whether it was reached; null: none was asked for, or nothing was sent.
    pub(crate) reached: Option<bool>,
}

impl Asked {
    /// Whether what was sent in so much time was at least 0.99 of `pace`.
    pub(crate) fn of(pace: Pace, amount: &Amount) -> Self {
        let (packets_per_second, bits_per_second) = match pace {
            Pace::PacketsPerSecond(rate) => (Some(rate), None),
            Pace::BitsPerSecond(rate) => (None, Some(rate)),
            _ => (None, None),
        };
        let reaches = |asked: Option<f64>, sent: Option<f64>| Some(sent? >= asked? * 0.99);
        let reached = reaches(packets_per_second, amount.packets_per_second);
        let reached = reached.or_else(|| reaches(bits_per_second, amount.bits_per_second));
        Self { packets_per_second, bits_per_second, reached: reached.filter(|_| amount.packets > 0) }
    }

    /// Returns a line if it was not reached.
    pub(crate) fn text(&self) -> String {
        if self.reached != Some(false) {
            return String::new();
        }
        let asked = match self.packets_per_second {
            Some(packets) => format!("{}pps", units::scaled(packets)),
            None => format!("{}bit/s", units::scaled(self.bits_per_second.unwrap_or_default())),
        };
        format!("{}: {asked} was asked for and not reached\n", style::stderr().cyan("note"))
    }
}

/// How far gaps were off, in nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Off {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl Off {
    /// `None`: there were no gaps.
    pub(crate) fn of(gaps: Gaps) -> Option<Self> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let Gaps { count, p50, p99, max, .. } = gaps;
        (count > 0).then(|| Self { count, p50_ns: ns(p50), p99_ns: ns(p99), max_ns: ns(max) })
    }

    /// Returns it as a line.
    pub(crate) fn text(&self) -> String {
        let times = [self.p50_ns, self.p99_ns, self.max_ns];
        let [p50, p99, max] = times.map(|ns| units::brief(Duration::from_nanos(ns)));
        format!("gaps off by {p50} (p50), {p99} (p99), {max} (max)\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_a_driver_has_not_taken_are_no_success() {
        let taken = |made, sent, exact| {
            let mut report = LiveReport::of(Sent { packets: made, bytes: 60 * made });
            report.sent = sent;
            all_taken("eth1", &report, exact).map_err(|failure| failure.message().to_owned())
        };
        assert_eq!(taken(5000, 5000, true), Ok(()));
        assert_eq!(taken(0, 0, true), Ok(()));
        // For a time, as many as there is room for.
        assert_eq!(taken(5000, 912, false), Ok(()));
        let some = "cannot send all live frames on `eth1`: its driver had no room for 4,088 of 5,000 packets";
        assert_eq!(taken(5000, 912, true), Err(some.to_owned()));
        let none = "cannot send live frames on `eth1`: its driver took none of 5,000 packets";
        assert_eq!(
            [true, false].map(|exact| taken(5000, 0, exact)),
            [Err(none.to_owned()), Err(none.to_owned())]
        );
    }
}
