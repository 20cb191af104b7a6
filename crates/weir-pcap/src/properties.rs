//! What is known of a handle, and what only captures on devices can do.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::ptr;
use std::slice;

use libc::{FILE, timeval};

use crate::abi::*;
use crate::cancel;
use crate::guard::tell;
use crate::handle::{DUMPING, Handle, NOT_ACTIVATED, Pcap, Source, forward, with};
use crate::stdio::{errno, text_of};

/// Defines functions that return a number of an activated handle.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = |$handle:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// C1.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(pcap: *mut Pcap) -> c_int {
            forward!($name(pcap));
            // SAFETY: C1.
            unsafe {
                with(pcap, PCAP_ERROR, |_, $handle| match $handle.source {
                    Source::Created(_) => PCAP_ERROR_NOT_ACTIVATED,
                    _ => $value,
                })
            }
        }
    )*};
}

numbers! {
    /// Returns the link type, a `DLT_` number.
    pcap_datalink = |handle| handle.link_type;
    /// Returns the upper bits of the link type in a file.
    pcap_datalink_ext = |handle| handle.link_type_ext.cast_signed();
    /// Returns the snap length.
    pcap_snapshot = |handle| handle.snapshot;
    /// Returns 1 if the file was written by a machine of the other byte order.
    pcap_is_swapped = |handle| handle.file().map_or(0, |file| file.swapped().into());
    /// Returns the major version of the file's format.
    pcap_major_version = |handle| handle.file().map_or(0, |file| file.version().0.into());
    /// Returns the minor version of the file's format.
    pcap_minor_version = |handle| handle.file().map_or(0, |file| file.version().1.into());
    /// Returns the size of libpcap's buffer for a packet.
    pcap_bufsize = |handle| match &handle.source {
        Source::File(file) => file.buffer_size(),
        Source::Live(live) => live.buffer_size(),
        _ => 0,
    };
}

/// Returns the precision of timestamps.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_get_tstamp_precision(pcap: *mut Pcap) -> c_int {
    forward!(pcap_get_tstamp_precision(pcap));
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, |_, handle| handle.precision) }
}

/// Returns the file that is read, or null. From now on its position is that of the next packet.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_file(pcap: *mut Pcap) -> *mut FILE {
    // SAFETY: C1.
    unsafe {
        with(pcap, ptr::null_mut(), |_, handle| match &mut handle.source {
            Source::File(file) => file.shared().as_ptr(),
            _ => ptr::null_mut(),
        })
    }
}

/// Returns the descriptor of a device; -1 for files.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_fileno(pcap: *mut Pcap) -> c_int {
    forward!(pcap_fileno(pcap));
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |_, handle| match &mut handle.source {
            Source::Dead => 0,
            Source::Live(live) => live.descriptor(),
            _ => -1,
        })
    }
}

/// Returns the descriptor to wait for.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_get_selectable_fd(pcap: *mut Pcap) -> c_int {
    forward!(pcap_get_selectable_fd(pcap));
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |_, handle| match &mut handle.source {
            Source::Dead => 0,
            Source::File(file) => file.descriptor(),
            Source::Live(live) => live.descriptor(),
            _ => -1,
        })
    }
}

/// Returns how long to wait at most for the descriptor; null: until it is ready.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_get_required_select_timeout(pcap: *mut Pcap) -> *const timeval {
    forward!(pcap_get_required_select_timeout(pcap));
    ptr::null()
}

/// Counts packets; only devices do.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_stats(pcap: *mut Pcap, stats: *mut PcapStat) -> c_int {
    forward!(pcap_stats(pcap, stats));
    let dead = "Statistics aren't available from a pcap_open_dead pcap_t";
    let count = |pcap: &Pcap, handle: &mut Handle| {
        let Some(live) = handle.live_mut() else {
            return Err(handle.refuse(pcap, dead, "Statistics aren't available from savefiles"));
        };
        live.stats().map_err(|text| pcap.fail(PCAP_ERROR, &text))
    };
    // SAFETY: C1.
    match unsafe { with(pcap, Err(PCAP_ERROR), count) } {
        Ok(_) if stats.is_null() => PCAP_ERROR,
        Ok(counted) => {
            // SAFETY: C1, and not null.
            unsafe { stats.write(counted) };
            0
        }
        Err(code) => code,
    }
}

/// Returns whether the handle is in non-blocking mode.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_getnonblock(pcap: *mut Pcap, error: *mut c_char) -> c_int {
    forward!(pcap_getnonblock(pcap, error));
    let get = |pcap: &Pcap, handle: &mut Handle| match handle.source {
        Source::Created(_) => (pcap.fail(PCAP_ERROR_NOT_ACTIVATED, NOT_ACTIVATED), None),
        Source::Dead => refused(pcap, NO_SUCH_MODE),
        Source::File(_) | Source::Foreign => (0, None),
        Source::Dumping(_) => refused(pcap, DUMPING),
        Source::Live(ref live) => (live.nonblocking.into(), None),
    };
    // SAFETY: C1.
    unsafe { with_buffer(pcap, error, get) }
}

/// Sets or ends non-blocking mode.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setnonblock(pcap: *mut Pcap, on: c_int, error: *mut c_char) -> c_int {
    forward!(pcap_setnonblock(pcap, on, error));
    let set = |pcap: &Pcap, handle: &mut Handle| match &mut handle.source {
        Source::Created(settings) => {
            settings.nonblocking = on != 0;
            (0, None)
        }
        Source::Live(live) => {
            live.nonblocking = on != 0;
            (0, None)
        }
        Source::Dead => refused(pcap, NO_SUCH_MODE),
        Source::Dumping(_) => refused(pcap, DUMPING),
        Source::File(_) | Source::Foreign => refused(pcap, "Savefiles cannot be put into non-blocking mode"),
    };
    // SAFETY: C1.
    unsafe { with_buffer(pcap, error, set) }
}

const NO_SUCH_MODE: &str = "A pcap_open_dead pcap_t does not have a non-blocking mode setting";

/// A status code, and what the caller's error buffer gets.
type Outcome = (c_int, Option<&'static str>);

/// Returns an error for both the handle and the caller's buffer.
fn refused(pcap: &Pcap, text: &'static str) -> Outcome {
    (pcap.fail(PCAP_ERROR, text), Some(text))
}

/// Runs a function of a handle that also has an error buffer of the caller's.
///
/// # Safety
///
/// C1.
unsafe fn with_buffer(
    pcap: *mut Pcap,
    error: *mut c_char,
    body: impl FnOnce(&Pcap, &mut Handle) -> Outcome,
) -> c_int {
    // SAFETY: C1.
    let (status, text) = unsafe { with(pcap, (PCAP_ERROR, None), body) };
    if let Some(text) = text {
        // SAFETY: C1.
        unsafe { tell(error, text) };
    }
    status
}

/// Selects received or sent packets; only devices can.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setdirection(pcap: *mut Pcap, direction: c_int) -> c_int {
    forward!(pcap_setdirection(pcap, direction));
    let dead = "The packet direction cannot be set on a pcap_open_dead pcap_t";
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, handle| match (direction, handle.live_mut()) {
            (0..=2, Some(live)) => {
                live.set_direction(direction);
                0
            }
            (0..=2, None) => handle.refuse(pcap, dead, "Setting direction is not supported on savefiles"),
            _ => pcap.fail(PCAP_ERROR, "Invalid direction"),
        })
    }
}

/// Sends a packet; only devices do. Returns its length.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_inject(pcap: *mut Pcap, data: *const c_void, length: usize) -> c_int {
    forward!(pcap_inject(pcap, data, length));
    // Sending may wait, and the kernel waits with the thread.
    cancel::point();
    let error = errno();
    // SAFETY: C1.
    let packet = unsafe { bytes(data.cast(), length) };
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, handle| match length {
            0 => too_short(pcap, "injected must not be zero", error),
            1..=0x7fff_ffff => send(pcap, handle, packet),
            _ => too_short(pcap, "injected must not be bigger than INT_MAX", error),
        })
    }
}

/// Sends a packet; only devices do. Returns 0.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_sendpacket(pcap: *mut Pcap, data: *const u8, length: c_int) -> c_int {
    forward!(pcap_sendpacket(pcap, data, length));
    // Sending may wait, and the kernel waits with the thread.
    cancel::point();
    let error = errno();
    // SAFETY: C1.
    let packet = unsafe { bytes(data, usize::try_from(length).unwrap_or_default()) };
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, handle| match length {
            // Only the generic error is one here, as in libpcap: it does not have the other codes.
            1.. if send(pcap, handle, packet) == PCAP_ERROR => PCAP_ERROR,
            1.. => 0,
            _ => too_short(pcap, "sent must be positive", error),
        })
    }
}

/// Returns the bytes of a packet of C's; `None`: there are none.
///
/// # Safety
///
/// `data` is null or has `length` bytes, which stay as they are while the function of C's call runs.
unsafe fn bytes<'a>(data: *const u8, length: usize) -> Option<&'a [u8]> {
    let possible = !data.is_null() && (1..=0x7fff_ffff).contains(&length);
    // SAFETY: the caller's promise, and not null.
    possible.then(|| unsafe { slice::from_raw_parts(data, length) })
}

/// Sends a packet; returns its length, which C can hold.
fn send(pcap: &Pcap, handle: &Handle, packet: Option<&[u8]>) -> c_int {
    let dead = "Packets can't be sent on a pcap_open_dead pcap_t";
    let Some(live) = handle.live() else {
        return handle.refuse(pcap, dead, "Sending packets isn't supported on savefiles");
    };
    let Some(packet) = packet else {
        return pcap.fail(PCAP_ERROR, "A null pointer was supplied as the packet");
    };
    match live.send(packet) {
        Ok(sent) => sent.try_into().unwrap_or(c_int::MAX),
        Err(text) => pcap.fail(PCAP_ERROR, &text),
    }
}

/// The text ends with the system's last error, as libpcap's does.
fn too_short(pcap: &Pcap, what: &str, errno: c_int) -> c_int {
    let error = io::Error::from_raw_os_error(errno);
    pcap.fail(PCAP_ERROR, &format!("The number of bytes to be {what}: {}", text_of(&error)))
}
