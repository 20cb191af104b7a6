//! Any input results in a line: no panic, limited length, safe for a terminal.
#![forbid(unsafe_code)]

#[allow(dead_code, reason = "the comparison with tcpdump needs the rest")]
mod lines;

use std::sync::LazyLock;

use proptest::prelude::*;
use weir_dissect::{Dissector, Names, Options, Payload};
use weir_parse::{Found, Message, Reader};

const LINK_TYPES: [u16; 18] =
    [0, 1, 9, 12, 50, 101, 104, 105, 107, 108, 113, 127, 147, 192, 228, 229, 239, 276];

static FRAMES: LazyLock<Vec<(u16, Vec<u8>)>> = LazyLock::new(frames);

/// Returns a line of `named.txt` without the name of its payload.
fn without_name(line: &str) -> String {
    line.split_once(' ').expect("a name").1.to_owned()
}

/// Returns the frames of `cuts.txt`, `frames.txt`, `payloads.txt`, `named.txt`, `routers.txt`, `systems.txt` and `recorded.txt`.
fn frames() -> Vec<(u16, Vec<u8>)> {
    let named: String = include_str!("named.txt").lines().map(|line| without_name(line) + "\n").collect();
    let texts = [
        include_str!("cuts.txt"),
        include_str!("frames.txt"),
        include_str!("payloads.txt"),
        include_str!("recorded.txt"),
        include_str!("routers.txt"),
        include_str!("systems.txt"),
        &named,
    ];
    let all = texts.into_iter().flat_map(lines::frames);
    all.map(|frame| (frame.link_type, frame.data)).collect()
}

fn all_options() -> impl Iterator<Item = Options> {
    (0..64_u8).map(|bits| Options {
        link: bits & 1 != 0,
        quick: bits & 2 != 0,
        absolute: bits & 4 != 0,
        no_dump: bits & 8 != 0,
        verbose: bits >> 4,
        // Each with some of the other options, and none for the rest.
        unverified: bits % 3 == 0,
        asdot: bits % 5 == 0,
        payload: Payload::ALL.get(usize::from(bits) % 13).map(|(_, payload)| *payload),
    })
}

/// Dissects the packet twice; the second time, its connection is known.
fn check(options: Options, link_type: u16, data: &[u8], original_len: u32) {
    let (mut dissector, mut again) = (Dissector::new(options), Dissector::new(options));
    let mut reader = Reader::default();
    for _ in 0..2 {
        let mut line = Vec::new();
        let facts = dissector.packet(link_type, data, original_len, &mut line);
        assert!(line.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')), "{line:?}");
        assert!(line.len() < 4096 + data.len() * 64, "{} bytes of text for {} bytes", line.len(), data.len());
        assert!(facts.link_len <= data.len().max(original_len as usize));
        let mut same = Vec::new();
        let mut segments = 0;
        again.packet_with_segments(&Names::new(), link_type, data, original_len, &mut same, &mut |segment| {
            segments += 1;
            let payload = segment.payload;
            assert_eq!(
                payload.data,
                data.get(payload.at..).unwrap_or_default().get(..payload.data.len()).expect("its place")
            );
            let Found { message, .. } = reader.read(segment)?;
            assert!(size(&message) < (64 << 10) + 4 * data.len(), "{} bytes of text", size(&message));
            None
        });
        assert_eq!(same, line, "reading payloads changes nothing in the line");
        assert!(segments <= 17, "{segments} segments");
    }
}

/// Returns the number of bytes of text in a message.
fn size(message: &Message) -> usize {
    fn of<T: std::ops::Deref<Target = String>>(text: Option<&T>) -> usize {
        text.map_or(0, |text| text.len())
    }
    match message {
        Message::Dns(dns) => {
            let data = |data: &Option<String>| data.as_deref().map_or(0, str::len);
            let answers = dns.answers.iter().map(|answer| answer.name.len() + data(&answer.data));
            of(dns.query.as_ref()) + answers.sum::<usize>()
        }
        Message::Tls(tls) => {
            of(tls.server_name.as_ref()) + tls.alpn.iter().map(|name| name.len()).sum::<usize>()
        }
        Message::Http(http) => {
            [&http.method, &http.path, &http.reason, &http.host, &http.user_agent, &http.content_type]
                .map(|text| of(text.as_ref()))
                .iter()
                .sum()
        }
        Message::Sip(sip) => {
            let all = [&sip.method, &sip.uri, &sip.reason, &sip.from, &sip.to, &sip.call_id];
            let more = [&sip.cseq_method, &sip.user_agent, &sip.server, &sip.content_type];
            all.iter().chain(&more).map(|text| of(text.as_ref())).sum()
        }
        Message::Dhcp(dhcp) => {
            let texts = [&dhcp.host_name, &dhcp.fqdn, &dhcp.vendor_class, &dhcp.domain];
            let lists = dhcp.routers.len() + dhcp.name_servers.len();
            texts.iter().map(|text| of(text.as_ref())).sum::<usize>() + 16 * lists
        }
        Message::Dhcp6(dhcp) => {
            let duid = dhcp.client_duid.as_ref().map_or(0, |duid| 2 * duid.len());
            let lists = dhcp.addresses.len() + dhcp.prefixes.len() + dhcp.name_servers.len();
            of(dhcp.fqdn.as_ref()) + duid + 48 * lists
        }
        other => panic!("{other:?} has no size"),
    }
}

#[test]
fn every_cut_of_every_frame() {
    // Of a cut frame, these read what the others read, and more.
    let options = Options { link: true, verbose: 1, ..Options::default() };
    for (link_type, data) in FRAMES.iter() {
        let len = u32::try_from(data.len()).unwrap();
        for cut in 0..=data.len() {
            check(options, *link_type, &data[..cut], len);
            check(options, *link_type, &data[..cut], u32::try_from(cut).unwrap());
        }
    }
}

#[test]
fn every_frame_in_every_way() {
    for (own, data) in FRAMES.iter() {
        let len = u32::try_from(data.len()).unwrap();
        for (number, options) in all_options().enumerate() {
            check(options, *own, data, len);
            // As packets of other link types, most are soon found to make no sense.
            if number % 7 == 1 {
                LINK_TYPES.into_iter().for_each(|link_type| check(options, link_type, data, len));
            }
        }
    }
}

/// MPLS stacks, IP in IP and DNS names can nest, loop and grow.
#[test]
fn packets_made_to_annoy() {
    let ip = |protocol: u8, payload: &[u8]| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend(payload);
        packet
    };
    let mut nested = vec![0];
    for _ in 0..1000 {
        nested = ip(4, &nested);
    }
    let mut dns = vec![0, 53, 0, 53, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
    for _ in 0..20_000 {
        dns.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 0, 0, 2, 0xc0, 12]);
    }
    let mut labels = vec![0, 53, 0, 53, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 32, 0, 0, 0, 0];
    for at in 0..10_000_u16 {
        let [high, low] = (12 + at % 8000).to_be_bytes();
        labels.extend([63; 64]);
        labels.extend([0xc0 | high, low]);
    }
    let sctp = [vec![0; 12], [255, 0, 0, 4].repeat(50_000)].concat();
    // Extensions, application protocols and fields without end, in one segment as long as IP allows.
    let tcp = |payload: &[u8]| ip(6, &[&[0; 12][..], &[0x50, 16, 0, 0, 0, 0, 0, 0], payload].concat());
    let hello =
        [&[22, 3, 3, 0xff, 0xff, 1, 0, 0xff, 0xf0, 3, 3][..], &[0; 32], &[0, 0, 0, 0, 0xff, 0xff]].concat();
    let empty = [&hello[..], &[0; 65_000]].concat();
    let protocols = [&hello[..], &[0, 16, 0xf0, 0, 0xf0, 0], &[1, 0xff].repeat(32_000)].concat();
    let target = [b"GET ", [0xff; 60_000].as_slice(), b" HTTP/1.1\r\n"].concat();
    let head = [b"GET / HTTP/1.1\r\n", b"Host:\xff\r\n".repeat(9000).as_slice()].concat();
    let payloads = [empty, protocols, target, head].map(|payload| tcp(&payload));
    for packet in [nested, ip(17, &dns), ip(17, &labels), ip(132, &sctp)].into_iter().chain(payloads) {
        for options in all_options() {
            check(options, 101, &packet, u32::try_from(packet.len()).unwrap());
        }
    }
    check(Options::default(), 1, &[[2; 12].as_slice(), &[0x88, 0x47], &[0; 200_000]].concat(), 200_014);
    check(Options::default(), 1, &[[2; 12].as_slice(), &[0x81, 0].repeat(100_000)].concat(), 200_012);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(
        link in 0..LINK_TYPES.len(),
        data in proptest::collection::vec(any::<u8>(), 0..200),
        more in 0..2000_u32,
        bits in 0..64_usize,
    ) {
        let options = all_options().nth(bits).unwrap();
        check(options, LINK_TYPES[link], &data, u32::try_from(data.len()).unwrap() + more);
    }

    #[test]
    fn changed_frames(
        number in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        bits in 0..64_usize,
    ) {
        let (link_type, mut data) = FRAMES[number.index(FRAMES.len())].clone();
        for (at, value) in changes {
            if !data.is_empty() {
                let at = at.index(data.len());
                data[at] = value;
            }
        }
        let options = all_options().nth(bits).unwrap();
        check(options, link_type, &data, u32::try_from(data.len()).unwrap());
    }
}
