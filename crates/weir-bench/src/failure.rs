//! Why a benchmark did not succeed: one message, and perhaps what to do about it.

use std::fmt::Display;
use std::process::ExitCode;

use crate::style;

/// `cannot {what}: {error}`, for `map_err`.
pub(crate) fn failed<E: Display>(what: impl Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::new(format_args!("cannot {what}: {error}"))
}

/// The end of a benchmark that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// `message` is `operation object: cause`.
    pub(crate) fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The message with what the user can do about it, in one line.
    pub(crate) fn told(&self) -> String {
        self.hint.as_ref().map_or_else(|| self.message.clone(), |hint| format!("{} ({hint})", self.message))
    }

    /// The message alone, for the report.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints it on standard error and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        style::say(format_args!("{}: {}", style::stderr().red("weir-bench"), self.message));
        if let Some(hint) = &self.hint {
            style::say(format_args!("hint: {hint}"));
        }
        ExitCode::FAILURE
    }
}

impl From<weir::Error> for Failure {
    fn from(error: weir::Error) -> Self {
        Self { hint: error.hint(), ..Self::new(error) }
    }
}
