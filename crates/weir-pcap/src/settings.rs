//! What is set before a capture begins.

use std::ffi::{CString, c_int};

/// What a capture on a device is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) device: CString,
    pub(crate) snapshot: c_int,
    pub(crate) promiscuous: bool,
    pub(crate) monitor: bool,
    /// Milliseconds.
    pub(crate) timeout: c_int,
    pub(crate) immediate: bool,
    /// Bytes; 0: the default.
    pub(crate) buffer: c_int,
    pub(crate) protocol: c_int,
    pub(crate) nonblocking: bool,
}
