//! `pcap_setsampling`: reading only some of the packets that the filter accepts.

use std::ptr;

use crate::abi::PcapSamp;
use crate::handle::{Handle, Pcap, Source, with};

/// Returns the sampling of a handle, for the program to change; null with a text for a handle without packets.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setsampling(pcap: *mut Pcap) -> *mut PcapSamp {
    let set = |pcap: &Pcap, handle: &mut Handle| {
        if matches!(handle.source, Source::Dead) || pcap.foreign.is_some() {
            handle.needs_device(pcap, "sample packets");
            return ptr::null_mut();
        }
        handle.special();
        pcap.shared.sampling.get()
    };
    // SAFETY: C1.
    unsafe { with(pcap, ptr::null_mut(), set) }
}
