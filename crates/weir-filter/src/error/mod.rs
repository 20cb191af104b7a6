//! Compilation errors and their place in the text.

mod render;

use std::fmt;
use std::ops::Range;

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// Message: one sentence without a full stop.
    pub message: String,
    /// Byte range in the source; empty, at the end, if something is missing there.
    pub span: Range<usize>,
    /// A suggestion: "did you mean `port`?"
    pub help: Option<String>,
}

impl Error {
    /// Creates an error at `span`.
    pub fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, help: None }
    }

    /// Adds a suggestion.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}
