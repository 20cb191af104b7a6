//! Tables for people.

use std::fmt::Write as _;

/// Columns as wide as they have to be: the first to the left, the others to the right. A row may be short; its last cell
/// then reaches over the rest.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let whole = || rows.iter().filter(|row| row.len() == columns);
    let width = |column: usize| whole().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _infallible = match column {
                0 => write!(line, "  {cell:<width$}"),
                _ if row.len() < columns => write!(line, "  {cell}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The same for a document in Markdown: the first row is the head. All rows are as long.
pub(super) fn markdown(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let _infallible = writeln!(text, "| {} |", row.join(" | "));
        if number == 0 {
            let _infallible = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["", "a", "b"], vec!["one", "1", "22"], vec!["two", "missing"], vec!["three", "333", ""]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect());
        assert_eq!(table(&rows), "           a   b\n  one      1  22\n  two    missing\n  three  333\n");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn a_document_gets_a_head() {
        let rows = [["", "a"], ["one", "1"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(markdown(&rows), "|  | a |\n|---|---|\n| one | 1 |\n");
    }
}
