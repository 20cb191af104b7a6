//! How a packet of the ring looks to C.

use std::ffi::c_int;

use weir_packet::ethertype::TAGS_OF_LINUX;
use weir_sys::packet::{Packet, cooked};

use super::device::{LINUX_SLL, LINUX_SLL2};

/// Bytes of the two Ethernet addresses, after which a VLAN tag is.
const ADDRESSES: usize = 12;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkHeader {
    /// That of its interface.
    Own,
    /// `DLT_LINUX_SLL`.
    Sll,
    /// `DLT_LINUX_SLL2`.
    Sll2,
}

impl LinkHeader {
    pub(super) fn of(link_type: c_int) -> Self {
        match link_type {
            LINUX_SLL => Self::Sll,
            LINUX_SLL2 => Self::Sll2,
            _ => Self::Own,
        }
    }

    /// Lays the packet out in `room`, with its VLAN tag, at most `snap_len` bytes of it; returns its length on the wire.
    #[inline]
    pub(super) fn lay(self, packet: &Packet<'_>, snap_len: usize, room: &mut Vec<u8>) -> u32 {
        room.clear();
        let tag = packet.tag.as_ref().map_or(&[][..], |tag| &tag[..]);
        let length = packet.original_len + if tag.is_empty() { 0 } else { 4 };
        if self == Self::Own {
            if tag.is_empty() {
                room.extend_from_slice(&packet.data[..packet.data.len().min(snap_len)]);
                return length;
            }
            let (addresses, rest) = packet.data.split_at(packet.data.len().min(ADDRESSES));
            room.extend_from_slice(addresses);
            room.extend_from_slice(tag);
            room.extend_from_slice(rest);
            room.truncate(snap_len);
            return length;
        }
        let (mut protocol, mut rest) = cooked::behind_link_layer(packet);
        if self == Self::Sll2 {
            (protocol, rest) = behind_tags(protocol, rest);
        }
        // With a tag, the header names the tag's protocol, and the tag names that of the payload.
        // The second version goes without, so that filters such as `udp` accept the packet.
        let tag = packet.tag.filter(|_| self == Self::Sll);
        let (outer, inner) = match tag {
            Some([high, low, ..]) => ([high, low], Some(protocol)),
            None => (protocol, None),
        };
        let header = self.header(packet, outer);
        room.extend_from_slice(header.as_ref());
        if let (Some([.., a, b]), Some(protocol)) = (tag, inner) {
            room.extend_from_slice(&[a, b]);
            room.extend_from_slice(&protocol);
        }
        let added = room.len();
        room.extend_from_slice(rest);
        room.truncate(snap_len);
        on_the_wire(packet, rest, added)
    }

    /// Lays a cooked packet out as libpcap's filters see it, with the kernel's idea of its protocol: a stripped tag is not
    /// there, and a frame that was sent with its tag has the tag's protocol.
    #[inline]
    pub(super) fn lay_for_filter(self, packet: &Packet<'_>, room: &mut Vec<u8>) -> u32 {
        let (protocol, rest) = cooked::behind_link_layer(packet);
        room.clear();
        room.extend_from_slice(self.header(packet, protocol).as_ref());
        let added = room.len();
        room.extend_from_slice(rest);
        on_the_wire(packet, rest, added)
    }

    fn header(self, packet: &Packet<'_>, protocol: [u8; 2]) -> Header {
        let two = cooked::header(&packet.origin, protocol);
        if self == Self::Sll2 {
            return Header { bytes: two, length: two.len() };
        }
        // The same fields in another order, without the interface.
        let mut bytes = [0; cooked::HEADER];
        bytes[1] = two[10];
        bytes[2..4].copy_from_slice(&two[8..10]);
        bytes[5] = two[11];
        bytes[6..14].copy_from_slice(&two[12..20]);
        bytes[14..16].copy_from_slice(&two[..2]);
        Header { bytes, length: 16 }
    }
}

/// Returns the length on the wire of a packet of which `rest` follows `added` bytes.
fn on_the_wire(packet: &Packet<'_>, rest: &[u8], added: usize) -> u32 {
    let bytes = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    packet.original_len.saturating_sub(bytes(packet.data.len() - rest.len())) + bytes(added)
}

/// Skips the tags of a packet that was sent with them in its data, as the kernel does; returns the protocol after them, and what follows.
fn behind_tags(mut protocol: [u8; 2], mut rest: &[u8]) -> ([u8; 2], &[u8]) {
    while TAGS_OF_LINUX.contains(&u16::from_be_bytes(protocol))
        && let [_, _, high, low, behind @ ..] = rest
    {
        (protocol, rest) = ([*high, *low], behind);
    }
    (protocol, rest)
}

/// A cooked header.
struct Header {
    bytes: [u8; cooked::HEADER],
    length: usize,
}

impl AsRef<[u8]> for Header {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use weir_sys::packet::Origin;

    use super::*;

    fn packet<'a>(data: &'a [u8], tag: Option<[u8; 4]>) -> Packet<'a> {
        let origin = Origin::new(7, 4, 0x0800, 1, [1, 2, 3, 4, 5, 6]);
        Packet { data, link_header: 14, original_len: 100, timestamp: 0, tag, origin }
    }

    const FRAME: [u8; 18] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0, 0x45, 9, 9, 9];
    const TAG: [u8; 4] = [0x81, 0, 0, 5];

    fn laid(link_header: LinkHeader, tag: Option<[u8; 4]>, snap_len: usize) -> (Vec<u8>, u32) {
        let mut room = vec![7; 3];
        let length = link_header.lay(&packet(&FRAME, tag), snap_len, &mut room);
        (room, length)
    }

    #[test]
    fn a_tag_is_behind_the_addresses() {
        assert_eq!(laid(LinkHeader::Own, None, 99), (FRAME.to_vec(), 100));
        let tagged = [&FRAME[..12], &TAG, &FRAME[12..]].concat();
        assert_eq!(laid(LinkHeader::Own, Some(TAG), 99), (tagged.clone(), 104));
        assert_eq!(laid(LinkHeader::Own, Some(TAG), 15), (tagged[..15].to_vec(), 104));
        assert_eq!(laid(LinkHeader::Own, None, 3), (FRAME[..3].to_vec(), 100));
    }

    #[test]
    fn cooked_headers_replace_the_ethernet_header() {
        let address = [1, 2, 3, 4, 5, 6, 0, 0];
        let one = [&[0, 4, 0, 1, 0, 6][..], &address, &[8, 0], &FRAME[14..]].concat();
        assert_eq!(laid(LinkHeader::Sll, None, 99), (one.clone(), 102));
        let two = [&[8, 0, 0, 0, 0, 0, 0, 7, 0, 1, 4, 6][..], &address, &FRAME[14..]].concat();
        assert_eq!(laid(LinkHeader::Sll2, None, 99), (two.clone(), 106));
        assert_eq!(laid(LinkHeader::Sll2, Some(TAG), 99), (two.clone(), 106));
        let sent = [&FRAME[..12], &TAG, &FRAME[12..]].concat();
        let mut room = Vec::new();
        assert_eq!(LinkHeader::Sll2.lay(&packet(&sent, None), 99, &mut room), 102);
        assert_eq!(room, two);
        let mut filtered =
            |packet: &Packet<'_>| (LinkHeader::Sll.lay_for_filter(packet, &mut room), room.clone());
        assert_eq!(filtered(&packet(&FRAME, Some(TAG))), (102, one.clone()));
        assert_eq!(filtered(&packet(&sent, None)).1[14..16], [0x81, 0]);
        let tagged = [&[0, 4, 0, 1, 0, 6][..], &address, &[0x81, 0, 0, 5, 8, 0], &FRAME[14..]].concat();
        assert_eq!(laid(LinkHeader::Sll, Some(TAG), 99), (tagged, 106));
    }
}
