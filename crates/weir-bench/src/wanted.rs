//! A target.

use std::fmt;

/// What a value has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(limit) => value >= limit,
            Self::AtMost(limit) => value <= limit,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(limit) => write!(f, ">= {limit}"),
            Self::AtMost(limit) => write!(f, "<= {limit}"),
        }
    }
}
