//! Texts that a function composes and C does not release.

use std::cell::UnsafeCell;
use std::ffi::c_char;

use crate::abi::PCAP_ERRBUF_SIZE;
use crate::guard::tell;

/// A thread's last text of one function. What C gets stays until the same thread calls the same function again, so,
/// unlike libpcap's static buffers, it needs no lock.
///
/// It must be a thread-local variable: that makes the buffer one thread's own (C3).
pub(crate) struct Kept(UnsafeCell<[c_char; PCAP_ERRBUF_SIZE]>);

impl Kept {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new([0; PCAP_ERRBUF_SIZE]))
    }

    /// Replaces the text, shortened to fit; returns it for C.
    pub(crate) fn set(&self, text: &str) -> *mut c_char {
        let buffer: *mut c_char = self.0.get().cast();
        // SAFETY: the buffer has this size, and no reference to it exists: only C has the pointer (C3).
        unsafe { tell(buffer, text) };
        buffer
    }
}
