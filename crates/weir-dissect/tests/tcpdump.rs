//! Compares lines with those of Debian's tcpdump, packet by packet.
#![forbid(unsafe_code)]

mod lines;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Output};

use lines::{Frame, bytes, frames};
use weir_dissect::{Dissector, Dump, Names, Options, Payload, Resolve};

/// Packets whose lines are tcpdump's.
const FRAMES: &str = include_str!("frames.txt");
/// Packets whose lines are tcpdump's also with `-v`, `-vv` and `-vvv`.
const PAYLOADS: &str = include_str!("payloads.txt");

/// Returns a pcap file: little-endian, microseconds.
fn pcap(link_type: u16, frames: &[&Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, u32::from(link_type)] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        let captured = u32::try_from(frame.data.len()).unwrap();
        for word in [1_700_000_000, u32::try_from(number).unwrap(), captured, frame.original_len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame.data);
    }
    file
}

/// Returns the output of tcpdump; `None`, with a message, if it is not installed.
fn tcpdump(link_type: u16, frames: &[&Frame], options: &[&str]) -> Option<String> {
    let command =
        |path: &Path| Command::new("tcpdump").args(["-t", "-n"]).args(options).arg("-r").arg(path).output();
    judged(link_type, frames, command)
}

/// Returns what `command` prints for a file of these frames.
fn judged(
    link_type: u16,
    frames: &[&Frame],
    command: impl FnOnce(&Path) -> io::Result<Output>,
) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frames.pcap");
    fs::write(&path, pcap(link_type, frames)).unwrap();
    match command(&path) {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            weir_skip::this_test(format_args!("tcpdump: {error}"));
            None
        }
    }
}

fn ours(link_type: u16, frames: &[&Frame], options: Options, dump: Option<(Dump, bool)>) -> String {
    let mut dissector = Dissector::new(options);
    let mut text = Vec::new();
    for frame in frames {
        let facts = dissector.packet(link_type, &frame.data, frame.original_len, &mut text);
        if let Some((dump, whole)) = dump {
            dump.write(&frame.data[if whole { 0 } else { facts.link_len }..], &mut text);
        }
        text.push(b'\n');
    }
    String::from_utf8(text).expect("only ASCII")
}

/// Compares all frames that `keep` selects, in one file per link type because TCP numbers depend on earlier packets.
fn agree(letters: &[&str], options: Options, dump: Option<(Dump, bool)>, keep: impl Fn(&Frame) -> bool) {
    let frames: Vec<Frame> =
        [frames(FRAMES), frames(PAYLOADS)].into_iter().flatten().filter(|frame| keep(frame)).collect();
    agree_on(&frames, letters, options, dump);
}

fn agree_on(frames: &[Frame], letters: &[&str], options: Options, dump: Option<(Dump, bool)>) {
    let mut by_link = BTreeMap::<u16, Vec<&Frame>>::new();
    for frame in frames {
        by_link.entry(frame.link_type).or_default().push(frame);
    }
    assert!(!by_link.is_empty());
    for (link_type, frames) in by_link {
        let Some(theirs) = tcpdump(link_type, &frames, letters) else { return };
        let ours = ours(link_type, &frames, options, dump);
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            assert_eq!(ours, theirs, "link type {link_type}, {letters:?}");
        }
        assert_eq!(ours.lines().count(), theirs.lines().count(), "link type {link_type}, {letters:?}");
    }
}

fn whole(frame: &Frame) -> bool {
    frame.data.len() == frame.original_len as usize
}

const PLAIN: Options = Options {
    link: false,
    verbose: 0,
    quick: false,
    absolute: false,
    unverified: false,
    asdot: false,
    payload: None,
    no_dump: false,
};

#[test]
fn lines_are_those_of_tcpdump() {
    agree(&[], PLAIN, None, |_| true);
    agree(&["-e"], Options { link: true, ..PLAIN }, None, |_| true);
    agree(&["-q"], Options { quick: true, ..PLAIN }, None, |_| true);
    agree(&["-S"], Options { absolute: true, ..PLAIN }, None, |_| true);
}

#[test]
fn dumps_are_those_of_tcpdump() {
    // Where tcpdump prints [|, its dumps include the link layer, so only packets that end well.
    let frames: Vec<Frame> = frames(FRAMES).into_iter().filter(whole).collect();
    let silent = Options { no_dump: true, ..PLAIN };
    agree_on(&frames, &["-x"], silent, Some((Dump::Hex, false)));
    agree_on(&frames, &["-xx"], silent, Some((Dump::Hex, true)));
    agree_on(&frames, &["-X"], silent, Some((Dump::HexAscii, false)));
    agree_on(&frames, &["-XX"], silent, Some((Dump::HexAscii, true)));
    agree_on(&frames, &["-A"], PLAIN, Some((Dump::Ascii, false)));
}

/// One host, which every system has in /etc/hosts, and no services: all other names are those that tcpdump has itself.
struct Localhost;

impl Resolve for Localhost {
    fn host(&mut self, address: IpAddr) -> Option<&str> {
        address.is_loopback().then_some("localhost")
    }

    fn service(&mut self, _port: u16, _protocol: &str) -> Option<&str> {
        None
    }
}

#[test]
fn ip_protocols_have_the_names_of_tcpdump() {
    // Raw IPv4; an `offset` makes it a later fragment, which is not dissected.
    let frame = |offset, protocol| {
        let mut data = vec![0x45, 0, 0, 24, 0, 0, 0, offset, 64, protocol, 0, 0];
        data.extend([127, 0, 0, 1, 127, 0, 0, 1, 255, 255, 255, 255]);
        Frame { link_type: 101, original_len: 24, data }
    };
    let protocols = (0..=u8::MAX).flat_map(|protocol| [0, 1].map(|offset| frame(offset, protocol)));
    let frames: Vec<Frame> = protocols.collect();
    let command = |path: &Path| Command::new("tcpdump").args(["-t", "-r"]).arg(path).output();
    let Some(theirs) = judged(101, &frames.iter().collect::<Vec<_>>(), command) else { return };
    assert_eq!(theirs.lines().count(), frames.len());
    let mut compared = 0;
    for (frame, theirs) in frames.iter().zip(theirs.lines()) {
        let mut line = Vec::new();
        let mut dissector = Dissector::new(PLAIN);
        dissector.packet_named(Some(&mut Localhost), &Names::new(), 101, &frame.data, 24, &mut line);
        // Protocols that tcpdump dissects are compared elsewhere; it has a word of its own for 77.
        if frame.data[7] > 0
            || frame.data[9] != 77
                && theirs.starts_with("IP localhost > localhost:  ")
                && theirs.ends_with(" 4")
        {
            assert_eq!(String::from_utf8(line).expect("ASCII"), theirs);
            compared += 1;
        }
    }
    assert!(compared > 450, "{compared}");
}

#[test]
fn ethertypes_have_the_names_of_tcpdump() {
    let frame = |kind: u16| {
        let data = [&[2; 12][..], &kind.to_be_bytes(), &[0; 46]].concat();
        Frame { link_type: 1, original_len: 60, data }
    };
    // To tcpdump, this one says no EtherType, but that LLC follows, for frames that are longer than a length can say.
    const JUMBO: u16 = 0x8870;
    let frames: Vec<Frame> = (1536..=u16::MAX).filter(|&kind| kind != JUMBO).map(frame).collect();
    let frames: Vec<&Frame> = frames.iter().collect();
    let Some(theirs) = tcpdump(1, &frames, &["-e"]) else { return };
    let ours = ours(1, &frames, Options { link: true, ..PLAIN }, None);
    // What is behind the header is compared elsewhere.
    let kinds = |text: &str| -> Vec<String> {
        let heads = text.lines().filter_map(|line| line.split(", length ").next());
        heads.filter(|head| head.starts_with("02:02:02:02:02:02 > ")).map(str::to_owned).collect()
    };
    let (ours, theirs) = (kinds(&ours), kinds(&theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!((ours.len(), theirs.len()), (frames.len(), frames.len()));
}

/// A raw IPv4 packet of 40 bytes and more, with these options of TCP and four bytes of payload.
fn with_options(flags: u8, options: &[u8]) -> Frame {
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 1);
    let len = u8::try_from(options.len()).unwrap();
    let mut data = vec![0x45, 0, 0, 44 + len, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    data.extend([0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0x50 + (len << 2), flags, 2, 0, 0, 0, 0, 0]);
    data.extend(options);
    data.extend(b"data");
    Frame { link_type: 101, original_len: u32::try_from(data.len()).unwrap(), data }
}

/// Each kind, and each message of multipath TCP, with each length, also those that are wrong.
#[test]
fn options_of_tcp_are_those_of_tcpdump() {
    let filler = |seed: u32| {
        let mut state = seed.wrapping_mul(2_654_435_761) | 1;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        std::array::from_fn::<u8, 40, _>(|_| next())
    };
    let mut frames = Vec::new();
    for kind in 0..=255 {
        for len in 0..24 {
            let mut option = filler(u32::from(kind) << 8 | u32::from(len));
            option[..2].copy_from_slice(&[kind, len]);
            frames.push(with_options(0x10, &option[..usize::from(len.max(2))]));
            // Behind another option, at the end of all options, and longer than they are.
            let mut second = [3, 3, 7].to_vec();
            second.extend(&option[..usize::from(len.max(2) - 1)]);
            frames.push(with_options(0x10, &second));
        }
        for experiment in 2..8 {
            frames.push(with_options(
                0x10,
                &[kind, experiment, 0xf9, 0x89, 1, 2, 3, 4][..usize::from(experiment)],
            ));
        }
    }
    for first in 0..=255 {
        for len in 2..=36 {
            for flags in [0x02, 0x10, 0x12] {
                if first > 0 && first < 0x10 && len == 24 {
                    continue; // tcpdump 4.99 takes a first segment of version 1 with a checksum for a bad option
                }
                let mut option = filler(u32::from(first) << 16 | u32::from(len) << 8 | u32::from(flags));
                option[..3].copy_from_slice(&[30, len, first]);
                frames.push(with_options(flags, &option[..usize::from(len)]));
            }
        }
    }
    agree_on(&frames, &[], PLAIN, None);
}

/// A response from a DNS server, in raw IPv4.
fn dns_response(message: &[u8]) -> Frame {
    udp(53, message)
}

/// A datagram from `port`, in raw IPv4.
fn udp(port: u16, message: &[u8]) -> Frame {
    let len = u16::try_from(28 + message.len()).unwrap().to_be_bytes();
    let mut data = vec![0x45, 0, len[0], len[1], 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    data.extend(port.to_be_bytes());
    data.extend(1000_u16.to_be_bytes());
    data.extend(u16::try_from(8 + message.len()).unwrap().to_be_bytes());
    data.extend([0, 0]);
    data.extend(message);
    Frame { link_type: 101, original_len: u32::try_from(data.len()).unwrap(), data }
}

#[test]
fn results_of_dns_are_those_of_tcpdump() {
    let opt = |upper: u8| vec![0, 0, 41, 4, 208, upper, 0, 0, 0, 0, 0];
    let address = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4].to_vec();
    let message = |lower: u8, sections: [&[Vec<u8>]; 3]| {
        let [answers, authorities, additional] = sections.map(|records| u8::try_from(records.len()).unwrap());
        let mut message = vec![0, 7, 0x81, 0x80 | lower, 0, 1, 0, answers, 0, authorities, 0, additional];
        message.extend(b"\x01e\0\0\x01\0\x01");
        message.extend(sections.concat().concat());
        message
    };
    let mut messages = Vec::new();
    for result in 0..4096_u16 {
        // tcpdump forgets the space before these.
        if !matches!(result, 17 | 21) {
            let [upper, lower] = [result >> 4, result & 15].map(|bits| u8::try_from(bits).unwrap());
            messages.push(message(lower, [&[], &[], &[opt(upper)]]));
        }
    }
    let record = std::slice::from_ref(&address);
    let own = [opt(1)];
    messages.push(message(7, [record, record, &[address.clone(), opt(1)]]));
    messages.push(message(7, [&own, &[], &[]]));
    messages.push(message(7, [&[], &own, record]));
    messages.push(message(7, [&[], &[], &[opt(1), opt(2)]]));
    messages.push(message(7, [&[], &[], &[opt(0), opt(1)]]));
    let whole = message(7, [&[], &[], &[address.clone(), opt(1)]]);
    messages.extend((12..whole.len()).map(|len| whole[..len].to_vec()));
    agree_on(&messages.iter().map(|message| dns_response(message)).collect::<Vec<_>>(), &[], PLAIN, None);
}

/// Each option with values that are right for some and wrong for others.
#[test]
fn options_of_dhcp_are_those_of_tcpdump() {
    let values: [&[u8]; 12] = [
        b"",
        b"\x01",
        b"\x00",
        b"\x02abc",
        b"\n\0\0\x01",
        b"\n\0\0\x01\n\0\0\x02",
        b"abcdefg",
        b"\0\0\x03http",
        b"http://x/y\xff\x01",
        b"\x01\x04abcd\x02\x02ef\x05\x04\n\0\0\x01\x97\x01\0",
        b"\x18\n\0\0\n\0\0\x01\0\n\0\0\x02",
        b"\x0f\x02\x03\x04",
    ];
    let message = |kind: u8, value: &[u8]| {
        let mut message = vec![1, 1, 6, 0, 0, 0, 0x12, 0x34];
        message.resize(236, 0);
        message.extend([0x63, 0x82, 0x53, 0x63, kind, u8::try_from(value.len()).unwrap()]);
        message.extend(value);
        message.extend([255, 0, 0]);
        udp(67, &message)
    };
    let mut frames: Vec<_> = (1..255).flat_map(|kind| values.map(|value| message(kind, value))).collect();
    frames.extend((0..=255).flat_map(|first| [53, 61, 81, 82].map(|kind| message(kind, &[first, 1, 65]))));
    frames.extend((0..=255).map(|first| message(53, &[first])));
    agree_on(&frames, &["-v"], Options { verbose: 1, ..PLAIN }, None);
}

/// Each option with values that are right for some and wrong for others; lists of names with right ones only.
#[test]
fn options_of_dhcp6_are_those_of_tcpdump() {
    const LISTS_OF_NAMES: [u8; 2] = [21, 24];
    // What is wrong in it is told in another way.
    const NTP: u8 = 56;
    let address = b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01";
    let values: [&[u8]; 10] = [
        b"\x03www\x07example\0",
        b"",
        b"\x01",
        b"\0\x02abcd",
        b"\0\x01\0\x01\0\0\0\x07\x02\0\0\0\0\x01",
        address,
        b"\0\0\0\x01\0\0\0\x02\0\0\0\x03",
        b"\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\x0d\0\x04\0\x02no",
        b"http://x/y",
        &[255; 12],
    ];
    let message = |kind: u8, value: &[u8]| {
        let mut message = vec![1, 0, 0x12, 0x34, 0, kind, 0, u8::try_from(value.len()).unwrap()];
        message.extend(value);
        udp(546, &message)
    };
    let of_kind = |kind: u8| values[..if LISTS_OF_NAMES.contains(&kind) { 1 } else { 10 }].iter();
    let frames: Vec<_> = (0..=255)
        .filter(|kind| *kind != NTP)
        .flat_map(|kind| of_kind(kind).map(move |value| message(kind, value)))
        .collect();
    agree_on(&frames, &["-v"], Options { verbose: 1, ..PLAIN }, None);
}

/// Each attribute with values that are right for some and wrong for others, and messages of EAP.
#[test]
fn attributes_of_radius_are_those_of_tcpdump() {
    // A time, which tcpdump prints in local time.
    const TIME: u8 = 55;
    let values: [&[u8]; 9] = [
        b"",
        b"\x01",
        b"\0\0\0\x01",
        b"\x01abc",
        b"abcdef",
        b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01",
        b"\0\x40\x20\x01\x0d\xb8\0\0\0\0",
        b"\0\0\0\x09\x01\x05abc\x02\x07d",
        b"\0\0\0\x09\x01\x01",
    ];
    let attribute = |kind: u8, value: &[u8]| {
        let len = u8::try_from(value.len()).unwrap();
        let mut message = vec![1, 7, 0, 22 + len];
        message.resize(20, 0x11);
        message.extend([kind, len + 2]);
        message.extend(value);
        udp(1812, &message)
    };
    let known = (0..=255).filter(|kind| *kind != TIME);
    let mut frames: Vec<_> = known.flat_map(|kind| values.map(|value| attribute(kind, value))).collect();
    for (code, method) in (1..=5).flat_map(|code| (0..=255).map(move |method| (code, method))) {
        for (len, value) in [(7, b"\x0b\0"), (7, b"\x80a"), (9, b"\0\0")] {
            frames.push(attribute(79, &[code, 9, 0, len, method, value[0], value[1]]));
        }
        frames.push(attribute(79, &[code, 9, 0, 5, method]));
    }
    agree_on(&frames, &["-v"], Options { verbose: 1, ..PLAIN }, None);
}

/// For TCP and ICMP only: for other protocols, tcpdump's `-v` also prints the payload.
#[test]
fn verbose_lines_are_those_of_tcpdump() {
    let verbose = Options { verbose: 1, ..PLAIN };
    agree(&["-v"], verbose, None, |frame| {
        let ip4 = frame.link_type == 1 && frame.data.get(12..14) == Some(&[8, 0]);
        let protocol = frame.data.get(23).copied();
        let http = [34..36, 36..38].into_iter().any(|port| frame.data.get(port) == Some(&[0, 80]));
        ip4 && whole(frame)
            && frame.data[20] & 0x3f == 0
            && (protocol == Some(6) && !http || protocol == Some(1) && !matches!(frame.data[34], 5 | 9))
    });
}

#[test]
fn payloads_are_those_of_tcpdump() {
    for (level, letters) in [(1, "-v"), (2, "-vv"), (3, "-vvv")] {
        agree_on(&frames(PAYLOADS), &[letters], Options { verbose: level, ..PLAIN }, None);
    }
}

/// `routers.txt`: what routers and switches say to each other.
#[test]
fn protocols_of_routers_are_those_of_tcpdump() {
    let frames = frames(include_str!("routers.txt"));
    agree_on(&frames, &[], PLAIN, None);
    agree_on(&frames, &["-e"], Options { link: true, ..PLAIN }, None);
    for (level, letters) in [(1, "-v"), (2, "-vv"), (3, "-vvv")] {
        agree_on(&frames, &[letters], Options { verbose: level, ..PLAIN }, None);
    }
}

/// An update and an open message, with system 327687 wherever it can be.
#[test]
fn systems_of_bgp_have_a_dot_if_so_asked() {
    let frames = frames(include_str!("systems.txt"));
    for (asdot, letters) in [(true, "-bv"), (false, "-v")] {
        let options = Options { verbose: 1, asdot, ..PLAIN };
        agree_on(&frames, &[letters], options, None);
        let line = ours(101, &[&frames[0]], options, None);
        assert_eq!(line.contains(" 5.7 "), asdot, "{line}");
    }
}

/// tcpdump reads one header too many in an acknowledgement of OSPF, and says that it is cut off.
#[test]
fn an_acknowledgement_of_ospf_is_not_cut_off() {
    let ip = "4500004000010000015900000a0000010a000002";
    let header = "0205002c0a00000100000000000000000000000000000000";
    let state = "0001020101010101010101018000000112340024";
    let data = bytes(&format!("{ip}{header}{state}"));
    let frame = Frame { link_type: 101, original_len: u32::try_from(data.len()).unwrap(), data };
    let line = ours(101, &[&frame], Options { verbose: 1, ..PLAIN }, None);
    assert!(line.contains("Advertising Router 1.1.1.1, seq 0x80000001, age 1s, length 16"), "{line}");
    assert!(line.ends_with("Options: [External]\n"), "{line}");
    let theirs = tcpdump(101, &[&frame], &["-v"]);
    assert!(theirs.is_none_or(|theirs| theirs.ends_with("Options: [External] [|ospf2]\n")));
}

/// tcpdump looks for the second target of an LSP ping inside the first.
#[test]
fn each_target_of_an_lsp_ping_is_printed() {
    let header = "0001000001020000000012340000000700000000000000000000000000000000";
    let targets = "000100180001000501020304200000000001000505060708200000000000";
    let data = bytes(&format!("{header}{targets}"));
    let frame = udp(3503, &data[..data.len() - 2]);
    let line = ours(101, &[&frame], Options { verbose: 1, ..PLAIN }, None);
    assert!(line.contains("\n\t      1.2.3.4/32\n"), "{line}");
    assert!(line.ends_with("\n\t      5.6.7.8/32\n"), "{line}");
    let theirs = tcpdump(101, &[&frame], &["-v"]);
    assert!(theirs.is_none_or(|theirs| !theirs.contains("5.6.7.8")));
}

/// `named.txt`: a name of a payload before each frame.
#[test]
fn named_payloads_are_those_of_tcpdump() {
    for (name, payload) in Payload::ALL {
        let of_name = |line: &str| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let lines: Vec<_> = include_str!("named.txt").lines().filter_map(of_name).collect();
        let frames = frames(&lines.join("\n"));
        assert!(!frames.is_empty(), "{name}");
        let named = Options { payload: Some(payload), ..PLAIN };
        agree_on(&frames, &["-T", name], named, None);
        agree_on(&frames, &["-T", name, "-q"], Options { quick: true, ..named }, None);
        agree_on(&frames, &["-T", name, "-vv"], Options { verbose: 2, ..named }, None);
    }
}

#[test]
fn checksums_are_not_verified_if_so_asked() {
    let unverified = Options { unverified: true, verbose: 2, ..PLAIN };
    agree_on(&frames(PAYLOADS), &["-vv", "-K"], unverified, None);
}

/// tcpdump prints up to twenty more bytes of a nonce, whether they belong to it or not.
#[test]
fn a_nonce_ends_where_it_ends() {
    let header = "01010101010101010202020202020202282022080000000000000038";
    let nonces = format!("28000010{}0000000c{}", "6e".repeat(12), "7f".repeat(8));
    let data = bytes(&format!("{header}{nonces}"));
    let frame = udp(500, &data);
    let line = ours(101, &[&frame], Options { verbose: 1, ..PLAIN }, None);
    assert!(line.contains("(nonce: len=12 data=(6e6e6e6e6e6e6e6e6e6e...6e6e))"), "{line}");
    let theirs = tcpdump(101, &[&frame], &["-v"]);
    assert!(theirs.is_none_or(|theirs| theirs.contains("...6e6e0000000c7f")));
}

/// Lines that differ from tcpdump's on purpose.
#[test]
fn lines_that_are_better_or_shorter() {
    let inner = "4500001d00010000401166cd0a0000010a000002000100020009ebf278";
    let carried = "IP 10.0.0.1.1 > 10.0.0.2.2: UDP, length 1";
    let table = [
        // The port that Linux used for VXLAN before one was assigned; OTV in tcpdump.
        (
            101,
            format!(
                "4500004f000100004011669b0a0000010a00000200052118003b000008000000000064000200000000020200000000010800{inner}"
            ),
            format!("IP 10.0.0.1.5 > 10.0.0.2.8472: VXLAN, flags [I] (0x08), vni 100\n{carried}"),
        ),
        // Names are not looked up, so the index is printed.
        (276, format!("0800000000000007000104060200000000010000{inner}"), format!("if7   Out {carried}")),
        (
            147,
            "00ff".to_owned(),
            "link-type 147, length 2\n\t0x0000:  00ff                                     ..".to_owned(),
        ),
        (1, String::new(), " [|ether]".to_owned()),
    ];
    for (link_type, hex, expected) in table {
        let data = bytes(&hex);
        let frame = Frame { link_type, original_len: u32::try_from(data.len()).unwrap(), data };
        assert_eq!(ours(link_type, &[&frame], PLAIN, None).trim_end_matches('\n'), expected, "{hex}");
    }
}

/// Each status and each reason, and some beyond.
#[test]
fn codes_of_802_11_are_those_of_tcpdump() {
    let management = |first: u8, body: &[u8]| {
        let data = [&[first, 0, 0, 0][..], &[2; 20], body].concat();
        Frame { link_type: 105, original_len: u32::try_from(data.len()).unwrap(), data }
    };
    let frames: Vec<_> = (0..=u8::MAX)
        .flat_map(|code| [(0x10, vec![0, 0, code, 0, 1, 0xc0]), (0xa0, vec![code, 0]), (0xc0, vec![code, 0])])
        .map(|(first, body)| management(first, &body))
        .collect();
    agree_on(&frames, &[], PLAIN, None);
}

/// Each rate in front of an acknowledgement of 802.11: all bytes of the old field, and each MCS index with each width.
#[test]
fn rates_of_radios_are_those_of_tcpdump() {
    let radio = |bit: u32, field: &[u8]| {
        let len = u8::try_from(8 + field.len()).unwrap();
        let data =
            [&[0, 0, len, 0][..], &(1_u32 << bit).to_le_bytes(), field, &[0xd4, 0, 0, 0], &[2; 6]].concat();
        Frame { link_type: 127, original_len: u32::try_from(data.len()).unwrap(), data }
    };
    let mut frames: Vec<_> = (0..=u8::MAX).map(|rate| radio(2, &[rate])).collect();
    for index in 0..80 {
        frames.extend((0..8).map(|about| radio(19, &[7, about, index])));
    }
    frames.extend((0..=u8::MAX).map(|known| radio(19, &[known, 0x35, 9])));
    agree_on(&frames, &[], PLAIN, None);
}

/// `cuts.txt`: captured up to each byte.
#[test]
fn lines_of_cut_packets_are_those_of_tcpdump() {
    let mut cut = Vec::new();
    for Frame { link_type, original_len, data } in frames(include_str!("cuts.txt")) {
        let cut_at = |len| Frame { link_type, original_len, data: data[..len].to_vec() };
        cut.extend((1..=data.len()).map(cut_at));
    }
    agree_on(&cut, &[], PLAIN, None);
    agree_on(&cut, &["-e"], Options { link: true, ..PLAIN }, None);
    for (level, letters) in [(1, "-v"), (2, "-vv"), (3, "-vvv")] {
        agree_on(&cut, &[letters], Options { verbose: level, ..PLAIN }, None);
    }
}
