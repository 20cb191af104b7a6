//! Filters on files, judged by tcpdump.

use std::fs;
use std::path::Path;

use weir::Direction;
use weir::reader::Reader;
use weir::writer::Format;
use weir_judge::packets::fixed;

use crate::support::{
    EPOCH, Place, frames, judge, packet, pcap, stderr, stdout, succeeds, weir, write, write_packets,
};

const EXPRESSIONS: [&str; 14] = [
    "tcp",
    "udp port 53",
    "ip6",
    "arp or icmp",
    "not tcp and not udp",
    "greater 100",
    "ip[8] < 64",
    "tcp[tcpflags] & tcp-syn != 0",
    "ether multicast",
    "port 53 or port 80 or port 443",
    "net 10.0.0.0/8 or net 192.168.0.0/16",
    "less 10",
    "len > 0",
    "",
];

#[test]
fn files_are_those_of_tcpdump() {
    let place = Place::new();
    let [original, ours, theirs] = ["a.pcap", "b.pcap", "c.pcap"].map(|name| place.path(name));
    let all = pcap(&original);
    let (mut some, mut none) = (0, 0);
    for expression in EXPRESSIONS {
        let write: [&Path; 2] = [&original, &theirs];
        judge("tcpdump", &["-Z", "root", "-r"], &[write[0], "-w".as_ref(), write[1], expression.as_ref()]);
        let args = ["read", "--dialect", "pcap", "-q", "-f", expression, "-w"];
        succeeds(&args, &[&ours, &original]);
        assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap(), "{expression}: not tcpdump's file");
        // One by one: the same as run by run.
        succeeds(&[&["read", "-c", "1000000"], &args[1..]].concat(), &[&ours, &original]);
        assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap(), "{expression}: one by one");
        let count: usize =
            succeeds(&["read", "--count", "--dialect", "pcap", "-f", expression], &[&original])
                .trim()
                .parse()
                .expect("a number");
        some += usize::from(count > 0 && count < all);
        none += usize::from(count == 0);
    }
    assert!(some > 8 && none > 0, "{some} {none}");
}

#[test]
fn all_forms_are_one() {
    let place = Place::new();
    let [file, expression] = ["a.pcap", "filter"].map(|name| place.path(name));
    pcap(&file);
    fs::write(&expression, "# web and more\ntcp and # all of it\n  not port 22\n").unwrap();
    let expected = succeeds(&["read", "-f", "tcp and not port 22"], &[&file]);
    assert!(!expected.is_empty());
    let name = file.to_str().expect("UTF-8");
    for args in [
        &["read", name, "--", "tcp", "and", "not", "port", "22"][..],
        &["read", "-F", expression.to_str().expect("UTF-8"), name],
        &["read", "-r", name, "tcp", "and", "not", "port 22"],
        &["read", "tcp and", "-r", name, "not port", "22"],
    ] {
        assert_eq!(succeeds(args, &[]), expected, "{args:?}");
    }
    let json = succeeds(&["read", "--json", "-f", "tcp and not port 22"], &[&file]);
    assert_eq!(json.lines().count(), expected.lines().count());
    let output = weir(&["read", "--json", "-f", "tcp and not port 22"], &[&file]);
    let left = frames().len() - expected.lines().count();
    assert_eq!(stderr(&output).trim(), format!("{left} packets filtered out"));
}

/// Moments after the first packet count from the file's first, whether it matches or not.
#[test]
fn a_filter_does_not_move_the_beginning() {
    let place = Place::new();
    let [file, other] = ["a.pcapng", "b.pcapng"].map(|name| place.path(name));
    let frames = [frame_of(6), frame_of(17)];
    let [tcp, udp] = frames.each_ref().map(Vec::as_slice);
    let at = |milliseconds: u64, frame| (0, EPOCH + milliseconds * 1_000_000, frame, 0);
    write(&file, Format::Pcapng, &[("eth0", 1)], &[at(3, tcp), at(5, udp), at(12, udp), at(15, tcp)]);
    write(&other, Format::Pcapng, &[("eth0", 1)], &[at(0, tcp), at(11, udp)]);
    let count = |args: &[&str], files: &[&Path]| succeeds(&[&["read", "--count"], args].concat(), files);
    for (args, alone, merged) in [
        (&["--from", "+9ms"][..], "2", "3"),
        (&["--from", "+9ms", "-f", "udp"], "1", "2"),
        (&["--to", "+9ms", "-f", "udp"], "1", "1"),
        (&["--from", "+9ms", "-f", "tcp"], "1", "1"),
    ] {
        assert_eq!(count(args, &[&file]).trim(), alone, "{args:?}");
        assert_eq!(count(args, &[&file, &other]).trim(), merged, "{args:?}, merged");
    }
}

/// Terms that Ethernet has not are no mistake before it is known what the file has.
#[test]
fn terms_of_other_link_types() {
    let place = Place::new();
    let [wifi, ethernet] = ["wifi.pcap", "a.pcap"].map(|name| place.path(name));
    let beacon = [&[0x80, 0, 0, 0][..], &[0xff; 6], &[2; 12], &[0; 20]].concat();
    let data = [&[0x08, 0, 0, 0][..], &[0xff; 6], &[2; 12], &[0; 20]].concat();
    let packets: Vec<_> = [&beacon, &data, &beacon].map(|frame| (0, EPOCH, frame.as_slice(), 0)).into();
    write(&wifi, Format::Pcap { nanoseconds: false }, &[("", 105)], &packets);
    pcap(&ethernet);
    for (expression, expected) in [("type mgt", 2), ("type data", 1), ("type mgt subtype beacon", 2)] {
        let counted = judge("tcpdump", &["--count", "-r"], &[&wifi, expression.as_ref()]);
        assert_eq!(counted.split(' ').next(), Some(&*expected.to_string()), "tcpdump: {counted}");
        let count = succeeds(&["read", "--count", "-f", expression], &[&wifi]);
        assert_eq!(count.trim(), expected.to_string(), "{expression}");
        let output = weir(&["read", "--count", "-f", expression], &[&ethernet]);
        assert_eq!(output.status.code(), Some(1), "{expression}: {}", stderr(&output));
        assert!(stderr(&output).contains("invalid filter"), "{}", stderr(&output));
    }
}

/// What the link type of some packets has no place for is false for these, and refused where none of a file's have it.
#[test]
fn a_term_is_false_for_packets_that_lack_its_layer() {
    let place = Place::new();
    let [mixed, raw, ethernet, copy] =
        ["mixed.pcapng", "raw.pcap", "a.pcap", "copy.pcapng"].map(|name| place.path(name));
    let frame = frame_of(17);
    let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
    let packets = [&frame[..], &frame[14..], &tagged, &frame[14..], &[0; 40]];
    let packets: Vec<_> = (EPOCH..)
        .zip([0, 1, 0, 1, 2].into_iter().zip(packets))
        .map(|(time, (n, data))| (n, time, data, 0))
        .collect();
    write(&mixed, Format::Pcapng, &[("eth0", 1), ("tun0", 101), ("usbmon1", 220)], &packets);
    let count = |dialect, expression: &str, files: &[&Path]| {
        succeeds(&["read", "--count", "--dialect", dialect, "-f", expression], files).trim().to_owned()
    };
    let mac =
        |at: usize| frame[at..at + 6].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    let (source, other) = (format!("ether src {}", mac(6)), "ether src 02:03:04:05:06:07");
    let judged = judge("tshark", &["-Y", &format!("eth.src=={}", mac(6)), "-r"], &[&mixed]);
    assert_eq!(judged.lines().count(), 2, "{judged}");
    for (expression, wanted) in [
        ("vlan 5", "1"),
        ("not vlan 5", "4"),
        (&source, "2"),
        (&format!("not {source}"), "3"),
        (&format!("{source} or udp"), "4"),
        (other, "0"),
        (&format!("udp and not {other}"), "4"),
        ("vlan 5 and inner(tcp) or len = 40", "1"),
        ("host in {192.0.2.77} or len = 40", "1"),
    ] {
        assert_eq!(count("weir", expression, &[&mixed]), wanted, "{expression}");
    }
    for (expression, wanted) in [(&*source, "2"), (&format!("not {source}"), "3")] {
        assert_eq!(count("pcap", expression, &[&mixed]), wanted, "{expression}, as libpcap");
    }
    succeeds(&["read", "-q", "-f", &source, "-w"], &[&copy, &mixed]);
    assert_eq!(count("weir", "", &[&copy]), "2");
    // One file may have what another has not.
    let file = Format::Pcap { nanoseconds: false };
    write(&raw, file, &[("", 101)], &[(0, EPOCH, &frame[14..], 0)]);
    write(&ethernet, file, &[("", 1)], &[(0, EPOCH + 1, &frame, 0)]);
    assert_eq!(count("weir", &source, &[&raw, &ethernet]), "1");
    // None has it.
    for (file, expression, interface) in
        [(&raw, &*source, "interface 0"), (&mixed, "type mgt or udp", "`eth0`")]
    {
        let output = weir(&["read", "--count", "-f", expression], &[file]);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""), "{expression}");
        assert!(stderr(&output).contains(interface), "{}", stderr(&output));
    }
}

/// Nobody tells the mask of a file's network but who asks.
#[test]
fn broadcasts_of_a_file_take_a_mask() {
    let place = Place::new();
    let file = place.path("a.pcap");
    let to = |address: [u8; 4]| {
        let mut frame = frame_of(17);
        frame[30..34].copy_from_slice(&address);
        frame
    };
    let frames =
        [[10, 1, 2, 255], [10, 1, 2, 0], [10, 1, 255, 255], [255; 4], [10, 1, 2, 3], [10, 1, 2, 7]].map(to);
    let packets: Vec<_> =
        (EPOCH..).zip(&frames).map(|(time, frame)| (0, time, frame.as_slice(), 0)).collect();
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    for (masks, judgement) in [
        (["255.255.255.0", "/24", "24"], "ip[19] = 255 or ip[19] = 0"),
        (["255.255.0.0", "/16", "16"], "ip[18:2] = 65535 or ip[18:2] = 0"),
        (["255.255.255.252", "/30", "30"], "ip[19] & 3 = 3 or ip[19] & 3 = 0"),
    ] {
        let counted = judge("tcpdump", &["--count", "-r"], &[&file, judgement.as_ref()]);
        for mask in masks {
            for dialect in ["weir", "pcap"] {
                let args = ["read", "--count", "--dialect", dialect, "--netmask", mask, "-f", "ip broadcast"];
                let count = succeeds(&args, &[&file]);
                assert_eq!(Some(count.trim()), counted.split(' ').next(), "{mask} {dialect}");
            }
        }
    }
    let output = weir(&["read", "--count", "-f", "ip broadcast"], &[&file]);
    assert!(stderr(&output).contains("--netmask 255.255.255.0"), "{}", stderr(&output));
    for wrong in ["255.0.255.0", "/33", "x"] {
        let output = weir(&["read", "--count", "--netmask", wrong, "-f", "ip broadcast"], &[&file]);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {}", stderr(&output));
    }
}

#[test]
fn the_place_of_a_mistake_is_shown_below_it() {
    let place = Place::new();
    let file = place.path("a\u{1b}.pcap");
    pcap(&file);
    let output = weir(&["read", "-f", "ifindex 2"], &[&file]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    let name = file.display().to_string().replace('\u{1b}', "\\u{1b}");
    let shown =
        format!("weir: {name}: interface 0: invalid filter: the interface of packets is unknown here");
    assert_eq!(said, format!("{shown}\n  ifindex 2\n  ^^^^^^^^^\n"));
    // No number that would be taken for an answer.
    let output = weir(&["read", "--count", "-f", "ifindex 2"], &[&file]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""));
}

/// A filter is compiled for what the file has, and not for what files mostly have.
#[test]
fn a_filter_may_ask_for_what_only_the_files_link_type_has() {
    let place = Place::new();
    // libpcap reads the address of `link host $05` as 0xd0.
    let arcnet = "link[0] = 5 or link[1] = 5";
    for (link_type, expression, judgement) in [
        (276, "ifindex 2", "ifindex 2"),
        (276, "ifindex 2 and arp", "ifindex 2 and arp"),
        (276, "inbound", "inbound"),
        (276, "not outbound and arp", "not outbound and arp"),
        (113, "inbound", "inbound"),
        (127, "radio[2] = 8", "radio[2] = 8"),
        (127, "type data and radio[2] > 8", "type data and radio[2] > 8"),
        (8, "inbound", "inbound"),
        (8, "outbound", "outbound"),
        (7, "link host $05", arcnet),
        (129, "link host $05", arcnet),
    ] {
        let file = place.path("one.pcap");
        let packets = fixed(link_type, 200);
        let packets: Vec<_> =
            (EPOCH..).zip(&packets).map(|(time, packet)| (0, time, packet.data.as_slice(), 0)).collect();
        write(&file, Format::Pcap { nanoseconds: false }, &[("", link_type)], &packets);
        let theirs = judge("tcpdump", &["-n", "-t", "--count", "-r"], &[&file, judgement.as_ref()]);
        let theirs = theirs.split_whitespace().next().expect("a number");
        assert!(theirs != "0" && theirs != "200", "{link_type} {judgement}: {theirs}");
        for dialect in ["pcap", "weir"] {
            let args = ["read", "--count", "--dialect", dialect, "-f", expression];
            assert_eq!(succeeds(&args, &[&file]).trim(), theirs, "{link_type} {expression} {dialect}");
        }
    }
}

/// The first IPv4 frame of this protocol.
fn frame_of(protocol: u8) -> Vec<u8> {
    frames().into_iter().find(|frame| frame[12..14] == [8, 0] && frame[23] == protocol).expect("there is one")
}

#[test]
fn each_interface_has_its_own_program() {
    let place = Place::new();
    let (both, merged) = (place.path("both.pcapng"), place.path("raw.pcapng"));
    let frames = frames();
    let mut packets = Vec::new();
    for (time, frame) in (EPOCH..).zip(&frames) {
        packets.push((0, time, frame.as_slice(), 0));
        if frame[12..14] == [8, 0] || frame[12..14] == [0x86, 0xdd] {
            packets.push((1, time, &frame[14..], 0));
        }
    }
    write(&both, Format::Pcapng, &[("eth0", 1), ("tun0", 101)], &packets);
    write(&merged, Format::Pcapng, &[("tun0", 101)], &[(0, EPOCH, &frames[0][14..], 0)]);
    let output = place.path("out.pcapng");
    for expression in ["tcp", "udp port 53", "ip6 and not tcp", "net 10.0.0.0/8"] {
        succeeds(&["read", "-f", expression, "-w"], &[&output, &both]);
        let [ethernet, raw] = by_interface(&output);
        assert!(!ethernet.is_empty() && !raw.is_empty(), "{expression}");
        // What has no tag and no tunnel in front of IP is on both.
        let inside = |frame: &&Vec<u8>| frame[12..14] == [8, 0] || frame[12..14] == [0x86, 0xdd];
        let expected: Vec<_> = ethernet.iter().filter(inside).map(|frame| frame[14..].to_vec()).collect();
        assert!(raw == expected, "{expression}: {} and {}", raw.len(), expected.len());
    }
    // Merged, too.
    let lines = succeeds(&["read", "--interfaces", "-f", "tcp"], &[&both, &merged]);
    assert!(lines.contains("tun0") && lines.contains("eth0"), "{lines}");
}

fn by_interface(file: &Path) -> [Vec<Vec<u8>>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    let mut reader = Reader::open(file).expect("opens");
    while let Some(packet) = reader.next_packet().expect("whole") {
        all[packet.interface as usize].push(packet.data.to_vec());
    }
    all
}

#[test]
fn losses_before_packets_that_are_left_out_are_kept() {
    let place = Place::new();
    let [file, output] = ["a.pcapng", "b.pcapng"].map(|name| place.path(name));
    let (tcp, udp) = (&frame_of(6), &frame_of(17));
    let packets: Vec<_> = [(tcp, 0), (udp, 5), (udp, 2), (tcp, 1), (tcp, 0), (udp, 3)]
        .into_iter()
        .map(|(frame, lost)| (0, EPOCH, frame.as_slice(), lost))
        .collect();
    write(&file, Format::Pcapng, &[("eth0", 1)], &packets);
    succeeds(&["read", "-f", "tcp", "-w"], &[&output, &file]);
    let mut reader = Reader::open(&output).expect("opens");
    let mut lost = Vec::new();
    while let Some(packet) = reader.next_packet().expect("whole") {
        lost.push(packet.lost_before);
    }
    assert_eq!(lost, [0, 8, 0]);
}

/// Records of pcapng tell the direction, or do not; the headers of cooked link types do.
#[test]
fn directions_are_those_that_the_file_tells() {
    let place = Place::new();
    let count = |file: &Path, expression| -> usize {
        succeeds(&["read", "--count", "-f", expression], &[file]).trim().parse().expect("a number")
    };
    let file = place.path("flags.pcapng");
    let frames = frames();
    let directions = [Some(Direction::In), Some(Direction::Out), None, Some(Direction::Out)];
    let packets = (EPOCH..).zip(&frames).zip(directions.into_iter().cycle());
    let packets = packets.map(|((time, data), direction)| weir::with!(packet(time, data), direction));
    write_packets(&file, Format::Pcapng, &[("eth0", 1)], &packets.collect::<Vec<_>>());
    for (expression, judgement) in [
        ("inbound", "frame.packet_flags_direction == 1"),
        ("outbound", "frame.packet_flags_direction == 2"),
        ("not inbound and not outbound", "not frame.packet_flags_direction"),
        ("not inbound", "not frame.packet_flags_direction == 1"),
        ("inbound and arp", "frame.packet_flags_direction == 1 && arp"),
    ] {
        let theirs = judge("tshark", &["-n", "-Y", judgement, "-r"], &[&file]);
        assert_eq!(count(&file, expression), theirs.lines().count(), "{expression}");
    }
    let refused = weir(&["read", "-f", "ifindex 0"], &[&file]);
    assert!(stderr(&refused).contains("the interface of packets is unknown here"), "{}", stderr(&refused));

    for link_type in [113, 276] {
        let file = place.path("cooked.pcap");
        let packets = fixed(link_type, 200);
        let packets: Vec<_> =
            (EPOCH..).zip(&packets).map(|(time, packet)| (0, time, packet.data.as_slice(), 0)).collect();
        write(&file, Format::Pcap { nanoseconds: false }, &[("", link_type)], &packets);
        for expression in ["inbound", "outbound"] {
            let theirs = judge("tcpdump", &["-n", "-t", "--count", "-r"], &[&file, expression.as_ref()]);
            let theirs = theirs.split_whitespace().next().expect("a number");
            assert_eq!(count(&file, expression).to_string(), theirs, "{link_type} {expression}");
        }
    }
}

/// `LINKTYPE_NULL` has its address family in the byte order of the machine that captured, as the whole file has.
#[test]
fn null_files_of_either_byte_order() {
    let place = Place::new();
    let file = place.path("null.pcap");
    let udp = frame_of(17);
    for big in [false, true] {
        let word = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
        let half = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
        let length = u32::try_from(udp.len() - 10).expect("short");
        let mut bytes = [word(0xa1b2_c3d4).to_vec(), half(2).to_vec(), half(4).to_vec()].concat();
        for number in [0, 0, 262_144, 0, 1_700_000_000, 0, length, length, 2] {
            bytes.extend(word(number));
        }
        bytes.extend(&udp[14..]);
        fs::write(&file, bytes).unwrap();
        for (expression, expected) in [("ip", "1"), ("udp", "1"), ("ip6", "0"), ("not ip", "0")] {
            for dialect in ["pcap", "weir"] {
                let args = ["read", "--count", "--dialect", dialect, "-f", expression];
                assert_eq!(succeeds(&args, &[&file]).trim(), expected, "{expression} {dialect} {big}");
            }
            let lines = judge("tcpdump", &["-n", "-r"], &[&file, expression.as_ref()]);
            assert_eq!(lines.lines().count().to_string(), expected, "{expression} by tcpdump");
        }
    }
}

#[test]
fn what_is_wrong_is_told() {
    let place = Place::new();
    let file = place.path("a.pcap");
    pcap(&file);
    let name = file.to_str().expect("UTF-8");
    let table: [(&[&str], i32, &str); 5] = [
        (&["read", name, "-f", "tcp prot 80"], 2, "prot"),
        (&["read", name, "-f", "tcp", "--", "udp"], 2, "more than one filter"),
        (&["read", name, "-F", "pcap"], 2, "--format"),
        (&["read", name, "tcp"], 1, "--"),
        (&["read", name, "--repair", "-w", "/dev/null", "-f", "tcp"], 2, "--repair"),
    ];
    for (args, status, words) in table {
        let output = weir(args, &[]);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
    // A filter that cannot match says so, and that it did not is no failure.
    let output = weir(&["read", "--count", "-f", "tcp and udp and ip and ip6"], &[&file]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"0\n"[..]));
    let output = weir(&["read", "-w", "/dev/null", "-f", "tcp"], &[&file]);
    assert!(stderr(&output).contains("filtered out"), "{}", stderr(&output));
}

/// A second section with another link type appears after weir has given up executable memory.
#[test]
fn what_the_sandbox_costs_is_told_with_the_way_out() {
    let place = Place::new();
    let [one, other, both] = ["one.pcapng", "other.pcapng", "both.pcapng"].map(|name| place.path(name));
    let frame = frames().into_iter().find(|frame| frame.get(12..14) == Some(&[8, 0])).expect("an IPv4 frame");
    write(&one, Format::Pcapng, &[("eth0", 1)], &[(0, EPOCH, &frame, 0)]);
    write(&other, Format::Pcapng, &[("tun0", 101)], &[(0, EPOCH, &frame[14..], 0)]);
    fs::write(&both, [fs::read(&one).expect("a file"), fs::read(&other).expect("a file")].concat())
        .expect("room");
    let told = |args: &[&str]| {
        let output = weir(&[&["read", "-f", "ip"], args].concat(), &[&both]);
        assert_eq!(stdout(&output).lines().count(), 2, "{}", stderr(&output));
        stderr(&output)
    };
    let text = told(&[]);
    assert!(text.contains("executable memory is forbidden") && text.contains("--no-confine"), "{text}");
    assert!(!text.contains("readable+executable"), "{text}");
    assert_eq!(told(&["--no-confine"]), "");
}
