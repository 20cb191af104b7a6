//! All metrics as one page.

use super::Snapshot;
use crate::page::{ExpositionFormat, Page};

/// Returns all metrics as one page.
pub(super) fn encode(snapshot: &Snapshot, format: ExpositionFormat) -> String {
    let mut page = Page::new(format);
    page.gauge("weir_build_info", "Version of the program.");
    page.sample("weir_build_info", &[("version", &env!("CARGO_PKG_VERSION"))], 1);
    page.gauge("weir_account_timestamp_seconds", "Time of these numbers, since the Unix epoch.");
    page.sample("weir_account_timestamp_seconds", &[], format_args!("{:.3}", snapshot.taken.as_secs_f64()));
    snapshot.measured.put(&mut page);
    page.finish()
}
