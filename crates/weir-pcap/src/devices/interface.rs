//! The network interfaces of this namespace.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{ptr, slice};

use libc::{ifaddrs, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_ll};
use weir_sys::ethtool::Ethtool;

use super::{Address, Device};
use crate::abi::*;
use crate::guard::word;
use crate::text::last_error;

/// Returns the interfaces with their addresses, as the kernel lists them.
pub(super) fn interfaces() -> Result<Vec<Device>, String> {
    let list = List::new().map_err(|text| format!("getifaddrs: {text}"))?;
    let ethtool = Ethtool::new().map_err(|error| error.to_string())?;
    let mut devices: Vec<Device> = Vec::new();
    let mut places: HashMap<CString, usize> = HashMap::new();
    for entry in list.entries() {
        // SAFETY: a name of getifaddrs ends with a 0.
        let Some(name) = (unsafe { word(entry.ifa_name) }) else { continue };
        let place = *places.entry(name.to_owned()).or_insert_with(|| {
            let flags = flags(name, entry, &ethtool);
            devices.push(Device { name: name.to_owned(), description: None, flags, addresses: Vec::new() });
            devices.len() - 1
        });
        devices[place].addresses.extend(address(entry));
    }
    Ok(devices)
}

/// The list of getifaddrs(3): an entry per interface, then one per address.
struct List(*mut ifaddrs);

impl List {
    fn new() -> Result<Self, String> {
        let mut list = ptr::null_mut();
        // SAFETY: the list is written to.
        let result = unsafe { libc::getifaddrs(&raw mut list) };
        if result == 0 { Ok(Self(list)) } else { Err(last_error().1) }
    }

    fn entries(&self) -> impl Iterator<Item = &ifaddrs> {
        // SAFETY: null, or an entry that lives as long as the list.
        let first = unsafe { self.0.as_ref() };
        std::iter::successors(first, |entry| {
            // SAFETY: as above.
            unsafe { entry.ifa_next.as_ref() }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list is from getifaddrs and not used any more.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

fn address(entry: &ifaddrs) -> Option<Address> {
    // A broadcast address and a peer are the same field, of which the flags say what it is.
    let other = |flag| if has(entry, flag) { entry.ifa_ifu } else { ptr::null_mut() };
    let [broadcast, peer] = [libc::IFF_BROADCAST, libc::IFF_POINTOPOINT].map(other);
    // SAFETY: the pointers of an entry are null or addresses of their family.
    let copy = |from: *mut sockaddr| unsafe { bytes(from) };
    Some(Address {
        address: copy(entry.ifa_addr)?,
        netmask: copy(entry.ifa_netmask),
        broadcast: copy(broadcast),
        peer: copy(peer),
    })
}

/// Copies an address; `None` for null.
///
/// # Safety
///
/// `from` is null or an address as long as its family says.
unsafe fn bytes(from: *const sockaddr) -> Option<Vec<u8>> {
    if from.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let length = match c_int::from(unsafe { (*from).sa_family }) {
        libc::AF_INET => size_of::<sockaddr_in>(),
        libc::AF_INET6 => size_of::<sockaddr_in6>(),
        libc::AF_PACKET => size_of::<sockaddr_ll>(),
        _ => size_of::<sockaddr>(),
    };
    // SAFETY: the caller's promise.
    Some(unsafe { slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec())
}

fn has(entry: &ifaddrs, flag: c_int) -> bool {
    entry.ifa_flags & flag.cast_unsigned() != 0
}

fn flags(name: &CStr, entry: &ifaddrs, ethtool: &Ethtool) -> BpfU32 {
    let known = [
        (libc::IFF_LOOPBACK, PCAP_IF_LOOPBACK),
        (libc::IFF_UP, PCAP_IF_UP),
        (libc::IFF_RUNNING, PCAP_IF_RUNNING),
    ];
    let mut flags = known.iter().filter(|(flag, _)| has(entry, *flag)).fold(0, |all, (_, flag)| all | flag);
    if flags & PCAP_IF_LOOPBACK != 0 {
        return flags | PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE;
    }
    if is_wireless(name, entry) {
        flags |= PCAP_IF_WIRELESS;
    }
    let connected = name.to_str().ok().and_then(|name| ethtool.is_connected(name));
    flags
        | match connected {
            Some(true) => PCAP_IF_CONNECTION_STATUS_CONNECTED,
            Some(false) => PCAP_IF_CONNECTION_STATUS_DISCONNECTED,
            None => PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE,
        }
}

/// Wi-Fi that looks like Ethernet has a directory in sysfs; for the rest, its hardware type says it.
fn is_wireless(name: &CStr, entry: &ifaddrs) -> bool {
    /// `ARPHRD_` types: IrDA, 802.11 with three kinds of headers, 802.15.4 and its monitor, 6LoWPAN.
    const TYPES: [u16; 7] = [783, 801, 802, 803, 804, 805, 825];
    // SAFETY: null, or an address of its family.
    let Some(address) = (unsafe { entry.ifa_addr.as_ref() }) else { return false };
    if c_int::from(address.sa_family) != libc::AF_PACKET {
        return false;
    }
    // SAFETY: as above; glibc aligns it for each family.
    let hardware = unsafe { entry.ifa_addr.cast::<sockaddr_ll>().read_unaligned() }.sll_hatype;
    TYPES.contains(&hardware)
        || Path::new("/sys/class/net").join(OsStr::from_bytes(name.to_bytes())).join("wireless").exists()
}
