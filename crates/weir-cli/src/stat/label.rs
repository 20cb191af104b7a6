//! The first column of tables: names of filters, and keys, whose fields are aligned.

use weir::statistics::{Key, KeyField};

use super::summary::Name;
use super::top;
use crate::style;

/// Most characters of a filter's name in a table.
const LONGEST_NAME: usize = 40;

/// Returns the column: the head, and a label for each row.
pub(super) fn column<'a>(
    fields: &[KeyField],
    rows: impl Iterator<Item = (Option<&'a Key>, &'a Name)>,
) -> Vec<String> {
    let rows: Vec<_> = rows.collect();
    let keys = rows.iter().filter_map(|(key, _)| *key);
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
    let label = |&(key, name): &(Option<&Key>, &Name)| match key {
        Some(key) => aligned(&|field| top::shown(key, field)),
        None => cut(&style::visible(&name.text()), LONGEST_NAME),
    };
    [head].into_iter().chain(rows.iter().map(label)).collect()
}

/// Cuts a line that would be longer than `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{start}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_below_their_names() {
        let one = Key { source: Some([10, 0, 0, 200].into()), port: Some(5), ..Key::default() };
        let other = Key { source: Some([1, 1, 1, 1].into()), protocol: Some(17), ..Key::default() };
        let fields = [KeyField::Source, KeyField::Port, KeyField::Protocol];
        let rows = [(Some(&one), &Name::Key), (Some(&other), &Name::Key), (None, &Name::Rest)];
        let expected = ["src         port  proto", "10.0.0.200  5     -", "1.1.1.1     -     udp", "(rest)"];
        assert_eq!(column(&fields, rows.into_iter()), expected);
        assert_eq!(column(&[], [(None, &Name::All)].into_iter()), ["filter", "(all)"]);
    }
}
