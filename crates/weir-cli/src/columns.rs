//! Tables of text: columns that are aligned, as many as fit, redrawn on a terminal.

use std::io::{self, Write};

/// The table that was drawn last on a terminal.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    lines: usize,
    /// Characters of its longest line.
    widest: usize,
}

impl Drawn {
    /// Draws a table over the last one. `columns`: how wide the terminal is now.
    pub(crate) fn draw(
        &mut self,
        stdout: &mut impl Write,
        table: &[String],
        columns: usize,
    ) -> io::Result<()> {
        // Where a terminal has become narrower, nobody knows how many rows the last table takes: some wrap its lines, some cut them.
        if self.widest > columns {
            self.leave();
        }
        let up = if self.lines > 0 { format!("\x1b[{}A", self.lines) } else { String::new() };
        // Whatever a longer table has left below is cleared.
        write!(stdout, "{up}\r")?;
        table.iter().try_for_each(|line| writeln!(stdout, "{line}\x1b[K"))?;
        write!(stdout, "\x1b[J")?;
        self.lines = table.len();
        self.widest = table.iter().map(|line| line.chars().count()).max().unwrap_or_default();
        stdout.flush()
    }

    /// Returns what clears the table, if there is one, for text in its place.
    pub(crate) fn clear(&mut self) -> String {
        match std::mem::take(self).lines {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    /// Leaves the table, if there is one, above other output; the next one is drawn below that.
    pub(crate) fn leave(&mut self) {
        *self = Self::default();
    }
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
        let line = cells.fold(format!("{label:<width$}"), |line, cell| line + &cell);
        line.trim_end().to_owned()
    };
    let head = line(head, &mut columns.iter().map(|(title, _)| *title));
    let rows = rows.iter().map(|(label, cells)| line(label, &mut cells.iter().map(String::as_str)));
    [head].into_iter().chain(rows).collect()
}

/// A column of a table that leaves out what there is no room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// At least.
    pub(crate) width: usize,
    /// 0 is the most important one.
    pub(crate) rank: u8,
}

/// Returns which columns have room in a line of `most` characters behind a label of at least `least`, the important ones first, and how many characters that
/// leaves for the label, which would have `needed`. Columns are as wide as their widest cell.
pub(crate) fn chosen(
    columns: &[Column],
    rows: &[Vec<String>],
    label: (usize, usize),
    most: usize,
) -> (Vec<(usize, usize)>, usize) {
    let (least, needed) = label;
    let width = |index: usize| {
        let cells = rows.iter().filter_map(|cells| cells.get(index)).map(|cell| cell.chars().count());
        let column = columns[index];
        cells.chain([column.title.len(), column.width]).max().unwrap_or_default()
    };
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|index| columns[*index].rank);
    let mut room = most.saturating_sub(least.min(needed));
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    for index in order {
        let width = width(index);
        if width + 2 <= room || chosen.is_empty() {
            room = room.saturating_sub(width + 2);
            chosen.push((index, width));
        }
    }
    chosen.sort_unstable();
    (chosen, (least.min(needed) + room).min(needed))
}

/// Cuts a line that would be longer than `most` characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}
