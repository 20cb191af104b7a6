//! Splits a file into rules, and each rule into name, expression and actions.
//!
//! Comments and the ends of lines that go on become blanks first, byte by byte, so that every place stays what it is in the
//! file.

use std::ops::Range;

use weir_filter::Error;

/// What separates the expression from the actions.
pub(crate) const ARROW: &str = "->";

/// A rule as it stands in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Number of its first line, from 1.
    pub(crate) number: usize,
    /// Where it has a name.
    pub(crate) name: Option<Range<usize>>,
    /// Where its expression is.
    pub(crate) expression: Range<usize>,
    /// Where its actions are.
    pub(crate) actions: Range<usize>,
}

/// Returns the text with blanks in place of comments and of the ends of lines that go on.
pub(crate) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['#', '\\']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let blank = match rest.starts_with('#') {
            true => rest.find('\n').unwrap_or(rest.len()),
            false => end_that_goes_on(rest),
        };
        if blank == 0 {
            plain.push('\\');
            rest = &rest[1..];
        } else {
            plain.extend(std::iter::repeat_n(' ', blank));
            rest = &rest[blank..];
        }
    }
    plain.push_str(rest);
    plain
}

/// Returns the length of `\` with the end of its line, and 0 if more follows on the line. Blanks cannot be seen there.
fn end_that_goes_on(rest: &str) -> usize {
    let behind = rest[1..].trim_start_matches([' ', '\t', '\r']);
    match behind.starts_with('\n') {
        true => rest.len() - behind.len() + 1,
        false => 0,
    }
}

/// Returns the number of the line, from 1, that `at` is in.
pub(crate) fn line_number(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count()
}

/// Returns each rule, or what is wrong with it. `text` is that of a file, `plain` the same [without comments](without_comments).
pub(crate) fn lines<'t>(text: &'t str, plain: &'t str) -> impl Iterator<Item = Result<Line, Error>> + 't {
    let mut number = 1;
    let mut begin = 0;
    plain.split_inclusive('\n').filter_map(move |line| {
        let (own, all) = (number, begin..begin + line.len());
        begin = all.end;
        number += text.as_bytes()[all.clone()].iter().filter(|&&byte| byte == b'\n').count();
        let range = trimmed(plain, all);
        // What stands above in the same text is blank: the rule begins where its first word is.
        let skipped = line_number(&text[begin - line.len()..], range.start - (begin - line.len())) - 1;
        (!range.is_empty()).then(|| rule(own + skipped, plain, range))
    })
}

fn rule(number: usize, plain: &str, range: Range<usize>) -> Result<Line, Error> {
    let text = &plain[range.clone()];
    let name = name(text).map(|length| range.start..range.start + length);
    let begin = name.as_ref().map_or(range.start, |name| name.end + 1);
    let Some(arrow) = plain[begin..range.end].find(ARROW).map(|at| begin + at) else {
        let message = format!("expected `{ARROW}` and an action");
        return Err(Error::new(message, range.end..range.end).help("every rule ends as in `-> capture`"));
    };
    let actions = trimmed(plain, arrow + ARROW.len()..range.end);
    if actions.is_empty() {
        let message = format!("expected an action after `{ARROW}`");
        return Err(Error::new(message, arrow..arrow + ARROW.len())
            .help("`-> capture` captures the packets, `-> ignore` does not"));
    }
    Ok(Line { number, name, expression: trimmed(plain, begin..arrow), actions })
}

/// Adds help to a mistake in a line that looks like a rule, and that the end of the line before has joined to another.
pub(crate) fn explain(mistake: Error, text: &str) -> Error {
    let Some(before) = text.get(..mistake.span.start) else { return mistake };
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let goes_on = text[..start].trim_end().ends_with('\\');
    let line = text[start..].lines().next().unwrap_or_default().trim_start();
    if !goes_on || name(line).is_none() || !line.contains(ARROW) {
        return mistake;
    }
    let joined = line_number(text, start) - 1;
    mistake.help(format!("the `\\` at the end of line {joined} joins this line to it"))
}

/// Returns the length of the name at the start of a rule, which has `:` and a blank behind it.
fn name(text: &str) -> Option<usize> {
    let (name, behind) = text.split_once(':')?;
    let is_over = behind.is_empty() || behind.starts_with(char::is_whitespace) || behind.starts_with(ARROW);
    (is_over && is_name(name)).then_some(name.len())
}

/// Returns whether a rule may have this name.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && text.chars().all(inside)
}

/// Returns the range without the blanks at its ends.
pub(crate) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(usize, String, String, String)> {
        let plain = without_comments(text);
        assert_eq!(plain.len(), text.len());
        let part = |range: Range<usize>| plain[range].split_whitespace().collect::<Vec<_>>().join(" ");
        lines(text, &plain)
            .map(|line| line.unwrap_or_else(|error| panic!("{error}")))
            .map(|line| {
                (
                    line.number,
                    line.name.map(part).unwrap_or_default(),
                    part(line.expression),
                    part(line.actions),
                )
            })
            .collect()
    }

    #[test]
    fn a_rule_is_a_line_with_an_optional_name() {
        let row = |number, name: &str, expression: &str, actions: &str| {
            (number, name.to_owned(), expression.to_owned(), actions.to_owned())
        };
        let text = "# all\n\n dns: port 53 -> capture # why\nrest:->ignore\n-> log, \\\n # here, too\n\
                    a.b-c: tcp \\\n  and \\ \r\n  port 80 -> block\r\nlast: -> ignore";
        let expected = [
            row(3, "dns", "port 53", "capture"),
            row(4, "rest", "", "ignore"),
            row(5, "", "", "log,"),
            row(7, "a.b-c", "tcp and port 80", "block"),
            row(10, "last", "", "ignore"),
        ];
        assert_eq!(split(text), expected);
    }

    #[test]
    fn what_is_no_name_belongs_to_the_expression() {
        for text in [
            "ip6 host fe80:: -> ignore",
            "9a: -> ignore",
            "ether host 0:1:2:3:4:5 -> ignore",
            "a:b -> ignore",
        ] {
            let (_, name, expression, _) = &split(text)[0];
            assert_eq!((name.as_str(), format!("{expression} -> ignore").as_str()), ("", text));
        }
    }

    #[test]
    fn comments_go_and_places_stay() {
        let text = "ip # é\n-> \\\nblock \\x";
        let plain = without_comments(text);
        assert_eq!(plain, "ip     \n->   block \\x");
        assert_eq!(text.find("block"), plain.find("block"));
        assert_eq!(without_comments("a \\\r\n# \\\nb"), "a       \nb");
    }
}
