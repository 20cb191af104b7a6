//! Reading many packets at once.

use std::ffi::c_int;

use crate::abi::{PCAP_ERROR, PCAP_ERROR_BREAK};
use crate::handle::{Handle, Pcap, Step, with};
use crate::loops::{beside, step};
use crate::savefile::Packet;

/// Gives up to `most` packets, whose bytes stay until the next packet is read from the handle. Returns how many there
/// are, 0 as `pcap_next_ex` does, or a status code: `PCAP_ERROR_BREAK` at the end of a file.
///
/// Waits for the first packet only. A pool gives the packets of a chunk, others give one.
///
/// # Safety
///
/// C1; `to` has room for `most` packets.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn weir_pcap_burst(pcap: *mut Pcap, to: *mut Packet, most: c_int) -> c_int {
    let room = usize::try_from(most).unwrap_or(0);
    if to.is_null() || room == 0 {
        let refuse =
            |pcap: &Pcap, _: &mut Handle| pcap.fail(PCAP_ERROR, "cannot read packets: no room for them");
        // SAFETY: C1, C4.
        return unsafe { with(pcap, PCAP_ERROR, refuse) };
    }
    let mut packet = Packet::NONE;
    // SAFETY: C1, C4.
    match unsafe { step(pcap, false, &mut packet) } {
        Step::Packet => {}
        Step::Nothing | Step::Wait(_) => return 0,
        Step::End | Step::Break => return PCAP_ERROR_BREAK,
        Step::Failed(code) => return code,
    }
    let mut taken = 0;
    loop {
        // SAFETY: `taken` is less than `most`.
        let to = unsafe { to.add(taken) };
        // SAFETY: C1. A packet has nothing to drop.
        unsafe { to.copy_from_nonoverlapping(&raw const packet, 1) };
        taken += 1;
        // SAFETY: C1, C4.
        if taken == room || !unsafe { beside(pcap, &mut packet) } {
            return c_int::try_from(taken).unwrap_or(c_int::MAX);
        }
    }
}
