//! What a closed file needs to be continued.

use super::Written;
use super::frame::Around;

/// The state needed to continue a closed file.
#[derive(Debug, Default)]
pub(super) struct ResumePoint {
    pub(super) written: Written,
    /// What stands around the frames, if the file is compressed.
    pub(super) around: Option<Around>,
}
