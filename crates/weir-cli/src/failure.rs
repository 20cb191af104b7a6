//! A failed command: a message, an optional hint, and the exit status.

use std::fmt::Display;
use std::io;
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

    /// Adds advice behind the advice that there is.
    pub(crate) fn and_hint(self, hint: &str) -> Self {
        let hint = self.hint.as_ref().map_or_else(|| hint.to_owned(), |first| format!("{first}; {hint}"));
        self.hint(hint)
    }

    /// Reports all failures but the last, which the caller reports. The first decides the exit status.
    pub(crate) fn each(mut failures: Vec<Self>) -> Result<(), Self> {
        let Some(status) = failures.first().map(|first| first.status) else { return Ok(()) };
        let last = failures.pop();
        for failure in failures {
            failure.report();
        }
        last.map_or(Ok(()), |last| Err(last.status(status)))
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

/// Returns how a run ended: as `end` says, unless one of the `steps` that followed failed. The first failure is the cause of the
/// others, so only that is told; no reason to stop, such as a signal, outweighs it.
pub(crate) fn ended<T>(
    end: Result<T, Failure>,
    steps: impl IntoIterator<Item = Result<(), Failure>>,
) -> Result<T, Failure> {
    let end = end?;
    steps.into_iter().collect::<Result<(), _>>().map(|()| end)
}

/// Returns the result of writing to standard output. That its reader has closed it, having enough, is no failure.
pub(crate) fn printed(result: io::Result<()>) -> Result<(), Failure> {
    result.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(unprinted(&error)),
    })
}

/// Returns the failure of standard output.
pub(crate) fn unprinted(error: &io::Error) -> Failure {
    let failure = Failure::new(format_args!("cannot write to standard output: {error}"));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure.hint("free some space, or choose another place for the output")
        }
        _ => failure,
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
    use rustix::io::Errno;
    use weir::{Interfaces, Setting};
    use weir_service::Stop;

    use super::*;

    #[test]
    fn wrong_command_lines_have_a_status_of_their_own() {
        let of = |error: Error| Failure::from(error).status;
        assert_eq!(of(Error::Setting { setting: Setting::SnapLen, why: String::new() }), 2);
        assert_eq!(of(Error::InterfaceTwice { name: "eth0".to_owned() }), 2);
        assert_eq!(
            of(Error::Budget { interfaces: Interfaces::Several(2), least: 2, budget: 1, enough: 2 }),
            2
        );
        assert_eq!(of(Error::InterfaceDown { name: "eth0".to_owned() }), 1);
        assert_eq!(of(Error::NoInterface), 1);
    }

    /// What a run that ended as `end` comes to, if these of its last steps failed: exit status, and message.
    fn ending(end: Result<Stop, &str>, steps: [Option<&str>; 3]) -> Result<Stop, (u8, String)> {
        let step = |why: Option<&str>| why.map_or(Ok(()), |why| Err(Failure::new(why)));
        ended(end.map_err(Failure::new), steps.map(step)).map_err(|failure| (failure.status, failure.message))
    }

    #[test]
    fn a_closed_output_is_no_failure_and_a_full_one_has_a_remedy() {
        let of = |errno: Errno| {
            let failure = printed(Err(errno.into())).err()?;
            Some((failure.status, failure.message, failure.hint))
        };
        assert!(printed(Ok(())).is_ok());
        assert_eq!(of(Errno::PIPE), None);
        let remedy = Some("free some space, or choose another place for the output".to_owned());
        for (errno, why, hint) in [
            (Errno::NOSPC, "No space left on device (os error 28)", remedy.clone()),
            (Errno::DQUOT, "Disk quota exceeded (os error 122)", remedy),
            (Errno::IO, "Input/output error (os error 5)", None),
        ] {
            assert_eq!(of(errno), Some((1, format!("cannot write to standard output: {why}"), hint)));
        }
    }

    #[test]
    fn the_first_of_several_failures_is_the_one_that_is_told() {
        let failed = |why: &str| Err((1, why.to_owned()));
        for stop in [Stop::Signal, Stop::Count, Stop::Pipe, Stop::Files, Stop::Duration, Stop::Size] {
            assert_eq!(ending(Ok(stop), [None; 3]), Ok(stop));
            // No reason to stop makes good what failed after it.
            assert_eq!(ending(Ok(stop), [None, Some("disk full"), None]), failed("disk full"));
            assert_eq!(ending(Ok(stop), [None, Some("disk full"), Some("pipe")]), failed("disk full"));
        }
        // The interface went, then the disk was full, then nobody read the summary.
        let rest = [Some("disk full"), None, Some("pipe")];
        assert_eq!(ending(Err("eth0 is gone"), rest), failed("eth0 is gone"));
        assert_eq!(ending(Err("eth0 is gone"), [None; 3]), failed("eth0 is gone"));
    }

    #[test]
    fn the_first_of_several_failures_decides_the_exit_status() {
        let of = |all: Vec<Failure>| Failure::each(all).map_err(|last| (last.status, last.message));
        assert_eq!(of(Vec::new()), Ok(()));
        assert_eq!(of(vec![Failure::usage("a")]), Err((2, "a".to_owned())));
        assert_eq!(of(vec![Failure::usage("a"), Failure::new("b")]), Err((2, "b".to_owned())));
        assert_eq!(of(vec![Failure::new("a"), Failure::usage("b")]), Err((1, "b".to_owned())));
    }
}
