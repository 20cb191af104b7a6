//! What each interval prints on standard output: a table that is redrawn on a terminal, lines, CSV, JSON, or nothing.

use std::io::{self, Write};
use std::time::Duration;

use weir::statistics::{KeyField, Reading};
use weir_render::json;

use super::conversations::{self, Conversations};
use super::label;
use super::output_options::{OutputFormat, OutputOptions};
use super::rows::{Growth, Line, View};
use super::summary::{InterfaceReading, Interval};
use super::top;
use crate::columns::{Drawn, aligned, cut};
use crate::{out, style, units};

/// Prints intervals. It remembers the last reading, from which rates are computed.
#[derive(Debug)]
pub(super) struct Output {
    format: OutputFormat,
    view: View,
    /// Conversations are printed, of all interfaces together.
    conversations: bool,
    last: Vec<InterfaceReading>,
    headed: bool,
    /// The table on the screen, if it is there.
    drawn: Drawn,
}

impl Output {
    pub(super) fn new(output_options: &OutputOptions, view: View) -> Self {
        let conversations = output_options.conversations;
        Self {
            format: output_options.format,
            view,
            conversations,
            last: Vec::new(),
            headed: false,
            drawn: Drawn::default(),
        }
    }

    /// Prints what was counted since the last call, on each interface.
    pub(super) fn print(&mut self, now: Vec<InterfaceReading>) -> io::Result<()> {
        if self.conversations {
            return self.print_conversations(now);
        }
        let interval = Interval::between(&self.last, &now, &self.view);
        let fields = &self.view.fields;
        let mut stdout = out::stdout();
        let headed = std::mem::replace(&mut self.headed, true);
        match self.format {
            OutputFormat::Nothing => {}
            OutputFormat::Json => json::line(&mut stdout, &interval)?,
            OutputFormat::Csv => {
                if !headed {
                    writeln!(stdout, "{}", csv_head(&interval, fields))?;
                }
                for line in interval.lines() {
                    writeln!(stdout, "{}", csv(&interval, fields, line))?;
                }
            }
            OutputFormat::Lines => {
                let mut lines = lines(&interval, fields, usize::MAX).into_iter();
                let head = lines.next().unwrap_or_default();
                // Keys, and with them columns, differ from interval to interval.
                if !headed || !fields.is_empty() {
                    writeln!(stdout, "{:>9}  {head}", "elapsed")?;
                }
                let elapsed = Duration::try_from_secs_f64(interval.elapsed_seconds).unwrap_or_default();
                for line in lines {
                    writeln!(stdout, "{:>9}  {line}", units::elapsed(elapsed))?;
                }
            }
            OutputFormat::Table if style::foreground() => {
                let table = table(&interval, fields, style::rows(), style::columns());
                self.drawn.draw(&mut stdout, &table, style::columns())?;
            }
            OutputFormat::Table => {}
        }
        self.last = now;
        stdout.flush()
    }

    /// Redraws the table of conversations, on a terminal; elsewhere there is only one at the end.
    fn print_conversations(&mut self, now: Vec<InterfaceReading>) -> io::Result<()> {
        if self.format == OutputFormat::Table && style::foreground() {
            let all = conversations(&self.last, &now, &self.view);
            let width = style::columns().saturating_sub(1);
            let mut lines = conversation_lines(&all, width);
            // The table, the cursor, and one line more.
            let room = style::rows().saturating_sub(2).max(2);
            let sums = lines.split_off(lines.len() - 1);
            lines.truncate(room - 1);
            lines.extend(sums);
            self.drawn.draw(&mut out::stdout(), &lines, style::columns())?;
        }
        self.last = now;
        Ok(())
    }

    /// Prints what was counted in one interval that is all there is.
    pub(super) fn print_all(&mut self, now: Vec<InterfaceReading>) -> io::Result<()> {
        let is_text = matches!(self.format, OutputFormat::Table | OutputFormat::Lines);
        let mut stdout = out::stdout();
        let width =
            if self.format == OutputFormat::Table { style::columns().saturating_sub(1) } else { usize::MAX };
        let lines = if self.conversations {
            let all = conversations(&[], &now, &self.view);
            if !is_text {
                return json::line(&mut stdout, &all);
            }
            conversation_lines(&all, width)
        } else if is_text {
            lines(&Interval::between(&[], &now, &self.view), &self.view.fields, width)
        } else {
            drop(stdout);
            return self.print(now);
        };
        // In place of the table that was redrawn, if there is one.
        write!(stdout, "{}", self.drawn.clear())?;
        lines.iter().try_for_each(|line| writeln!(stdout, "{line}"))?;
        stdout.flush()
    }

    /// Leaves the table, if there is one, above other output, and draws the next one below that.
    pub(super) fn leave(&mut self) {
        self.drawn.leave();
    }
}

fn csv_head(interval: &Interval, fields: &[KeyField]) -> String {
    let interface = if interval.is_of_several() { "interface," } else { "" };
    let fields: String = fields.iter().map(|field| format!("{field},")).collect();
    format!(
        "elapsed_seconds,seconds,{interface}filter,{fields}received_packets,received_bytes,sent_packets,sent_bytes"
    )
}

/// Formats a row as comma-separated values (RFC 4180). Rows without a key have empty fields.
fn csv(interval: &Interval, fields: &[KeyField], line: Line<'_, Growth>) -> String {
    let interface = line.interface.map(|name| quoted(name) + ",").unwrap_or_default();
    let row = &line.row.row;
    let name = quoted(&row.name.text());
    let field = |field: &KeyField| line.key.map(|key| top::plain(key, *field)).unwrap_or_default() + ",";
    let fields: String = fields.iter().map(field).collect();
    let (received, sent) = (row.counts.received, row.counts.sent);
    format!(
        "{:.6},{:.6},{interface}{name},{fields}{},{},{},{}",
        interval.elapsed_seconds,
        interval.seconds,
        received.packets,
        received.bytes,
        sent.packets,
        sent.bytes
    )
}

/// Quotes a name where that is necessary.
fn quoted(name: &str) -> String {
    let name = style::visible(name);
    match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name,
    }
}

/// The columns behind the label, with their widths.
const COLUMNS: [(&str, usize); 4] = [("packets/s", 9), ("bit/s", 12), ("packets", 15), ("bytes", 10)];

/// Returns the head and a line for each row: rates of the interval, and totals.
fn lines(interval: &Interval, fields: &[KeyField], most: usize) -> Vec<String> {
    let names: Vec<_> = interval.lines().map(|line| line.map(|growth| &growth.row.name)).collect();
    let labels = label::column(fields, &names);
    let row = |(label, Line { row: growth, .. }): (&String, Line<'_, Growth>)| {
        let total = growth.total.total();
        let cells = vec![
            format!("{}pps", units::scaled(growth.packets_per_second)),
            format!("{}bit/s", units::scaled(growth.bits_per_second)),
            units::grouped(total.packets),
            units::bytes(total.bytes),
        ];
        (label.clone(), cells)
    };
    let rows: Vec<_> = labels[1..].iter().zip(interval.lines()).map(row).collect();
    aligned(&labels[0], &COLUMNS, &rows, most)
}

/// Returns a row for all conversations of all interfaces.
fn conversations(before: &[InterfaceReading], now: &[InterfaceReading], view: &View) -> Conversations {
    let sum = |readings: &[InterfaceReading]| -> Reading {
        readings.iter().map(|interface| &interface.reading).sum()
    };
    Conversations::between(&sum(before), &sum(now), view)
}

fn conversation_lines(all: &Conversations, most: usize) -> Vec<String> {
    aligned("conversation", &conversations::COLUMNS, &all.rows(), most)
}

/// Returns the table for a terminal of this size. A line that wraps, or one above the screen, could not be redrawn.
fn table(interval: &Interval, fields: &[KeyField], rows: usize, columns: usize) -> Vec<String> {
    let width = columns.saturating_sub(1);
    let mut lines = lines(interval, fields, width);
    // All packets, and what is beside the keys, are always there, unless sizes or gaps come between.
    let sums = if interval.rows.keyed.is_some() && interval.rows.spread.is_empty() { 3 } else { 1 };
    let sums = lines.split_off(lines.len() - sums);
    // Besides the filters and keys: the head, the sums, how many rows are missing, and the cursor.
    let room = rows.saturating_sub(3 + sums.len()).max(1);
    let missing = (lines.len() - 1).saturating_sub(room);
    lines.truncate(1 + room);
    if missing > 0 {
        lines.push(format!("({missing} more)"));
    }
    lines.iter().chain(&sums).map(|line| cut(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use weir::statistics::{Count, Counts, FilterCounts};

    use super::super::top::{Busiest, Choice, tests as keys};
    use super::*;

    fn view(fields: &[KeyField], most: usize) -> View {
        View { fields: fields.to_vec(), choice: Choice { most, by: Busiest::Packets }, apart: false }
    }

    /// What one interface has counted.
    fn one(reading: &Reading) -> [InterfaceReading; 1] {
        [InterfaceReading { name: "eth0".to_owned(), is_over: false, reading: reading.clone() }]
    }

    #[test]
    fn keys_have_lines_and_values_of_their_own() {
        let before = keys::reading(&[(53, 1000, 125)], 0);
        let mut now = keys::reading(&[(53, 3000, 125), (443, 50, 125), (80, 7, 125)], 4);
        now.elapsed = Duration::from_secs(2);
        let fields = [KeyField::DestinationPort, KeyField::Vlan];
        let interval = Interval::between(&one(&before), &one(&now), &view(&fields, 2));
        let starts: Vec<String> =
            lines(&interval, &fields, usize::MAX).iter().map(|line| line[..25].to_owned()).collect();
        assert_eq!(
            starts,
            [
                "dport  vlan  packets/s   ",
                "53     -     1.00 kpps   ",
                "443    -        25 pps   ",
                "(rest)        3.50 pps   ",
                "(others)         2 pps   ",
                "(all)        1.03 kpps   ",
            ]
        );
        let values: Vec<String> = interval.lines().map(|line| csv(&interval, &fields, line)).collect();
        let columns = csv_head(&interval, &fields).split(',').count();
        assert!(values.iter().all(|line| line.split(',').count() == columns), "{values:?}");
        assert_eq!(values[0], "2.000000,2.000000,(key),53,-,2000,250000,0,0");
        assert_eq!(values[2], "2.000000,2.000000,(rest),,,7,875,0,0");
        let json = serde_json::to_value(&interval).expect("JSON");
        assert_eq!(json["keys"][0]["key"], serde_json::json!({"dport": 53, "vlan": null}));
        assert_eq!((&json["keys"][0]["packets"], &json["rest"]["packets"]), (&2000.into(), &7.into()));
        for rows in [5, 7, 8, 24] {
            let table = table(&interval, &fields, rows, 80);
            assert!(table.len() < rows.max(7), "{rows}: {table:?}");
            assert!(table.last().expect("a line").starts_with("(all)"), "{table:?}");
        }
    }

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
        let interval = Interval::between(&one(&before), &one(&now), &view(&[], 10));
        let lines = lines(&interval, &[], usize::MAX);
        assert_eq!(lines[1], "dns     2.00 kpps   2.00 Mbit/s            5,000     610 KiB");
        assert_eq!(lines[2], "web     4.00 kpps   4.00 Mbit/s           10,000    1.19 MiB");
        assert_eq!(lines[3], "(all)   4.00 kpps   4.00 Mbit/s           10,000    1.19 MiB");
        assert_eq!(
            csv(&interval, &[], interval.lines().next().expect("a row")),
            "3.000000,2.000000,dns,4000,500000,0,0"
        );
    }

    #[test]
    fn interfaces_have_rows_and_their_sum_as_long_as_they_are_there() {
        let interface = |name: &str, is_over, packets| InterfaceReading {
            name: name.to_owned(),
            is_over,
            reading: keys::reading(&[(53, packets, 100)], 0),
        };
        let (before, now) = (
            [interface("a", false, 1), interface("b", false, 5)],
            [interface("a", false, 3), interface("b", false, 5)],
        );
        let fields = [KeyField::DestinationPort];
        let rows = |before: &[InterfaceReading], now: &[InterfaceReading], apart: bool| -> Vec<String> {
            let interval = Interval::between(before, now, &View { apart, ..view(&fields, 1) });
            assert_eq!(
                csv_head(&interval, &[]),
                "elapsed_seconds,seconds,interface,filter,received_packets,received_bytes,sent_packets,sent_bytes"
            );
            let row = |line| csv(&interval, &fields, line).replace("0.000000,0.000000,", "");
            interval.lines().map(row).collect()
        };
        let together = rows(&before, &now, false);
        let expected = ["a,(all),,2,200,0,0", "b,(all),,0,0,0,0", "(sum),(key),53,2,200,0,0"];
        assert_eq!(together[..3], expected);
        assert_eq!(together[5], "(sum),(all),,2,200,0,0");
        let apart = rows(&before, &now, true);
        assert_eq!(apart[0], "a,(key),53,2,200,0,0");
        assert_eq!(apart.last().expect("a row"), "(sum),(all),,2,200,0,0");
        assert!(!apart.concat().contains("(sum),(key)"), "{apart:?}");
        let later = [interface("a", false, 7), interface("b", true, 5)];
        let left = rows(&now, &later, false);
        assert!(!left.concat().contains("b,"), "{left:?}");
        assert_eq!(left[0], "a,(all),,4,400,0,0");
    }

    #[test]
    fn names_are_data() {
        let names = ["a \"b\", c", "\x1b[2J"];
        let now = reading(&names, 1, 1);
        let interval = Interval::between(&[], &one(&now), &view(&[], 10));
        let name = |number: usize| csv(&interval, &[], interval.lines().nth(number).expect("a row"));
        assert!(name(0).contains(",\"a \"\"b\"\", c\","), "{}", name(0));
        assert!(name(1).contains(",\\u{1b}[2J,"), "{}", name(1));
        assert!(!table(&interval, &[], 24, 80).concat().contains('\x1b'));
    }

    #[test]
    fn the_table_fits_on_the_screen() {
        let names: Vec<String> = (0..100).map(|number| format!("filter {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let now = reading(&names, 1, 1);
        let interval = Interval::between(&[], &one(&now), &view(&[], 10));
        for (rows, columns) in [(24, 80), (10, 20), (200, 200), (5, 1)] {
            let table = table(&interval, &[], rows, columns);
            assert!(table.len() < rows, "{rows}: {table:?}");
            assert!(table.iter().all(|line| line.chars().count() < columns.max(4)), "{columns}: {table:?}");
        }
        let narrow = |columns| table(&interval, &[], 5, columns).swap_remove(0);
        assert_eq!(narrow(40), "filter     packets/s         bit/s");
        assert_eq!(narrow(18), "filter  packets/s", "labels are cut, numbers are not");
        assert_eq!(table(&interval, &[], 24, 80)[21], "(80 more)");
        assert_eq!(table(&interval, &[], 200, 80).len(), 102);
    }
}
