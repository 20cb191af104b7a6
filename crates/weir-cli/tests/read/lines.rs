//! Lines and objects.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir::statistics::KeyField;
use weir::writer::{Format, Writer, WriterOptions};
use weir::{CaptureStats, FileInterface};
use weir_lab::{FrameSender, Network, Pair, Veth, tcp_transfer};

use crate::support::{
    EPOCH, Guarded, Place, frames, judge, packet, pcap, record, stderr, stdout, succeeds, until, weir, write,
};

/// The same letters to both, and the same lines from both.
#[track_caller]
fn same(letters: &[&str], file: &Path) {
    let theirs = judge("tcpdump", &[letters, &["-n", "-r"]].concat(), &[file]);
    let ours = succeeds(&[&["read"], letters].concat(), &[file]);
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs, "{letters:?}");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{letters:?}");
}

#[test]
fn lines_in_every_way_are_those_of_tcpdump() {
    let place = Place::new();
    let file = place.path("all.pcap");
    pcap(&file);
    let ways: [&[&str]; 18] = [
        &[],
        &["-t"],
        &["-tt"],
        &["-ttt"],
        &["-tttt"],
        &["-ttttt"],
        &["-e"],
        &["-q"],
        &["-S"],
        &["-K"],
        &["-x"],
        &["-xx"],
        &["-X"],
        &["-XX"],
        &["-A"],
        &["-#"],
        &["--nano", "-tt"],
        &["-c", "7", "-e", "-ttt", "--nano"],
    ];
    for way in ways {
        same(way, &file);
    }
}

#[test]
fn standard_input_is_read_like_a_file() {
    let place = Place::new();
    let file = place.path("all.pcap");
    pcap(&file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let input = fs::File::open(&file).expect("a file");
    let output = command.args(["read", "-t", "-"]).stdin(input).output().expect("weir");
    assert_eq!(String::from_utf8_lossy(&output.stdout), succeeds(&["read", "-t"], &[&file]));
}

#[test]
fn interfaces_are_told_if_asked_and_losses_always() {
    let place = Place::new();
    let file = place.path("two.pcapng");
    let frame =
        frames().into_iter().find(|frame| frame.get(34..38) == Some(&[0x13, 0x88, 0x17, 0x70])).expect("UDP");
    let packets = [(0, EPOCH, frame.as_slice(), 0), (1, EPOCH + 1, &frame, 12)];
    write(&file, Format::Pcapng, &[("eth0", 1), ("wlan0", 1)], &packets);
    let carried = "IP 10.0.0.1.5000 > 10.0.0.2.6000: UDP, length";
    let plain = ["1700000000.000000000 ", "1700000000.000000001 "];
    let named = ["1700000000.000000000 eth0  ", "1700000000.000000001 wlan0 In  "];
    for (option, begins) in [(None, plain), (Some("--interfaces"), named)] {
        let arguments: Vec<_> = ["read", "-tt", "--nano"].into_iter().chain(option).collect();
        let lines = succeeds(&arguments, &[&file]);
        assert_eq!(lines.lines().count(), 2, "{lines}");
        for (line, begin) in lines.lines().zip(begins) {
            assert!(line.starts_with(&format!("{begin}{carried}")), "{line}");
        }
        assert!(lines.ends_with("  [12 lost before]\n"), "{lines}");
    }
    let ours = succeeds(&["read", "-tt"], &[&file]).replace("  [12 lost before]", "");
    assert_eq!(ours, judge("tcpdump", &["-tt", "-n", "-r"], &[&file]));
}

#[test]
fn objects_have_what_tshark_sees() {
    let place = Place::new();
    let file = place.path("all.pcap");
    let count = pcap(&file);
    let text = succeeds(&["read", "--json"], &[&file]);
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects.len(), count);
    let fields = ["frame.time_epoch", "frame.len", "eth.src", "tcp.srcport", "udp.dstport", "ip.ttl"];
    // Else it looks for ports only once all fragments are there.
    let mut args = vec!["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"];
    args.extend(["-T", "fields", "-E", "occurrence=f", "-n"]);
    fields.iter().for_each(|field| args.extend(["-e", field]));
    args.push("-r");
    let judged = judge("tshark", &args, &[&file]);
    let lines = text.lines().count();
    assert_eq!(judged.lines().count(), lines);
    let (mut ports, mut hops) = (0, 0);
    for (object, line) in objects.iter().zip(judged.lines()) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(object["epoch"], fields[0], "{object}");
        assert_eq!(object["length"].to_string(), fields[1], "{object}");
        assert_eq!(object["src_mac"], fields[2], "{object}");
        let protocol = object["proto"].as_u64();
        if protocol == Some(6) && object.get("sport").is_some() {
            ports += 1;
            assert_eq!(object["sport"].to_string(), fields[3], "{object}");
        }
        if protocol == Some(17) && object.get("dport").is_some() {
            ports += 1;
            assert_eq!(object["dport"].to_string(), fields[4], "{object}");
        }
        if object["ethertype"] == 0x0800 && object.get("ttl").is_some() {
            hops += 1;
            assert_eq!(object["ttl"].to_string(), fields[5], "{object}");
        }
    }
    assert!(ports > 50 && hops > 100, "{ports} {hops}");
    // A field is called as in `weir stat --by`, whose `port` is either port.
    for field in KeyField::ALL.map(KeyField::as_str).into_iter().filter(|field| *field != "port") {
        assert!(objects.iter().any(|object| object.get(field).is_some()), "{field}");
    }
    assert_eq!(objects[0]["time"], "2023-11-14T22:13:20.000000000Z");
    assert_eq!(objects[0]["tcp_flags"], "S");
}

/// More words in a line are no other facts: an ICMP error has no ports of the packet that it quotes.
#[test]
fn objects_are_of_the_packet_itself() {
    let place = Place::new();
    let file = place.path("errors.pcap");
    let udp = frames().into_iter().find(|frame| frame[12..14] == [8, 0] && frame[23] == 17).expect("UDP");
    let error = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &udp[14..]].concat();
    let length = u16::try_from(20 + error.len()).expect("short").to_be_bytes();
    let head = [&udp[..16], &length, &[0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9, 10, 0, 0, 8]].concat();
    let error = [head, error].concat();
    let frames = [vec![error], frames()].concat();
    let packets: Vec<_> = frames.iter().map(|frame| (0, EPOCH, frame.as_slice(), 0)).collect();
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    let objects = |args: &[&str]| -> Vec<Value> {
        let text = succeeds(&[&["read", "--json"], args].concat(), &[&file]);
        let mut objects: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        objects.iter_mut().for_each(|object| drop(object.as_object_mut().expect("an object").remove("line")));
        objects
    };
    let verbose = objects(&["-v"]);
    assert_eq!(verbose, objects(&[]));
    assert_eq!((&verbose[0]["protocol"], &verbose[0]["proto"]), (&"icmp".into(), &1.into()));
    assert!(verbose[0].get("sport").is_none(), "{}", verbose[0]);
    let fields =
        ["-T", "fields", "-E", "occurrence=f", "-n", "-c", "1", "-e", "ip.proto", "-e", "ip.src", "-r"];
    assert_eq!(judge("tshark", &fields, &[&file]), "1\t10.0.0.9\n");
    assert_eq!(verbose[0]["src"], "10.0.0.9");
}

#[test]
fn a_time_window_is_half_open() {
    let place = Place::new();
    let file = place.path("all.pcap");
    let count = pcap(&file);
    let numbers =
        |args: &[&str]| succeeds(&[&["read", "--count"], args].concat(), &[&file]).trim().to_owned();
    assert_eq!(numbers(&[]), count.to_string());
    assert_eq!(numbers(&["--from", "+10ms", "--to", "+20ms"]), "10");
    assert_eq!(numbers(&["--from", "1700000000.010", "--to", "1700000000.020"]), "10");
    assert_eq!(numbers(&["--from", "2023-11-15 03:43:20.01", "--to", "2023-11-14T22:13:20.02Z"]), "10");
    assert_eq!(numbers(&["--to", "+10ms"]), "10");
    assert_eq!(numbers(&["--from", "+10ms", "-c", "3"]), "3");
}

/// `weir read ... | head`
#[test]
fn a_reader_that_has_enough_is_no_error() {
    let place = Place::new();
    let file = place.path("many.pcap");
    let frames = frames();
    let packets: Vec<_> = (0..100_000).map(|n| (0, EPOCH + n, frames[20].as_slice(), 0)).collect();
    write(&file, Format::Pcap { nanoseconds: true }, &[("", 1)], &packets);
    for args in [&["read"][..], &["read", "--json"], &["read", "-w", "-"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let mut child = command
            .args(args)
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weir");
        let mut first = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
        first.fill_buf().expect("a little");
        drop(first);
        let mut errors = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{args:?}: {errors}");
        assert_eq!(errors, "", "{args:?}");
    }
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let place = Place::new();
    let file = place.path("all.pcap");
    pcap(&file);
    let table: [(&[&str], &str); 9] = [
        (&["read"], "<FILE>"),
        (&["read", "--from", "yesterday", "x"], "2026-11-21 13:05:00"),
        (&["read", "-x", "-X", "x"], "cannot be combined"),
        (&["read", "-T", "morse", "x"], "carp, domain"),
        (&["read", "--json", "-w", "y", "x"], "--json"),
        (&["read", "--split-by", "hour", "-w", "y", "x"], "time:1h"),
        (&["read", "--split-by", "flow", "-w", "-", "x"], "several files"),
        (&["read", "--repair", "x"], "--write"),
        (&["read", "-", "-"], "once"),
    ];
    for (args, expected) in table {
        let output = weir(args, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(expected), "{args:?} should say `{expected}`: {errors}");
    }
}

/// What really goes over a wire: TCP of both versions with its options, ARP, neighbour discovery, UDP.
#[weir_lab::root_test]
fn root_lines_of_real_traffic_are_those_of_tcpdump() {
    let network = Network::new(Veth::default().ipv4().ipv6().chatter()).expect("a private network");
    let place = Place::new();
    let file = place.path("real.pcap");
    let pair = network.pair();
    record(&network, &file, || {
        tcp_transfer(pair, 3 << 20).expect("a transfer");
        frames_of_all_kinds(pair);
    });

    let lines = judge("tcpdump", &["-n", "-r"], &[&file]);
    assert!(lines.lines().count() > 100 && lines.contains("Flags [S]"), "{lines}");
    assert!(lines.contains("ARP, Request who-has"), "{lines}");
    for letters in [&[][..], &["-e"], &["-tttt", "-S"], &["-q"], &["-X"]] {
        same(letters, &file);
    }
}

/// The frames of the table over the wire, VLAN tags and DNS among them.
fn frames_of_all_kinds(pair: &Pair) {
    let sender = FrameSender::new(&pair.tx).expect("a socket");
    for frame in frames().iter().filter(|frame| frame.len() >= 60) {
        sender.send(frame).expect("a frame");
    }
}

/// Orders to a terminal: ESC and C1 introducers, carriage return, backspace, the other direction of writing, a line of its own.
const ORDERS: &str = "a\x1b[2J\u{9b}31m\r\x08\x7f\u{202e}fdp\u{2066}\u{200f}\u{2028}b";

/// A query for a name of these letters.
fn dns(name: &str) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).expect("short").to_be_bytes();
    let label = [&[u8::try_from(name.len()).expect("short")], name.as_bytes()].concat();
    let dns = [&[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &label, &[0, 0, 1, 0, 1]].concat();
    let udp = [&[0x80, 0, 0, 53][..], &length(8 + dns.len()), &[0, 0], &dns].concat();
    let ip = [
        &[0x45, 0][..],
        &length(20 + udp.len()),
        &[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
        &udp,
    ];
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &ip.concat()].concat()
}

#[test]
fn nothing_in_a_file_or_its_name_is_an_order_to_the_terminal() {
    let place = Place::new();
    let [file, other] = [format!("1{ORDERS}.pcapng"), "2.pcap".to_owned()].map(|name| place.path(&name));
    let said = || Some(ORDERS.to_owned());
    let interface = weir::with!(
        FileInterface::new(1),
        name = said(),
        description = said(),
        filter = said(),
        os = said(),
        comment = said(),
        snap_len = 262_144
    );
    let options =
        weir::with!(WriterOptions::default(), comment = said(), user_application = ORDERS.to_owned());
    let mut writer = Writer::create(&file, &[interface.clone(), interface], &options).expect("a file");
    for (interface, frame) in [(0, dns(ORDERS)), (1, dns("plain"))] {
        let packet = weir::with!(packet(EPOCH, &frame), interface, comment = Some(ORDERS));
        writer.packet(&packet).expect("a packet");
    }
    writer.finish(&CaptureStats::default()).1.expect("whole");
    pcap(&other);
    let damaged = place.path(&format!("3{ORDERS}.pcapng"));
    let bytes = fs::read(&file).expect("the file");
    fs::write(&damaged, &bytes[..bytes.len() - 150]).expect("room");
    let missing = place.path(&format!("4{ORDERS}"));

    let cases: [(&[&str], &[&Path]); 12] = [
        (&["read"], &[&file]),
        (&["read", "-v", "-e", "-A"], &[&file]),
        (&["read", "-q"], &[&file, &other]),
        (&["read"], &[&damaged]),
        (&["read"], &[&missing]),
        (&["read", "--json"], &[&file]),
        (&["info", "--json"], &[&file, &damaged]),
        (&["info"], &[&file]),
        (&["info", "--long"], &[&file, &other]),
        (&["info"], &[&file, &other]),
        (&["info"], &[&damaged, &missing]),
        (&["read", "-w"], &[&place.path(&format!("5{ORDERS}")), &file]),
    ];
    for (args, paths) in cases {
        let output = weir(args, paths);
        for text in [stdout(&output), stderr(&output)] {
            let order = |letter: &char| {
                letter.is_control() && !['\n', '\t'].contains(letter)
                    || matches!(letter, '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}')
            };
            assert_eq!(text.chars().find(order), None, "{args:?}: {text:?}");
        }
        assert!(!stdout(&output).is_empty() || !stderr(&output).is_empty(), "{args:?}");
    }
    let lines = succeeds(&["read"], &[&file]);
    assert!(lines.contains("fdp") && lines.contains("plain"), "what is harmless is told: {lines}");
}

/// `+` of --to counts from an absolute --from; a time alone is on the file's day; and what matches nothing says what there is.
#[test]
fn windows_of_time() {
    let place = Place::new();
    let file = place.path("a.pcap");
    let frame = frames().swap_remove(20);
    let packets: Vec<_> = (0..10).map(|n| (0, EPOCH + n * 1_000_000_000, frame.as_slice(), 0)).collect();
    write(&file, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    // The tests are in the zone of Kolkata.
    let windows = [
        ("2023-11-15 03:43:25", "+2s", "2"),
        ("03:43:25", "+3s", "3"),
        ("03:43:22", "03:43:26", "4"),
        ("1700000005", "+1s", "1"),
        ("+5s", "+6s", "1"),
    ];
    for (from, to, count) in windows {
        let output = weir(&["read", "--from", from, "--to", to, "--count"], &[&file]);
        assert_eq!((stdout(&output).trim(), stderr(&output).as_str()), (count, ""), "{from} {to}");
    }
    let output = weir(&["read", "--from", "2023-11-16", "--to", "+1s"], &[&file]);
    assert_eq!(output.status.code(), Some(0));
    let span = "covers 2023-11-15 03:43:20.000000000 to 2023-11-15 03:43:29.000000000";
    assert!(stderr(&output).contains(span), "{}", stderr(&output));
}

/// What the other program of a pipe still has when both are interrupted is read, counted and printed.
#[test]
fn standard_input_ends_after_a_signal() {
    let place = Place::new();
    let file = place.path("a.pcap");
    let number = pcap(&file);
    let bytes = fs::read(&file).expect("a file");
    let copy = place.path("b.pcapng");
    let copied = copy.display().to_string();
    let counted = |text: &str, place: &str| {
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        last.pointer(place).and_then(Value::as_u64)
    };
    for (args, ends_by_itself) in [
        (&["stat", "-r", "-", "--json", "all:"][..], false),
        (&["top", "-r", "-", "--once"], true),
        (&["info", "--json", "-"], true),
        (&["read", "--count", "-"], true),
        (&["read", "-", "-w", &copied], true),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Guarded(command.spawn().expect("weir"));
        let status = format!("/proc/{}/status", running.0.id());
        until("a process that catches SIGHUP", || {
            let status = fs::read_to_string(&status).expect("it runs");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
            let caught = u64::from_str_radix(caught.trim(), 16).expect("a number");
            // The last that it prepares for.
            if caught & 1 == 0 { Err(status) } else { Ok(()) }
        });
        let mut input = running.0.stdin.take().expect("a pipe");
        let pid = Pid::from_child(&running.0);
        kill_process(pid, Signal::INT).expect("it runs");
        input.write_all(&bytes).expect("it reads");
        if ends_by_itself {
            drop(input);
        }
        let (mut stdout, mut stderr) = (String::new(), String::new());
        running.0.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("text");
        running.0.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
        assert_eq!(running.0.wait().expect("it ends").code(), Some(0), "{args:?}: {stdout}{stderr}");
        assert_eq!(stderr.contains("standard input did not end"), !ends_by_itself, "{args:?}: {stderr}");
        match args[0] {
            "stat" => assert_eq!(counted(&stdout, "/total/packets"), Some(number as u64), "{stdout}"),
            "info" => assert_eq!(counted(&stdout, "/packets"), Some(number as u64), "{stdout}"),
            "top" => assert!(stdout.lines().count() > 5, "{stdout}"),
            _ if args.contains(&"--count") => assert_eq!(stdout.trim(), number.to_string()),
            _ => assert_eq!(succeeds(&["read", "--count"], &[&copy]).trim(), number.to_string()),
        }
    }
}
