//! Headers in the byte order of the capturing machine, inside packets of a few link types.

use std::ffi::c_int;

/// Swaps the numbers of such a header in a packet of `length` bytes on the wire, from a file in the other byte order.
#[cold]
pub(super) fn swap_pseudo_header(link_type: c_int, length: u32, packet: &mut [u8]) {
    // A packet can claim to be shorter than it was captured.
    let shorter = packet.len().min(length as usize);
    match link_type {
        LINUX_COOKED => swap_can(&mut packet[..shorter]),
        USB => swap_usb(packet, false),
        USB_MMAPPED => swap_usb(packet, true),
        NETFILTER_LOG => swap_netfilter_log(packet, shorter),
        PACKET_FILTER_LOG => swap_packet_filter_log(&mut packet[..shorter]),
        _ => {}
    }
}

const LINUX_COOKED: c_int = 113;
const PACKET_FILTER_LOG: c_int = 117;
const USB: c_int = 189;
const USB_MMAPPED: c_int = 220;
const NETFILTER_LOG: c_int = 239;

/// Reverses the `SIZE` bytes at `at`; returns whether they are there.
fn swap<const SIZE: usize>(packet: &mut [u8], at: usize) -> bool {
    let Some(number) = packet.get_mut(at..at + SIZE) else { return false };
    number.reverse();
    true
}

/// The identifier of CAN frames behind the 16 bytes of a Linux cooked header.
fn swap_can(packet: &mut [u8]) {
    const HEADER: usize = 16;
    const CAN: u16 = 0x0c;
    const CAN_FD: u16 = 0x0d;
    if let Some(&[a, b]) = packet.get(HEADER - 2..HEADER).and_then(<[u8]>::first_chunk)
        && let CAN | CAN_FD = u16::from_be_bytes([a, b])
    {
        swap::<4>(packet, HEADER);
    }
}

/// The header of usbmon, until the first number that is cut off.
fn swap_usb(packet: &mut [u8], mapped: bool) {
    const ISOCHRONOUS: u8 = 0;
    const DESCRIPTORS: usize = 64;
    let isochronous = packet.get(9) == Some(&ISOCHRONOUS);
    // id; bus; seconds, microseconds, status, and the two lengths.
    let whole = swap::<8>(packet, 0)
        && swap::<2>(packet, 12)
        && swap::<8>(packet, 16)
        && all(packet, &[24, 28, 32, 36])
        // Errors and descriptors, where other transfers have setup bytes.
        && (!isochronous || all(packet, &[40, 44]))
        // Interval, start frame, flags, descriptors.
        && (!mapped || all(packet, &[48, 52, 56, 60]));
    if !whole || !mapped || !isochronous {
        return;
    }
    let count = packet.get(60..).and_then(<[u8]>::first_chunk).map_or(0, |count| u32::from_ne_bytes(*count));
    let mut at = DESCRIPTORS;
    for _ in 0..count {
        // Status, offset, length.
        if !all(packet, &[at, at + 4, at + 8]) {
            return;
        }
        at += 16;
    }
}

/// Swaps numbers of 32 bits until one is cut off; returns whether none is.
fn all(packet: &mut [u8], places: &[usize]) -> bool {
    places.iter().all(|&at| swap::<4>(packet, at))
}

/// The attributes of a netfilter log, as long as they end before `end`: length and type of each.
fn swap_netfilter_log(packet: &mut [u8], end: usize) {
    const HEADER: usize = 4;
    if end < HEADER || packet[1] != 0 {
        return;
    }
    let mut at = HEADER;
    while at + 4 <= packet.len() && swap::<2>(packet, at) && swap::<2>(packet, at + 2) {
        let length = usize::from(u16::from_ne_bytes([packet[at], packet[at + 1]]));
        at += length.next_multiple_of(4);
        if length == 0 || at > end {
            return;
        }
    }
}

/// The identifiers of users and processes in OpenBSD's pflog header, which its first byte says the length of.
fn swap_packet_filter_log(packet: &mut [u8]) {
    const FIRST: usize = 44;
    let length = usize::from(packet.first().copied().unwrap_or(0));
    for at in (FIRST..).step_by(4).take(4) {
        if at + 4 > length || !swap::<4>(packet, at) {
            return;
        }
    }
}
