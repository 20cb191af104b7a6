//! The types of the system's functions that are called for a handle of that library, `H`. Those to which calls are passed on
//! have the types of ours.

use std::ffi::{c_char, c_int};

use crate::abi::PcapIf;

/// Creates a handle for a device.
pub(super) type Create<H> = unsafe extern "C-unwind" fn(*const c_char, *mut c_char) -> *mut H;
/// Ends something.
pub(super) type Done<H> = unsafe extern "C-unwind" fn(*mut H);
/// Returns a number or a status.
pub(super) type Number<H> = unsafe extern "C-unwind" fn(*mut H) -> c_int;
/// Sets a number.
pub(super) type Set<H> = unsafe extern "C-unwind" fn(*mut H, c_int) -> c_int;
/// Returns a text.
pub(super) type Text<H> = unsafe extern "C-unwind" fn(*mut H) -> *mut c_char;
/// Lists numbers.
pub(crate) type Make<H> = unsafe extern "C-unwind" fn(*mut H, *mut *mut c_int) -> c_int;
/// Lists devices.
pub(super) type Find = unsafe extern "C-unwind" fn(*mut *mut PcapIf, *mut c_char) -> c_int;
/// Releases a list of devices.
pub(super) type Free = unsafe extern "C-unwind" fn(*mut PcapIf);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::{Pcap, pcap_close, pcap_geterr};
    use crate::{created, datalinks, devices, loops, properties};

    /// Ours have the types of pcap.h: the tests against the system's library would fail otherwise.
    #[test]
    fn theirs_have_the_types_of_ours() {
        let _: Create<Pcap> = created::pcap_create;
        let _: [Done<Pcap>; 2] = [loops::pcap_breakloop, pcap_close];
        let _: [Number<Pcap>; 4] = [
            created::pcap_activate,
            properties::pcap_datalink,
            properties::pcap_snapshot,
            properties::pcap_get_tstamp_precision,
        ];
        let _: Set<Pcap> = datalinks::pcap_set_datalink;
        let _: Text<Pcap> = pcap_geterr;
        let _: [Make<Pcap>; 2] = [created::pcap_list_tstamp_types, datalinks::pcap_list_datalinks];
        let _: Find = devices::pcap_findalldevs;
        let _: Free = devices::pcap_freealldevs;
    }
}
