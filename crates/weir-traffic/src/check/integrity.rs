//! Whether the checksums of a packet are right.

use weir_packet::bytes::be16;
use weir_packet::ethertype::{IPV4, IPV6};
use weir_packet::protocol::{ICMP, ICMPV6, IGMP, TCP, UDP};
use weir_packet::{Extent, Ip};

use crate::checksum::sum;
use crate::layout::{Layout, network};

/// What the checksums say about a whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integrity {
    /// That of the payload is right.
    Sound,
    /// One is wrong, or a length cannot be.
    Damaged,
    /// No checksum covers the payload, or it cannot be told.
    Unknown,
}

use Integrity::{Damaged, Sound, Unknown};

/// Checks IPv4, and the outermost TCP, UDP, ICMP, ICMPv6 or IGMP. `link_type` is that of capture files.
pub(crate) fn integrity(link_type: u16, frame: &[u8]) -> Integrity {
    let packet = network(link_type, frame).and_then(|(kind, at)| Some((kind, frame.get(at..)?)));
    match packet {
        Some((IPV4, packet)) => ipv4(packet),
        Some((IPV6, packet)) => ipv6(packet),
        _ => Unknown,
    }
}

fn ipv4(packet: &[u8]) -> Integrity {
    let Some((fixed, _)) = packet.split_first_chunk::<20>() else { return Damaged };
    let header_length = usize::from(fixed[0] & 0xf) * 4;
    let Some(header) = packet.get(..header_length.max(20)) else { return Damaged };
    if fixed[0] >> 4 != 4 || header_length < 20 || sum(&[header]) != u16::MAX {
        return Damaged;
    }
    payload(packet)
}

fn ipv6(packet: &[u8]) -> Integrity {
    if packet.len() < 40 || packet[0] >> 4 != 6 { Damaged } else { payload(packet) }
}

/// Checks what a packet carries, behind extension headers.
fn payload(packet: &[u8]) -> Integrity {
    match Ip::of(packet) {
        // Longer than 65,535 bytes: from an offload.
        Some(ip) if ip.length.is_none() || ip.extent == Extent::TooMany => return Unknown,
        _ => {}
    }
    match Layout::of(packet) {
        Some(layout) if layout.is_whole && !layout.is_fragment && !layout.is_routed => {
            let [source, destination] = layout.addresses();
            transport(layout.protocol, &packet[source.start..destination.end], &packet[layout.transport])
        }
        Some(layout) if layout.is_whole => Unknown,
        _ => Damaged,
    }
}

/// `addresses`: those of the IP header, one behind the other.
fn transport(protocol: u8, addresses: &[u8], mut segment: &[u8]) -> Integrity {
    let is_ipv6 = addresses.len() == 32;
    let at = match protocol {
        TCP => 16,
        UDP => 6,
        ICMP | IGMP if !is_ipv6 => 2,
        ICMPV6 if is_ipv6 => 2,
        _ => return Unknown,
    };
    let Some(checksum) = be16(segment, at) else { return Damaged };
    if protocol == UDP {
        let length = be16(segment, 4).map_or(0, usize::from);
        let Some(datagram) = segment.get(..length).filter(|datagram| datagram.len() >= 8) else {
            return Damaged;
        };
        if checksum == 0 {
            return Unknown;
        }
        segment = datagram;
    }
    if matches!(protocol, ICMP | IGMP) {
        return if sum(&[segment]) == u16::MAX { Sound } else { Damaged };
    }
    let length = u32::try_from(segment.len()).unwrap_or(u32::MAX).to_be_bytes();
    let pseudo = sum(&[addresses, &length, &[0, protocol]]);
    match sum(&[&pseudo.to_be_bytes(), segment]) {
        u16::MAX => Sound,
        // Left to the card by the sender's stack (`CHECKSUM_PARTIAL`), and it never came to one.
        _ if checksum == pseudo => Unknown,
        _ => Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKED: u16 = 113;
    const COOKED_2: u16 = 276;
    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let (pairs, _) = digits.as_chunks::<2>();
        let byte =
            |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
        pairs.iter().map(byte).collect()
    }

    /// Packets that Debian's Linux sent with offloads off, and whose checksums tshark calls good.
    fn packets() -> Vec<(&'static str, Vec<u8>)> {
        include_str!("packets.txt")
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, bytes)| (name, hex(bytes)))
            .collect()
    }

    fn in_ethernet(packet: &[u8], tags: &[u8]) -> Vec<u8> {
        let kind = if packet[0] >> 4 == 6 { IPV6 } else { IPV4 };
        [&MACS[..], tags, &kind.to_be_bytes(), packet].concat()
    }

    #[test]
    fn packets_of_a_kernel_are_sound_and_any_flip_that_a_checksum_covers_is_damage() {
        let packets = packets();
        assert_eq!(packets.len(), 7);
        for (name, packet) in packets {
            let is_ipv6 = packet[0] >> 4 == 6;
            let kind = if is_ipv6 { IPV6 } else { IPV4 };
            let padded = [&in_ethernet(&packet, &[])[..], &[0; 9]].concat();
            let cooked = [&[0; 14][..], &kind.to_be_bytes(), &packet].concat();
            let cooked_2 = [&kind.to_be_bytes()[..], &[0; 18], &packet].concat();
            let tagged = in_ethernet(&packet, &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]);
            for (link_type, frame) in
                [(1, &padded), (1, &tagged), (101, &packet), (COOKED, &cooked), (COOKED_2, &cooked_2)]
            {
                assert_eq!(integrity(link_type, frame), Sound, "{name} {link_type}");
            }
            assert_eq!(integrity(127, &packet), Unknown, "{name}");
            for bit in 0..packet.len() * 8 {
                // In IPv6 no checksum covers the traffic class, flow label, hop limit and options, and another protocol may
                // have none.
                if is_ipv6 && (matches!(bit / 8, 0..4 | 6 | 7) || packet[6] == 0 && matches!(bit / 8, 40..48))
                {
                    continue;
                }
                let mut flipped = packet.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let frame = in_ethernet(&packet, &[]);
                let frame = [&frame[..14], &flipped].concat();
                assert_eq!(integrity(1, &frame), Damaged, "{name}: bit {bit}");
            }
            for length in 1..packet.len() {
                assert_eq!(
                    integrity(1, &in_ethernet(&packet, &[])[..14 + length]),
                    Damaged,
                    "{name} {length}"
                );
            }
        }
    }

    #[test]
    fn extension_headers_are_stepped_over() {
        let sixes = packets().into_iter().filter(|(_, packet)| packet[0] >> 4 == 6 && packet[6] != 0);
        for (name, packet) in sixes {
            let behind = |kind: u8, head: [u8; 7], times: u8| {
                let mut chain: Vec<u8> = (1..times).flat_map(|_| [&[kind][..], &head].concat()).collect();
                chain.extend([&[packet[6]][..], &head].concat());
                let length = u16::try_from(packet.len() - 40 + chain.len()).expect("short").to_be_bytes();
                let head = [&packet[..4], &length, &[kind], &packet[7..40]].concat();
                integrity(101, &[&head, &chain[..], &packet[40..]].concat())
            };
            for kind in [0, 43, 44, 60, 140] {
                assert_eq!(behind(kind, [0; 7], 1), Sound, "{name}: {kind}");
            }
            assert_eq!(
                behind(43, [0, 0, 1, 0, 0, 0, 0], 1),
                Unknown,
                "{name}: the last destination is another"
            );
            assert_eq!(behind(44, [0, 0, 1, 0, 0, 0, 0], 1), Unknown, "{name}: a fragment");
            assert_eq!((behind(60, [0; 7], 8), behind(60, [0; 7], 9)), (Sound, Unknown), "{name}");
        }
    }

    #[test]
    fn what_no_checksum_confirms_is_unknown() {
        for (name, packet) in packets().into_iter().filter(|(_, packet)| packet[0] >> 4 == 4) {
            let with_header = |change: fn(&mut Vec<u8>)| {
                let mut packet = packet.clone();
                change(&mut packet);
                packet[10..12].fill(0);
                let right = !sum(&[&packet[..20]]);
                packet[10..12].copy_from_slice(&right.to_be_bytes());
                integrity(101, &packet)
            };
            assert_eq!(with_header(|_| {}), Sound, "{name}");
            assert_eq!(with_header(|packet| packet[6] = 0x20), Unknown, "{name}: a fragment");
            assert_eq!(with_header(|packet| packet[9] = 132), Unknown, "{name}: SCTP");
            assert_eq!(with_header(|packet| packet[2..4].fill(0)), Unknown, "{name}: too long");
            if packet[9] == UDP {
                assert_eq!(with_header(|packet| packet[26..28].fill(0)), Unknown, "no checksum");
            }
            if packet[9] != ICMP {
                let mut open = packet.clone();
                let at = if open[9] == UDP { 26 } else { 36 };
                let length = u16::try_from(open.len() - 20).expect("short").to_be_bytes();
                let pseudo = sum(&[&open[12..20], &length, &[0, open[9]]]);
                open[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
                assert_eq!(integrity(101, &open), Unknown, "{name}: left open");
            }
        }
    }
}
