//! Lists of numbers that C gets and releases.

use std::ffi::c_int;

use crate::abi::PCAP_ERROR;
use crate::allocate;
use crate::handle::{Handle, Pcap, with};

/// Gives C a list of numbers of the handle; returns its length, or the error that `numbers` returns.
///
/// # Safety
///
/// `to` is null or can be written to, and see [`with`].
pub(crate) unsafe fn give(
    pcap: *mut Pcap,
    to: *mut *mut c_int,
    numbers: impl FnOnce(&Pcap, &Handle) -> Result<Vec<c_int>, c_int>,
) -> c_int {
    let made = |pcap: &Pcap, handle: &mut Handle| {
        if to.is_null() {
            return Err(pcap.fail(PCAP_ERROR, "A null pointer was supplied for the list"));
        }
        let numbers = numbers(pcap, handle)?;
        let list = allocate::copy(&numbers);
        if list.is_null() {
            return Err(pcap.fail(PCAP_ERROR, "malloc: Cannot allocate memory"));
        }
        Ok((list, c_int::try_from(numbers.len()).unwrap_or(c_int::MAX)))
    };
    // SAFETY: the caller's promise.
    match unsafe { with(pcap, Err(PCAP_ERROR), made) } {
        Ok((list, length)) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { to.write(list) };
            length
        }
        Err(code) => code,
    }
}
