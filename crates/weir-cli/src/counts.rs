//! What statistics have counted, as a table.

use std::fmt::Write as _;

use weir::statistics::Counts;

use crate::style::Paint;
use crate::units;

/// Returns a table with the head of the first column, and a row for each label; the last row has all packets.
pub(crate) fn table(head: String, rows: impl Iterator<Item = (String, Counts)>, paint: Paint) -> String {
    let [received, bytes, sent, sent_bytes] = ["received", "bytes", "sent", "bytes"].map(str::to_owned);
    let mut cells = vec![[head, received, bytes, sent, sent_bytes]];
    cells.extend(rows.map(|(label, Counts { received, sent })| {
        [
            label,
            units::grouped(received.packets),
            units::bytes(received.bytes),
            units::grouped(sent.packets),
            units::bytes(sent.bytes),
        ]
    }));
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let mut text = String::new();
    for (number, row) in cells.iter().enumerate() {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            let _infallible = write!(line, "  {cell:>width$}");
        }
        let line = match number {
            0 => paint.dim(line),
            _ if number + 1 == cells.len() => paint.bold(line),
            _ => line,
        };
        let _infallible = writeln!(text, "{line}");
    }
    text
}
