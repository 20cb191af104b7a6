//! Shows progress while interfaces are opened, which takes seconds if there are many, and ends that on a signal.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use weir::{CaptureStats, Error, Opening};
use weir_service::summary::Summary;
use weir_service::{Stop, Until};

use crate::failure::Failure;
use crate::{report, style};

/// Time between two lines, and before the first.
const PERIOD: Duration = Duration::from_secs(1);

/// Why nothing was opened.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// A signal came first.
    Interrupted(Error),
    Failed(Failure),
}

/// Reports each second which interface is being opened, unless `quiet`. A signal ends that.
pub(crate) fn progress(until: &Until, quiet: bool) -> impl FnMut(Opening<'_>) -> ControlFlow<()> {
    let mut told = Instant::now();
    move |Opening { name, before, all, .. }| {
        let now = Instant::now();
        if until.reached(now).is_some() {
            return ControlFlow::Break(());
        }
        if !quiet && now >= told + PERIOD {
            told = now;
            style::say(format_args!("weir: opening `{name}` ({before} of {all} interfaces open)"));
        }
        ControlFlow::Continue(())
    }
}

impl Unopened {
    /// Says that a signal came before anything was `done`, unless `quiet`; or returns the failure.
    pub(crate) fn say(self, quiet: bool, done: &str) -> Result<(), Failure> {
        match self {
            Self::Interrupted(_) if quiet => Ok(()),
            Self::Interrupted(error) => {
                style::say(format_args!("weir: {error}: nothing was {done}"));
                Ok(())
            }
            Self::Failed(failure) => Err(failure),
        }
    }

    /// Ends the command: with the failure, or like a capture that was interrupted before its first packet, which has failed
    /// if there was to be a `file`. `print` prints the account for programs.
    pub(crate) fn end(
        self,
        quiet: bool,
        file: Option<&Path>,
        print: impl FnOnce(&Summary) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let unwritten = match (&self, file) {
            (Self::Interrupted(error), Some(file)) => {
                let file = style::visible(&file.display().to_string());
                Some(Failure::new(format_args!("cannot begin {file}: {error}: nothing was written")))
            }
            _ => None,
        };
        if unwritten.is_none() {
            self.say(quiet, "captured")?;
        }
        let mut summary = report::summary(&[], &CaptureStats::default(), None);
        summary.close(0, Ok(Stop::Signal));
        summary.error = unwritten.as_ref().map(|failure| failure.message().to_owned());
        style::print(&report::closing(&summary));
        let printed = print(&summary);
        Failure::each(unwritten.into_iter().chain(printed.err()).collect())
    }
}

impl From<Error> for Unopened {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted { .. } => Self::Interrupted(error),
            _ => Self::Failed(error.into()),
        }
    }
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<weir_service::Error> for Unopened {
    fn from(error: weir_service::Error) -> Self {
        Self::Failed(error.into())
    }
}
