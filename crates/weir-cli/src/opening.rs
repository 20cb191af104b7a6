//! Shows progress while interfaces are opened, which takes seconds if there are many.

use std::time::{Duration, Instant};

use weir::Opening;

use crate::style;

/// Time between two lines, and before the first.
const PERIOD: Duration = Duration::from_secs(1);

/// Reports each second which interface is being opened.
pub(crate) fn progress(quiet: bool) -> impl FnMut(Opening<'_>) {
    let mut told = Instant::now();
    move |Opening { name, before, all, .. }| {
        if !quiet && told.elapsed() >= PERIOD {
            told = Instant::now();
            style::say(format_args!("weir: opening `{name}` ({before} of {all} interfaces open)"));
        }
    }
}
