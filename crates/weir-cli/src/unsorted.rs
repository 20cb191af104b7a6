//! What is said of packets that came too fast to be sorted, in the summary and in the file.

use weir::Unsorted;
use weir_render::rfc3339;

use crate::units;

/// Begins the comment in the file.
const MARK: &str = "captured unsorted: ";

/// Describes them for the user of this machine.
pub(crate) fn told(unsorted: Unsorted) -> String {
    describe(unsorted, units::local_time)
}

/// Returns the comment for the file, which may be read anywhere.
pub(crate) fn mark(unsorted: Unsorted) -> String {
    let packets = describe(unsorted, |timestamp| rfc3339(timestamp).unwrap_or_default());
    format!("{MARK}{packets}; to sort: weir read FILE... -w SORTED")
}

/// Returns whether a comment in a file is such a mark.
pub(crate) fn is_mark(comment: &str) -> bool {
    comment.starts_with(MARK)
}

fn describe(unsorted: Unsorted, time: impl Fn(u64) -> String) -> String {
    let Unsorted { packets, first, last, .. } = unsorted;
    let were = if packets == 1 { "packet was" } else { "packets were" };
    format!(
        "{} {were} written as they came, not sorted by time, from {} to {}",
        units::grouped(packets),
        time(first),
        time(last)
    )
}
