//! Texts of status codes and of `errno`, and names of timestamp types.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::{io, ptr};

use crate::abi::*;
use crate::guard::{guard, word};
use crate::kept::Kept;

/// Timestamp types by number: name and description.
const TSTAMP_TYPES: [(&CStr, &CStr); 6] = [
    (c"host", c"Host"),
    (c"host_lowprec", c"Host, low precision"),
    (c"host_hiprec", c"Host, high precision"),
    (c"adapter", c"Adapter"),
    (c"adapter_unsynced", c"Adapter, not synced with system time"),
    (c"host_hiprec_unsynced", c"Host, high precision, not synced with system time"),
];

thread_local! {
    static STATUS: Kept = const { Kept::new() };
}

/// Returns the text of a status code.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_statustostr(status: c_int) -> *const c_char {
    guard(c"Generic error".as_ptr(), || {
        known_status(status).map_or_else(
            || STATUS.with(|kept| kept.set(&format!("Unknown error: {status}"))).cast_const(),
            CStr::as_ptr,
        )
    })
}

pub(crate) fn known_status(status: c_int) -> Option<&'static CStr> {
    Some(match status {
        PCAP_WARNING => c"Generic warning",
        PCAP_WARNING_TSTAMP_TYPE_NOTSUP => c"That type of time stamp is not supported by that device",
        PCAP_WARNING_PROMISC_NOTSUP => c"That device doesn't support promiscuous mode",
        PCAP_ERROR => c"Generic error",
        PCAP_ERROR_BREAK => c"Loop terminated by pcap_breakloop",
        PCAP_ERROR_NOT_ACTIVATED => c"The pcap_t has not been activated",
        PCAP_ERROR_ACTIVATED => c"The setting can't be changed after the pcap_t is activated",
        PCAP_ERROR_NO_SUCH_DEVICE => c"No such device exists",
        PCAP_ERROR_RFMON_NOTSUP => c"That device doesn't support monitor mode",
        PCAP_ERROR_NOT_RFMON => c"That operation is supported only in monitor mode",
        PCAP_ERROR_PERM_DENIED => c"You don't have permission to perform this capture on that device",
        PCAP_ERROR_IFACE_NOT_UP => c"That device is not up",
        PCAP_ERROR_CANTSET_TSTAMP_TYPE => c"That device doesn't support setting the time stamp type",
        PCAP_ERROR_PROMISC_PERM_DENIED => {
            c"You don't have permission to capture in promiscuous mode on that device"
        }
        PCAP_ERROR_TSTAMP_PRECISION_NOTSUP => c"That device doesn't support that time stamp precision",
        _ => return None,
    })
}

/// Returns the text of an `errno`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_strerror(error: c_int) -> *const c_char {
    // SAFETY: strerror takes any number; glibc keeps its text for this thread alone.
    guard(ptr::null(), || unsafe { libc::strerror(error) })
}

/// Returns the `errno` of the thread's last system call, and its text.
pub(crate) fn last_error() -> (c_int, String) {
    let number = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    // SAFETY: as in `pcap_strerror`; the text ends with a 0.
    let text = unsafe { word(pcap_strerror(number)) };
    (number, text.map_or_else(String::new, |text| text.to_string_lossy().into_owned()))
}

/// Returns the timestamp type with this name, in upper or lower case, or `PCAP_ERROR`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_tstamp_type_name_to_val(name: *const c_char) -> c_int {
    guard(PCAP_ERROR, || {
        // SAFETY: C1.
        let Some(name) = (unsafe { word(name) }) else { return PCAP_ERROR };
        let is = |known: &CStr| known.to_bytes().eq_ignore_ascii_case(name.to_bytes());
        let found = TSTAMP_TYPES.iter().position(|(known, _)| is(known));
        found.and_then(|at| c_int::try_from(at).ok()).unwrap_or(PCAP_ERROR)
    })
}

/// Returns the name of a timestamp type, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_tstamp_type_val_to_name(value: c_int) -> *const c_char {
    guard(ptr::null(), || tstamp_type(value).map_or(ptr::null(), |(name, _)| name.as_ptr()))
}

/// Returns the description of a timestamp type, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_tstamp_type_val_to_description(value: c_int) -> *const c_char {
    guard(ptr::null(), || tstamp_type(value).map_or(ptr::null(), |(_, description)| description.as_ptr()))
}

fn tstamp_type(value: c_int) -> Option<(&'static CStr, &'static CStr)> {
    TSTAMP_TYPES.get(usize::try_from(value).ok()?).copied()
}

/// Releases a list of timestamp types.
///
/// # Safety
///
/// The list is null or from `pcap_list_tstamp_types`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_free_tstamp_types(list: *mut c_int) {
    // SAFETY: such lists are allocated with malloc (C3); free takes null.
    guard((), || unsafe { libc::free(list.cast::<c_void>()) });
}
