//! Whose packets are, in files whose news were made here.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use weir::reader::ByteOrder;
use weir::who::{Cause, Container, News, Process, ProcessId, Sighting, SocketKind};
use weir::writer::{Writer, WriterOptions};
use weir::{CaptureStats, Direction, FileInterface, Packet};
use weir_packet::Endpoint;
use weir_savefile::pcapng::{WHO, append_block};

use crate::files::Bytes;
use crate::support::{EPOCH, Place, judge, packet, pcap, stderr, stdout, succeeds, weir};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BOOT: [u8; 16] = *b"0123456789abcdef";
const SECOND: u64 = 1_000_000_000;
const NAMESPACE: u64 = 1;

fn process(number: u32, name: &str, user: u32) -> Arc<Process> {
    Arc::new(Process {
        id: ProcessId { number, started: 1 },
        parent: 1,
        user,
        name: name.to_owned(),
        program: None,
        arguments: None,
        cgroup: None,
        container: None,
        unit: None,
    })
}

fn nginx() -> Arc<Process> {
    let container =
        Container { id: "4f".repeat(32), name: Some("web".to_owned()), engine: "docker".to_owned() };
    let program = Some("/usr/sbin/nginx".to_owned());
    Arc::new(Process { program, container: Some(container), ..(*process(4711, "nginx: worker", 33)).clone() })
}

/// A socket of UDP that a process has made, bound and used, as its kernel would tell it.
fn socket(number: u64, port: u16, process: &Arc<Process>, since: u64) -> Vec<News> {
    let end = |address: Ipv4Addr, port| Endpoint { address: address.into(), port };
    let sighting = |cause, local, remote| {
        News::Sighting(Sighting {
            at: EPOCH + since,
            socket: number,
            namespace: NAMESPACE,
            kind: SocketKind::Datagram,
            protocol: 17,
            local,
            remote,
            cause,
            process: Some(Arc::clone(process)),
        })
    };
    let any = end(Ipv4Addr::UNSPECIFIED, 0);
    vec![
        sighting(Cause::Created, any, None),
        sighting(Cause::Bound, end(HERE, port), None),
        sighting(Cause::Connecting, end(HERE, port), Some(end(THERE, 53))),
    ]
}

fn namespace() -> Vec<News> {
    let address = |address: Ipv4Addr| News::Address {
        at: EPOCH - SECOND,
        namespace: NAMESPACE,
        address: IpAddr::V4(address),
    };
    vec![News::Interface { interface: 0, namespace: NAMESPACE }, address(HERE), address(Ipv4Addr::LOCALHOST)]
}

/// A datagram over Ethernet.
fn datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
    frame.extend(from.0.octets());
    frame.extend(to.0.octets());
    frame.extend([from.1.to_be_bytes(), to.1.to_be_bytes(), [0, 12], [0, 0]].concat());
    frame.extend([0; 22]);
    frame
}

fn sent(port: u16) -> Vec<u8> {
    datagram((HERE, port), (THERE, 53))
}

fn answered(port: u16) -> Vec<u8> {
    datagram((THERE, 53), (HERE, port))
}

fn directed(after: u64, data: &[u8], direction: Direction) -> Packet<'_> {
    weir::with!(packet(EPOCH + after, data), direction = Some(direction))
}

fn writer(path: &Path, options: &WriterOptions) -> Writer {
    let interface = weir::with!(FileInterface::new(1), name = Some("eth0".to_owned()), snap_len = 262_144);
    Writer::create(path, &[interface], options).expect("a file")
}

fn finish(writer: Writer) {
    writer.finish(&CaptureStats::default()).1.expect("whole");
}

/// A query of nginx and its answer, before the news about it; one of dig; one of nobody; one of a process with an odd name.
fn captured(path: &Path) {
    let mut writer = writer(path, &WriterOptions::default());
    writer.who(BOOT, &namespace()).expect("room");
    for (after, data, direction) in [(1, sent(1000), Direction::Out), (2, answered(1000), Direction::In)] {
        writer.packet(&directed(after * SECOND, &data, direction)).expect("room");
    }
    writer.who(BOOT, &socket(1, 1000, &nginx(), SECOND / 2)).expect("room");
    writer.who(BOOT, &socket(2, 2000, &process(812, "dig", 1000), SECOND)).expect("room");
    writer.who(BOOT, &socket(3, 3000, &process(7, "a[1] > b\u{1b}[2J", 0), SECOND)).expect("room");
    for (after, port) in [(3, 2000), (4, 2001), (5, 3000)] {
        writer.packet(&directed(after * SECOND, &sent(port), Direction::Out)).expect("room");
    }
    finish(writer);
}

/// What is behind the payload's length in each line.
fn shown(lines: &str) -> Vec<&str> {
    lines.lines().map(|line| line.split_once("  ").map_or("", |(_, owner)| owner)).collect()
}

#[test]
fn lines_and_objects_have_owners_though_packets_come_first() {
    let place = Place::new();
    let file = place.path("a.pcapng");
    captured(&file);
    let lines = succeeds(&["read", "-q", "--who"], &[&file]);
    let expected =
        ["nginx: worker[4711]", "nginx: worker[4711]", "dig[812]", "-", "a\\[1\\] \\> b\\u{1b}\\[2J[7]"];
    assert_eq!(shown(&lines), expected, "{lines}");
    assert_eq!(shown(&succeeds(&["read", "-q"], &[&file])), [""; 5], "nobody has asked");
    let objects = succeeds(&["read", "--who", "--json"], &[&file]);
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let sender = &objects[0]["sender"];
    let found = (&sender["found"], &sender["pid"], &sender["user"], &sender["container"]["name"]);
    assert_eq!(found, (&"certain".into(), &4711.into(), &33.into(), &"web".into()));
    assert_eq!((&objects[0]["receiver"], &objects[1]["sender"]), (&Value::Null, &Value::Null));
    assert_eq!(objects[1]["receiver"]["program"], "/usr/sbin/nginx");
    assert_eq!(objects[3]["sender"], serde_json::json!({ "found": "unknown" }));
    // From a pipe, only what has come before is known.
    let read = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_weir")]).arg(&file).output();
        let output = output.expect("a shell");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let piped = read("cat \"$2\" | \"$1\" read - -q --who");
    assert_eq!(shown(&piped), ["-", "-", "dig[812]", "-", expected[4]], "{piped}");
}

/// One packet has a time from the future, one of a clock that was not set yet; and the clock is set back for good.
#[test]
fn owners_are_known_though_times_are_wrong() {
    let place = Place::new();
    let file = place.path("a.pcapng");
    let mut writer = writer(&file, &WriterOptions::default());
    writer.who(BOOT, &namespace()).expect("room");
    let mut news = Vec::new();
    let mut give = |after: u64, at: u64, port: u16| {
        let (frame, owner) = (sent(port), process(port.into(), "dig", 0));
        let packet = weir::with!(directed(after, &frame, Direction::Out), timestamp = at);
        writer.packet(&packet).expect("room");
        // The news of four packets come after the last of them.
        news.extend(socket(port.into(), port, &owner, after));
        if port % 4 == 3 {
            writer.who(BOOT, &std::mem::take(&mut news)).expect("room");
        }
    };
    for port in 1000..1100 {
        let after = u64::from(port - 1000) * SECOND;
        let at = match port {
            1010 => EPOCH + 1_000_000 * SECOND,
            1030 => SECOND,
            _ => EPOCH + after,
        };
        give(after, at, port);
    }
    for port in 1100..1120 {
        let after = u64::from(port - 1090) * SECOND;
        give(after, EPOCH + after, port);
    }
    finish(writer);
    let lines = succeeds(&["read", "-q", "--who", "--sort", "none"], &[&file]);
    let mut expected: Vec<_> = (1000..1120).map(|port| format!("dig[{port}]")).collect();
    // It is from before its socket.
    "-".clone_into(&mut expected[30]);
    let shown = shown(&lines);
    assert_eq!(shown.len(), expected.len());
    let wrong: Vec<_> = shown.iter().zip(&expected).filter(|(shown, expected)| shown != expected).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn packets_are_selected_by_their_owner() {
    let place = Place::new();
    let file = place.path("a.pcapng");
    captured(&file);
    for (options, count) in [
        (&["--process", "nginx"][..], "2\n"),
        (&["--process", "nginx: worker"], "2\n"),
        (&["--process", "nginx", "--process", "dig"], "3\n"),
        (&["--process", "nginx", "--user", "1000"], "0\n"),
        (&["--user", "1000"], "1\n"),
        (&["--user", "root"], "1\n"),
        (&["--pid", "812", "--pid", "7"], "2\n"),
        (&["--container", "web"], "2\n"),
        (&["--container", "4f4f4f4f"], "2\n"),
        (&["--container", "4f4f"], "0\n"),
    ] {
        let counted = succeeds(&[&["read", "--count"], options].concat(), &[&file]);
        assert_eq!(counted, count, "{options:?}");
    }
    // -c counts what is left.
    let lines = succeeds(&["read", "-q", "-c", "1", "--pid", "812", "--who"], &[&file]);
    assert_eq!(shown(&lines), ["dig[812]"]);
}

#[test]
fn copies_name_processes_and_keep_what_is_known_of_sockets() {
    let place = Place::new();
    let [file, copy, merged, moved] =
        ["a.pcapng", "b.pcapng", "c.pcapng", "d.pcapng"].map(|name| place.path(name));
    captured(&file);
    let expected = succeeds(&["read", "--who"], &[&file]);
    succeeds(&["read", "--who-comments", "-w"], &[&copy, &file]);
    let comments = judge("tshark", &["-n", "-T", "fields", "-e", "frame.comment", "-r"], &[&copy]);
    let comments: Vec<_> = comments.lines().collect();
    assert_eq!(comments[0], "sender nginx: worker[4711] user 33 container web certain");
    assert_eq!(comments[1], "receiver nginx: worker[4711] user 33 container web certain");
    assert_eq!(comments[3], "sender unknown");
    for file in [&file, &copy] {
        let text = judge("capinfos", &["-M", "-c"], &[file]);
        assert!(text.contains("Number of packets:   5"), "{text}");
        assert_eq!(judge("tcpdump", &["-n", "-r"], &[file]).lines().count(), 5);
    }
    // The process option, as tshark reads files that it takes apart.
    let read = ["-n", "-X", "read_format:MIME Files Format", "-T", "fields", "-e"];
    let codes = judge("tshark", &[&read[..], &["pcapng.options.option.code", "-r"]].concat(), &[&copy]);
    assert_eq!(codes.trim().split(',').filter(|code| *code == "8").count(), 4, "{codes}");
    let mut reader = weir::reader::Reader::open(&copy).expect("a file");
    let mut processes = Vec::new();
    while let Some(packet) = reader.next_packet().expect("whole") {
        processes.push(packet.notes.process());
    }
    assert_eq!(processes, [Some(4711), Some(4711), Some(812), None, Some(7)]);
    // Merged with itself: blocks twice, interfaces with other numbers.
    succeeds(&["read", "-w"], &[&merged, &file, &file]);
    let twice: String = expected.lines().flat_map(|line| [line, "\n", line, "\n"]).collect();
    assert_eq!(succeeds(&["read", "--who"], &[&merged]), twice);
    assert_eq!(succeeds(&["read", "--who"], &[&file, &file]), twice);
    let output = weir(&["read", "--map-ip", "10.0.0.0/24=10.9.9.0/24", "-w"], &[&moved, &file]);
    let said = stderr(&output);
    assert!(said.contains("the copy leaves out: what is known of sockets"), "{said}");
    let output = weir(&["read", "--who"], &[&moved]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let split = place.path("e.pcapng");
    succeeds(&["read", "--split-by", "count:2", "-w"], &[&split, &file]);
    let last = succeeds(&["read", "-q", "--who"], &[&place.path("e-00003.pcapng")]);
    assert_eq!(shown(&last), ["a\\[1\\] \\> b\\u{1b}\\[2J[7]"]);
}

#[test]
fn each_file_of_a_ring_can_be_read_alone() {
    let place = Place::new();
    let rotation = weir::with!(weir::writer::Rotation::default(), packets = Some(2));
    let mut writer = writer(&place.path("r.pcapng"), &weir::with!(WriterOptions::default(), rotation));
    writer.who(BOOT, &namespace()).expect("room");
    writer.who(BOOT, &socket(1, 1000, &nginx(), 0)).expect("room");
    let frame = sent(1000);
    for after in 1..=5 {
        writer.packet(&directed(after * SECOND, &frame, Direction::Out)).expect("room");
    }
    finish(writer);
    let names = place.names();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in &names {
        let lines = succeeds(&["read", "-q", "--who"], &[&place.path(name)]);
        assert!(
            !lines.is_empty() && shown(&lines).iter().all(|owner| *owner == "nginx: worker[4711]"),
            "{lines}"
        );
    }
    let files: Vec<_> = names.iter().map(|name| place.path(name)).collect();
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    assert_eq!(shown(&succeeds(&["read", "-q", "--who"], &files)), ["nginx: worker[4711]"; 5]);
}

/// Their sockets have the same numbers and addresses.
#[test]
fn hosts_do_not_mix() {
    let place = Place::new();
    let [first, second, merged] = ["a.pcapng", "b.pcapng", "c.pcapng"].map(|name| place.path(name));
    for (path, boot, process, interface) in
        [(&first, BOOT, nginx(), "eth0"), (&second, [7; 16], process(812, "dig", 0), "eth1")]
    {
        let described =
            weir::with!(FileInterface::new(1), name = Some(interface.to_owned()), snap_len = 262_144);
        let mut writer = Writer::create(path, &[described], &WriterOptions::default()).expect("a file");
        writer.who(boot, &namespace()).expect("room");
        writer.who(boot, &socket(1, 1000, &process, 0)).expect("room");
        writer.packet(&directed(SECOND, &sent(1000), Direction::Out)).expect("room");
        finish(writer);
    }
    let expected = ["nginx: worker[4711]", "dig[812]"];
    assert_eq!(shown(&succeeds(&["read", "-q", "--who"], &[&first, &second])), expected);
    succeeds(&["read", "-w"], &[&merged, &first, &second]);
    assert_eq!(shown(&succeeds(&["read", "-q", "--who"], &[&merged])), expected);
    // Sections of one file, each of which counts its interfaces from 0.
    let both = [fs::read(&first).expect("a file"), fs::read(&second).expect("a file")].concat();
    fs::write(&merged, both).expect("a file");
    assert_eq!(shown(&succeeds(&["read", "-q", "--who"], &[&merged])), expected);
}

/// Without directions and without a word of the interface's namespace, in either byte order.
#[test]
fn both_ends_are_tried_where_nothing_says_which_is_here() {
    let place = Place::new();
    let (file, copy) = (place.path("a.pcapng"), place.path("b.pcapng"));
    let local = Ipv4Addr::LOCALHOST;
    let packets = [
        (sent(1000), "nginx: worker[4711]"),
        (answered(1000), "nginx: worker[4711]"),
        (datagram((HERE, 2000), (HERE, 5353)), "dig[812] > dnsmasq[53]"),
        (datagram((local, 9), (local, 5353)), "- > dnsmasq[53]"),
        // A server here uses the same port as one elsewhere.
        (datagram((THERE, 5353), (HERE, 2000)), "dig[812]"),
        (datagram((THERE, 5353), (Ipv4Addr::new(10, 0, 0, 3), 2000)), "forwarded"),
    ];
    let mut news = namespace().split_off(1);
    news.extend(socket(1, 1000, &nginx(), 0));
    news.extend(socket(2, 2000, &process(812, "dig", 0), 0).drain(..2));
    let mut server = socket(3, 5353, &process(53, "dnsmasq", 0), 0);
    server.truncate(2);
    for news in &mut server {
        if let News::Sighting(sighting) = news {
            sighting.local.address = Ipv4Addr::UNSPECIFIED.into();
        }
    }
    news.extend(server);
    let mut bytes = Vec::new();
    weir_who::encode(&news, &mut bytes);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let length = u32::try_from(bytes.len()).expect("short");
        let mut made = Bytes::new(order).section().interface(None).block(WHO, |body| {
            let head = body.padded(b"weirwho1").padded(&BOOT).u32(length);
            head.padded(&bytes)
        });
        for (after, (frame, _)) in (1..).zip(&packets) {
            made = made.packet(0, (EPOCH + after * SECOND) / 1000, frame);
        }
        fs::write(&file, made.bytes).expect("a file");
        succeeds(&["read", "-w"], &[&copy, &file]);
        for file in [&file, &copy] {
            let lines = succeeds(&["read", "-q", "--who"], &[file]);
            assert_eq!(shown(&lines), packets.each_ref().map(|(_, owner)| *owner), "{order}: {lines}");
        }
    }
}

#[test]
fn files_without_owners_say_so_and_blocks_of_others_stay() {
    let place = Place::new();
    let [plain, other, copy] = ["a.pcap", "b.pcapng", "c.pcapng"].map(|name| place.path(name));
    pcap(&plain);
    let output = weir(&["read", "--who"], &[&plain]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let said = stderr(&output);
    assert!(said.contains("no owners in ") && said.contains("a.pcap: captured without --who"), "{said}");
    // The same type, but not weir's.
    finish(writer(&other, &WriterOptions::default()));
    let mut bytes = fs::read(&other).expect("a file");
    let body = *b"someone else's data, of 32 bytes";
    append_block(&mut bytes, WHO, &body).expect("short");
    fs::write(&other, &bytes).expect("a file");
    assert_eq!(weir(&["read", "--who"], &[&other]).status.code(), Some(1));
    succeeds(&["read", "-w"], &[&copy, &other]);
    assert!(fs::read(&copy).expect("a file").windows(32).any(|part| part == body));
    // One that is cut: what it says is missing, and that is told.
    captured(&other);
    let mut bytes = fs::read(&other).expect("a file");
    let magic = bytes.windows(8).rposition(|part| part == b"weirwho1").expect("a block");
    bytes[magic + 28..magic + 36].fill(0xff);
    fs::write(&other, &bytes).expect("a file");
    let said = stderr(&weir(&["read", "--who"], &[&other]));
    assert!(said.contains("a block about sockets could not be read"), "{said}");
}
