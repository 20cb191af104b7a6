//! Assumes that packets are sorted by time. Most of weir's files are, and scanning one in advance takes half as long as
//! converting it.
//!
//! weir converts the file as it is. At the first packet that is out of order, it truncates the output, scans the input,
//! and starts over with sorting.

use std::path::Path;

use super::ReadArgs;
use super::input::Sort;

/// Checks that no packet is earlier than the one before.
#[derive(Debug, Default)]
pub(crate) struct Hope {
    latest: u64,
}

impl Hope {
    /// Returns whether to try: sorting is requested, the input can be read twice, and the output can be truncated.
    pub(super) fn allowed(args: &ReadArgs) -> bool {
        let regular =
            |path: &Path| path != Path::new("-") && path.metadata().is_ok_and(|data| data.is_file());
        // A link such as `/dev/stdout` may lead to a file that is already open.
        let writes = |path: &Path| match path.symlink_metadata() {
            Ok(data) => data.is_file(),
            Err(_) => true,
        };
        args.sort() == Sort::Looked
            // The first N packets by time need not be the first N in the file.
            && args.count.is_none()
            && args.single().is_some_and(writes)
            && args.files().iter().all(|path| regular(path))
    }

    /// Adds a sorted run by its first and last time. Returns false if the run begins too early.
    #[inline]
    pub(super) fn holds(&mut self, first: u64, last: u64) -> bool {
        let holds = first >= self.latest;
        self.latest = self.latest.max(last);
        holds
    }
}
