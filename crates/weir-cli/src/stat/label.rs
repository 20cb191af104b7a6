//! The first column of tables: interfaces, names of filters, and keys, whose fields are aligned.

use weir::statistics::KeyField;

use super::rows::{Line, Name};
use super::top;
use crate::columns::cut;
use crate::style;

/// Most characters of a filter's name in a table.
const LONGEST_NAME: usize = 40;

/// Returns the column: the head, and a label for each row.
pub(super) fn column(fields: &[KeyField], rows: &[Line<'_, Name>]) -> Vec<String> {
    let keys = rows.iter().filter_map(|line| line.key);
    let width = |field: &KeyField| {
        let widths = keys.clone().map(|key| top::shown(key, *field).len());
        widths.chain([field.as_str().len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = fields.iter().map(width).collect();
    let aligned = |text: &dyn Fn(KeyField) -> String| {
        let cells = fields.iter().zip(&widths).map(|(field, width)| format!("{:<width$}", text(*field)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = match fields {
        [] => "filter".to_owned(),
        _ => aligned(&|field| field.as_str().to_owned()),
    };
    let label = |line: &Line<'_, Name>| match line.key {
        Some(key) => aligned(&|field| top::shown(key, field)),
        None => cut(&style::visible(&line.row.text()), LONGEST_NAME),
    };
    let labels = [head].into_iter().chain(rows.iter().map(label));
    if rows.iter().all(|line| line.interface.is_none()) {
        return labels.collect();
    }
    let shown = |line: &Line<'_, Name>| style::visible(line.interface.unwrap_or_default());
    let interfaces: Vec<_> = ["interface".to_owned()].into_iter().chain(rows.iter().map(shown)).collect();
    let width = interfaces.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    interfaces.iter().zip(labels).map(|(name, label)| format!("{name:<width$}  {label}")).collect()
}

#[cfg(test)]
mod tests {
    use weir::statistics::Key;

    use super::super::rows::SUM;
    use super::*;

    #[test]
    fn fields_are_below_their_names() {
        let one = Key { source: Some([10, 0, 0, 200].into()), port: Some(5), ..Key::default() };
        let other = Key { source: Some([1, 1, 1, 1].into()), protocol: Some(17), ..Key::default() };
        let fields = [KeyField::Source, KeyField::Port, KeyField::Protocol];
        let line = |interface, key, row| Line { interface, key, row };
        let rows = [
            line(None, Some(&one), &Name::Key),
            line(None, Some(&other), &Name::Key),
            line(None, None, &Name::Rest),
        ];
        let expected = ["src         port  proto", "10.0.0.200  5     -", "1.1.1.1     -     udp", "(rest)"];
        assert_eq!(column(&fields, &rows), expected);
        assert_eq!(column(&[], &[line(None, None, &Name::All)]), ["filter", "(all)"]);
        let rows = [line(Some("eth0"), None, &Name::All), line(Some(SUM), None, &Name::All)];
        let expected = ["interface  filter", "eth0       (all)", "(sum)      (all)"];
        assert_eq!(column(&[], &rows), expected);
    }
}
