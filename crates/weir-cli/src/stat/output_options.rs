//! What is printed, and when.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use weir::statistics::KeyField;

use super::rows::View;
use super::top::Choice;
use crate::style;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Table,
    Lines,
    Csv,
    Json,
    Nothing,
}

/// What is printed, and when.
#[derive(Debug)]
pub(super) struct OutputOptions {
    pub(super) format: OutputFormat,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    /// The length of intervals, if somebody said it.
    pub(super) every: Option<Duration>,
    /// Stop after so many.
    pub(super) count: Option<u64>,
    pub(super) choice: Choice,
    /// Show keys, sizes and gaps of each interface.
    pub(super) apart: bool,
    /// Show conversations, not rows for each direction.
    pub(super) conversations: bool,
}

impl OutputFormat {
    pub(super) fn new(json: bool, csv: bool, quiet: bool) -> Self {
        match (json, csv, quiet) {
            (true, ..) => Self::Json,
            (_, true, _) => Self::Csv,
            (.., true) => Self::Nothing,
            _ if io::stdout().is_terminal() && style::terminal() => Self::Table,
            _ => Self::Lines,
        }
    }
}

impl OutputOptions {
    /// Returns the length of intervals.
    pub(super) fn every(&self) -> Duration {
        self.every.unwrap_or(Duration::from_secs(1))
    }

    /// Returns what is shown of keys with these fields.
    pub(super) fn view(&self, fields: Vec<KeyField>) -> View {
        View { fields, choice: self.choice, apart: self.apart }
    }
}
