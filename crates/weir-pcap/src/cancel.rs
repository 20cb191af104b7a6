//! `pthread_cancel`: where a thread of the program's can be cancelled in this library.
//!
//! A cancelled thread unwinds its stack like one that throws, but nothing may catch that on the way, and frames that have
//! something to drop do not take part. So code of this library runs with cancellation held back ([`hold`]), and where a
//! thread waits, only *plain frames* are below it: they are `C-unwind` or Rust's own, hold nothing to drop, and catch nothing.
//! What to wait for is computed first, and the wait begins when that code has returned.
//!
//! The code that takes packets only defers cancellation ([`defer`]), at a sixth of the cost: outside of [`held`] it calls no
//! function of C that is a cancellation point.

use std::ffi::c_int;
use std::ptr;
use std::time::{Duration, Instant};

use libc::{pollfd, sigset_t, timespec};

use crate::stdio::{File, errno};

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    fn pthread_testcancel();
    fn ppoll(fds: *mut pollfd, count: libc::nfds_t, timeout: *const timespec, mask: *const sigset_t)
    -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLE: c_int = 1;
/// `PTHREAD_CANCEL_DEFERRED`; the other type, `PTHREAD_CANCEL_ASYNCHRONOUS`, acts at any instruction.
const DEFERRED: c_int = 0;

/// What the thread wants of cancellation.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    state: c_int,
    kind: c_int,
}

/// Holds cancellation back until [`release`].
pub(crate) fn hold() -> Before {
    // First the type: with both, cancellation cannot act at any instruction in between.
    Before { kind: defer(), state: disable() }
}

/// Ends [`hold`]. A thread that was cancelled meanwhile may end here, so the frames below are plain.
pub(crate) fn release(before: Before) {
    enable(before.state);
    allow(before.kind);
}

/// Has cancellation act at cancellation points only, until [`allow`].
#[inline]
pub(crate) fn defer() -> c_int {
    let mut kind = DEFERRED;
    // SAFETY: it writes a number.
    unsafe { pthread_setcanceltype(DEFERRED, &raw mut kind) };
    kind
}

/// Ends [`defer`]; see [`release`].
#[inline]
pub(crate) fn allow(kind: c_int) {
    if kind != DEFERRED {
        // SAFETY: null is no place for a number.
        unsafe { pthread_setcanceltype(kind, ptr::null_mut()) };
    }
}

/// Runs code that may meet cancellation points, while cancellation is deferred.
pub(crate) fn held<T>(body: impl FnOnce() -> T) -> T {
    let state = disable();
    let answer = body();
    // It is deferred: nothing acts here.
    enable(state);
    answer
}

fn disable() -> c_int {
    let mut state = 0;
    // SAFETY: it writes a number.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut state) };
    state
}

fn enable(state: c_int) {
    // SAFETY: null is no place for a number.
    unsafe { pthread_setcancelstate(state, ptr::null_mut()) };
}

/// Ends the thread if it was cancelled. The frames below are plain.
#[inline]
pub(crate) fn point() {
    // SAFETY: it takes nothing.
    unsafe { pthread_testcancel() };
}

/// What to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// One of two descriptors, or a moment.
    Ready { fds: [c_int; 2], until: Option<Instant> },
    /// A byte of a file of C's, or its end.
    Byte(File),
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Woken {
    /// What poll(2) says of the first descriptor, if there are any.
    Events(i16),
    /// `errno`.
    Failed(c_int),
}

impl Wait {
    /// Waits for a moment only.
    pub(crate) fn until(moment: Instant) -> Self {
        Self::Ready { fds: [-1; 2], until: Some(moment) }
    }

    /// Waits, here or in a plain frame: this is a cancellation point. A signal may end it early.
    pub(crate) fn now(self) -> Woken {
        let (fds, until) = match self {
            Self::Ready { fds, until } => (fds, until),
            Self::Byte(file) => return file.peek().map_or_else(Woken::Failed, |()| Woken::Events(0)),
        };
        let mut fds = fds.map(|fd| pollfd { fd, events: libc::POLLIN, revents: 0 });
        let left = until.map(|until| span(until.saturating_duration_since(Instant::now())));
        let left = left.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: two descriptors, and a time or null.
        let ready = unsafe { ppoll(fds.as_mut_ptr(), 2, left, ptr::null()) };
        if ready >= 0 {
            return Woken::Events(fds[0].revents);
        }
        match errno() {
            libc::EINTR => Woken::Events(0),
            error => Woken::Failed(error),
        }
    }
}

fn span(time: Duration) -> timespec {
    let tv_sec = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}
