//! The list of devices.
//!
//! If the system's library is there, the list is its list: it cannot be asked for those devices alone that are no
//! interfaces, and listing interfaces twice would take too long.
//!
//! Otherwise, interfaces and addresses come from getifaddrs(3), which asks rtnetlink: what it makes of point-to-point
//! links, labels and addresses without a peer is what programs know. A driver is asked once whether it is connected.

mod interface;

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use libc::sockaddr;

use self::interface::interfaces;
use crate::abi::*;
use crate::allocate::{copy, place, release};
use crate::foreign;
use crate::guard::{guard, tell, word};
use crate::kept::Kept;
use crate::version;

/// A device before C gets it.
struct Device {
    name: CString,
    description: Option<&'static CStr>,
    flags: BpfU32,
    addresses: Vec<Address>,
}

/// An address of a device: its bytes, and those of its netmask, broadcast address and peer.
struct Address {
    address: Vec<u8>,
    netmask: Option<Vec<u8>>,
    broadcast: Option<Vec<u8>>,
    peer: Option<Vec<u8>>,
}

thread_local! {
    static FIRST: Kept = const { Kept::new() };
}

/// Stores a list of the devices, the best to capture on first, for [`pcap_freealldevs`]. Returns 0, or `PCAP_ERROR`
/// with a text in `error`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_findalldevs(list: *mut *mut PcapIf, error: *mut c_char) -> c_int {
    guard(PCAP_ERROR, || {
        if list.is_null() {
            // SAFETY: C1.
            unsafe { tell(error, "A null pointer was supplied for the list") };
            return PCAP_ERROR;
        }
        // SAFETY: C1.
        if let Some(result) = unsafe { foreign::find_all_devices(list, error) } {
            return result;
        }
        let made = devices()
            .and_then(|devices| give(&devices).ok_or_else(|| "malloc: Cannot allocate memory".into()));
        let (devices, result) = match made {
            Ok(devices) => (devices, 0),
            Err(text) => {
                // SAFETY: C1.
                unsafe { tell(error, &text) };
                (ptr::null_mut(), PCAP_ERROR)
            }
        };
        // SAFETY: C1, and not null.
        unsafe { list.write(devices) };
        result
    })
}

/// Releases a list of devices.
///
/// # Safety
///
/// The list is null or from [`pcap_findalldevs`], and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_freealldevs(list: *mut PcapIf) {
    guard((), || {
        // SAFETY: C1.
        if !unsafe { foreign::free_all_devices(list) } {
            // SAFETY: C1, and it is not the other library's.
            unsafe { release_devices(list) };
        }
    });
}

/// # Safety
///
/// The list is null or made by `give`, and nobody uses it any more.
unsafe fn release_devices(list: *mut PcapIf) {
    let mut next = list;
    while !next.is_null() {
        // SAFETY: `give` has made the list.
        let device = unsafe { next.read() };
        // SAFETY: nobody uses it any more.
        unsafe { release(next) };
        next = device.next;
        // SAFETY: as above; each was allocated by itself.
        unsafe { release(device.name) };
        // SAFETY: as above.
        unsafe { release(device.description) };
        // SAFETY: as above.
        unsafe { release_addresses(device.addresses) };
    }
}

/// # Safety
///
/// `give` has made the list, and nobody uses it any more.
unsafe fn release_addresses(mut list: *mut PcapAddr) {
    while !list.is_null() {
        // SAFETY: the caller's promise.
        let address = unsafe { list.read() };
        // SAFETY: as above.
        unsafe { release(list) };
        list = address.next;
        for part in [address.addr, address.netmask, address.broadaddr, address.dstaddr] {
            // SAFETY: as above; each was allocated by itself.
            unsafe { release(part) };
        }
    }
}

/// Returns the name of the first device, valid until the thread's next call, or null with a text in `error`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_lookupdev(error: *mut c_char) -> *mut c_char {
    guard(ptr::null_mut(), || {
        if version::initialised() {
            let text = "pcap_lookupdev() is deprecated and is not supported in programs calling pcap_init()";
            // SAFETY: C1.
            unsafe { tell(error, text) };
            return ptr::null_mut();
        }
        let mut list = ptr::null_mut();
        // SAFETY: C1.
        if unsafe { pcap_findalldevs(&raw mut list, error) } != 0 {
            return ptr::null_mut();
        }
        // SAFETY: null, or the first device.
        let first = unsafe { list.as_ref() }.filter(|first| first.flags & PCAP_IF_LOOPBACK == 0);
        // SAFETY: a name is terminated.
        let name = first.and_then(|first| unsafe { word(first.name) });
        let kept = name.map(|name| FIRST.with(|kept| kept.set(&name.to_string_lossy())));
        // SAFETY: nobody else has it.
        unsafe { pcap_freealldevs(list) };
        kept.unwrap_or_else(|| {
            // SAFETY: C1.
            unsafe { tell(error, "no suitable device found") };
            ptr::null_mut()
        })
    })
}

/// Returns our devices in the order in which they should be tried; among equals, as the kernel lists them.
fn devices() -> Result<Vec<Device>, String> {
    let mut devices = interfaces()?;
    devices.push(Device {
        name: c"any".to_owned(),
        description: Some(c"Pseudo-device that captures on all interfaces"),
        flags: PCAP_IF_UP | PCAP_IF_RUNNING | PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE,
        addresses: Vec::new(),
    });
    devices.sort_by_key(Device::faults);
    Ok(devices)
}

impl Device {
    /// Returns what speaks against the device, the worst first.
    fn faults(&self) -> [bool; 5] {
        let has = |flag| self.flags & flag != 0;
        let disconnected = self.flags & PCAP_IF_CONNECTION_STATUS == PCAP_IF_CONNECTION_STATUS_DISCONNECTED;
        [
            !has(PCAP_IF_RUNNING),
            !has(PCAP_IF_UP),
            disconnected && !has(PCAP_IF_WIRELESS),
            has(PCAP_IF_LOOPBACK),
            self.name.as_c_str() == c"any",
        ]
    }
}

/// Makes C's list of the devices; `None` without memory.
fn give(devices: &[Device]) -> Option<*mut PcapIf> {
    let mut list = ptr::null_mut();
    for device in devices.iter().rev() {
        let entry = give_device(device, list);
        if entry.is_null() {
            // SAFETY: nobody else has it.
            unsafe { release_devices(list) };
            return None;
        }
        list = entry;
    }
    Some(list)
}

/// Makes C's entry in front of `next`; null without memory.
fn give_device(device: &Device, next: *mut PcapIf) -> *mut PcapIf {
    let text = |text: &CStr| -> *mut c_char { copy(text.to_bytes_with_nul()).cast() };
    let name = text(&device.name);
    let description = device.description.map_or(ptr::null_mut(), text);
    let addresses = give_addresses(&device.addresses);
    let entry = match addresses {
        Some(addresses) if !name.is_null() && description.is_null() == device.description.is_none() => {
            place(PcapIf { next, name, description, addresses, flags: device.flags })
        }
        _ => ptr::null_mut(),
    };
    if entry.is_null() {
        // SAFETY: nobody else has it.
        unsafe { release(name) };
        // SAFETY: as above.
        unsafe { release(description) };
        // SAFETY: as above.
        unsafe { release_addresses(addresses.unwrap_or(ptr::null_mut())) };
    }
    entry
}

/// Makes C's list of the addresses; `None` without memory.
fn give_addresses(addresses: &[Address]) -> Option<*mut PcapAddr> {
    let mut list = ptr::null_mut();
    for address in addresses.iter().rev() {
        let parts = [
            Some(&address.address),
            address.netmask.as_ref(),
            address.broadcast.as_ref(),
            address.peer.as_ref(),
        ];
        let given = parts.map(|part| part.map_or(ptr::null_mut(), |bytes| copy(bytes).cast::<sockaddr>()));
        let [addr, netmask, broadaddr, dstaddr] = given;
        let lost = given.iter().zip(parts).any(|(given, part)| given.is_null() && part.is_some());
        let entry = if lost {
            ptr::null_mut()
        } else {
            place(PcapAddr { next: list, addr, netmask, broadaddr, dstaddr })
        };
        if entry.is_null() {
            for part in given {
                // SAFETY: nobody else has it.
                unsafe { release(part) };
            }
            // SAFETY: as above.
            unsafe { release_addresses(list) };
            return None;
        }
        list = entry;
    }
    Some(list)
}
