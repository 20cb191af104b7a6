//! What could not be measured.

use serde::Serialize;

use crate::failure::Failure;

/// Something that could not be measured.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) what: &'static str,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(what: &'static str, failure: &Failure) -> Self {
        Self { what, message: failure.message().to_owned() }
    }
}
