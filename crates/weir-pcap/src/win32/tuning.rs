//! Buffers, the descriptor, and counts.

use std::ffi::c_int;
use std::ptr;

use crate::abi::*;
use crate::handle::{Handle, Pcap, Source, with};
use crate::live::Live;
use crate::settings::Settings;

/// Bytes of a [`PcapStatEx`].
const SIZE: c_int = 24;
const _: () = assert!(size_of::<PcapStatEx>() == 24);

/// Sets the size of the buffer in bytes. A capture that has begun loses what its old buffer holds. Returns 0 or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setbuff(pcap: *mut Pcap, size: c_int) -> c_int {
    let set = |pcap: &Pcap, handle: &mut Handle| match size {
        1.. => change(pcap, handle, "set the size of the buffer", |settings| settings.buffer = size),
        _ => pcap.fail(PCAP_ERROR, &format!("cannot set the size of the buffer to {size}: not positive")),
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}

/// Sets how many bytes the buffer must hold before a read ends early. 0: each packet is delivered at once; all other
/// sizes: packets wait for others until the read timeout, or a part of the buffer is full. Returns 0 or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setmintocopy(pcap: *mut Pcap, size: c_int) -> c_int {
    let set = |pcap: &Pcap, handle: &mut Handle| match size {
        0.. => change(pcap, handle, "set how long packets wait", |settings| settings.immediate = size == 0),
        _ => pcap.fail(PCAP_ERROR, &format!("cannot wait for {size} bytes: less than none")),
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}

/// Changes a setting of a handle, before or after it was activated.
fn change(pcap: &Pcap, handle: &mut Handle, what: &str, set: impl Fn(&mut Settings)) -> c_int {
    let changed = match &mut handle.source {
        _ if pcap.foreign.is_some() => return handle.needs_device(pcap, what),
        Source::Created(settings) => {
            set(settings);
            return 0;
        }
        Source::Live(live) if live.has(&set) => return 0,
        Source::Live(live) => live.renew(set, handle.link_type, handle.filter.as_deref()),
        _ => return handle.needs_device(pcap, what),
    };
    match changed {
        Ok(()) => 0,
        Err(text) => pcap.fail(PCAP_ERROR, &format!("cannot {what}: {text}")),
    }
}

/// Sets the size of WinPcap's second buffer, to which it copies packets from the first. Here programs read them where
/// they are, so a positive size changes nothing. Returns 0 or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setuserbuffer(pcap: *mut Pcap, size: c_int) -> c_int {
    let set = |pcap: &Pcap, handle: &mut Handle| match (size, &handle.source) {
        (1.., Source::Live(_) | Source::Created(_)) => 0,
        (1.., _) => handle.needs_device(pcap, "set the size of the user's buffer"),
        _ => pcap
            .fail(PCAP_ERROR, &format!("cannot set the size of the user's buffer to {size}: not positive")),
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}

/// Returns the descriptor that is readable once there are packets, or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_getevent(pcap: *mut Pcap) -> c_int {
    let get = |pcap: &Pcap, handle: &mut Handle| {
        if handle.special.as_ref().is_some_and(|special| special.statistics.is_some()) {
            let text = "cannot wait for statistics by a descriptor: a read waits for them";
            return pcap.fail(PCAP_ERROR, text);
        }
        match handle.live_mut().map(Live::descriptor) {
            Some(descriptor) => descriptor,
            None => handle.needs_device(pcap, "wait for packets"),
        }
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, get) }
}

/// Counts packets; stores the size of the result. What it returns stays as it is until the next call; null with a text
/// if there are no counts.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_stats_ex(pcap: *mut Pcap, size: *mut c_int) -> *mut PcapStatEx {
    let count = |pcap: &Pcap, handle: &mut Handle| {
        let Some(live) = handle.live_mut() else {
            handle.needs_device(pcap, "count packets");
            return ptr::null_mut();
        };
        let counted = match live.stats() {
            Ok(_) if size.is_null() => Err("A null pointer was supplied for the size".to_owned()),
            counted => counted,
        };
        match counted {
            Ok(counts) => {
                let place = pcap.shared.counts.get();
                // SAFETY: C has pointers to it, which it reads between its calls only (C4).
                unsafe { place.write(PcapStatEx::of(counts)) };
                place
            }
            Err(text) => {
                pcap.fail(PCAP_ERROR, &text);
                ptr::null_mut()
            }
        }
    };
    // SAFETY: C1.
    let counted = unsafe { with(pcap, ptr::null_mut(), count) };
    if !counted.is_null() {
        // SAFETY: C1, and not null.
        unsafe { size.write(SIZE) };
    }
    counted
}
