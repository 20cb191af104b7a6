//! IP headers, with the extension headers of IPv6.

use std::net::IpAddr;
use std::ops::Range;

use crate::bytes::{be16, byte};
use crate::numbers::{most, protocol};

/// The versions of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// An IP header. Offsets count from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// The version.
    pub version: Version,
    /// The protocol of the payload, behind extension headers of IPv6. If these are not [`Complete`](Extent::Complete), it
    /// is the number of the first header that was not looked at.
    pub protocol: u8,
    /// Where the payload begins: for a later fragment, behind the fragment header. It may be beyond what is there.
    pub payload: usize,
    /// The length of the packet, as its header says it. `None`: the field is 0, in a super-frame of an offload, or in a
    /// jumbogram (RFC 2675).
    pub length: Option<usize>,
    /// What part of its datagram this is. `None`: all of it.
    pub fragment: Option<Fragment>,
    /// How far the headers could be followed.
    pub extent: Extent,
}

/// Part of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The number that all parts have, with addresses, and in IPv4 the protocol.
    pub identification: u32,
    /// Where its payload begins in that of the datagram, in bytes.
    pub offset: usize,
    /// Others come behind it.
    pub more: bool,
}

impl Fragment {
    /// Returns whether the beginning of the datagram is in another part.
    #[inline]
    pub fn is_later(self) -> bool {
        self.offset > 0
    }
}

/// How far headers could be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// To their end.
    Complete,
    /// Until the bytes ended, or to a header whose length cannot be.
    Cut,
    /// As far as a walk goes ([`most`]).
    TooMany,
}

/// An extension header of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Its number.
    pub number: u8,
    /// Where it begins, from the IPv6 header on.
    pub at: usize,
    /// Its length, which may be more than is there.
    pub length: usize,
    /// Its first bytes; the first is the number of the next header.
    pub head: &'a [u8; 8],
}

/// Steps over the extension headers of an IPv6 packet, up to the fragment header of a later fragment.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    packet: &'a [u8],
    number: u8,
    at: usize,
    steps: u8,
    fragment: Option<Fragment>,
    extent: Extent,
}

impl<'a> Extensions<'a> {
    /// Begins at the fixed header; `None`: it is cut.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Option<Self> {
        let number = packet.first_chunk::<V6_HEADER>()?[6];
        Some(Self { packet, number, at: V6_HEADER, steps: 0, fragment: None, extent: Extent::Complete })
    }

    /// Returns the number of what comes next, and where that begins.
    pub fn next_header(&self) -> (u8, usize) {
        (self.number, self.at)
    }

    /// Returns what the headers so far say about the packet's part of a datagram.
    pub fn fragment(&self) -> Option<Fragment> {
        self.fragment
    }

    /// Returns why there was no next one.
    pub fn extent(&self) -> Extent {
        self.extent
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    #[inline]
    fn next(&mut self) -> Option<Extension<'a>> {
        if !is_extension(self.number) || self.fragment.is_some_and(Fragment::is_later) {
            return None;
        }
        if self.steps == most::EXTENSIONS {
            self.extent = Extent::TooMany;
            return None;
        }
        let Some(head) = self.packet.get(self.at..).and_then(<[u8]>::first_chunk::<8>) else {
            self.extent = Extent::Cut;
            return None;
        };
        let units = usize::from(head[1]);
        let length = match self.number {
            protocol::FRAGMENT => {
                let place = u16::from_be_bytes([head[2], head[3]]);
                let fragment = Fragment {
                    identification: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
                    offset: usize::from(place & 0xfff8),
                    more: place & 1 == 1,
                };
                // A fragment that is a whole datagram is none (RFC 6946).
                if fragment.more || fragment.is_later() {
                    self.fragment = Some(fragment);
                }
                8
            }
            protocol::AUTHENTICATION => 4 * units + 8,
            _ => 8 * units + 8,
        };
        let found = Extension { number: self.number, at: self.at, length, head };
        self.steps += 1;
        self.number = head[0];
        self.at += length;
        Some(found)
    }
}

/// Returns whether this is the number of an extension header of IPv6 that says where the next one is
/// (<https://www.iana.org/assignments/ipv6-parameters>); ESP, where encryption begins, and the numbers for experiments do not.
#[inline]
pub const fn is_extension(number: u8) -> bool {
    matches!(
        number,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION
            | protocol::MOBILITY
            | protocol::HIP
            | protocol::SHIM6
    )
}

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

impl Ip {
    /// Reads the header of a packet, of the version that it says. `None`: it is cut, or of no version.
    #[inline]
    pub fn of(packet: &[u8]) -> Option<Self> {
        match byte(packet, 0)? >> 4 {
            4 => Self::v4(packet),
            6 => Self::v6(packet),
            _ => None,
        }
    }

    /// Reads the header of an IPv4 packet, whatever version it says; `None`: it is cut, or its length cannot be.
    #[inline]
    pub fn v4(packet: &[u8]) -> Option<Self> {
        let head: &[u8; V4_HEADER] = packet.first_chunk()?;
        let payload = usize::from(head[0] & 15) * 4;
        if payload < V4_HEADER {
            return None;
        }
        let place = u16::from_be_bytes([head[6], head[7]]);
        let length = u16::from_be_bytes([head[2], head[3]]);
        let fragment = Fragment {
            identification: u16::from_be_bytes([head[4], head[5]]).into(),
            offset: usize::from(place & 0x1fff) * 8,
            more: place & 0x2000 != 0,
        };
        Some(Self {
            version: Version::V4,
            protocol: head[9],
            payload,
            length: (length > 0).then_some(length.into()),
            fragment: (fragment.more || fragment.is_later()).then_some(fragment),
            extent: if payload > packet.len() { Extent::Cut } else { Extent::Complete },
        })
    }

    /// Reads the headers of an IPv6 packet, whatever version it says; `None`: the fixed header is cut.
    #[inline]
    pub fn v6(packet: &[u8]) -> Option<Self> {
        let mut extensions = Extensions::of(packet)?;
        while extensions.next().is_some() {}
        let length = be16(packet, 4)?;
        Some(Self {
            version: Version::V6,
            protocol: extensions.number,
            payload: extensions.at,
            length: (length > 0).then_some(usize::from(length) + V6_HEADER),
            fragment: extensions.fragment,
            extent: extensions.extent,
        })
    }

    /// Returns whether this is a fragment without the beginning of its datagram.
    #[inline]
    pub fn is_later(&self) -> bool {
        self.fragment.is_some_and(Fragment::is_later)
    }

    /// Returns where the source and the destination address are.
    #[inline]
    pub fn addresses(&self) -> [Range<usize>; 2] {
        match self.version {
            Version::V4 => [12..16, 16..20],
            Version::V6 => [8..24, 24..40],
        }
    }

    /// Returns the source and the destination of the packet with this header.
    ///
    /// # Panics
    ///
    /// If it is shorter than its header.
    #[inline]
    pub fn ends(&self, packet: &[u8]) -> [IpAddr; 2] {
        match self.version {
            Version::V4 => {
                let head: &[u8; V4_HEADER] = packet.first_chunk().expect("the header was read");
                let [.., a, b, c, d, e, f, g, h] = *head;
                [IpAddr::from([a, b, c, d]), IpAddr::from([e, f, g, h])]
            }
            Version::V6 => {
                let head: &[u8; V6_HEADER] = packet.first_chunk().expect("the header was read");
                let (source, destination) = head[8..].split_at(16);
                [source, destination]
                    .map(|bytes| <[u8; 16]>::try_from(bytes).expect("half of 32 bytes").into())
            }
        }
    }

    /// Returns the payload of the packet with this header, as far as it is there, without what pads a short frame.
    #[inline]
    pub fn payload_of<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        let end = self.length.map_or(packet.len(), |length| length.min(packet.len()));
        packet.get(self.payload..end).unwrap_or_default()
    }

    /// Returns the ports of the packet with this header, if its protocol has ports and they are there. Padding behind a packet
    /// that is too short for ports is taken for them.
    #[inline]
    pub fn ports(&self, packet: &[u8]) -> Option<[u16; 2]> {
        if !protocol::has_ports(self.protocol) || self.is_later() {
            return None;
        }
        Some([be16(packet, self.payload)?, be16(packet, self.payload + 2)?])
    }
}

/// Returns the address of these four or sixteen bytes.
#[inline]
pub fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv6 packet with these extension headers, each a number and its bytes behind the number of the next, and UDP.
    fn with(extensions: &[(u8, &[u8])]) -> Vec<u8> {
        let numbers = extensions.iter().map(|(number, _)| *number).chain([protocol::UDP]);
        let mut packet = vec![0; V6_HEADER];
        packet[0] = 0x60;
        let mut next = 6;
        for (number, rest) in numbers.zip(extensions.iter().map(|(_, rest)| *rest).chain([&[][..]])) {
            packet[next] = number;
            next = packet.len();
            if number != protocol::UDP {
                packet.push(0);
                packet.extend(rest);
            }
        }
        packet.extend([0, 7, 0, 8, 0, 8, 0, 0]);
        packet
    }

    #[test]
    fn each_extension_header_has_its_length() {
        let eight = [0; 7];
        let sixteen = [&[1][..], &[0; 14]].concat();
        for number in (0..=255).filter(|number| *number != protocol::UDP) {
            let packet = with(&[(number, &eight), (protocol::DESTINATION, &sixteen)]);
            let ip = Ip::of(&packet).expect("it is whole");
            let expected = if is_extension(number) { (protocol::UDP, 64) } else { (number, 40) };
            assert_eq!((ip.protocol, ip.payload), expected, "{number}");
            assert_eq!(ip.extent, Extent::Complete);
        }
        // Units of four bytes.
        let packet = with(&[(protocol::AUTHENTICATION, &[&[2][..], &[0; 14]].concat())]);
        let ip = Ip::of(&packet).expect("it is whole");
        assert_eq!((ip.protocol, ip.payload, ip.ports(&packet)), (protocol::UDP, 56, Some([7, 8])));
    }

    const MOST: usize = most::EXTENSIONS as usize;

    #[test]
    fn headers_that_are_cut_or_too_many_are_told() {
        let eight = [0; 7];
        let option = (protocol::HOP_BY_HOP, &eight[..]);
        let packet = with(&[option; MOST]);
        assert_eq!(
            Ip::of(&packet).map(|ip| (ip.protocol, ip.extent)),
            Some((protocol::UDP, Extent::Complete))
        );
        let packet = with(&[option; MOST + 1]);
        let ip = Ip::of(&packet).expect("the fixed header is whole");
        assert_eq!((ip.protocol, ip.extent), (protocol::HOP_BY_HOP, Extent::TooMany));
        assert_eq!((ip.payload, ip.ports(&packet)), (V6_HEADER + 8 * MOST, None));
        for length in 0..packet.len() {
            let ip = Ip::of(&packet[..length]);
            assert_eq!(ip.is_some(), length >= V6_HEADER, "{length}");
            let extent =
                if length < ip.map_or(0, |_| V6_HEADER + 8 * MOST) { Extent::Cut } else { Extent::TooMany };
            assert!(ip.is_none_or(|ip| ip.extent == extent), "{length}");
        }
    }

    #[test]
    fn fragments_say_where_they_belong() {
        let fragment = |place: u16| {
            let [high, low] = place.to_be_bytes();
            with(&[(protocol::FRAGMENT, &[0, high, low, 0, 0, 1, 2]), (protocol::DESTINATION, &[0; 7])])
        };
        for (place, expected, protocol) in [
            (0, None, protocol::UDP),
            // Two bits without a meaning.
            (6, None, protocol::UDP),
            (1, Some((0, true)), protocol::UDP),
            (8, Some((8, false)), protocol::DESTINATION),
            (17, Some((16, true)), protocol::DESTINATION),
        ] {
            let ip = Ip::of(&fragment(place)).expect("it is whole");
            let found = ip.fragment.map(|fragment| (fragment.offset, fragment.more));
            assert_eq!((found, ip.protocol), (expected, protocol), "{place}");
            assert!(ip.fragment.is_none_or(|fragment| fragment.identification == 0x0102));
        }
        let mut packet = [0; 28];
        (packet[0], packet[9], packet[5]) = (0x45, protocol::UDP, 9);
        for (place, expected) in [
            (0x4000_u16, None),
            (0x2000, Some((0, true))),
            (1, Some((8, false))),
            (0x3fff, Some((65_528, true))),
        ] {
            packet[6..8].copy_from_slice(&place.to_be_bytes());
            let ip = Ip::of(&packet).expect("it is whole");
            assert_eq!(ip.fragment.map(|fragment| (fragment.offset, fragment.more)), expected, "{place:x}");
            assert_eq!(ip.ports(&packet).is_some(), !ip.is_later());
            assert!(ip.fragment.is_none_or(|fragment| fragment.identification == 9));
        }
        for words in 0..5 {
            packet[0] = 0x40 | words;
            assert_eq!(Ip::of(&packet), None, "a header of {words} words");
        }
        // What is whole in a fragment does not make it whole.
        let piece: &[u8] = &[0, 0, 1, 0, 0, 1, 2];
        let packet = with(&[(protocol::FRAGMENT, piece), (protocol::FRAGMENT, &[0; 7])]);
        assert!(Ip::of(&packet).expect("it is whole").fragment.is_some_and(|fragment| fragment.more));
    }

    #[test]
    fn the_payload_ends_where_the_header_says() {
        let mut packet = [7; 40];
        (packet[0], packet[2], packet[3]) = (0x46, 0, 30);
        let ip = Ip::of(&packet).expect("it is whole");
        assert_eq!((ip.payload, ip.length, ip.payload_of(&packet).len()), (24, Some(30), 6));
        assert_eq!(ip.payload_of(&packet[..26]).len(), 2);
        packet[3] = 0;
        let ip = Ip::of(&packet).expect("it is whole");
        assert_eq!((ip.length, ip.payload_of(&packet).len()), (None, 16));
        packet[3] = 10;
        assert!(Ip::of(&packet).expect("it is whole").payload_of(&packet).is_empty());
    }
}
