//! `pcap_open`: opens files and devices by their source strings.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::source::{SourceLocation, told};
use crate::created::{
    activated, pcap_create, pcap_set_immediate_mode, pcap_set_promisc, pcap_set_snaplen, pcap_set_timeout,
};
use crate::devices::{pcap_findalldevs, pcap_freealldevs};
use crate::guard::{guard, word};
use crate::handle::Pcap;
use crate::offline::pcap_open_offline;
use crate::privileged;

/// `PCAP_OPENFLAG_`. The others are about remote captures, or packets that the handle sends, which a packet socket does
/// not capture.
const PROMISCUOUS: c_int = 1;
const MAX_RESPONSIVENESS: c_int = 16;

/// Opens a source; null is the first device. Returns null with a text in `error` if it cannot.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_open(
    source: *const c_char,
    snap_len: c_int,
    flags: c_int,
    timeout: c_int,
    _auth: *mut c_void,
    error: *mut c_char,
) -> *mut Pcap {
    guard(ptr::null_mut(), || {
        // SAFETY: C1.
        let source = unsafe { word(source) }.unwrap_or_default();
        let name = match of(source) {
            // SAFETY: C1.
            Ok(Source::File(name)) => return unsafe { pcap_open_offline(name.as_ptr(), error) },
            Ok(Source::Device(name)) => name,
            Err(text) => {
                // SAFETY: C1.
                unsafe { told(|| Err(text), error) };
                return ptr::null_mut();
            }
        };
        // SAFETY: a name, and C1.
        let pcap = unsafe { pcap_create(name.as_ptr(), error) };
        // SAFETY: a new handle, or null.
        unsafe { pcap_set_snaplen(pcap, snap_len) };
        // SAFETY: as above.
        unsafe { pcap_set_promisc(pcap, flags & PROMISCUOUS) };
        // SAFETY: as above.
        unsafe { pcap_set_immediate_mode(pcap, flags & MAX_RESPONSIVENESS) };
        // SAFETY: as above.
        unsafe { pcap_set_timeout(pcap, timeout) };
        // SAFETY: as above, and C1.
        unsafe { activated(pcap, name.as_ptr(), error) }
    })
}

/// What can be opened.
enum Source {
    File(CString),
    Device(CString),
}

fn of(source: &CStr) -> Result<Source, String> {
    let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    match SourceLocation::parse(source.to_bytes())? {
        SourceLocation::File(b"") => Err("The name of the file is missing".to_owned()),
        SourceLocation::File(name) => privileged::refuse_file(name).map(|()| Source::File(text(name))),
        SourceLocation::Local(b"") => first().map(Source::Device),
        SourceLocation::Local(name) => Ok(Source::Device(text(name))),
        SourceLocation::Remote { host, .. } => Err(remote(host)),
    }
}

/// Returns the text for a device of another host.
pub(super) fn remote(host: &[u8]) -> String {
    let host = String::from_utf8_lossy(host);
    format!("cannot use devices of {host}: remote capture is not supported; capture there, to a file")
}

/// Returns the name of the first device.
fn first() -> Result<CString, String> {
    let mut error = [0; crate::abi::PCAP_ERRBUF_SIZE];
    let mut list = ptr::null_mut();
    // SAFETY: a place for the list, and a buffer of this size.
    if unsafe { pcap_findalldevs(&raw mut list, error.as_mut_ptr()) } != 0 {
        // SAFETY: `pcap_findalldevs` has written a text.
        return Err(unsafe { word(error.as_ptr()) }.unwrap_or_default().to_string_lossy().into_owned());
    }
    // SAFETY: the list is null or has a device.
    let name = unsafe { list.as_ref() }.map(|device| device.name.cast_const());
    // SAFETY: the name is in the list.
    let name = name.and_then(|name| unsafe { word(name) }).map(CStr::to_owned);
    // SAFETY: nobody else has the list.
    unsafe { pcap_freealldevs(list) };
    name.ok_or_else(|| "there is no device".to_owned())
}
