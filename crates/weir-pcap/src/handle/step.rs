//! A step of a loop.

use std::ffi::c_int;

/// What a step of a loop finds.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// A packet.
    Packet,
    /// The file has ended.
    End,
    /// The device has no packet at present.
    Nothing,
    /// `pcap_breakloop` was called.
    Break,
    /// A status code.
    Failed(c_int),
}
