//! A failed command: a message, an optional hint, and the exit status.

use std::fmt::Display;
use std::process::ExitCode;

use weir::writer::WriteError;
use weir::{Error, ErrorKind};

use crate::{advice, style};

/// The failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Creates a failure for a wrong command line: exit status 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { status: 2, message: message.into(), hint: None }
    }

    /// Creates a failure for a successful run with lost packets: exit status 3.
    pub(crate) fn loss(message: String) -> Self {
        Self { status: 3, message, hint: None }
    }

    /// Creates any other failure: exit status 1. `message` is `operation object: cause`.
    pub(crate) fn new(message: impl Display) -> Self {
        Self { status: 1, message: message.to_string(), hint: None }
    }

    /// Adds advice for the user.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Changes the exit status.
    pub(crate) fn status(self, status: u8) -> Self {
        Self { status, ..self }
    }

    /// Returns the message without the hint, for the account.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the hint.
    #[cfg(test)]
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Prints the failure on standard error and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let paint = style::stderr();
        style::say(format_args!("{}: {}", paint.red("weir"), self.message));
        let unknown_call =
            "the kernel lacks this system call, or weir's sandbox forbids it: see --no-confine";
        let unknown_call = self.message.contains("(os error 38)").then_some(unknown_call); // ENOSYS
        if let Some(hint) = self.hint.as_deref().or(unknown_call) {
            style::say(format_args!("{}: {hint}", paint.cyan("hint")));
        }
        ExitCode::from(self.status)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::InvalidSetting | ErrorKind::InvalidFilter | ErrorKind::MemoryLimit => 2,
            _ => 1,
        };
        let hint = advice::hint(&error);
        // A filter error points at its position, on separate lines; a load error ends with the verifier's last lines.
        let message = match error {
            Error::Filter(_) | Error::Load { .. } | Error::FilterRefused { .. } => error.to_string(),
            _ => style::visible(&advice::message(&error)),
        };
        Self { status, message, hint }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::new(style::visible(&advice::unwritten(&error)))
    }
}

#[cfg(test)]
mod tests {
    use weir::Setting;

    use super::*;

    #[test]
    fn wrong_command_lines_have_a_status_of_their_own() {
        let of = |error: Error| Failure::from(error).status;
        assert_eq!(of(Error::Setting { setting: Setting::SnapLen, why: String::new() }), 2);
        assert_eq!(of(Error::InterfaceTwice { name: "eth0".to_owned() }), 2);
        assert_eq!(of(Error::Budget { what: String::new(), least: 2, budget: 1, enough: 2 }), 2);
        assert_eq!(of(Error::InterfaceDown { name: "eth0".to_owned() }), 1);
        assert_eq!(of(Error::NoInterface), 1);
    }
}
