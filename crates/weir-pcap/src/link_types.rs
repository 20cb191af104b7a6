//! Names and descriptions of link types, which programs know by `DLT_` numbers.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use weir_savefile::link_types::{LinkType, dlt_of_number, number_of_dlt};

use crate::abi::PCAP_ERROR;
use crate::guard::{guard, word};
use crate::kept::Kept;

thread_local! {
    static UNKNOWN: Kept = const { Kept::new() };
}

/// Returns the link type with this name, in upper or lower case, or `PCAP_ERROR`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_datalink_name_to_val(name: *const c_char) -> c_int {
    guard(PCAP_ERROR, || {
        // SAFETY: C1.
        let name = unsafe { word(name) }.and_then(|name| name.to_str().ok());
        name.and_then(LinkType::from_name).map_or(PCAP_ERROR, |known| known.dlt().into())
    })
}

/// Returns the name of a link type, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_datalink_val_to_name(dlt: c_int) -> *const c_char {
    guard(ptr::null(), || find(dlt).map_or(ptr::null(), |known| known.c_name.as_ptr()))
}

/// Returns the description of a link type, or null.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_datalink_val_to_description(dlt: c_int) -> *const c_char {
    guard(ptr::null(), || find(dlt).map_or(ptr::null(), |known| known.c_description.as_ptr()))
}

/// Returns the description of a link type, or `DLT` and its number.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_datalink_val_to_description_or_dlt(dlt: c_int) -> *const c_char {
    guard(c"DLT".as_ptr(), || {
        let known = find(dlt).map(|known| known.c_description);
        known.map_or_else(|| UNKNOWN.with(|kept| kept.set(&format!("DLT {dlt}"))).cast_const(), CStr::as_ptr)
    })
}

fn find(dlt: c_int) -> Option<LinkType> {
    LinkType::from_dlt(dlt.try_into().ok()?)
}

/// Returns the number in files; `None` for link types that files cannot have.
pub(crate) fn in_files(dlt: c_int) -> Option<u32> {
    let known = matches!(dlt, 0..=12 | 15 | 16 | 19 | 50 | 51 | 99 | 104..=289);
    u16::try_from(dlt).ok().filter(|_| known).map(|dlt| number_of_dlt(dlt).into())
}

/// Returns the `DLT_` number for one in a file; those that are not known stay.
pub(crate) fn from_file(number: u32) -> c_int {
    let known = u16::try_from(number).map(dlt_of_number);
    known.map_or_else(|_| number.cast_signed(), c_int::from)
}
