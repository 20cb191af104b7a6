//! Opens the interfaces of a capture, which takes seconds if there are many: shows progress, and ends on a signal.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use weir::{Account, Builder, Capture, Opening};
use weir_service::summary::Summary;
use weir_service::{Stop, Until};

use crate::failure::Failure;
use crate::{report, style};

/// Time between two lines, and before the first.
const PERIOD: Duration = Duration::from_secs(1);

/// Why there is no capture.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// A signal came first.
    Interrupted(weir::Error),
    Failed(Failure),
}

/// Opens a capture. Reports each second which interface is being opened, unless `quiet`.
pub(crate) fn open(builder: Builder, until: &Until, quiet: bool) -> Result<Capture, Unopened> {
    let mut told = Instant::now();
    let tell = |Opening { name, before, all, .. }: Opening<'_>| {
        let now = Instant::now();
        if until.reached(now).is_some() {
            return ControlFlow::Break(());
        }
        if !quiet && now >= told + PERIOD {
            told = now;
            style::say(format_args!("weir: opening `{name}` ({before} of {all} interfaces open)"));
        }
        ControlFlow::Continue(())
    };
    builder.open_telling(tell).map_err(|error| match error {
        weir::Error::Interrupted { .. } => Unopened::Interrupted(error),
        _ => Unopened::Failed(error.into()),
    })
}

impl Unopened {
    /// Ends the command: with the failure, or like a capture that was interrupted before its first packet. `print` prints
    /// the account for programs.
    pub(crate) fn end(
        self,
        quiet: bool,
        print: impl FnOnce(&Summary) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Interrupted(error) => {
                let mut summary = report::summary(&[], &Account::default(), None);
                summary.close(0, Ok(Stop::Signal));
                if !quiet {
                    style::say(format_args!("weir: {error}: nothing was captured"));
                }
                style::print(&report::closing(&summary));
                print(&summary)
            }
            Self::Failed(failure) => Err(failure),
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
