//! Keeps panics inside the library, and fills error buffers.

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

use crate::abi::PCAP_ERRBUF_SIZE;
use crate::cancel;

/// The text for a panic.
pub(crate) const BUG: &str = "a bug in weir";

/// Runs a function of the library; `failed` is what C gets if it panics (C2). The thread is not cancelled meanwhile, but it
/// may be afterwards, so the frames below have nothing to drop (C6). That includes this one, hence `ManuallyDrop`.
#[inline]
pub(crate) fn guard<T: Copy>(failed: T, body: impl FnOnce() -> T) -> T {
    let body = ManuallyDrop::new(body);
    let before = cancel::hold();
    let answer = caught(failed, || ManuallyDrop::into_inner(body)());
    cancel::release(before);
    answer
}

/// Like [`guard`], for what takes packets: the body meets cancellation points in [`cancel::held`] only.
#[inline]
pub(crate) fn guard_packets<T: Copy>(failed: T, body: impl FnOnce() -> T) -> T {
    let body = ManuallyDrop::new(body);
    let kind = cancel::defer();
    let answer = caught(failed, || ManuallyDrop::into_inner(body)());
    cancel::allow(kind);
    answer
}

/// Runs code that may panic; `failed` is the answer then.
///
/// A handle is in the hands of one thread (C4), and all its functions can be called after an error, so what a panic
/// interrupts is at most half a packet.
// Whoever catches something is in the way of a cancelled thread, so this is a frame of its own.
#[inline(never)]
pub(crate) fn caught<T>(failed: T, body: impl FnOnce() -> T) -> T {
    if !QUIET.is_completed() {
        be_quiet();
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(failed)
}

static QUIET: Once = Once::new();

/// Keeps panics from being reported on standard error, which is the program's. The hook is that of this library: it has
/// its own copy of Rust's.
#[cold]
fn be_quiet() {
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
}

/// Writes a text into an error buffer, shortened to fit, with a closing 0.
///
/// # Safety
///
/// `buffer` is null or has room for [`PCAP_ERRBUF_SIZE`] bytes.
pub(crate) unsafe fn tell(buffer: *mut c_char, text: &str) {
    if buffer.is_null() {
        return;
    }
    let mut end = text.len().min(PCAP_ERRBUF_SIZE - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // SAFETY: at most PCAP_ERRBUF_SIZE - 1 bytes, and the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), end) };
    // SAFETY: `end` is less than PCAP_ERRBUF_SIZE.
    let end = unsafe { buffer.add(end) };
    // SAFETY: as above.
    unsafe { end.write(0) };
}

/// Borrows a text of the caller's; `None` for null.
///
/// # Safety
///
/// `text` is null, or ends with a 0 and stays unchanged for `'a` (C1).
pub(crate) unsafe fn word<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failed_call() {
        assert_eq!(guard(-1, || 5), 5);
        assert_eq!(guard(-1, || panic!("by a test")), -1);
        assert_eq!(guard(-1, || 6), 6);
    }

    #[test]
    fn texts_are_cut_to_fit() {
        let mut buffer = [1; PCAP_ERRBUF_SIZE];
        // SAFETY: the buffer has this size.
        unsafe { tell(buffer.as_mut_ptr(), &"\u{e4}".repeat(200)) };
        // SAFETY: the text ends with a 0.
        let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
        assert_eq!(text.to_str().map(str::len), Ok(254));
    }
}
