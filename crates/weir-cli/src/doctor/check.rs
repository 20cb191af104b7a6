//! A single check: what was found, why it matters, and how to fix it.

use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckState {
    /// Good.
    Ok,
    /// Normal, and good to know.
    Note,
    /// Capturing works, but something is slower or packets may be lost, and this can be changed.
    Weak,
    /// Something that a source needs is missing.
    Missing,
    /// It could not be checked.
    Unknown,
}

/// A result without details; the report combines those of a group in one line.
pub(super) const THERE: &str = "there";
pub(super) const NOT_PERMITTED: &str = "not permitted";

/// A check and its result. Scripts rely on field names: they may be added to, not changed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    /// `sources`, `kernel`, `privileges`, `limits`, `machine`, or `interface NAME`.
    pub(crate) group: String,
    pub(crate) name: &'static str,
    pub(crate) state: CheckState,
    /// What was found.
    pub(crate) found: String,
    /// Why it matters; null if nothing is wrong.
    pub(crate) why: Option<String>,
    /// The command or step that fixes it.
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, CheckState::Ok, found)
    }

    pub(crate) fn note(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, CheckState::Note, found)
    }

    pub(crate) fn weak(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, CheckState::Weak, found)
    }

    pub(crate) fn missing(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, CheckState::Missing, found)
    }

    pub(crate) fn unknown(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, CheckState::Unknown, found)
    }

    pub(crate) fn why(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Removes the reason and the fix if nothing is wrong.
    pub(crate) fn unless_ok(self) -> Self {
        if self.state == CheckState::Ok { Self { why: None, remedy: None, ..self } } else { self }
    }

    fn new(name: &'static str, state: CheckState, found: impl Into<String>) -> Self {
        Self { group: String::new(), name, state, found: found.into(), why: None, remedy: None }
    }
}

/// Assigns checks to a group.
pub(crate) fn group(name: &str, checks: Vec<Check>) -> Vec<Check> {
    checks.into_iter().map(|check| Check { group: name.to_owned(), ..check }).collect()
}
