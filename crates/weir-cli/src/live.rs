//! The live status line of a capture: one row at the bottom of the terminal, redrawn twice a second.

use std::io::{self, Write};
use std::time::Duration;

use weir::writer::Written;
use weir::{CaptureStats, PacketCounters, PoolFill};

use crate::style::{self, Paint};
use crate::units;

/// Time between two updates.
pub(crate) const PERIOD: Duration = Duration::from_millis(500);

/// Fill levels of a queue's pool, from empty to full.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fill levels in an ASCII locale.
const DIGITS: [char; 8] = ['0', '1', '2', '3', '4', '5', '6', '7'];

/// The live line and its last counters, from which rates are computed.
#[derive(Debug)]
pub(crate) struct Live {
    paint: Paint,
    bars: [char; 8],
    last: (Duration, PacketCounters),
}

impl Live {
    /// Returns a live line if standard error is a terminal that can redraw one.
    pub(crate) fn on_terminal() -> Option<Self> {
        let bars = if style::unicode() { BARS } else { DIGITS };
        style::terminal().then(|| Self {
            paint: style::stderr(),
            bars,
            last: (Duration::ZERO, PacketCounters::default()),
        })
    }

    /// Redraws the line, unless the shell is using the terminal for something else. `written` only if a file is
    /// written.
    pub(crate) fn draw(&mut self, account: &CaptureStats, written: Option<&Written>) {
        if !style::foreground() {
            return;
        }
        // One column stays free, because a full row would wrap in some terminals.
        let line = self.line(account, written, style::columns().saturating_sub(1));
        put(&format!("\r{line}\x1b[K"));
    }

    /// Clears the line before other output.
    pub(crate) fn clear(&self) {
        if !style::foreground() {
            return;
        }
        put("\r\x1b[K");
    }

    fn line(&mut self, account: &CaptureStats, written: Option<&Written>, width: usize) -> String {
        let total = account.total();
        let (then, before) = std::mem::replace(&mut self.last, (account.elapsed, total));
        let seconds = account.elapsed.saturating_sub(then).as_secs_f64();
        let packets = rate(before.captured, total.captured, seconds);
        let bits = rate(before.bytes, total.bytes, seconds) * 8.0;
        let without_room: u64 = written.map_or(0, |written| written.lost.values().sum());
        let lost = total.lost + total.errors + without_room;

        // In the order of the row. If the row is too long, the piece with the highest number goes first; 0 never does.
        let mut pieces: Vec<(u8, Piece)> = vec![
            (0, Piece::plain(format!("{:>11}", format!("{}pps", units::scaled(packets))))),
            (3, Piece::plain(format!("{:>12}", format!("{}bit/s", units::scaled(bits))))),
            (1, Piece::plain(format!("{} captured", units::grouped(total.captured)))),
        ];
        let text = format!("{} lost", units::grouped(lost));
        let painted = if lost > 0 { self.paint.red(&text) } else { self.paint.green(&text) };
        pieces.push((0, Piece { width: text.chars().count(), painted }));
        if let Some(filtered) = total.filtered.filter(|&filtered| filtered > 0) {
            pieces.push((4, Piece::plain(format!("{} filtered", units::grouped(filtered)))));
        }
        if total.sampled_out > 0 {
            pieces.push((4, Piece::plain(format!("{} sampled out", units::grouped(total.sampled_out)))));
        }
        pieces.push((2, self.pool(account)));
        if let Some(written) = written {
            pieces.push((5, Piece::plain(format!("{} in file", units::bytes(written.bytes)))));
        }
        pieces.push((6, Piece::dimmed(units::elapsed(account.elapsed), self.paint)));

        while row_width(&pieces) > width {
            let Some(least) = pieces.iter().map(|(rank, _)| *rank).max().filter(|rank| *rank > 0) else {
                break;
            };
            pieces.retain(|(rank, _)| *rank != least);
        }
        let row: Vec<&str> = pieces.iter().map(|(_, piece)| piece.painted.as_str()).collect();
        row.join(GAP)
    }

    /// Returns a bar per queue, and the fullest one in percent.
    fn pool(&self, account: &CaptureStats) -> Piece {
        let fills = account
            .interfaces
            .iter()
            .flat_map(|interface| &interface.queues)
            .map(|queue| percent(queue.pool));
        let fills: Vec<u32> = fills.collect();
        let fullest = fills.iter().copied().max().unwrap_or(0);
        let number = format!(" {fullest:>3}%");
        let mut painted = String::from("pool ");
        for &fill in fills.iter().take(QUEUES_SHOWN) {
            let step = usize::try_from(fill * 7 / 100).unwrap_or(7).min(7);
            painted.push_str(&self.by_fill(fill, self.bars[step]));
        }
        let mut width = "pool ".len() + fills.len().min(QUEUES_SHOWN) + number.len();
        if fills.len() > QUEUES_SHOWN {
            painted.push('+');
            width += 1;
        }
        painted.push_str(&self.by_fill(fullest, number));
        Piece { width, painted }
    }

    fn by_fill(&self, fill: u32, text: impl std::fmt::Display) -> String {
        match fill {
            0..50 => self.paint.green(text),
            50..85 => self.paint.yellow(text),
            _ => self.paint.red(text),
        }
    }
}

/// Most bars in the row; more would tell nobody anything.
const QUEUES_SHOWN: usize = 16;

const GAP: &str = "  ";

/// A part of the row: its text with colours, and its width.
struct Piece {
    width: usize,
    painted: String,
}

impl Piece {
    fn plain(text: String) -> Self {
        Self { width: text.chars().count(), painted: text }
    }

    fn dimmed(text: String, paint: Paint) -> Self {
        Self { width: text.chars().count(), painted: paint.dim(text) }
    }
}

fn row_width(pieces: &[(u8, Piece)]) -> usize {
    let text: usize = pieces.iter().map(|(_, piece)| piece.width).sum();
    text + GAP.len() * pieces.len().saturating_sub(1)
}

/// Returns the percentage of chunks that are waiting or in use; the open one counts as free.
fn percent(pool: PoolFill) -> u32 {
    let used = u64::from(pool.ready) + u64::from(pool.held);
    u32::try_from(used * 100 / u64::from(pool.total.max(1))).unwrap_or(100).min(100)
}

/// Returns the growth per second.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn rate(before: u64, now: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}

fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody_left = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use weir::{InterfaceStats, ModeKind, QueueStats, SourceKind};

    use super::*;

    fn account(seconds: u64, captured: u64, lost: u64, held: &[u32]) -> CaptureStats {
        let share = u64::try_from(held.len()).expect("small");
        let counters = weir::with!(
            PacketCounters::default(),
            seen = captured + lost,
            captured = captured / share,
            lost = lost / share,
            bytes = captured / share * 60
        );
        let queues = held.iter().zip(0..).map(|(&held, queue)| {
            weir::with!(
                QueueStats::default(),
                queue,
                counters,
                pool = weir::with!(
                    PoolFill::default(),
                    free = 99 - held,
                    open = 1,
                    ready = 0,
                    held,
                    total = 100
                )
            )
        });
        let mut interface = InterfaceStats::new(0, "veth0", SourceKind::Xdp, ModeKind::Pass);
        interface.queues = queues.collect();
        weir::with!(
            CaptureStats::default(),
            elapsed = Duration::from_secs(seconds),
            interfaces = vec![interface]
        )
    }

    fn plain() -> Live {
        Live { paint: Paint::PLAIN, bars: BARS, last: (Duration::ZERO, PacketCounters::default()) }
    }

    #[test]
    fn says_rate_captured_lost_and_fill() {
        let mut live = plain();
        live.line(&account(1, 1_000_000, 0, &[0, 0]), None, 200);
        let written = Written { bytes: 5 << 20, ..Written::default() };
        let line = live.line(&account(2, 3_000_000, 0, &[0, 99]), Some(&written), 200);
        for part in [
            "2.00 Mpps",
            "960 Mbit/s",
            "3,000,000 captured",
            "  0 lost",
            "pool ▁▇  99%",
            "5.00 MiB in file",
            "2.0 s",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn fits_every_width() {
        let written = Written { bytes: 1 << 40, lost: [((0, 0), 42)].into(), ..Written::default() };
        for width in 0..200 {
            let line = plain().line(&account(7, 123_456_789, 4_200, &[5, 50, 90]), Some(&written), width);
            let never_dropped = 11 + 2 + "4,242 lost".len();
            assert!(line.chars().count() <= width.max(never_dropped), "{width}: {line}");
            assert!(line.contains("4,242 lost"), "{width}: {line}");
        }
    }

    #[test]
    fn many_queues_stay_short() {
        let line = plain().line(&account(1, 6_400, 0, &[10; 64]), None, 200);
        assert!(line.contains(&format!("pool {}+", "▁".repeat(16))), "{line}");
    }
}
