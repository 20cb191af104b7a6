//! What is printed, and when.

use std::time::Duration;

use weir::statistics::KeyField;

use super::output::Form;
use super::rows::View;
use super::top::Choice;

/// What is printed, and when.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) form: Form,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    /// The length of intervals, if somebody said it.
    pub(super) every: Option<Duration>,
    /// Stop after so many.
    pub(super) count: Option<u64>,
    pub(super) choice: Choice,
    /// Show keys, sizes and gaps of each interface.
    pub(super) apart: bool,
}

impl Plan {
    /// Returns the length of intervals.
    pub(super) fn every(&self) -> Duration {
        self.every.unwrap_or(Duration::from_secs(1))
    }

    /// Returns what is shown of keys with these fields.
    pub(super) fn view(&self, fields: Vec<KeyField>) -> View {
        View { fields, choice: self.choice, apart: self.apart }
    }
}
