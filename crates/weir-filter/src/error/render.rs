//! The place of an error, marked under the text.

use std::fmt::Write as _;
use std::ops::Range;

use super::Error;

/// Characters of a long line that are shown.
const WIDTH: usize = 100;

/// How many of them stand before the marked place, if there are as many.
const BEFORE: usize = 60;

/// What stands for the part of a line that is not shown.
const CUT: &str = "...";

impl Error {
    /// The error as people read it: what is wrong, the line of `text` with the place marked under it, what would mend it.
    /// `text` is what was compiled.
    ///
    /// ```text
    /// expected `and`, `or` or the end, not `prot`
    ///   tcp prot 80
    ///       ^^^^
    /// did you mean `port`?
    /// ```
    pub fn render(&self, text: &str) -> String {
        let place = Place::find(text, &self.span);
        let mut rendered = self.message.clone();
        if place.lines > 1 {
            write!(rendered, " (line {})", place.number).expect("a string takes everything");
        }
        let (shown, pad, marks) = place.window();
        write!(rendered, "\n  {shown}\n  {pad}{marks}").expect("a string takes everything");
        if let Some(help) = &self.help {
            write!(rendered, "\n{help}").expect("a string takes everything");
        }
        rendered
    }
}

/// The line in which a span begins.
struct Place<'t> {
    line: &'t str,
    /// Counted from 1.
    number: usize,
    /// How many lines the text has.
    lines: usize,
    /// The part of the span that is in the line, in characters.
    marked: Range<usize>,
}

impl<'t> Place<'t> {
    fn find(text: &'t str, span: &Range<usize>) -> Self {
        let within = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        // What is missing at the end is missing behind the last word, not lines below.
        let start = if text[within(span.start)..].trim().is_empty() {
            within(span.start).min(text.trim_end().len())
        } else {
            within(span.start)
        };
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[begin..end].trim_end();
        let end = within(span.end).clamp(start, (begin + line.len()).max(start));
        let first = text[begin..start].chars().count();
        Self {
            line,
            number: 1 + text[..begin].matches('\n').count(),
            lines: text.trim_end().lines().count(),
            marked: first..first + text[start..end].chars().count().max(1),
        }
    }

    /// The part of the line that is shown, the blanks under it up to the marks, and the marks.
    fn window(&self) -> (String, String, String) {
        let length = self.line.chars().count();
        let first =
            if length <= WIDTH { 0 } else { self.marked.start.saturating_sub(BEFORE).min(length - WIDTH) };
        let last = length.min(first + WIDTH);
        let mut shown = String::new();
        if first > 0 {
            shown.push_str(CUT);
        }
        let behind = shown.chars().count();
        shown.extend(self.line.chars().skip(first).take(last - first).map(printable));
        if last < length {
            shown.push_str(CUT);
        }
        let pad = " ".repeat(behind + self.marked.start - first);
        let marks = "^".repeat(self.marked.len().min(last.saturating_sub(self.marked.start)).max(1));
        (shown, pad, marks)
    }
}

/// A character that takes one column: a tab is a blank, and nothing reaches the terminal that it would obey.
fn printable(letter: char) -> char {
    match letter {
        '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}
