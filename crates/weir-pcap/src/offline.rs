//! Handles of files.

use std::ffi::{c_char, c_int, c_uint};
use std::ptr;

use libc::FILE;

use crate::guard::{BUG, caught, guard, tell, word};
use crate::handle::{Handle, Pcap, Source};
use crate::savefile::{self, Savefile};
use crate::stdio::File;

/// Opens a file; `-` is standard input.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_open_offline(name: *const c_char, error: *mut c_char) -> *mut Pcap {
    // SAFETY: C1.
    unsafe { pcap_open_offline_with_tstamp_precision(name, 0, error) }
}

/// Opens a file, with timestamps of a precision.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_open_offline_with_tstamp_precision(
    name: *const c_char,
    precision: c_uint,
    error: *mut c_char,
) -> *mut Pcap {
    // SAFETY: C1.
    let name = unsafe { word(name) };
    let opened = || match name {
        None => Err("A null pointer was supplied as the file name".to_owned()),
        Some(name) => savefile::open(name, precision.cast_signed()),
    };
    // SAFETY: C1.
    unsafe { handle(opened, error) }
}

/// Reads an open file.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_fopen_offline(file: *mut FILE, error: *mut c_char) -> *mut Pcap {
    // SAFETY: C1.
    unsafe { pcap_fopen_offline_with_tstamp_precision(file, 0, error) }
}

/// Reads an open file, with timestamps of a precision.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_fopen_offline_with_tstamp_precision(
    file: *mut FILE,
    precision: c_uint,
    error: *mut c_char,
) -> *mut Pcap {
    // SAFETY: C1; the file is open until the handle closes it.
    let file = unsafe { File::new(file) };
    let opened = || match file {
        None => Err("Null FILE * pointer provided to savefile open routine".to_owned()),
        Some(file) => savefile::given(file, precision.cast_signed()),
    };
    // SAFETY: C1.
    unsafe { handle(opened, error) }
}

/// Makes a handle of a file, or tells why there is none.
///
/// # Safety
///
/// C1.
unsafe fn handle(
    opened: impl FnOnce() -> Result<(Savefile, c_int), String>,
    error: *mut c_char,
) -> *mut Pcap {
    guard(ptr::null_mut(), || match caught(Err(BUG.to_owned()), opened) {
        Ok((file, precision)) => {
            let begin = file.begin();
            Pcap::allocate(Handle {
                link_type: begin.link_type,
                link_type_ext: begin.link_type_ext,
                snapshot: begin.snapshot.cast_signed(),
                precision,
                filter: None,
                special: None,
                source: Source::File(Box::new(file)),
            })
        }
        Err(text) => {
            // SAFETY: C1.
            unsafe { tell(error, &text) };
            ptr::null_mut()
        }
    })
}
