//! Rendering of errors, with their place marked in the text.

use std::fmt::Write as _;
use std::ops::Range;

use super::Error;

/// Characters of a long line to show.
const WIDTH: usize = 100;

/// Maximum number of characters to show before the marked place.
const BEFORE: usize = 60;

/// Marks an omitted part of a line.
const CUT: &str = "...";

impl Error {
    /// Renders the error for people: the message, the line of `text` with the place marked under it, and the
    /// suggestion. `text` is the source that was compiled.
    ///
    /// ```text
    /// expected `and`, `or` or the end, not `prot`
    ///   tcp prot 80
    ///       ^^^^
    /// did you mean `port`?
    /// ```
    pub fn render(&self, text: &str) -> String {
        let place = SourceLine::find(text, &self.span);
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

/// The line where a span begins.
struct SourceLine<'t> {
    line: &'t str,
    /// Line number, from 1.
    number: usize,
    /// Number of lines in the text.
    lines: usize,
    /// The part of the span on this line, in characters.
    marked: Range<usize>,
}

impl<'t> SourceLine<'t> {
    fn find(text: &'t str, span: &Range<usize>) -> Self {
        let within = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        // If something is missing at the end, mark the place after the last word, not some lines below.
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

    /// Returns the visible part of the line, the blanks under it up to the marks, and the marks.
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

/// Returns a character of width one: a blank for a tab, and nothing that could control the terminal.
fn printable(letter: char) -> char {
    match letter {
        '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}
