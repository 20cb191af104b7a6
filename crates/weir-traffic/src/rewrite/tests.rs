//! Rewritten packets, judged by the checksums of whole packets.

use proptest::prelude::*;

use super::*;
use crate::check::{Integrity, integrity};
use crate::checksum::{OF_FRAMES, crc};

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Packets that Debian's Linux sent with offloads off, in Ethernet frames.
fn frames() -> Vec<Vec<u8>> {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hex");
        digits.chunks(2).map(byte).collect()
    };
    let packets = include_str!("../check/packets.txt").lines().filter_map(|line| line.split_once(": "));
    packets
        .map(|(_, bytes)| hex(bytes))
        .map(|packet| {
            let kind = if packet[0] >> 4 == 6 { IPV6 } else { IPV4 };
            [&MACS[..], &kind.to_be_bytes(), &packet].concat()
        })
        .collect()
}

fn rules() -> Rewrite {
    Rewrite {
        macs: vec![([2, 0, 0, 0, 0, 1], [2, 9, 9, 9, 9, 9])],
        networks: vec![
            "0.0.0.0/0=172.16.0.0/12".parse().expect("a map"),
            "::/0=fd12:3456::/32".parse().expect("a map"),
        ],
        ports: ["1-9=40001-40009", "80-20000=21845", "20001-65000=+7"]
            .map(|map| map.parse().expect("a map"))
            .to_vec(),
        tag: Some(Tag::Id(77)),
        shift: 3,
    }
}

fn rewritten(rules: &Rewrite, link_type: u16, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    Rewriter::new(rules.clone()).apply(link_type, &mut frame);
    frame
}

#[test]
fn right_checksums_stay_right_and_wrong_ones_wrong() {
    for frame in frames() {
        let changed = rewritten(&rules(), ETHERNET, &frame);
        assert_eq!(changed.len(), frame.len() + 4);
        assert_eq!((&changed[6..12], &changed[12..16]), (&[2, 9, 9, 9, 9, 9][..], &[0x81, 0, 0, 77][..]));
        assert_ne!(changed[18..], frame[14..]);
        assert_eq!(integrity(ETHERNET, &changed), Integrity::Sound, "{frame:02x?}");
        assert_eq!(rewritten(&rules(), 101, &frame[14..]), changed[18..], "without an Ethernet header");
        let mut damaged = frame.clone();
        *damaged.last_mut().expect("bytes") ^= 4;
        assert_eq!(integrity(ETHERNET, &rewritten(&rules(), ETHERNET, &damaged)), Integrity::Damaged);
    }
}

/// With its checksum at the end, a frame of 802.11 is what its length says.
#[test]
fn the_checksum_of_a_wireless_frame_stays_right_and_a_wrong_one_wrong() {
    const RIGHT_REST: u32 = 0x2144_df1c;
    let head = [&[8][..], &[0; 23], &[0xaa, 0xaa, 3, 0, 0, 0]].concat();
    for frame in frames() {
        let inside = [&head, &frame[12..]].concat();
        let checksum = crc(OF_FRAMES, &inside).to_le_bytes();
        for (link_type, front) in [(105, &[][..]), (127, &[0, 0, 9, 0, 2, 0, 0, 0, 0x10])] {
            let whole = [front, &inside, &checksum].concat();
            let changed = rewritten(&rules(), link_type, &whole);
            assert_ne!(changed[..whole.len() - 4], whole[..whole.len() - 4]);
            assert_eq!(crc(OF_FRAMES, &changed[front.len()..]), RIGHT_REST, "{link_type}");
            assert_eq!(changed[front.len()..whole.len() - 4], rewritten(&rules(), 105, &inside));
            let mut emptied = whole.clone();
            Rewriter::default().zero_payload(true).apply(link_type, &mut emptied);
            assert_eq!(crc(OF_FRAMES, &emptied[front.len()..]), RIGHT_REST, "{link_type}");
            let mut damaged = whole.clone();
            damaged[whole.len() - 1] ^= 1;
            let end = damaged[whole.len() - 4..].to_vec();
            assert_eq!(rewritten(&rules(), link_type, &damaged)[whole.len() - 4..], end, "{link_type}");
            let framing = Framing { destination: Some([2; 6]), source: None, sender: [4; 6] };
            let mut framed = whole.clone();
            assert_eq!(framing.apply(link_type, &mut framed), ETHERNET);
            assert_eq!(framed[14..], frame[14..], "without the checksum");
            // A frame for which there is no header, with its checksum.
            let header = [&[0x80], &whole[1..20]].concat();
            let beacon = [&header[..], &crc(OF_FRAMES, &header).to_le_bytes()].concat();
            let mut kept = beacon.clone();
            assert_eq!((framing.apply(105, &mut kept), kept), (105, beacon));
        }
    }
}

/// Zero would mean that there is none (RFC 768).
#[test]
fn a_datagram_without_a_checksum_gets_none() {
    let rules = Rewrite {
        networks: vec!["10.0.0.0/8=11.0.0.0/8".parse().expect("a map")],
        ports: vec!["7=8".parse().expect("a map")],
        ..Rewrite::default()
    };
    let head = [0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let packet = [&head[..], &[0, 7, 0, 9, 0, 9, 0, 0], b"x"].concat();
    let changed = rewritten(&rules, weir_packet::link_type::RAW, &packet);
    assert_eq!((&changed[12..16], &changed[20..]), (&[11, 0, 0, 1][..], &[0, 8, 0, 9, 0, 9, 0, 0, b'x'][..]));
}

#[test]
fn the_checksum_of_udp_never_becomes_zero() {
    let mut tried = 0;
    for frame in frames() {
        let (protocol, udp) = if frame[12] == 0x86 { (frame[20], 54) } else { (frame[23], 34) };
        let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let (port, checksum) = (word(udp), word(udp + 6));
        if protocol != 17 || checksum == 0 {
            continue;
        }
        // With a port that is greater by the checksum, the sum of all words is that of none.
        let (sum, carry) = port.overflowing_add(checksum);
        let other = sum + u16::from(carry);
        let rules =
            Rewrite { ports: vec![format!("{port}={other}").parse().expect("a map")], ..Rewrite::default() };
        let changed = rewritten(&rules, ETHERNET, &frame);
        assert_eq!(
            (&changed[udp..udp + 2], &changed[udp + 6..udp + 8]),
            (&other.to_be_bytes()[..], &[0xff, 0xff][..])
        );
        assert_eq!(integrity(ETHERNET, &changed), Integrity::Sound);
        tried += 1;
    }
    assert!(tried >= 2, "{tried}");
}

#[test]
fn without_rules_nothing_changes() {
    for mut frame in frames() {
        assert_eq!(rewritten(&Rewrite::default(), ETHERNET, &frame), frame);
        *frame.last_mut().expect("bytes") ^= 4;
        assert_eq!(rewritten(&Rewrite::default(), ETHERNET, &frame), frame, "even if it is wrong");
    }
}

/// Tags, labels and the header of a session are stepped over, and stay.
#[test]
fn what_is_between_makes_no_difference() {
    let rules = Rewrite {
        networks: vec![
            "0.0.0.0/0=172.16.0.0/12".parse().expect("a map"),
            "::/0=fd88::/16".parse().expect("a map"),
        ],
        ports: vec!["0-9999=+1".parse().expect("a map")],
        ..Rewrite::default()
    };
    for frame in frames() {
        let changed = rewritten(&rules, ETHERNET, &frame);
        assert_ne!(changed, frame);
        let (macs, kind) = (&frame[..12], &frame[12..14]);
        let carries = if kind == [8, 0] { 0x21 } else { 0x57 };
        for between in [
            &[0x92, 0, 0, 7, 0x81, 0, 0, 8, kind[0], kind[1]][..],
            &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64],
            &[0x81, 0, 0, 8, 0x88, 0x64, 0x11, 0, 0, 7, 0, 60, 0, carries],
        ] {
            let with = |frame: &[u8]| [macs, between, &frame[14..]].concat();
            assert_eq!(rewritten(&rules, ETHERNET, &with(&frame)), with(&changed), "{between:x?}");
        }
        let family = if kind == [8, 0] { 2 } else { 10 };
        for (link_type, header) in [
            (9, &[0xff, 3, 0, carries][..]),
            (50, &[0x0f, 0, kind[0], kind[1]]),
            (104, &[0x8f, 0, kind[0], kind[1]]),
            (105, &[&[8][..], &[0; 23], &[0xaa, 0xaa, 3, 0, 0, 0], kind].concat()),
            (107, &[0x18, 0x41, 3, 0xcf, carries]),
            (192, &[0, 0, 8, 0, 9, 0, 0, 0, carries]),
            (239, &[family, 0, 0, 5, 99, 0, 9, 0]),
        ] {
            let with = |frame: &[u8]| [header, &frame[14..]].concat();
            assert_eq!(rewritten(&rules, link_type, &with(&frame)), with(&changed), "{link_type}");
        }
    }
}

#[test]
fn checksums_left_to_the_card_are_filled_in() {
    for frame in frames() {
        let layout = Layout::of(&frame[14..]).expect("an IP packet");
        if let TCP | UDP = layout.protocol {
            let at = 14 + layout.transport.start + layout.checksum().expect("it has one");
            let mut open = frame.clone();
            open[at..at + 2].copy_from_slice(&pseudo(&frame[14..], &layout).to_be_bytes());
            assert_eq!(rewritten(&Rewrite::default(), ETHERNET, &open), frame);
        }
    }
}

#[test]
fn lengths_left_to_the_card_are_filled_in() {
    for v6 in [false, true] {
        let whole = tcp(v6);
        let layout = Layout::of(&whole[14..]).expect("an IP packet");
        let (length, at) = (if v6 { 18 } else { 16 }, 14 + layout.transport.start + 16);
        let mut open = whole.clone();
        open[length..length + 2].fill(0);
        assert_eq!(rewritten(&Rewrite::default(), ETHERNET, &open)[at..], whole[at..]);
        let [source, destination] = layout.addresses().map(|place| &whole[14..][place]);
        let without = sum(&[source, destination, &[0, TCP]]);
        for sum in [pseudo(&whole[14..], &layout), without] {
            open[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            if !v6 {
                open[24..26].fill(0);
            }
            assert_eq!(rewritten(&Rewrite::default(), ETHERNET, &open), whole);
        }
        // With padding, or with too much: nobody knows.
        for open in [&open[..60], &[&open[..], &[0; 65_535]].concat()] {
            assert_eq!(rewritten(&Rewrite::default(), ETHERNET, open)[length..length + 2], [0; 2]);
        }
    }
}

#[test]
fn tags_are_set_and_removed() {
    let plain = frames().remove(0);
    let tagged = |tags: &[u8]| [&plain[..12], tags, &plain[12..]].concat();
    let (none, seven, two) = (Some(Tag::None), Some(Tag::Id(7)), Some(Tag::Two(7, 8)));
    for (tag, before, after) in [
        (none, &[][..], &[][..]),
        (none, &[0x88, 0xa8, 0, 1, 0x81, 0, 0xe0, 2], &[]),
        (seven, &[], &[0x81, 0, 0, 7]),
        (two, &[], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]),
        (two, &[0x81, 0, 0xe0, 1], &[0x88, 0xa8, 0xe0, 7, 0x81, 0, 0xe0, 8]),
        (two, &[0x88, 0xa8, 0x20, 1, 0x81, 0, 0xe0, 2], &[0x88, 0xa8, 0x20, 7, 0x81, 0, 0xe0, 8]),
        (two, &[0x91, 0, 0, 1, 0x91, 0, 0, 2, 0x81, 0, 0x40, 3], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]),
        (seven, &[0x81, 0, 0xff, 0xff], &[0x81, 0, 0xf0, 7]),
        (seven, &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 2]),
    ] {
        let rules = Rewrite { tag, ..Rewrite::default() };
        assert_eq!(rewritten(&rules, ETHERNET, &tagged(before)), tagged(after), "{before:02x?}");
    }
}

#[test]
fn arp_and_neighbours_tell_the_new_addresses() {
    let arp = [
        &MACS[..],
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2],
        &[2, 0, 0, 0, 0, 1, 10, 0, 0, 1],
        &[2, 0, 0, 0, 0, 2, 0, 0, 0, 0],
    ]
    .concat();
    let rules = Rewrite {
        macs: vec![([2, 0, 0, 0, 0, 1], [6; 6])],
        networks: vec!["10.0.0.0/8=10.7.0.0/16".parse().expect("a map")],
        shift: 1,
        ..Rewrite::default()
    };
    let changed = rewritten(&rules, ETHERNET, &arp);
    assert_eq!(changed[22..32], [6, 6, 6, 6, 6, 6, 10, 7, 0, 2]);
    assert_eq!(changed[32..], arp[32..], "an unspecified address stays");
}

/// The fragments of a frame that begin at these places of what follows the IP header.
fn fragments(frame: &[u8], begins: &[usize]) -> Vec<Vec<u8>> {
    let is_ipv6 = frame[12] == 0x86;
    let (headers, payload) = frame.split_at(if is_ipv6 { 54 } else { 34 });
    let whole = payload.len();
    let ends = begins.iter().skip(1).chain([&whole]);
    let fragment = |(&begin, &end): (&usize, &usize)| {
        let more = u16::from(end < whole);
        let (mut headers, piece) = (headers.to_vec(), &payload[begin..end]);
        let begin = u16::try_from(begin).expect("short");
        let length = u16::try_from(piece.len()).expect("short");
        if is_ipv6 {
            let next = std::mem::replace(&mut headers[20], 44);
            headers[18..20].copy_from_slice(&(length + 8).to_be_bytes());
            headers.extend([&[next, 0][..], &(begin | more).to_be_bytes(), &[0, 0, 0, 7]].concat());
        } else {
            headers[16..18].copy_from_slice(&(length + 20).to_be_bytes());
            headers[18..20].copy_from_slice(&[0, 7]);
            headers[20..22].copy_from_slice(&(begin >> 3 | more << 13).to_be_bytes());
            headers[24..26].fill(0);
            let checksum = !sum(&[&headers[14..34]]);
            headers[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        [&headers[..], piece].concat()
    };
    begins.iter().zip(ends).map(fragment).collect()
}

/// A TCP packet with right checksums.
fn tcp(v6: bool) -> Vec<u8> {
    pieces(&super_frame(v6, &[], 100, 0x10), if v6 { 114 } else { 94 }).swap_remove(0)
}

#[test]
fn checksums_in_another_fragment_than_the_ports_stay_right() {
    let rules = Rewrite { tag: None, ..rules() };
    for v6 in [false, true] {
        let frame = tcp(v6);
        let whole = rewritten(&rules, ETHERNET, &frame);
        for begins in [&[0, 8][..], &[0, 16], &[0, 8, 16], &[0, 8, 24, 32], &[0, 24]] {
            let mut rewriter = Rewriter::new(rules.clone());
            let mut apply = |mut frame: Vec<u8>| {
                let left = rewriter.apply(ETHERNET, &mut frame);
                (frame, left)
            };
            let expected = fragments(&whole, begins);
            // Twice, as another datagram may have the same identification.
            for frame in [&frame, &frame] {
                let pieces = fragments(frame, begins);
                for (piece, expected) in pieces.into_iter().zip(&expected) {
                    assert_eq!(apply(piece), (expected.clone(), Left::default()), "{begins:?}");
                }
            }
            // The other way round: ports stay if a fragment with the checksum has left, and the checksum is right for them.
            let is_elsewhere = begins[1] <= 16;
            let portless = Rewrite { ports: Vec::new(), ..rules.clone() };
            let by = if is_elsewhere { &portless } else { &rules };
            let expected = fragments(&rewritten(by, ETHERNET, &frame), begins);
            rewriter.restart();
            for (number, (piece, expected)) in
                fragments(&frame, begins).into_iter().zip(expected).enumerate().rev()
            {
                let mut piece = piece;
                let left = rewriter.apply(ETHERNET, &mut piece);
                assert_eq!(piece, expected, "{begins:?} {number}");
                assert_eq!(left, Left { ports: is_elsewhere && number == 0, ..Left::default() });
            }
        }
    }
}

#[test]
fn another_datagram_with_the_same_identification_has_ports_of_its_own() {
    let rules = Rewrite { tag: None, ..rules() };
    let mut other = tcp(false);
    // Other ports and data; the checksum follows.
    other[34] ^= 1;
    other[60] ^= 0x40;
    let layout = Layout::of(&other[14..]).expect("a packet");
    complete(&mut other[14..], &layout);
    let mut rewriter = Rewriter::new(rules.clone());
    for mut piece in fragments(&tcp(false), &[0, 8]) {
        rewriter.apply(ETHERNET, &mut piece);
    }
    let expected = Rewrite { ports: Vec::new(), ..rules };
    let expected = fragments(&rewritten(&expected, ETHERNET, &other), &[0, 8]);
    for (mut piece, expected) in fragments(&other, &[0, 8]).into_iter().zip(expected).rev() {
        rewriter.apply(ETHERNET, &mut piece);
        assert_eq!(piece, expected);
    }
}

#[test]
fn addresses_in_options_and_routes_change() {
    let rules = Rewrite {
        networks: ["10.0.0.0/8=172.0.0.0/8", "2001:db8::/32=fd00::/32"]
            .map(|map| map.parse().expect("a map"))
            .to_vec(),
        ..Rewrite::default()
    };
    let hop = |last: u8| [10, 0, 0, last];
    let new = |last: u8| [172, 0, 0, last];
    let options = |pointer: u8, at: fn(u8) -> [u8; 4], is_passed: fn(u8) -> [u8; 4]| {
        let route = [&[1, 131, 11, pointer][..], &at(5), &at(6)].concat();
        // Of two records one is taken; the other place has what the sender left there.
        let record = [&[7, 11, 8][..], &is_passed(7), &[10, 9, 9, 9], &[1]].concat();
        let times = [&[68, 12, 13, 1][..], &is_passed(8), &[0, 0, 0, 9]].concat();
        [route, record, times].concat()
    };
    let packet = |options: &[u8], ends: [[u8; 4]; 2], last: [u8; 4]| {
        let udp = [0, 9, 0, 9, 0, 12, 0, 0, b'd', b'a', b't', b'a'];
        let mut packet =
            [&[0x45 + 9, 0, 0, 68, 0, 0, 0, 0, 64, UDP, 0, 0][..], ends.as_flattened(), options, &udp]
                .concat();
        let header = !sum(&[&packet[..56]]);
        packet[10..12].copy_from_slice(&header.to_be_bytes());
        let checksum = !sum(&[&ends[0], &last, &[0, UDP, 0, 12], &udp]);
        packet[62..64].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    // The checksum covers where the packet goes in the end: behind the last hop, the destination in the header.
    for (pointer, is_under_way) in [(4, true), (8, true), (12, false)] {
        let of = |at: fn(u8) -> [u8; 4]| {
            packet(&options(pointer, at, at), [at(1), at(2)], if is_under_way { at(6) } else { at(2) })
        };
        assert_eq!(rewritten(&rules, 101, &of(hop)), of(new), "{pointer}");
    }
    let six = |first: u16, last: u16| {
        Ipv6Addr::new(first, if first == 0xfd00 { 0 } else { 0xdb8 }, 0, 0, 0, 0, 0, last).octets()
    };
    let routed = |network: u16| {
        let [from, next, end] = [1, 2, 3].map(|last| six(network, last));
        let udp = [0, 9, 0, 9, 0, 12, 0, 0, b'd', b'a', b't', b'a'];
        let mut packet =
            [&[0x60, 0, 0, 0, 0, 36, 43, 64][..], &from, &next, &[UDP, 2, 2, 1, 0, 0, 0, 0], &end, &udp]
                .concat();
        let checksum = !sum(&[&from, &end, &[0, 0, 0, 12, 0, 0, 0, UDP], &udp]);
        packet[70..72].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    assert_eq!(rewritten(&rules, 101, &routed(0x2001)), routed(0xfd00));
}

#[test]
fn headers_that_cannot_be_changed_are_told() {
    let frame = tcp(false);
    let told =
        |frame: &[u8], rules: &Rewrite| Rewriter::new(rules.clone()).apply(ETHERNET, &mut frame.to_vec());
    let headers = Left { headers: true, ..Left::default() };
    let changed = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[at] = byte;
        frame
    };
    // A fragment of UDP that ends before the checksum.
    let mut astray = fragments(&changed(23, UDP), &[0, 8]).remove(0);
    astray.truncate(38);
    let arp = [&MACS[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0]].concat();
    for (what, frame) in [
        ("cut", &frame[..30]),
        ("no header", &changed(14, 0x41)),
        ("version", &changed(14, 0x75)),
        ("fragment", &astray),
        ("ARP", &arp),
    ] {
        assert_eq!(told(frame, &rules()), headers, "{what}");
        assert_eq!(told(frame, &Rewrite::default()), Left::default(), "{what}");
    }
    assert_eq!(told(&frame, &rules()), Left::default());
    assert_eq!(told(&frame[..40], &rules()), Left::default(), "what is not there need not change");
}

/// Frames with addresses in ICMP messages.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let lines = include_str!("messages.txt").lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, hex)| (name, crate::templates::hex(hex).expect("hex"))).collect()
}

/// Replaces bytes wherever they are.
fn replaced(mut frame: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    for at in 0..=frame.len() - from.len() {
        if frame[at..].starts_with(from) {
            frame[at..at + to.len()].copy_from_slice(to);
        }
    }
    frame
}

#[test]
fn addresses_in_icmp_are_replaced_wherever_they_are() {
    let rules = Rewrite {
        macs: vec![([2, 0, 0, 0, 0, 1], [2, 9, 9, 9, 9, 9])],
        networks: [
            "10.0.0.0/24=198.18.7.0/24",
            "2001:db8::/32=3fff:9::/32",
            "239.1.0.0/16=239.192.0.0/16",
            "ff15::/16=ff05::/16",
        ]
        .map(|map| map.parse().expect("a map"))
        .to_vec(),
        ..Rewrite::default()
    };
    for (name, frame) in messages() {
        let mut changed = frame.clone();
        assert_eq!(Rewriter::new(rules.clone()).apply(ETHERNET, &mut changed), Left::default(), "{name}");
        assert_eq!(integrity(ETHERNET, &changed), Integrity::Sound, "{name}");
        let expected = replaced(frame.clone(), &[10, 0, 0], &[198, 18, 7]);
        let expected = replaced(expected, &[0x20, 1, 0xd, 0xb8], &[0x3f, 0xff, 0, 9]);
        let expected = replaced(expected, &[239, 1], &[239, 192]);
        let expected = replaced(expected, &[0xff, 0x15, 0], &[0xff, 5, 0]);
        let mut expected = replaced(expected, &[2, 0, 0, 0, 0, 1], &[2, 9, 9, 9, 9, 9]);
        // Checksums: of IPv4, here and in the quoted packet, and of the message.
        let checksums: &[usize] = if frame[12] == 8 { &[24, 36] } else { &[56] };
        for &at in checksums {
            expected[at..at + 2].copy_from_slice(&changed[at..at + 2]);
        }
        if name == "redirect 4" {
            assert_eq!(sum(&[&changed[42..62]]), u16::MAX, "the quoted header");
            expected[52..54].copy_from_slice(&changed[52..54]);
        }
        assert_eq!(changed, expected, "{name}");
        // Whatever is missing is told, or is not there to be changed.
        for length in 58..frame.len() {
            let mut cut = frame[..length].to_vec();
            let left = Rewriter::new(rules.clone()).apply(ETHERNET, &mut cut);
            let at = checksums[checksums.len() - 1];
            cut[at..at + 2].copy_from_slice(&changed[at..at + 2]);
            assert!(cut == changed[..length] || left.headers, "{name} {length}");
        }
    }
}

/// An IP packet of this protocol, whose checksum is here in its header, with headers before it.
fn other(v6: bool, protocol: u8, at: usize, before: &[u8]) -> Vec<u8> {
    let mut frame = tcp(v6);
    let begin = if v6 { 54 } else { 34 };
    let covered: Vec<u8> = (0..40).map(|byte| byte * 3 + 1).collect();
    frame.splice(begin.., [before, &covered].concat());
    frame[if v6 { 20 } else { 23 }] = if before.is_empty() { protocol } else { 51 };
    let length = u16::try_from(frame.len() - if v6 { 54 } else { 14 }).expect("short").to_be_bytes();
    let place = if v6 { 18 } else { 16 };
    frame[place..place + 2].copy_from_slice(&length);
    if !v6 {
        frame[24..26].fill(0);
        let checksum = !sum(&[&frame[14..34]]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
    let begin = begin + before.len();
    frame[begin + at..begin + at + 2].fill(0);
    let checksum = !covering(&frame, v6, protocol, begin);
    frame[begin + at..begin + at + 2].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// The sum of addresses, length, protocol and everything from here on.
fn covering(frame: &[u8], v6: bool, protocol: u8, begin: usize) -> u16 {
    let addresses = if v6 { &frame[22..54] } else { &frame[26..34] };
    let length = u32::try_from(frame.len() - begin).expect("short").to_be_bytes();
    sum(&[addresses, &length, &[0, protocol], &frame[begin..]])
}

#[test]
fn checksums_of_other_protocols_follow_the_addresses() {
    const DCCP: u8 = 33;
    const OSPF: u8 = 89;
    const UDP_LITE: u8 = 136;
    let untagged = Rewrite { tag: None, ..rules() };
    for (v6, protocol, at) in [
        (false, UDP_LITE, 6),
        (true, UDP_LITE, 6),
        (false, DCCP, 6),
        (true, DCCP, 6),
        (false, 139, 4),
        (true, 139, 4),
        (true, OSPF, 12),
        (true, 103, 2),
        (true, 112, 6),
        (true, 135, 4),
    ] {
        let begin = if v6 { 54 } else { 34 };
        let frame = other(v6, protocol, at, &[]);
        let changed = rewritten(&untagged, ETHERNET, &frame);
        assert_ne!(frame[begin..], changed[begin..], "{protocol} {v6}: a new checksum");
        assert_eq!(covering(&changed, v6, protocol, begin), u16::MAX, "{protocol} {v6}");
        let but = |frame: &[u8]| [&frame[begin..begin + at], &frame[begin + at + 2..]].concat();
        assert_eq!(but(&frame), but(&changed), "{protocol} {v6}: and nothing else");
    }
    // Those cover no addresses.
    for protocol in [OSPF, 103, 132] {
        let frame = other(false, protocol, 12, &[]);
        assert_eq!(frame[34..], rewritten(&untagged, ETHERNET, &frame)[34..], "{protocol}");
    }
}

#[test]
fn packets_that_are_no_longer_authentic_are_told() {
    // 24 bytes, of which the last twelve prove the rest.
    let header = [&[6, 4, 0, 0][..], &[7; 20]].concat();
    for v6 in [false, true] {
        let begin = if v6 { 54 } else { 34 } + header.len();
        let frame = other(v6, 6, 16, &header);
        let mut changed = frame.clone();
        let left = Rewriter::new(Rewrite { tag: None, ..rules() }).apply(ETHERNET, &mut changed);
        assert_eq!(left, Left { headers: true, ..Left::default() }, "{v6}");
        assert_eq!(covering(&changed, v6, 6, begin), u16::MAX, "TCP is right even so");
        assert_ne!(changed, frame);
        let elsewhere = Rewrite { ports: vec!["7=8".parse().expect("a map")], ..Rewrite::default() };
        assert_eq!(
            Rewriter::new(elsewhere).apply(ETHERNET, &mut changed),
            Left::default(),
            "nothing changes"
        );
    }
}

#[test]
fn the_mac_address_of_a_group_changes_with_it() {
    let rules = |macs: &[([u8; 6], [u8; 6])]| Rewrite {
        macs: macs.to_vec(),
        networks: [
            "239.1.0.0/16=239.192.0.0/16",
            "239.2.0.1=10.0.0.1",
            "10.9.0.0/16=239.7.0.0/16",
            "ff15::1=ff05::7:8",
        ]
        .map(|map| map.parse().expect("a map"))
        .to_vec(),
        tag: Some(Tag::Id(7)),
        ..Rewrite::default()
    };
    let frame = |mac: [u8; 6], to: &str| {
        let to: IpAddr = to.parse().expect("an address");
        let mut frame = tcp(to.is_ipv6());
        frame[..6].copy_from_slice(&mac);
        match to {
            IpAddr::V4(to) => frame[30..34].copy_from_slice(&to.octets()),
            IpAddr::V6(to) => frame[38..54].copy_from_slice(&to.octets()),
        }
        frame
    };
    let (old, other) = ([1, 0, 0x5e, 1, 2, 3], [2, 0, 0, 0, 0, 9]);
    for (mac, to, macs, expected, group) in [
        (old, "239.1.2.3", &[][..], [1, 0, 0x5e, 0x40, 2, 3], false),
        ([0x33, 0x33, 0, 0, 0, 1], "ff15::1", &[], [0x33, 0x33, 0, 7, 0, 8], false),
        (old, "239.1.2.3", &[(old, [2; 6])], [2; 6], false),
        (old, "239.1.2.3", &[(old, old)], old, false),
        // To a single station, and a group that does not change.
        (other, "239.1.2.3", &[], other, false),
        ([1, 0, 0x5e, 5, 5, 5], "239.5.5.5", &[], [1, 0, 0x5e, 5, 5, 5], false),
        // From and to a single host.
        ([1, 0, 0x5e, 2, 0, 1], "239.2.0.1", &[], [1, 0, 0x5e, 2, 0, 1], true),
        (other, "10.9.1.2", &[], [1, 0, 0x5e, 7, 1, 2], false),
    ] {
        let mut frame = frame(mac, to);
        let left = Rewriter::new(rules(macs)).apply(ETHERNET, &mut frame);
        assert_eq!((&frame[..6], left), (&expected[..], Left { group, ..Left::default() }), "{to}");
    }
}

#[test]
fn prefixes_change_if_all_of_their_addresses_do() {
    for (map, prefix, bits, expected) in [
        ("2001:db8::/32=fd00::/32", "2001:db8:5::", 48, Some("fd00:0:5::")),
        ("2001:db8::/32=fd00::/32", "2001:db8::", 32, Some("fd00::")),
        ("2001:db8::/32=fd00::/32", "2001:db8::", 31, None),
        ("2001:db8::/32=fd00::/32", "2001:db9::", 64, None),
        ("::/0=fd00::/8", "::", 0, None),
        ("2001:db8::1=fd00::1", "2001:db8::1", 128, Some("fd00::1")),
        ("2001:db8::1=fd00::1", "2001:db8::1", 255, Some("fd00::1")),
    ] {
        let parsed: NetworkMap = map.parse().expect("a map");
        let mapped = parsed.map_prefix(prefix.parse().expect("an address"), bits);
        assert_eq!(mapped.map(|prefix| prefix.to_string()).as_deref(), expected, "{map} {prefix}/{bits}");
    }
}

#[test]
fn shifts_stay_unicast_and_differ() {
    let of = |text: &str, shift| shifted(text.parse().expect("an address"), shift).to_string();
    for (from, shift, to) in [
        ("10.0.0.255", 1, "10.0.1.0"),
        ("223.255.255.255", 1, "0.0.0.1"),
        ("224.0.0.1", 9, "224.0.0.1"),
        ("255.255.255.255", 1, "255.255.255.255"),
        ("0.0.0.0", 1, "0.0.0.0"),
        ("fd00::ffff:ffff", 1, "fd00::"),
        ("ff02::1", 1, "ff02::1"),
    ] {
        assert_eq!(of(from, shift), to, "{from}");
    }
}

/// A packet of TCP with a payload of its own for each place.
fn super_frame(v6: bool, tags: &[u8], payload: usize, flags: u8) -> Vec<u8> {
    let tcp = [&[0, 80, 4, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0x60, flags, 1, 1, 0, 0, 0, 0][..], &[1; 4]];
    let body: Vec<u8> = (0..payload).map(|at| (at * 7 % 251).to_le_bytes()[0]).collect();
    let transport = [&tcp.concat()[..], &body].concat();
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(0).to_be_bytes();
    let packet = if v6 {
        let header = [&[0x60, 0, 0, 0][..], &length(transport.len()), &[TCP, 64], &[0xfd; 32]].concat();
        [header, transport].concat()
    } else {
        let fixed = [&[0x45, 0][..], &length(20 + transport.len()), &[0xff, 0xff, 0x40, 0, 64, TCP, 0, 0]];
        [fixed.concat(), vec![10, 0, 0, 1, 10, 0, 0, 2], transport].concat()
    };
    let kind = if v6 { IPV6 } else { IPV4 };
    [&MACS[..], tags, &kind.to_be_bytes(), &packet].concat()
}

/// The segments of a frame; empty if it is not cut.
fn pieces(frame: &[u8], longest: usize) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let count = cut(ETHERNET, frame, longest, |segment| {
        pieces.push(segment.to_vec());
        Ok::<_, ()>(())
    });
    assert_eq!(count, Ok((!pieces.is_empty()).then_some(pieces.len() as u64)));
    pieces
}

#[test]
fn segments_are_what_a_card_would_have_sent() {
    const FLAGS: u8 = 0x99;
    for v6 in [false, true] {
        for (tags, payload) in [(&[][..], 4000), (&[0x81, 0, 0, 7][..], 64_000), (&[], 200_000)] {
            let frame = super_frame(v6, tags, payload, FLAGS);
            let network = 14 + tags.len();
            let headers = network + if v6 { 64 } else { 44 };
            let pieces = pieces(&frame, 1500);
            assert_eq!(pieces.len(), payload.div_ceil(1500 + network - headers));
            let mut all = Vec::new();
            for (index, piece) in pieces.iter().enumerate() {
                assert_eq!(integrity(ETHERNET, piece), Integrity::Sound);
                assert!(piece.len() <= 1500 + network);
                let tcp = &piece[headers - 24..];
                let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
                assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add(u32::try_from(all.len()).expect("short")));
                let first = if index == 0 { 0x80 } else { 0 };
                let last = if index + 1 == pieces.len() { 0x09 } else { 0 };
                assert_eq!(tcp[13], 0x10 | first | last);
                if !v6 {
                    let id = u16::from_be_bytes([piece[network + 4], piece[network + 5]]);
                    assert_eq!(id, 0xffff_u16.wrapping_add(u16::try_from(index).expect("few")));
                }
                all.extend_from_slice(&piece[headers..]);
            }
            assert!(all == frame[headers..], "the payload is another");
        }
    }
}

#[test]
fn what_is_no_super_frame_stays_whole() {
    let frame = super_frame(false, &[], 4000, 0x10);
    let changed = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[at] = byte;
        frame
    };
    assert_eq!(pieces(&frame, 4044), [[0; 0]; 0]);
    assert_eq!(pieces(&frame, 4043).len(), 2);
    for (what, other) in
        [("UDP", changed(23, UDP)), ("a fragment", changed(20, 0x20)), ("cut", frame[..3000].to_vec())]
    {
        assert_eq!(pieces(&other, 1500), [[0; 0]; 0], "{what}");
    }
    assert_eq!(pieces(&frame, 44), [[0; 0]; 0], "no room for a payload");
    let logged = [&[2, 0, 0, 5, 99, 0, 9, 0], &frame[14..]].concat();
    assert!(matches!(cut(239, &logged, 1500, |_| Err(())), Ok(None)), "an attribute with a length");
}

#[test]
fn a_header_that_tells_a_jumbo_length_goes() {
    let frame = super_frame(true, &[], 100_000, 0x10);
    let mut jumbo = [&frame[..54], &[TCP, 0, 0xc2, 4, 0, 1, 0x86, 0xb8], &frame[54..]].concat();
    jumbo[20] = 0;
    assert!(pieces(&jumbo, 1500) == pieces(&frame, 1500));
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(
        link_type in prop_oneof![Just(1_u16), Just(101), Just(113), Just(0)],
        which in 0..7_usize,
        changes in prop::collection::vec((0..100_usize, any::<u8>()), 0..8),
        length in 0..200_usize,
        longest in 0..100_usize,
    ) {
        let mut frame = frames().swap_remove(which);
        for (at, byte) in changes {
            let length = frame.len();
            frame[at % length] = byte;
        }
        frame.truncate(length);
        let _count = cut(link_type, &frame, longest, |_| Ok::<_, ()>(()));
        Rewriter::new(rules()).apply(link_type, &mut frame);
    }

    #[test]
    fn there_and_back_again(which in 0..7_usize, flip in 14..40_usize) {
        // What a wrong checksum has, it keeps.
        let mut frame = frames().swap_remove(which);
        let length = frame.len();
        frame[flip % length] ^= 1;
        let to = |shift| Rewrite { ports: vec!["9=7".parse().expect("a map"), "7=9".parse().expect("a map")], shift, ..Rewrite::default() };
        let there = rewritten(&to(5), ETHERNET, &frame);
        let back = rewritten(&to(0u32.wrapping_sub(5)), ETHERNET, &there);
        prop_assert_eq!(integrity(ETHERNET, &back), integrity(ETHERNET, &frame));
    }
}

#[test]
fn what_stays_of_a_link_layer_that_is_not_ethernet_is_told() {
    let mac = ([2; 6], [4; 6]);
    let macs = Rewrite { macs: vec![mac], ..Rewrite::default() };
    let tag = |tag| Rewrite { tag: Some(tag), ..Rewrite::default() };
    let wlan = [&[8, 1, 0, 0][..], &[2; 18], &[0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &[0x45; 20]].concat();
    let ethernet = [&[2; 12][..], &[8, 0], &[0x45; 20]].concat();
    for (rules, link_type, frame, told) in [
        (&macs, 105, &wlan, true),
        (&macs, 1, &ethernet, false),
        (&macs, 101, &vec![0x45; 20], false),
        (&tag(Tag::Id(7)), 105, &wlan, true),
        (&tag(Tag::Two(7, 8)), 101, &vec![0x45; 20], true),
        (&tag(Tag::Id(7)), 1, &ethernet, false),
        (&tag(Tag::None), 105, &wlan, false),
    ] {
        let mut after = frame.clone();
        let left = Rewriter::new(rules.clone()).apply(link_type, &mut after);
        assert_eq!(left.link, told, "{rules:?} {link_type}");
        assert!(!told || after == *frame, "{rules:?} {link_type}");
    }
}
