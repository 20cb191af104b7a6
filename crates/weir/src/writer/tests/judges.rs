//! Checks files with tshark, capinfos and tcpdump from Debian.

use std::process::Command;

use super::*;

/// Returns the output of the program; `None`, with a message, if it is not installed.
pub(super) fn output(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let output = match Command::new(program).args(arguments).arg(file).output() {
        Ok(output) => output,
        Err(error) => {
            weir_skip::this_test(format_args!("{program}: {error}"));
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the time as `seconds.fraction`, lengths and bytes of each packet, as printed by tcpdump.
fn tcpdump(file: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    let arguments = ["-nn", "-tt", "-xx", "--time-stamp-precision=nano", "-r"];
    let text = output("tcpdump", &arguments, file)?;
    let mut packets: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        if let Some((_, bytes)) = line.strip_prefix('\t').and_then(|line| line.split_once(':')) {
            for group in bytes.split_ascii_whitespace() {
                let number = u32::from_str_radix(group, 16).unwrap().to_be_bytes();
                packets.last_mut().unwrap().1.extend_from_slice(&number[4 - group.len() / 2..]);
            }
        } else {
            packets.push((line.split(' ').next().unwrap().to_owned(), Vec::new()));
        }
    }
    Some(packets)
}

/// Returns the time, both lengths, interface name and payload of each packet, as printed by tshark.
fn tshark(file: &Path) -> Option<Vec<String>> {
    let fields = ["frame.time_epoch", "frame.cap_len", "frame.len", "frame.interface_name", "data.data"];
    let mut arguments = vec!["-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    arguments.push("-r");
    Some(output("tshark", &arguments, file)?.lines().map(str::to_owned).collect())
}

fn seconds(timestamp: u64, unit: u64) -> String {
    let fraction = timestamp % 1_000_000_000 / unit * unit;
    format!("{}.{fraction:09}", timestamp / 1_000_000_000)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = Vec::with_capacity(bytes.len() * 2);
    for &byte in bytes {
        text.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    String::from_utf8(text).unwrap()
}

/// Checks that all programs read `packets` from `file`, with times cut to `unit` nanoseconds.
pub(super) fn agree(file: &Path, packets: &[Packet], unit: u64, with_interfaces: bool) {
    agree_quickly(file, packets, unit);
    if let Some(seen) = tshark(file) {
        assert_eq!(seen.len(), packets.len());
        for (seen, packet) in seen.iter().zip(packets) {
            let interface = if with_interfaces { format!("veth{}", packet.interface) } else { String::new() };
            let expected = [
                seconds(packet.timestamp, unit),
                packet.data.len().to_string(),
                packet.original_len.to_string(),
                interface,
                hex(&packet.data[14..]),
            ];
            assert_eq!(seen.split('\t').collect::<Vec<_>>(), expected);
        }
    }
}

/// Checks with all programs but tshark, which takes long to start.
pub(super) fn agree_quickly(file: &Path, packets: &[Packet], unit: u64) {
    if let Some(seen) = tcpdump(file) {
        assert_eq!(seen.len(), packets.len());
        for (seen, packet) in seen.iter().zip(packets) {
            assert_eq!(seen, &(seconds(packet.timestamp, unit), packet.data.clone()));
        }
    }
    if let Some(text) = output("capinfos", &["-M", "-c"], file) {
        let count = text.lines().find_map(|line| line.strip_prefix("Number of packets:")).unwrap();
        assert_eq!(count.trim(), packets.len().to_string());
    }
}

/// Writes large and small chunks of both interfaces, with statistics in between, and finishes.
fn write(file: &Path, options: &WriterOptions) -> Vec<Packet> {
    let mut writer = Writer::create(file, &interfaces(), options).unwrap();
    let mut packets = Vec::new();
    for (n, count) in [300, 1, 200, 2, 400, 400, 1, 400, 400, 400].into_iter().enumerate() {
        let chunk = chunk(u32::from(n % 2 == 0), u32::try_from(packets.len()).unwrap(), count);
        put(&mut writer, &chunk).unwrap();
        packets.extend(chunk);
        if n % 3 == 0 {
            writer.statistics(&account()).unwrap();
        }
        if options.flush_each {
            assert_eq!(writer.written().packets, packets.len() as u64);
            assert_eq!(writer.written().bytes, len_of(file));
        }
    }
    let (written, result) = writer.finish(&account());
    result.unwrap();
    assert_eq!(written.packets, packets.len() as u64);
    assert_eq!(written.bytes, len_of(file));
    assert_eq!(written.queues.values().sum::<u64>(), written.packets);
    let first = packets.iter().filter(|packet| packet.interface == 0).count();
    assert_eq!(written.queues[&(0, 7)], first as u64);
    packets
}

#[test]
fn pcapng() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let packets = write(file.path(), &options(Format::Pcapng));
    agree(file.path(), &packets, 1, true);
}

#[test]
fn pcapng_flushed_each_time() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let packets = write(file.path(), &WriterOptions { flush_each: true, ..options(Format::Pcapng) });
    agree(file.path(), &packets, 1, true);
}

#[test]
fn pcap_with_nanoseconds() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let packets = write(file.path(), &options(Format::Pcap { nanoseconds: true }));
    agree(file.path(), &packets, 1, false);
}

#[test]
fn pcap_with_microseconds() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let packets = write(file.path(), &options(Format::Pcap { nanoseconds: false }));
    agree(file.path(), &packets, 1000, false);
}

#[test]
fn a_pipe_carries_the_same_bytes() {
    let (mut reader, pipe) = io::pipe().unwrap();
    let copy = tempfile::NamedTempFile::new().unwrap();
    let mut into = copy.reopen().unwrap();
    let reader = std::thread::spawn(move || io::copy(&mut reader, &mut into).unwrap());

    let mut writer = Writer::create(&path_of(&pipe), &interfaces(), &options(Format::Pcapng)).unwrap();
    drop(pipe);
    let packets = chunk(1, 0, 1000);
    for chunk in packets.chunks(300) {
        put(&mut writer, chunk).unwrap();
    }
    let (written, result) = writer.finish(&account());
    result.unwrap();
    assert_eq!(reader.join().unwrap(), written.bytes);
    agree(copy.path(), &packets, 1, true);
}

#[test]
fn the_blocks_around_the_packets_read_as_written() {
    let file = tempfile::NamedTempFile::new().unwrap();
    write(file.path(), &options(Format::Pcapng));
    let arguments = ["-X", "read_format:MIME Files Format", "-V", "-r"];
    let Some(text) = output("tshark", &arguments, file.path()) else { return };
    for expected in [
        "Comment = a test",
        "User Application = weir tests",
        "OS Description = Linux ",
        "Interface Name = veth1",
        "MAC Address = 02:00:00:00:00:01",
        "Speed = 10000000000",
        "Timestamp Resolution = 10^-9",
        "Number of Received Packets = 10",
        "Number of Dropped Packets = 3",
        "Number of Accepted Packets = 9",
        "Number of Packets Delivered to the User = 1203",
        "Number of Packets Delivered to the User = 1301",
    ] {
        assert!(text.contains(expected), "no `{expected}`");
    }
    assert!(!text.contains("Malformed"));
}

/// Single packets with everything that a record can store, mixed with new interfaces and other blocks.
#[test]
fn packets_one_by_one() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create(file.path(), &interfaces()[..1], &options(Format::Pcapng)).unwrap();
    let packets = chunk(0, 0, 3000);
    let one = |n: usize| crate::Packet {
        data: &packets[n].data,
        timestamp: packets[n].timestamp,
        original_len: packets[n].original_len,
        interface: u32::from(n >= 2000),
        queue: if n.is_multiple_of(2) { 3 } else { 0 },
        direction: [None, Some(crate::Direction::In), Some(crate::Direction::Out)][n % 3],
        lost_before: (n % 5) as u64,
        comment: (n == 2500).then_some("look at this one"),
        notes: Notes::default(),
    };
    let error = writer.packet(&one(2000)).unwrap_err();
    assert!(matches!(error, WriteError::Packet { .. }), "{error}");
    for n in 0..3000 {
        if n == 2000 {
            assert_eq!(writer.interface(&interfaces()[1]).unwrap(), 1);
            // A name resolution block: 10.0.0.1 is `tester`; then the end marker.
            let body = [&[1, 0, 11, 0, 10, 0, 0, 1][..], b"tester\0\0", &[0; 4]].concat();
            writer.block(4, &body).unwrap();
        }
        writer.packet(&one(n)).unwrap();
    }
    writer.flush().unwrap();
    assert_eq!(writer.written().packets, 3000);
    let (written, result) = writer.finish(&account());
    result.unwrap();
    assert_eq!(written.queues, [((0, 0), 1000), ((0, 3), 1000), ((1, 0), 500), ((1, 3), 500)].into());
    assert_eq!(written.bytes, len_of(file.path()));

    let expected: Vec<_> = packets
        .iter()
        .enumerate()
        .map(|(n, packet)| Packet { interface: u32::from(n >= 2000), ..packet.clone() })
        .collect();
    agree(file.path(), &expected, 1, true);
    let fields = ["frame.packet_flags_direction", "frame.drop_count", "frame.comment"];
    let mut arguments = vec!["-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    arguments.push("-r");
    let Some(text) = output("tshark", &arguments, file.path()) else { return };
    for (n, line) in text.lines().enumerate() {
        let direction = ["", "0x00000001", "0x00000002"][n % 3];
        let lost = if n % 5 == 0 { String::new() } else { (n % 5).to_string() };
        let comment = if n == 2500 { "look at this one" } else { "" };
        assert_eq!(line.split('\t').collect::<Vec<_>>(), [direction, lost.as_str(), comment], "{n}");
    }
    let arguments = ["-X", "read_format:MIME Files Format", "-V", "-r"];
    assert!(output("tshark", &arguments, file.path()).unwrap().contains("tester"));
}

#[test]
fn packets_one_by_one_into_pcap() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let format = Format::Pcap { nanoseconds: true };
    let mut writer = Writer::create(file.path(), &interfaces()[..1], &options(format)).unwrap();
    let other = writer.interface(&interface("tun0", 101)).unwrap_err();
    assert!(other.to_string().contains("tun0 has 101"), "{other}");
    assert_eq!(writer.interface(&interfaces()[1]).unwrap(), 1);
    writer.block(4, &[0; 4]).unwrap();
    let packets = chunk(1, 0, 2000);
    for packet in &packets {
        writer.packet(&packet.whole()).unwrap();
    }
    drop(writer);
    agree(file.path(), &packets, 1, false);
}
