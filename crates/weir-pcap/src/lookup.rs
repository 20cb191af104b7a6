//! The IPv4 network of a device.

use std::ffi::{CStr, c_char, c_int};
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use libc::{ifreq, sockaddr_in};

use crate::abi::PCAP_ERROR;
use crate::guard::{guard, tell, word};
use crate::text::last_error;

/// Stores the network number and netmask of a device, both in network byte order; zeros for devices that have none.
/// Returns 0, or `PCAP_ERROR` with a text in `error`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_lookupnet(
    device: *const c_char,
    network: *mut u32,
    netmask: *mut u32,
    error: *mut c_char,
) -> c_int {
    guard(PCAP_ERROR, || {
        // SAFETY: C1.
        let found = match unsafe { word(device) } {
            Some(device) if !is_without_network(device) => look_up(device),
            _ => Ok((0, 0)),
        };
        match found {
            Ok((number, mask)) => {
                for (to, value) in [(network, number), (netmask, mask)] {
                    if !to.is_null() {
                        // SAFETY: C1.
                        unsafe { to.write(value) };
                    }
                }
                0
            }
            Err(text) => {
                // SAFETY: C1.
                unsafe { tell(error, &text) };
                PCAP_ERROR
            }
        }
    })
}

fn is_without_network(device: &CStr) -> bool {
    let name = device.to_string_lossy();
    name == "any" || name.contains("bluetooth") || name.contains("usbmon")
}

fn look_up(device: &CStr) -> Result<(u32, u32), String> {
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(format!("socket: {}", last_error().1));
    }
    // SAFETY: the descriptor is new.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let ask = |what, request| ask(&socket, device, request).map_err(|error| (what, error));
    let found = ask("SIOCGIFADDR", libc::SIOCGIFADDR)
        .and_then(|address| Ok((address, ask("SIOCGIFNETMASK", libc::SIOCGIFNETMASK)?)));
    let name = device.to_string_lossy();
    let (address, mask) = found.map_err(|(what, (number, text))| match number {
        libc::EADDRNOTAVAIL => format!("{name}: no IPv4 address assigned"),
        _ => format!("{what}: {name}: {text}"),
    })?;
    let mask = if mask == 0 {
        class(address).ok_or_else(|| format!("inet class for {address:#x} unknown"))?
    } else {
        mask
    };
    Ok((address & mask, mask))
}

/// Asks for an address of a device.
fn ask(socket: &OwnedFd, device: &CStr, request: libc::Ioctl) -> Result<u32, (c_int, String)> {
    // SAFETY: all zeros are a valid `ifreq`.
    let mut asked: ifreq = unsafe { mem::zeroed() };
    let room = asked.ifr_name.len() - 1;
    for (to, from) in asked.ifr_name[..room].iter_mut().zip(device.to_bytes()) {
        *to = c_char::from_ne_bytes([*from]);
    }
    asked.ifr_ifru.ifru_addr.sa_family = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(0);
    // SAFETY: these requests read and write an `ifreq`.
    if unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut asked) } < 0 {
        return Err(last_error());
    }
    let address: *const sockaddr_in = (&raw const asked.ifr_ifru).cast();
    // SAFETY: the kernel has stored an address of this family.
    Ok(unsafe { address.read_unaligned() }.sin_addr.s_addr)
}

/// Returns the netmask of an address before there were netmasks.
fn class(address: u32) -> Option<u32> {
    let mask: u32 = match address.to_ne_bytes()[0] {
        0..=127 => 0xff00_0000,
        128..=191 => 0xffff_0000,
        192..=223 => 0xffff_ff00,
        _ => return None,
    };
    Some(mask.to_be())
}
