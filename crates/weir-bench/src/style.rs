//! Lines on standard error, and their colours.

use std::env;
use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Write};

/// Writes one line to standard error. There is nobody left to tell when that fails.
pub(crate) fn say(line: Arguments<'_>) {
    let _nobody_left = writeln!(io::stderr().lock(), "{line}");
}

/// Colours, or none where nobody would see them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    colours: bool,
}

/// Colours for standard error; none when it is no terminal, or `NO_COLOR` (<https://no-color.org>) or `TERM=dumb` is set.
pub(crate) fn stderr() -> Paint {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    Paint { colours: io::stderr().is_terminal() && !unwanted && !dumb }
}

impl Paint {
    pub(crate) fn red(self, text: impl Display) -> String {
        self.wrap("1;31", text)
    }

    pub(crate) fn yellow(self, text: impl Display) -> String {
        self.wrap("33", text)
    }

    fn wrap(self, code: &str, text: impl Display) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}
