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
    /// An EtherType; 0 and `ETH_P_ALL`: packets of all.
    pub(crate) protocol: c_int,
    pub(crate) nonblocking: bool,
}

impl Settings {
    /// Returns the EtherType of all packets, if they are to have one. Like a packet socket for a protocol, a capture then
    /// has received packets only.
    pub(crate) fn only(&self) -> Option<u16> {
        u16::try_from(self.protocol).ok().filter(|&one| one != 0 && one != ALL)
    }
}

/// `ETH_P_ALL`.
const ALL: u16 = 3;
