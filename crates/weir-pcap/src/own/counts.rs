//! 64-bit counts of what became of each packet.

use std::ffi::c_int;

use crate::abi::{Counts, PCAP_ERROR};
use crate::handle::{Handle, Pcap, with};

/// Counts the packets of a capture; returns 0 or a negative status. `size` is the size of the caller's structure: a shorter one gets
/// the first fields, a longer one zeros at its end.
///
/// # Safety
///
/// C1; `to` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn weir_pcap_counts(pcap: *mut Pcap, to: *mut Counts, size: usize) -> c_int {
    let dead = "Statistics aren't available from a pcap_open_dead pcap_t";
    let count = |pcap: &Pcap, handle: &mut Handle| {
        let Some(live) = handle.live_mut() else {
            return Err(handle.refuse(pcap, dead, "Statistics aren't available from savefiles"));
        };
        if to.is_null() {
            return Err(pcap.fail(PCAP_ERROR, "cannot count packets: no room for the counts"));
        }
        live.counts().map_err(|text| pcap.fail(PCAP_ERROR, &text))
    };
    // SAFETY: C1.
    match unsafe { with(pcap, Err(PCAP_ERROR), count) } {
        Ok(counts) => {
            // SAFETY: C1: `size` bytes are writable, and zeros are a value of each field.
            unsafe { to.cast::<u8>().write_bytes(0, size) };
            let known = size.min(size_of::<Counts>());
            // SAFETY: both have at least `known` bytes, and do not overlap.
            unsafe { to.cast::<u8>().copy_from_nonoverlapping((&raw const counts).cast(), known) };
            0
        }
        Err(code) => code,
    }
}
