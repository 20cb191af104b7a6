//! Lines of counters and rates, one per interval.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use weir::{CaptureStats, PacketCounters};

use super::CountArgs;
use crate::live::rate;
use crate::{out, style, units};

/// The numbers of an interval.
#[derive(Debug, Serialize)]
struct Interval {
    /// Always `interval`.
    r#type: &'static str,
    /// Time since the start of the capture.
    elapsed_seconds: f64,
    /// Length of this interval.
    seconds: f64,
    #[serde(flatten)]
    growth: Growth,
    /// Packets missed by the card or its driver.
    nic_lost: u64,
    queues: Vec<QueueGrowth>,
}

/// The packets of an interval.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Growth {
    packets: u64,
    bytes: u64,
    packets_per_second: f64,
    bits_per_second: f64,
    /// Packets lost at the hook: no free chunk, or an error.
    lost: u64,
}

#[derive(Debug, Serialize)]
struct QueueGrowth {
    interface: String,
    queue: u32,
    #[serde(flatten)]
    growth: Growth,
    /// Closed chunks that are waiting at the end of the interval.
    ready: u32,
}

impl Growth {
    fn between(before: &PacketCounters, now: &PacketCounters, seconds: f64) -> Self {
        let since = |value: fn(&PacketCounters) -> u64| value(now).saturating_sub(value(before));
        Self {
            packets: since(|counters| counters.captured),
            bytes: since(|counters| counters.bytes),
            packets_per_second: rate(before.captured, now.captured, seconds),
            bits_per_second: rate(before.bytes, now.bytes, seconds) * 8.0,
            lost: since(|counters| counters.lost + counters.errors),
        }
    }
}

/// Prints intervals. It remembers the last counters, from which the growth is computed.
pub(super) struct Lines<'a> {
    args: &'a CountArgs,
    last: Option<CaptureStats>,
    headed: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(args: &'a CountArgs) -> Self {
        Self { args, last: None, headed: false }
    }

    pub(super) fn print(&mut self, account: &CaptureStats) -> io::Result<()> {
        let interval = self.interval(account);
        self.last = Some(account.clone());
        let mut stdout = out::stdout();
        if self.args.json {
            serde_json::to_writer(&mut stdout, &interval)?;
            writeln!(stdout)?;
        } else if !self.args.quiet {
            if !self.headed {
                self.headed = true;
                writeln!(stdout, "{}", row("elapsed", "packets/s", "bit/s", "packets", "lost", "NIC lost"))?;
            }
            self.print_text(&mut stdout, &interval)?;
        }
        stdout.flush()
    }

    fn interval(&self, account: &CaptureStats) -> Interval {
        let then = self.last.as_ref().map_or(Duration::ZERO, |last| last.elapsed);
        let seconds = account.elapsed.saturating_sub(then).as_secs_f64();
        let before = self.last.as_ref().map(CaptureStats::total).unwrap_or_default();
        let mut queues = Vec::new();
        for (position, interface) in account.interfaces.iter().enumerate() {
            let last = self.last.as_ref().and_then(|last| last.interfaces.get(position));
            for queue in &interface.queues {
                let last = last.and_then(|last| last.queues.iter().find(|last| last.queue == queue.queue));
                let before = last.map(|last| last.counters).unwrap_or_default();
                queues.push(QueueGrowth {
                    interface: interface.name.clone(),
                    queue: queue.queue,
                    growth: Growth::between(&before, &queue.counters, seconds),
                    ready: queue.pool.ready,
                });
            }
        }
        Interval {
            r#type: "interval",
            elapsed_seconds: account.elapsed.as_secs_f64(),
            seconds,
            growth: Growth::between(&before, &account.total(), seconds),
            nic_lost: nic_lost(account).saturating_sub(self.last.as_ref().map_or(0, nic_lost)),
            queues,
        }
    }

    fn print_text(&self, mut output: impl Write, interval: &Interval) -> io::Result<()> {
        let elapsed = Duration::try_from_secs_f64(interval.elapsed_seconds).unwrap_or_default();
        let nic = units::grouped(interval.nic_lost);
        writeln!(output, "{}", growth_row(&units::elapsed(elapsed), &interval.growth, &nic))?;
        if self.args.per_queue {
            for queue in &interval.queues {
                let name = format!("{}:{}", style::visible(&queue.interface), queue.queue);
                writeln!(output, "{}", growth_row(&name, &queue.growth, ""))?;
            }
        }
        Ok(())
    }
}

fn nic_lost(account: &CaptureStats) -> u64 {
    account
        .interfaces
        .iter()
        .filter_map(|interface| interface.nic)
        .map(|nic| nic.missed + nic.fifo_errors)
        .sum()
}

fn growth_row(name: &str, growth: &Growth, nic: &str) -> String {
    row(
        name,
        &format!("{}pps", units::scaled(growth.packets_per_second)),
        &format!("{}bit/s", units::scaled(growth.bits_per_second)),
        &units::grouped(growth.packets),
        &units::grouped(growth.lost),
        nic,
    )
}

/// Columns are wide enough for 100 Mpps and interface names of up to 15 bytes, the kernel's limit.
fn row(name: &str, packets_rate: &str, bit_rate: &str, packets: &str, lost: &str, nic: &str) -> String {
    let row = format!("{name:>18}  {packets_rate:>9}  {bit_rate:>12}  {packets:>13}  {lost:>11}  {nic:>11}");
    row.trim_end().to_owned()
}
