//! `weir read --stream`, judged by tshark's `-z follow`.

use std::fs;
use std::path::Path;

use weir::writer::Format;

use crate::support::{EPOCH, Place, judge, packet, stderr, succeeds, weir, write, write_packets};

const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// An IPv4 packet between 10.0.0.1 and 10.0.0.2, padded as on Ethernet. `back`: from the second.
fn ip(back: bool, protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(u16::try_from(20 + transport.len()).expect("short").to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    let ends = if back { [2, 1] } else { [1, 2] };
    ends.iter().for_each(|end| frame.extend([10, 0, 0, *end]));
    frame.extend(transport);
    frame.resize(frame.len().max(60), 0xee);
    frame
}

fn ports(back: bool, port: u16) -> Vec<u8> {
    let ports = if back { [80, port] } else { [port, 80] };
    ports.iter().flat_map(|port| port.to_be_bytes()).collect()
}

fn tcp(back: bool, port: u16, sequence: u32, acknowledgement: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = ports(back, port);
    segment.extend(sequence.to_be_bytes().into_iter().chain(acknowledgement.to_be_bytes()));
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    ip(back, 6, &segment)
}

fn udp(back: bool, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = ports(back, port);
    datagram.extend(u16::try_from(8 + payload.len()).expect("short").to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    ip(back, 17, &datagram)
}

const REQUEST: &[u8] = b"GET /\x1b[31mred HTTP/1.1\r\nHost: a\r\n\r\n";

/// The answer, of text and other bytes.
fn answer() -> Vec<u8> {
    (0..20_000u32).map(|at| if at % 61 == 60 { b'\n' } else { (at * 7 % 251) as u8 }).collect()
}

/// A connection whose server's numbers pass 2^32. Segments of the answer come in the wrong order, twice, and cut otherwise;
/// those in `lost` never do.
fn connection(port: u16, lost: &[usize]) -> Vec<Vec<u8>> {
    let (client, server) = (1000u32, u32::MAX - 5000);
    let mut frames = vec![
        tcp(false, port, client, 0, SYN, b""),
        tcp(true, port, server, client + 1, SYN | ACK, b""),
        tcp(false, port, client + 1, server + 1, ACK, b""),
        tcp(false, port, client + 11, server + 1, ACK | PUSH, &REQUEST[10..]),
        tcp(false, port, client + 1, server + 1, ACK | PUSH, &REQUEST[..10]),
        tcp(false, port, client + 1, server + 1, ACK | PUSH, REQUEST),
    ];
    let (answer, request) = (answer(), client + 1 + u32::try_from(REQUEST.len()).expect("short"));
    let part = |from: usize, to: usize| {
        let sequence = server.wrapping_add(1 + u32::try_from(from).expect("short"));
        tcp(true, port, sequence, request, ACK, &answer[from..to.min(answer.len())])
    };
    let segments: Vec<usize> = (0..answer.len()).step_by(1000).collect();
    for window in segments.chunks(4) {
        let there = window.iter().rev().filter(|at| !lost.contains(at));
        frames.extend(there.clone().map(|at| part(*at, at + 1000)));
        if lost.is_empty() {
            // Repeated, with some of what is before and behind.
            frames.push(part(window[0].saturating_sub(300), window[0] + 1500));
        }
        let end = server.wrapping_add(1 + u32::try_from(window[window.len() - 1] + 1000).expect("short"));
        frames.push(tcp(false, port, request, end, ACK, b""));
    }
    frames
}

fn file(place: &Place, name: &str, frames: &[Vec<u8>]) -> std::path::PathBuf {
    let path = place.path(name);
    let packets: Vec<_> =
        (0..).zip(frames).map(|(n, data)| (0, EPOCH + n * 1_000_000, data.as_slice(), 0)).collect();
    write(&path, Format::Pcapng, &[("eth0", 1)], &packets);
    path
}

/// What tshark has of a stream: the way, and bytes.
fn followed(file: &Path, protocol: &str, number: u32) -> Vec<(usize, Vec<u8>)> {
    let follow = format!("follow,{protocol},raw,{number}");
    let text = judge("tshark", &["-n", "-q", "-z", &follow, "-r"], &[file]);
    let lines = text.lines().skip_while(|line| !line.starts_with("Node 1: ")).skip(1);
    let hex = |line: &str| -> Vec<u8> {
        let pairs = line.trim().as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
        pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
    };
    lines
        .take_while(|line| !line.starts_with("==="))
        .map(|line| (usize::from(line.starts_with('\t')), hex(line)))
        .collect()
}

/// The raw bytes that weir writes.
fn raw(place: &Place, file: &Path, args: &[&str]) -> Vec<u8> {
    let out = place.path("raw");
    let name = out.to_str().expect("UTF-8");
    succeeds(&[&["read", "--raw", "-w", name], args].concat(), &[file]);
    fs::read(&out).expect("the bytes")
}

#[test]
fn streams_are_those_of_tshark() {
    let place = Place::new();
    let mut frames = connection(4321, &[]);
    // Another connection and datagrams between them; the port is used again at the end.
    for (at, payload) in [(30, &b"two"[..]), (20, b"one"), (9, b"zero")] {
        frames.insert(at, udp(at == 20, 5000, payload));
        frames.insert(at, tcp(false, 4322, 77 + u32::from(at == 9), 0, ACK, payload));
    }
    frames.push(tcp(false, 4321, 9_000_000, 0, SYN, b""));
    frames.push(tcp(false, 4321, 9_000_001, 0, ACK, b"again"));
    let file = file(&place, "whole.pcapng", &frames);
    for (protocol, number) in [("tcp", 0), ("tcp", 2), ("udp", 0)] {
        let theirs = followed(&file, protocol, number);
        assert!(!theirs.is_empty(), "{protocol} {number}");
        let bytes = |ways: &[usize]| -> Vec<u8> {
            let parts = theirs.iter().filter(|(way, _)| ways.contains(way));
            parts.flat_map(|(_, bytes)| bytes.clone()).collect()
        };
        let stream = format!("--stream={protocol}:{number}");
        assert_eq!(raw(&place, &file, &[&stream]), bytes(&[0, 1]), "{stream}");
        assert_eq!(raw(&place, &file, &[&stream, "--way", "there"]), bytes(&[0]), "{stream}");
        assert_eq!(raw(&place, &file, &[&stream, "--way", "back"]), bytes(&[1]), "{stream}");
    }
    assert_eq!(raw(&place, &file, &["--stream", "0"]), [REQUEST, &answer()].concat());
    let ends = "--stream=10.0.0.2:80-10.0.0.1:4321";
    assert_eq!(raw(&place, &file, &[ends]), [REQUEST, &answer(), b"again"].concat());

    let text = succeeds(&["read", "--stream", "0"], &[&file]);
    let start = "10.0.0.1:4321 > 10.0.0.2:80\n> GET /\\u{1b}[31mred HTTP/1.1\n> Host: a\n>\n< \\u{0}\\u{7}";
    assert!(text.starts_with(start) && !text.contains('\x1b'), "{text}");
    let text = succeeds(&["read", "--stream", "udp:0"], &[&file]);
    assert_eq!(text, "10.0.0.1:5000 > 10.0.0.2:80\n> zero\n< one\n> two\n");
    let text = succeeds(&["read", "--stream", "0", "--hex", "--way", "there"], &[&file]);
    assert!(text.contains("> 00000000  47 45 54 20 2f 1b "), "{text}");

    let output = weir(&["read", "--stream", "7"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("cannot print tcp:7: there is no such stream") && said.contains("3 TCP streams"),
        "{said}"
    );
}

#[test]
fn what_is_missing_is_shown_where_it_was() {
    let place = Place::new();
    let file = file(&place, "gaps.pcapng", &connection(4321, &[3000, 4000, 19_000]));
    let output = weir(&["read", "--stream", "0"], &[&file]);
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    assert_eq!(text.matches("< [2,000 bytes missing]\n").count(), 1, "{text}");
    let said = stderr(&output);
    assert!(said.contains("35 bytes from 10.0.0.1:4321, 17,000 bytes from 10.0.0.2:80"), "{said}");
    assert!(said.contains("note: 3,000 bytes are missing"), "{said}");
    let answer = answer();
    let expected = [REQUEST, &answer[..3000], &answer[5000..19_000]].concat();
    assert_eq!(raw(&place, &file, &["--stream", "0"]), expected);

    // Cut by a snap length, and in fragments.
    let whole = connection(4321, &[]);
    let mut fragment = udp(false, 5000, b"part");
    fragment[20] = 0x20;
    let frames: Vec<_> = whole.iter().chain([&fragment]).map(|data| &data[..data.len().min(64)]).collect();
    let packets = frames.iter().zip(whole.iter().chain([&fragment])).map(|(data, whole)| {
        weir::with!(packet(EPOCH, data), original_len = u32::try_from(whole.len()).expect("short"))
    });
    let cut = place.path("cut.pcapng");
    write_packets(&cut, Format::Pcapng, &[("eth0", 1)], &packets.collect::<Vec<_>>());
    let output = weir(&["read", "--stream", "0", "--sort", "none"], &[&cut]);
    let said = stderr(&output);
    let number = |text: &str| -> u64 { text.replace(',', "").parse().expect("a number") };
    let there: u64 = said
        .split(' ')
        .collect::<Vec<_>>()
        .windows(3)
        .filter(|words| words[1..] == ["bytes", "from"])
        .map(|words| number(words[0]))
        .sum();
    let missing = said.split_once("note: ").and_then(|(_, note)| note.split_once(" bytes are missing"));
    let missing = number(missing.unwrap_or_else(|| panic!("{said}")).0);
    assert_eq!(there + missing, (REQUEST.len() + answer.len()) as u64, "{said}");
    let output = weir(&["read", "--stream", "udp:0"], &[&cut]);
    let said = stderr(&output);
    assert!(said.contains("1 IP fragment") && said.contains("no such stream"), "{said}");
}
