//! What a closed file needs to be continued.

use super::Written;
use super::frame::SeekTable;

/// The state needed to continue a closed file.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) written: Written,
    /// The table of the frames so far, if the file will have one.
    pub(super) table: Option<SeekTable>,
}
