//! Progress while interfaces are opened.

use std::time::{Duration, Instant};

use weir::Opening;

use crate::style;

/// Nobody wants to know before.
const PERIOD: Duration = Duration::from_secs(1);

/// What to do with each interface that is being opened: say so once a second, the first time after one.
pub(crate) fn progress(quiet: bool) -> impl FnMut(Opening<'_>) {
    let mut told = Instant::now();
    move |Opening { name, before, all, .. }| {
        if !quiet && told.elapsed() >= PERIOD {
            told = Instant::now();
            style::say(format_args!("weir: opening `{name}`; {before} of {all} interfaces are open"));
        }
    }
}
