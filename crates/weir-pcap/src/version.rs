//! The version, and `pcap_init`.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Mutex;

use crate::abi::PCAP_ERROR;
use crate::guard::{guard, tell};

/// The version of libpcap whose ABI this is.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is libpcap's")]
pub static pcap_version: [u8; 7] = *b"1.10.3\0";

/// Texts are in the encoding of the locale, or in UTF-8. Ours are ASCII.
const MOST_OPTIONS: c_uint = 1;

/// The options of the first `pcap_init`.
static OPTIONS: Mutex<Option<c_uint>> = Mutex::new(None);

/// Stands in the version of this library, and in no other's.
pub(crate) const MARK: &str = "(weir ";

/// Returns the version as a text. Programs look for libpcap's version in it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_lib_version() -> *const c_char {
    const TEXT: &str = concat!("libpcap version 1.10.3 (weir ", env!("CARGO_PKG_VERSION"), ")\0");
    TEXT.as_ptr().cast()
}

/// Chooses the encoding of texts, once.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_init(options: c_uint, error: *mut c_char) -> c_int {
    guard(PCAP_ERROR, || {
        let refused = if options > MOST_OPTIONS {
            "Unknown options specified"
        } else {
            let mut first = OPTIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if *first.get_or_insert(options) == options {
                return 0;
            }
            "Multiple pcap_init calls with different character encodings"
        };
        // SAFETY: C1.
        unsafe { tell(error, refused) };
        PCAP_ERROR
    })
}

/// Returns whether `pcap_init` has succeeded, after which `pcap_lookupdev` does not work.
pub(crate) fn initialised() -> bool {
    OPTIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
}
