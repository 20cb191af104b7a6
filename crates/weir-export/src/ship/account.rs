//! What was shipped.

use serde::Serialize;

/// What became of the files.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    /// Always `ship_account`.
    r#type: &'static str,
    /// Files whose objects were written, and verified.
    shipped: u64,
    /// Files whose objects were there already, with the same bytes.
    were_there: u64,
    /// Bytes of both.
    bytes: u64,
    /// Files that earlier runs have shipped; nobody has looked at their objects again.
    pub(super) earlier: u64,
    /// Files that are not shipped, each with a reason on standard error.
    pub(super) refused: u64,
    /// Files that are left.
    pub(super) waiting: u64,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            r#type: "ship_account",
            shipped: 0,
            were_there: 0,
            bytes: 0,
            earlier: 0,
            refused: 0,
            waiting: 0,
        }
    }
}

impl Account {
    pub(super) fn add(&mut self, bytes: u64, was_there: bool) {
        if was_there {
            self.were_there += 1
        } else {
            self.shipped += 1
        }
        self.bytes += bytes;
    }

    /// Returns it as a line.
    pub(super) fn text(&self) -> String {
        let Self { shipped, were_there, bytes, earlier, refused, waiting, .. } = self;
        format!(
            "files shipped: {shipped}, there already: {were_there}, together {bytes} bytes; by earlier runs: {earlier}; refused: {refused}, left: {waiting}"
        )
    }
}
