//! `pcap_setmode`: packets, or only how many there were (`handle/statistics.rs`).

use std::ffi::c_int;
use std::time::Duration;

use crate::abi::*;
use crate::handle::{Handle, Pcap, Statistics, with};

const MODE_CAPT: c_int = 0;
const MODE_STAT: c_int = 1;
const MODE_MON: c_int = 2;
const MODE_DUMP: c_int = 0x10;
const STAT_AND_DUMP: c_int = MODE_STAT | MODE_DUMP;

/// The interval of a handle without a read timeout: the timeout that WinPcap begins with.
const INTERVAL: Duration = Duration::from_secs(1);

/// Chooses what reads give: packets (`MODE_CAPT`) or statistics (`MODE_STAT`). Returns 0 or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setmode(pcap: *mut Pcap, mode: c_int) -> c_int {
    let set = |pcap: &Pcap, handle: &mut Handle| {
        let refused = match mode {
            MODE_CAPT | MODE_STAT => None,
            MODE_MON => Some("monitoring by WinPcap's TME is not supported; try MODE_STAT"),
            MODE_DUMP | STAT_AND_DUMP => Some("call pcap_live_dump to write packets to a file"),
            _ => Some("there is no such mode; try MODE_CAPT or MODE_STAT"),
        };
        if let Some(why) = refused {
            return pcap.fail(PCAP_ERROR, &format!("cannot set mode {mode}: {why}"));
        }
        let Some(live) = handle.live_mut() else { return handle.needs_device(pcap, "set the mode") };
        live.count_only(mode == MODE_STAT);
        let interval = live.timeout().unwrap_or(INTERVAL);
        handle.special().statistics = (mode == MODE_STAT).then(|| Statistics::new(interval));
        0
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}
