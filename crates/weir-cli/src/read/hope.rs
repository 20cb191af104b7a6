//! The hope that packets are in the order of time: files of weir mostly are, and to look first would take half as long as to
//! convert them.
//!
//! A file is converted as it stands. At the first packet that is earlier than one before, the output is emptied, files are
//! looked at from one end to the other, and all begins again, now put in order.

use std::path::Path;

use super::ReadArgs;
use super::input::Sort;

/// That no packet is earlier than one before.
#[derive(Debug, Default)]
pub(crate) struct Hope {
    latest: u64,
}

impl Hope {
    /// Whether there may be one: all would be put in order, and both input and output are files of which nothing is gone by.
    pub(super) fn allowed(args: &ReadArgs) -> bool {
        let regular =
            |path: &Path| path != Path::new("-") && path.metadata().is_ok_and(|data| data.is_file());
        // A link may lead to what was opened before, as that of `/dev/stdout` does.
        let writes = |path: &Path| match path.symlink_metadata() {
            Ok(data) => data.is_file(),
            Err(_) => true,
        };
        args.sort() == Sort::Looked
            // The first in the order of time need not be those that stand first.
            && args.count.is_none()
            && args.single().is_some_and(writes)
            && args.files().iter().all(|path| regular(path))
    }

    /// Whether it holds with packets that are in order among themselves.
    #[inline]
    pub(super) fn holds(&mut self, first: u64, last: u64) -> bool {
        let holds = first >= self.latest;
        self.latest = self.latest.max(last);
        holds
    }
}
