//! Tables of text: columns that are aligned, as many as fit, redrawn on a terminal.

use std::io::{self, Write};

/// Draws a table over the last one.
pub(crate) fn draw(stdout: &mut impl Write, table: &[String], drawn: &mut usize) -> io::Result<()> {
    let up = if *drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    // Whatever a longer table has left below is cleared.
    write!(stdout, "{up}\r")?;
    table.iter().try_for_each(|line| writeln!(stdout, "{line}\x1b[K"))?;
    write!(stdout, "\x1b[J")?;
    *drawn = table.len();
    stdout.flush()
}

/// Returns the head and a line for each row: a label, and cells. Columns that a line of `most` characters has no room for are
/// left out, but for the first: labels are cut for that one.
pub(crate) fn aligned(
    head: &str,
    columns: &[(&str, usize)],
    rows: &[(String, Vec<String>)],
    most: usize,
) -> Vec<String> {
    let labels = [head].into_iter().chain(rows.iter().map(|(label, _)| label.as_str()));
    let needed = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    let width = needed.min(most.saturating_sub(columns[0].1 + 2));
    let fits = columns.iter().scan(width, |used, (_, column)| {
        *used += column + 2;
        Some(*used <= most)
    });
    let columns = &columns[..fits.take_while(|fits| *fits).count().max(1)];
    let line = |label: &str, cells: &mut dyn Iterator<Item = &str>| {
        let label = cut(label, width);
        let cells = columns.iter().zip(cells).map(|((_, column), cell)| format!("  {cell:>column$}"));
        cells.fold(format!("{label:<width$}"), |line, cell| line + &cell)
    };
    let head = line(head, &mut columns.iter().map(|(title, _)| *title));
    let rows = rows.iter().map(|(label, cells)| line(label, &mut cells.iter().map(String::as_str)));
    [head].into_iter().chain(rows).collect()
}

/// Cuts a line that would be longer than `most` characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}
