//! Packets whose payload would command the terminal that shows them.

use serde_json::Value;
use weir_lab::root_test;

use crate::harness::{capture, directory, network, path, send_each};
use crate::terminal::Terminal;

/// Sets the title, clears the screen, rings, goes back, turns the order of letters, begins lines.
const EVIL: &[u8] = b"\x1b]0;pwned\x07\x1b[2J\x1b[31m\r\n\xe2\x80\xae\xc2\x9b1m\xe2\x80\xa8\x08evil";

/// The same on one line.
fn evil_line() -> Vec<u8> {
    EVIL.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect()
}

fn ipv4(protocol: u8, transport: &[&[u8]]) -> Vec<u8> {
    let payload = transport.concat();
    let length = u16::try_from(20 + payload.len()).expect("short").to_be_bytes();
    // A wrong checksum is printed with -v only, and changes nothing else.
    let header =
        [&[0x45, 0], &length[..], &[0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    let mut frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &header[..], &payload].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("short");
    ipv4(17, &[&from.to_be_bytes(), &to.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload])
}

fn tcp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let rest = [0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 2, 0, 0, 0, 0, 0];
    ipv4(6, &[&from.to_be_bytes(), &to.to_be_bytes(), &rest, payload])
}

/// `bytes` behind their length, which takes this many bytes.
fn sized(width: usize, bytes: &[u8]) -> Vec<u8> {
    [&bytes.len().to_be_bytes()[size_of::<usize>() - width..], bytes].concat()
}

/// A question for a name, and in the other direction also a text.
fn dns(name: &[u8], answer: bool) -> Vec<u8> {
    let question = [&sized(1, name)[..], &[0, 0, 16, 0, 1]].concat();
    if !answer {
        return [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &question[..]].concat();
    }
    let text = sized(2, &sized(1, EVIL));
    [&[0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], &question[..], &[0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 1], &text]
        .concat()
}

/// A TLS ClientHello for a server's name.
fn hello(name: &[u8]) -> Vec<u8> {
    let server_name = [&[0, 0][..], &sized(2, &sized(2, &[&[0], &sized(2, name)[..]].concat()))].concat();
    let random = [0; 32];
    let hello = [&[3, 3], &random[..], &[0, 0, 2, 0x13, 1, 1, 0], &sized(2, &server_name)].concat();
    [&[22, 3, 1][..], &sized(2, &[&[1], &sized(3, &hello)[..]].concat())].concat()
}

/// Frames of protocols of which names or texts are printed.
fn frames() -> Vec<Vec<u8>> {
    let (text, line) = (EVIL, &evil_line()[..]);
    let request =
        [b"GET /", line, b" HTTP/1.1\r\nHost: ", line, b"\r\nUser-Agent: ", line, b"\r\n\r\n"].concat();
    vec![
        udp(5353, 53, &dns(text, false)),
        udp(53, 5353, &dns(text, true)),
        udp(5353, 5353, &dns(text, false)),
        udp(137, 137, &dns(text, false)),
        tcp(4000, 80, &request),
        tcp(80, 4000, &[b"HTTP/1.1 200 ", line, b"\r\nContent-Type: ", line, b"\r\n\r\n"].concat()),
        tcp(4000, 443, &hello(text)),
        tcp(22, 4000, &[b"SSH-2.0-", line, b"\r\n"].concat()),
        tcp(25, 4000, &[b"220 ", text, b"\r\n"].concat()),
        tcp(21, 4000, &[b"220 ", text, b"\r\n"].concat()),
        tcp(4000, 554, &[b"OPTIONS ", line, b" RTSP/1.0\r\n"].concat()),
        udp(514, 514, &[b"<13>", text].concat()),
        udp(4000, 69, &[b"\0\x01", line, b"\0octet\0"].concat()),
        udp(5060, 5060, &[b"INVITE sip:", line, b" SIP/2.0\r\n"].concat()),
    ]
}

/// What commands a terminal, except for the ends of lines and the tabs that tcpdump prints.
fn commands(text: &str) -> Vec<char> {
    let turns = |letter| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = |letter| matches!(letter, '\u{2028}' | '\u{2029}');
    let harmless = |letter| matches!(letter, '\n' | '\t');
    text.chars()
        .filter(|&letter| (letter.is_control() && !harmless(letter)) || turns(letter) || breaks(letter))
        .collect()
}

#[root_test]
fn root_payloads_do_not_command_the_terminal() {
    let (network, frames) = (network(), frames());
    let number = frames.len().to_string();
    for options in
        [&["-n"][..], &["-nv"], &["-nvvv"], &["-nq"], &["-nA"], &["-ne#XX"], &["--json"], &["--json", "-vv"]]
    {
        let running = capture(&network, &[options, &["-c", &number]].concat());
        send_each(network.pair(), &frames);
        let ended = running.wait().succeeded();
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        assert!(text.contains("evil") || options.contains(&"-nq"), "{text}");
        assert_eq!(commands(&text), [], "{options:?}: {text}");
        if options.contains(&"--json") {
            let objects: Vec<Value> =
                text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
            assert_eq!(objects.len(), frames.len() + 1);
            // In a field text is what it was; in the line it is harmless.
            let lines = objects.iter().filter_map(|object| object["line"].as_str());
            lines.for_each(|line| assert_eq!(commands(line), [], "{line}"));
        } else if options == ["-n"] {
            assert_eq!(text.lines().count(), frames.len(), "{text}");
        }
    }
}

#[root_test]
fn root_a_terminal_survives_hostile_packets() {
    if !Terminal::is_there() {
        return;
    }
    let (network, directory, frames) = (network(), directory(), frames());
    for (name, size) in [("usual", (100, 60)), ("tiny", (20, 5))] {
        let capture = format!("{} capture -i rx0 -B 8MiB -n -c {}", env!("CARGO_BIN_EXE_weir"), frames.len());
        let terminal = Terminal::start(&network, path(&directory, name), size, &capture);
        terminal.wait_for(if name == "tiny" { "directions" } else { "; source " });
        send_each(network.pair(), &frames);
        // The end of a summary of one line, or of the whole one if a packet came late.
        terminal.wait_for_one_of(&["nothing lost", "dropped by interface"]);
        assert!(!terminal.title().contains("pwned"), "{}", terminal.title());
        if name == "usual" {
            // Nothing has cleared the screen: the first packet is still there.
            let screen = terminal.screen();
            assert!(screen.contains("7+ TXT?") && screen.contains("evil"), "{screen}");
        }
    }
}
