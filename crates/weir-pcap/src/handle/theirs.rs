//! Handles that pass calls on to a handle of the system's libpcap.

use std::ffi::c_int;

use super::{Handle, Pcap, Source};
use crate::foreign::Foreign;
use crate::guard::guard;

/// Passes this call on if the handle is one of the system's library: returns its answer.
macro_rules! forward {
    ($function:ident($pcap:expr $(, $argument:expr)*)) => {
        // SAFETY: C1.
        if let Some(foreign) = unsafe { $crate::handle::theirs::of($pcap) } {
            let function = $crate::foreign::theirs!(foreign.library, $function($pcap $(, $argument)*));
            // SAFETY: C1: what the caller promises us, it promises them.
            let answer = unsafe { function(foreign.handle.as_ptr().cast() $(, $argument)*) };
            if $crate::handle::theirs::Answer::failed(&answer) {
                // SAFETY: C1.
                unsafe { $crate::handle::theirs::repeat($pcap) };
            }
            return answer;
        }
    };
}
pub(crate) use forward;

/// The answer of a function.
pub(crate) trait Answer {
    /// Returns whether it may have left an error text.
    fn failed(&self) -> bool;
}

impl Answer for c_int {
    fn failed(&self) -> bool {
        *self < 0
    }
}

impl<T> Answer for *mut T {
    fn failed(&self) -> bool {
        self.is_null()
    }
}

impl<T> Answer for *const T {
    fn failed(&self) -> bool {
        self.is_null()
    }
}

impl Answer for () {
    fn failed(&self) -> bool {
        false
    }
}

/// Returns the handle of the system's library, if this has one.
///
/// # Safety
///
/// C1; it stays as long as the handle.
pub(crate) unsafe fn of<'a>(pcap: *mut Pcap) -> Option<&'a Foreign> {
    // SAFETY: the caller's promise.
    unsafe { pcap.as_ref() }?.foreign.as_ref()
}

/// Repeats the error text of the system's handle as that of ours.
///
/// # Safety
///
/// C1.
pub(crate) unsafe fn repeat(pcap: *mut Pcap) {
    guard((), || {
        // SAFETY: C1.
        if let Some(pcap) = unsafe { pcap.as_ref() }
            && let Some(foreign) = &pcap.foreign
        {
            pcap.fail(0, &foreign.error());
        }
    });
}

impl Handle {
    /// Activates the system's handle.
    pub(crate) fn activate_theirs(&mut self, pcap: &Pcap, foreign: &Foreign) -> c_int {
        let status = foreign.activate();
        if status >= 0 {
            self.source = Source::Foreign;
            self.describe_theirs(foreign);
        }
        pcap.fail(status, &foreign.error())
    }

    /// Sets the link type of the system's handle.
    pub(crate) fn set_their_datalink(&mut self, pcap: &Pcap, foreign: &Foreign, dlt: c_int) -> c_int {
        let status = foreign.set_datalink(dlt);
        self.describe_theirs(foreign);
        pcap.fail(status, &foreign.error())
    }

    /// Stores what compiling expressions and writing files needs to know.
    fn describe_theirs(&mut self, foreign: &Foreign) {
        (self.link_type, self.snapshot, self.precision) = foreign.description();
    }
}
