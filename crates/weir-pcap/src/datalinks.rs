//! The link types that a handle can have, by number.

use std::ffi::c_int;

use weir_savefile::link_types::LinkType;

use crate::abi::*;
use crate::foreign::theirs;
use crate::handle::{Handle, Pcap, Source, with};
use crate::lists::give;

/// Lists the link types that `pcap_set_datalink` takes; returns how many there are.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_list_datalinks(pcap: *mut Pcap, to: *mut *mut c_int) -> c_int {
    let numbers = |pcap: &Pcap, handle: &Handle| {
        if let Some(foreign) = &pcap.foreign {
            let list = theirs!(foreign.library, pcap_list_datalinks(pcap, to));
            let numbers = foreign.numbers(list, theirs!(foreign.library, pcap_free_datalinks(to)));
            return numbers.map_err(|status| pcap.fail(status, &foreign.error()));
        }
        match handle.source {
            Source::Created(_) => Err(PCAP_ERROR_NOT_ACTIVATED),
            Source::Live(ref live) => Ok(live.link_types().to_vec()),
            _ => Ok(vec![handle.link_type]),
        }
    };
    // SAFETY: C1.
    unsafe { give(pcap, to, numbers) }
}

/// Sets the link type; files have only one.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_datalink(pcap: *mut Pcap, dlt: c_int) -> c_int {
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, handle| match (&pcap.foreign, &mut handle.source) {
            (Some(foreign), _) => handle.set_their_datalink(pcap, foreign, dlt),
            (None, Source::Dead | Source::File(_) | Source::Dumping(_)) if handle.link_type == dlt => 0,
            (None, Source::Live(live)) if live.link_types().contains(&dlt) => {
                live.set_link_type(dlt);
                handle.link_type = dlt;
                0
            }
            _ => pcap
                .fail(PCAP_ERROR, &format!("{} is not one of the DLTs supported by this device", name(dlt))),
        })
    }
}

/// Releases the list of `pcap_list_datalinks`.
///
/// # Safety
///
/// C1; nothing uses the list afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_free_datalinks(list: *mut c_int) {
    // SAFETY: such lists are allocated with malloc (C3); free takes null.
    unsafe { libc::free(list.cast()) }
}

fn name(dlt: c_int) -> String {
    let known = u16::try_from(dlt).ok().and_then(LinkType::from_dlt);
    known.map_or_else(|| format!("DLT {dlt}"), |known| known.name().to_owned())
}
