//! What is wrong with an expression, and where.

mod render;

use std::fmt;
use std::ops::Range;

/// An expression that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What is wrong, in one sentence without a stop.
    pub message: String,
    /// Where, in bytes of the text; empty at the end if something is missing there.
    pub span: Range<usize>,
    /// What would mend it: "did you mean `port`?"
    pub help: Option<String>,
}

impl Error {
    /// An error at `span`.
    pub fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, help: None }
    }

    /// The same with what would mend it.
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
