//! Frames of 802.11 in the dialect `weir`: what they carry is found as on Ethernet.

mod frames;

use frames::*;
use weir_filter::{Dialect, Filter};
use weir_judge::packets::fixed;

const PLAIN: u16 = 105;
const PRISM: u16 = 119;
const RADIOTAP: u16 = 127;
const AVS: u16 = 163;
const PPI: u16 = 192;

fn filter(text: &str, dialect: Dialect, link_type: u16) -> Filter {
    compiled(text, &options(dialect, link_type))
}

/// Asks each expression of a frame, behind each header that may be in front.
#[track_caller]
fn table(frame: &[u8], yes: &[&str], no: &[&str]) {
    let avs = [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[9; 56]].concat();
    for (link_type, header) in [
        (PLAIN, &[][..]),
        (RADIOTAP, &[0, 0, 8, 0, 0, 0, 0, 0]),
        // The flags without the bit for padding, behind a timestamp; and with further words, where the bit is something else.
        (RADIOTAP, &[0, 0, 18, 0, 3, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0xdf, 9]),
        (RADIOTAP, &[0, 0, 13, 0, 2, 0, 0, 0x80, 0x20, 0, 0, 0, 9]),
        (PRISM, &[&[0, 0, 0, 0x44][..], &[0; 140]].concat()),
        (PRISM, &avs),
        (AVS, &avs),
        (PPI, &[0, 0, 12, 0, 105, 0, 0, 0, 1, 2, 3, 4]),
    ] {
        let packet = [header, frame].concat();
        for (texts, wanted) in [(yes, true), (no, false)] {
            for text in texts {
                let answer = accepts(&filter(text, Dialect::Weir, link_type), &packet);
                assert_eq!(answer, wanted, "{link_type}: `{text}` of {packet:02x?}");
            }
        }
    }
}

/// The station and the access point of a frame, and who is behind it.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
const POINT: [u8; 6] = [2, 0, 0, 0, 0, 2];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 3];
const RELAYED: [u8; 6] = [2, 0, 0, 0, 0, 4];

/// A frame from the station to FAR; two addresses more come with `flags` 3.
fn wlan(control: u8, flags: u8, data: &[u8]) -> Vec<u8> {
    let addresses = match flags & 3 {
        0 => [FAR, STATION, POINT],
        1 => [POINT, STATION, FAR],
        2 => [FAR, POINT, STATION],
        _ => [RELAYED, POINT, FAR],
    };
    let mut frame = vec![control, flags, 0, 0];
    frame.extend(addresses.concat());
    frame.extend([0, 0]);
    if flags & 3 == 3 {
        frame.extend(STATION);
    }
    if control & 0x88 == 0x88 {
        frame.extend([7, 7]);
        if flags & 0x80 != 0 {
            frame.extend([8; 4]);
        }
    }
    frame.extend(data);
    frame
}

/// SNAP, and VLAN tags of these numbers.
fn snap(tags: &[u16], kind: u16, data: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0][..], &ethernet(tags, kind, data)[12..]].concat()
}

fn web() -> Vec<u8> {
    ip4([10, 1, 2, 3], [192, 0, 2, 7], 6, 0, &tcp(1024, 443))
}

#[test]
fn what_data_frames_carry_is_found() {
    let yes =
        ["tcp port 443", "ip", "net 10.0.0.0/8", "tcp[13] = 2", "llc", "llc u", "not vlan", "type data"];
    let no = ["udp", "ip6", "arp", "port 80", "vlan", "tunnel", "stp", "type mgt"];
    for (control, flags) in
        [(0x08, 0), (0x08, 1), (0x08, 2), (0x08, 3), (0x88, 1), (0x88, 3), (0x88, 0x83), (0x08, 0x80)]
    {
        table(&wlan(control, flags, &snap(&[], 0x0800, &web())), &yes, &no);
    }
    table(
        &wlan(0x88, 1, &snap(&[5, 6], 0x0800, &web())),
        &["vlan 5", "vlan 6 and vlan 5", "tcp port 443", "vlan in {5}", "host in {10.1.2.3}"],
        &["vlan 7", "udp"],
    );
    let options = [&[6, 0][..], &[0; 6], &tcp(1, 2)].concat();
    table(
        &wlan(0x08, 2, &snap(&[], 0x86dd, &ip6(1, 2, 60, &options))),
        &["tcp port 2", "ip6 proto 60", "tcp[2:2] = 2", "ip6"],
        &["udp", "ip", "port 3"],
    );
    let carried = ip4([10, 1, 2, 3], [192, 0, 2, 7], 4, 0, &web());
    table(
        &wlan(0x88, 3, &snap(&[9], 0x0800, &carried)),
        &["tunnel", "inner(tcp port 443)", "inner(tcp) and proto 4 and vlan 9", "not inner(udp)"],
        &["tcp", "inner(vlan 9)", "inner(ether[0] = 2)"],
    );
    let carried = [&[8, 0, 0, 0, 0, 0, 100, 0][..], &ethernet(&[7], 0x0800, &web())].concat();
    let carried = ip4([10, 1, 2, 3], [192, 0, 2, 7], 17, 0, &udp(9, 4789, &carried));
    table(
        &wlan(0x08, 1, &snap(&[], 0x0800, &carried)),
        &["vxlan 100", "inner(vlan 7 and ether host 02:00:00:00:00:0a) and ether src 02:00:00:00:00:01"],
        &["vlan", "inner(ether host 02:00:00:00:00:01)"],
    );
}

#[test]
fn what_is_not_there_is_not_found() {
    let nothing =
        ["ip", "tcp", "vlan", "llc", "tunnel", "inner(tcp)", "ip6", "ether proto 0x800", "port 443"];
    let all = nothing.map(|text| format!("not {text}"));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    // A beacon that looks like data, empty data, data that is encrypted.
    table(&wlan(0x80, 0, &snap(&[], 0x0800, &web())), &all, &nothing);
    table(&wlan(0x80, 0, &[]), &["type mgt", "subtype beacon", "not tcp"], &["type data", "tcp"]);
    table(&wlan(0x48, 1, &snap(&[], 0x0800, &web())), &all, &nothing);
    let without_llc: Vec<&str> = nothing.into_iter().filter(|text| *text != "llc").collect();
    table(&wlan(0x88, 0x41, &[&[1, 2, 0, 0x20][..], &[0; 60]].concat()), &["not tcp"], &without_llc);
    // LLC of its own, with what would be a tag behind it.
    let tree = [&[0x42, 0x42, 3, 0, 0, 0, 0x81, 0, 0, 5][..], &[0; 30]].concat();
    table(&wlan(0x08, 2, &tree), &["stp", "llc", "llc u", "ether proto 0x42"], &["vlan", "ip", "iso", "ipx"]);
    table(
        &wlan(0x08, 2, &[&[0xfe, 0xfe, 3, 0x83][..], &[0; 30]].concat()),
        &["iso", "isis"],
        &["stp", "clnp"],
    );
}

#[test]
fn addresses_are_those_of_the_ends() {
    let data = snap(&[], 0x0800, &web());
    for flags in 0..4 {
        let yes = [
            "ether src 02:00:00:00:00:01",
            "ether dst 02:00:00:00:00:03",
            "wlan host 02:00:00:00:00:01",
            "ether host in {02:00:00:00:00:03, 02:00:00:00:00:09}",
            "tcp and ether src 02:00:00:00:00:01",
        ];
        let no = [
            "ether src 02:00:00:00:00:02",
            "ether dst 02:00:00:00:00:02",
            "wlan host 02:00:00:00:00:04",
            "ether broadcast",
            "ether multicast",
        ];
        table(&wlan(0x08, flags, &data), &yes, &no);
        let direction = ["nods", "tods", "fromds", "dstods"];
        table(&wlan(0x08, flags, &data), &[&format!("dir {}", direction[usize::from(flags)])], &[]);
    }
    let yes = [
        "wlan ra 02:00:00:00:00:04",
        "wlan ta 02:00:00:00:00:02",
        "wlan addr3 02:00:00:00:00:03",
        "wlan addr4 02:00:00:00:00:01",
        "wlan[1] = 3",
        "ether[0] = 8",
        "byte 1 = 3",
    ];
    table(&wlan(0x08, 3, &data), &yes, &["wlan ra 02:00:00:00:00:03", "wlan addr1 02:00:00:00:00:03"]);
    // Request to send, clear to send.
    let control = |kind: u8, addresses: &[[u8; 6]]| [&[kind, 0, 0, 0][..], &addresses.concat()].concat();
    table(
        &control(0xb4, &[FAR, STATION]),
        &["wlan ra 02:00:00:00:00:03", "wlan ta 02:00:00:00:00:01", "type ctl", "subtype rts", "not tcp"],
        &["wlan host 02:00:00:00:00:03", "type data"],
    );
    table(
        &control(0xc4, &[FAR]),
        &["wlan ra 02:00:00:00:00:03", "wlan addr1 02:00:00:00:00:03", "not wlan ta 02:00:00:00:00:01"],
        &["wlan addr2 02:00:00:00:00:01", "tcp"],
    );
}

#[test]
fn headers_may_be_padded() {
    let frame = wlan(0x88, 1, &[&[0; 2][..], &snap(&[], 0x0800, &web())].concat());
    let packet = [&[0, 0, 9, 0, 2, 0, 0, 0, 0x20][..], &frame].concat();
    assert!(accepts(&filter("tcp port 443", Dialect::Weir, RADIOTAP), &packet));
    let radio = filter("radio[8] & 0x20 != 0 and wlan[0] = 0x88", Dialect::Weir, RADIOTAP);
    assert!(accepts(&radio, &packet));
    // PPI may be in front of something else.
    let other = [&[0, 0, 8, 0, 1, 0, 0, 0][..], &frame].concat();
    for text in ["tcp", "not tcp", "len > 0"] {
        assert!(!accepts(&filter(text, Dialect::Weir, PPI), &other), "{text}");
    }
}

/// What both dialects know, of frames that both understand.
#[test]
fn the_dialects_agree_where_they_mean_the_same() {
    let texts = [
        "tcp",
        "udp port 53",
        "arp",
        "ip6",
        "net 10.0.0.0/8",
        "type mgt",
        "subtype beacon",
        "dir tods",
        "wlan addr1 02:00:00:00:00:01",
        "wlan addr2 02:00:00:00:00:01",
        "ether src 02:00:00:00:00:01",
        "ether dst 02:00:00:00:00:02",
        "ether broadcast",
        "ether multicast",
        "wlan[0] & 0x40 = 0",
        "icmp or greater 100",
    ];
    let mut accepted = 0;
    for link_type in [PLAIN, PRISM, RADIOTAP, AVS] {
        let start = |data: &[u8]| match link_type {
            RADIOTAP => usize::from(data[2]),
            PRISM if data[0] == 0 => 144,
            PRISM | AVS => usize::from(data[7]),
            _ => 0,
        };
        let padded = |data: &[u8]| link_type == RADIOTAP && data[4] & 2 != 0;
        let packets: Vec<_> = fixed(link_type, 600)
            .into_iter()
            .filter(|packet| packet.data.len() > 8 && packet.data.len() == packet.length as usize)
            .filter(|packet| packet.data.len() > start(&packet.data) + 60)
            // Three addresses, not empty, no tags; libpcap knows no other.
            .filter(|packet| {
                let frame = &packet.data[start(&packet.data)..];
                let llc = if frame[0] & 0x80 == 0 { 24 } else { 26 };
                let data = frame[0] & 0x4c == 8 && frame[1] & 3 != 3;
                let snap = frame.get(llc..llc + 6) == Some(&[0xaa, 0xaa, 3, 0, 0, 0]);
                let plain = snap && [[8, 0], [8, 6]].contains(&[frame[llc + 6], frame[llc + 7]]);
                !padded(&packet.data) && (frame[0] & 0x0c != 8 || data && plain)
            })
            .collect();
        assert!(packets.len() > 20, "{link_type}: {}", packets.len());
        for text in texts {
            let [ours, theirs] =
                [Dialect::Weir, Dialect::Pcap].map(|dialect| filter(text, dialect, link_type));
            for packet in &packets {
                let data = &packet.data;
                let (ours, theirs) = (accepts(&ours, data), accepts(&theirs, data));
                assert_eq!(ours, theirs, "{link_type}: `{text}` of {data:02x?}");
                accepted += u32::from(ours);
            }
        }
    }
    assert!(accepted > 300, "{accepted}");
}
