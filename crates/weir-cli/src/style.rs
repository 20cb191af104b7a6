//! Terminal capabilities, and the few colours that weir uses.

use std::borrow::Cow;
use std::env;
use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Write};

use weir_render::is_order;
pub(crate) use weir_render::visible;

/// Writes a line to standard error. If that fails, there is no way to report it.
pub(crate) fn say(line: Arguments<'_>) {
    let _nobody_left = writeln!(io::stderr().lock(), "{}", lines(&line.to_string()));
}

/// Writes lines to standard error.
pub(crate) fn print(text: &str) {
    draw(&lines(text));
}

/// Writes cursor movements to standard error. The text must not contain data from others.
pub(crate) fn draw(text: &str) {
    let _nobody_left = io::stderr().lock().write_all(text.as_bytes());
}

/// Colours, or none if nobody would see them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    colours: bool,
}

/// Returns colours for standard error; none if it is not a terminal, if `NO_COLOR` (<https://no-color.org>) or `TERM=dumb`
/// is set, or if there is no `TERM`.
pub(crate) fn stderr() -> Paint {
    Paint { colours: wanted() && terminal() }
}

/// Returns colours for standard output, by the same rule.
pub(crate) fn stdout() -> Paint {
    Paint { colours: wanted() && io::stdout().is_terminal() && capable() }
}

/// Returns whether standard error is a terminal that understands escape sequences.
pub(crate) fn terminal() -> bool {
    io::stderr().is_terminal() && capable()
}

fn wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn capable() -> bool {
    env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Returns whether this process is in the foreground of standard error's terminal, so that it may draw there at any
/// time.
pub(crate) fn foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Returns the width of standard error's terminal.
pub(crate) fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 80,
    }
}

/// Returns the height of standard error's terminal.
pub(crate) fn rows() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_row > 0 => usize::from(size.ws_row),
        _ => 24,
    }
}

/// Returns whether the locale can show more than ASCII. The first variable that is set decides, as in setlocale(3).
pub(crate) fn unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(env::var_os).find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Does what [`visible`] does, for lines of our own that may include text from others: line feeds, tabs and our colours
/// stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter| is_order(letter) && letter != '\n') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let colour = rest.strip_prefix("\x1b[").and_then(|rest| {
            let (code, _) = rest.split_once('m')?;
            CODES.contains(&code).then_some("\x1b[m".len() + code.len())
        });
        let length = colour.unwrap_or_else(|| letter.len_utf8());
        let (this, next) = rest.split_at(length);
        if colour.is_some() || matches!(letter, '\n' | '\t') || !is_order(letter) {
            shown.push_str(this);
        } else {
            shown.extend(letter.escape_default());
        }
        rest = next;
    }
    Cow::Owned(shown)
}

/// Wraps text at spaces to lines of at most `width` characters.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("never empty");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// Codes of the colours, and of their end (ECMA-48, SGR).
const CODES: [&str; 7] = ["1;31", "32", "33", "36", "1", "2", "0"];

impl Paint {
    /// No colours, for text that is measured or compared.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colours: false };

    pub(crate) fn red(self, text: impl Display) -> String {
        self.wrap("1;31", text)
    }

    pub(crate) fn green(self, text: impl Display) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn yellow(self, text: impl Display) -> String {
        self.wrap("33", text)
    }

    pub(crate) fn cyan(self, text: impl Display) -> String {
        self.wrap("36", text)
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: impl Display) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Paint, lines, wrap};

    #[test]
    fn lines_keep_their_ends_and_our_colours_alone() {
        let paint = Paint { colours: true };
        let painted = [
            paint.red("a"),
            paint.green("b"),
            paint.yellow("c"),
            paint.cyan("d"),
            paint.bold("e"),
            paint.dim("f"),
        ];
        let text = painted.join("\n\t");
        assert_eq!(lines(&text), text);
        assert_eq!(lines("plain"), "plain");
        assert_eq!(
            lines("a\x1b[8mb\r\u{9b}K\x1b[\u{202e}\x1b"),
            "a\\u{1b}[8mb\\r\\u{9b}K\\u{1b}[\\u{202e}\\u{1b}"
        );
    }

    #[test]
    fn long_lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 3), ["unbreakable"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
