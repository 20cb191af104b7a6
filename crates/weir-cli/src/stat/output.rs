//! What each interval prints on standard output: a table that is redrawn on a terminal, lines, CSV, JSON, or nothing.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use weir::statistics::{Count, Reading};

use super::StatArgs;
use super::summary::{Growth, Interval, Row};
use crate::{json, style, units};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Table,
    Lines,
    Csv,
    Json,
    Nothing,
}

/// Prints intervals. It remembers the last reading, from which rates are computed.
#[derive(Debug)]
pub(super) struct Output {
    form: Form,
    last: Reading,
    headed: bool,
    /// Lines of the table on the screen, if it is there.
    drawn: usize,
}

impl Output {
    pub(super) fn new(args: &StatArgs) -> Self {
        let form = match (args.json, args.csv, args.quiet) {
            (true, ..) => Form::Json,
            (_, true, _) => Form::Csv,
            (.., true) => Form::Nothing,
            _ if io::stdout().is_terminal() && style::terminal() => Form::Table,
            _ => Form::Lines,
        };
        Self { form, last: Reading::default(), headed: false, drawn: 0 }
    }

    /// Prints what was counted since the last call.
    pub(super) fn print(&mut self, now: Reading) -> io::Result<()> {
        let interval = Interval::between(&self.last, &now);
        let mut stdout = io::stdout().lock();
        let headed = std::mem::replace(&mut self.headed, true);
        match self.form {
            Form::Nothing => {}
            Form::Json => json::line(&mut stdout, &interval)?,
            Form::Csv => {
                if !headed {
                    writeln!(stdout, "{CSV_HEAD}")?;
                }
                interval.rows().try_for_each(|growth| writeln!(stdout, "{}", csv(&interval, &growth.row)))?;
            }
            Form::Lines => {
                let width = name_width(&interval);
                if !headed {
                    writeln!(stdout, "{:>9}  {}", "elapsed", head(width))?;
                }
                let elapsed = Duration::try_from_secs_f64(interval.elapsed_seconds).unwrap_or_default();
                for line in lines(&interval, &now, width) {
                    writeln!(stdout, "{:>9}  {line}", units::elapsed(elapsed))?;
                }
            }
            Form::Table if style::foreground() => {
                let table = table(&interval, &now, style::rows(), style::columns());
                let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
                // Whatever a longer table has left below is cleared.
                write!(stdout, "{up}\r")?;
                table.iter().try_for_each(|line| writeln!(stdout, "{line}\x1b[K"))?;
                write!(stdout, "\x1b[J")?;
                self.drawn = table.len();
            }
            Form::Table => {}
        }
        self.last = now;
        stdout.flush()
    }

    /// Leaves the table, if there is one, above other output, and draws the next one below that.
    pub(super) fn leave(&mut self) {
        self.drawn = 0;
    }
}

const CSV_HEAD: &str =
    "elapsed_seconds,seconds,filter,received_packets,received_bytes,sent_packets,sent_bytes";

/// Formats a row as comma-separated values (RFC 4180).
fn csv(interval: &Interval, row: &Row) -> String {
    let name = style::visible(row.label());
    let name = match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name,
    };
    let (received, sent) = (row.counts.received, row.counts.sent);
    format!(
        "{:.6},{:.6},{name},{},{},{},{}",
        interval.elapsed_seconds,
        interval.seconds,
        received.packets,
        received.bytes,
        sent.packets,
        sent.bytes
    )
}

/// Most characters of a name in a table.
const LONGEST_NAME: usize = 40;

/// Returns a name as tables show it.
pub(super) fn shown(name: &str) -> String {
    cut(&style::visible(name), LONGEST_NAME)
}

/// Cuts a line that would be longer than `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}

fn name_width(interval: &Interval) -> usize {
    let widths = interval.rows().map(|growth| shown(growth.row.label()).chars().count());
    widths.max().unwrap_or(0).max("filter".len())
}

fn head(width: usize) -> String {
    row(width, "filter", "packets/s", "bit/s", "packets", "bytes")
}

fn row(width: usize, name: &str, packets_rate: &str, bit_rate: &str, packets: &str, bytes: &str) -> String {
    format!("{name:<width$}  {packets_rate:>9}  {bit_rate:>12}  {packets:>15}  {bytes:>10}")
}

/// Returns a line for each filter, and one for all packets: rates of the interval, and totals.
fn lines(interval: &Interval, now: &Reading, width: usize) -> Vec<String> {
    let totals = now.filters.iter().map(|filter| filter.counts.total()).chain([now.total.total()]);
    let line = |(growth, total): (&Growth, Count)| {
        row(
            width,
            &shown(growth.row.label()),
            &format!("{}pps", units::scaled(growth.packets_per_second)),
            &format!("{}bit/s", units::scaled(growth.bits_per_second)),
            &units::grouped(total.packets),
            &units::bytes(total.bytes),
        )
    };
    interval.rows().zip(totals).map(line).collect()
}

/// Returns the table for a terminal of this size. A line that wraps, or one above the screen, could not be redrawn.
fn table(interval: &Interval, now: &Reading, rows: usize, columns: usize) -> Vec<String> {
    let width = name_width(interval);
    let mut lines = lines(interval, now, width);
    let all = lines.pop().unwrap_or_default();
    // Besides the filters: the head, all packets, how many filters are missing, and the cursor.
    let room = rows.saturating_sub(4).max(1);
    let missing = lines.len().saturating_sub(room);
    lines.truncate(room);
    if missing > 0 {
        lines.push(format!("({missing} more)"));
    }
    let table = [head(width)].into_iter().chain(lines).chain([all]);
    table.map(|line| cut(&line, columns.saturating_sub(1))).collect()
}

#[cfg(test)]
mod tests {
    use weir::statistics::{Counts, FilterCounts};

    use super::*;

    /// A reading after so many seconds, in which filter `n` has matched `n` times `packets` packets.
    fn reading(names: &[&str], seconds: u64, packets: u64) -> Reading {
        let mut reading = Reading::default();
        reading.elapsed = Duration::from_secs(seconds);
        let counts = |packets| {
            let received = Count { packets, bytes: 125 * packets };
            Counts { received, ..Counts::default() }
        };
        reading.total = counts(packets * names.len() as u64);
        for (name, number) in names.iter().zip(1..) {
            let mut filter = FilterCounts::default();
            filter.name = (*name).to_owned();
            filter.counts = counts(packets * number);
            reading.filters.push(filter);
        }
        reading
    }

    #[test]
    fn rates_are_of_the_interval_and_totals_of_the_run() {
        let names = ["dns", "web"];
        let (before, now) = (reading(&names, 1, 1000), reading(&names, 3, 5000));
        let interval = Interval::between(&before, &now);
        let lines = lines(&interval, &now, 6);
        assert_eq!(lines[0], "dns     2.00 kpps   2.00 Mbit/s            5,000     610 KiB");
        assert_eq!(lines[1], "web     4.00 kpps   4.00 Mbit/s           10,000    1.19 MiB");
        assert_eq!(lines[2], "(all)   4.00 kpps   4.00 Mbit/s           10,000    1.19 MiB");
        assert_eq!(csv(&interval, &interval.filters[0].row), "3.000000,2.000000,dns,4000,500000,0,0");
    }

    #[test]
    fn names_are_data() {
        let names = ["a \"b\", c", "\x1b[2J"];
        let now = reading(&names, 1, 1);
        let interval = Interval::between(&Reading::default(), &now);
        let name = |number: usize| csv(&interval, &interval.filters[number].row);
        assert!(name(0).contains(",\"a \"\"b\"\", c\","), "{}", name(0));
        assert!(name(1).contains(",\\u{1b}[2J,"), "{}", name(1));
        assert!(!table(&interval, &now, 24, 80).concat().contains('\x1b'));
    }

    #[test]
    fn the_table_fits_on_the_screen() {
        let names: Vec<String> = (0..100).map(|number| format!("filter {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let now = reading(&names, 1, 1);
        let interval = Interval::between(&Reading::default(), &now);
        for (rows, columns) in [(24, 80), (10, 20), (200, 200), (5, 1)] {
            let table = table(&interval, &now, rows, columns);
            assert!(table.len() < rows, "{rows}: {table:?}");
            assert!(table.iter().all(|line| line.chars().count() < columns.max(4)), "{columns}: {table:?}");
        }
        assert_eq!(table(&interval, &now, 24, 80)[21], "(80 more)");
        assert_eq!(table(&interval, &now, 200, 80).len(), 102);
    }
}
