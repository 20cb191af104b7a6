//! tshark, tcpdump, capinfos and editcap from Debian read and write the same files.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use weir::reader::{ByteOrder, Reader};

use crate::files::Bytes;
use crate::{Kept, all};

/// What the program prints; `None`, and a word about it, where it is not installed.
fn output(program: &str, arguments: &[&str], files: &[&Path]) -> Option<String> {
    let output = match Command::new(program).args(arguments).args(files).output() {
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(timestamp: u64) -> String {
    format!("{}.{:09}", timestamp / 1_000_000_000, timestamp % 1_000_000_000)
}

/// Ethernet of a type that nobody takes apart, with `len` bytes behind it.
fn frame(len: u8) -> Vec<u8> {
    let head = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    head.into_iter().chain((0..len).map(|byte| byte.wrapping_mul(13) ^ len)).collect()
}

/// The packets as tshark sees them: time, captured and original length, bytes behind the Ethernet header.
fn by_tshark(file: &Path) -> Option<Vec<String>> {
    let fields = ["frame.time_epoch", "frame.cap_len", "frame.len", "data.data"];
    let mut arguments = vec!["-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    arguments.push("-r");
    Some(output("tshark", &arguments, &[file])?.lines().map(str::to_owned).collect())
}

fn as_tshark_says(packet: &Kept) -> String {
    let (len, original) = (packet.data.len(), packet.original_len);
    format!("{}\t{len}\t{original}\t{}", seconds(packet.timestamp), hex(&packet.data[14..]))
}

/// The packets as tcpdump sees them: time and bytes.
fn by_tcpdump(file: &Path) -> Option<Vec<(String, String)>> {
    let arguments = ["-nn", "-tt", "-xx", "--time-stamp-precision=nano", "-r"];
    let mut packets: Vec<(String, String)> = Vec::new();
    for line in output("tcpdump", &arguments, &[file])?.lines() {
        if let Some((_, bytes)) = line.strip_prefix('\t').and_then(|line| line.split_once(':')) {
            packets.last_mut().unwrap().1.extend(bytes.chars().filter(|char| *char != ' '));
        } else {
            packets.push((line.split(' ').next().unwrap().to_owned(), String::new()));
        }
    }
    Some(packets)
}

/// All of them see in a file what we see in it.
fn agree(file: &Path, tcpdump: bool) {
    let read = all(&fs::read(file).unwrap());
    assert!(read.error.is_none() && !read.packets.is_empty(), "{}: {:?}", file.display(), read.error);
    if let Some(seen) = by_tshark(file) {
        assert_eq!(seen, read.packets.iter().map(as_tshark_says).collect::<Vec<_>>(), "{}", file.display());
    }
    if let Some(seen) = tcpdump.then(|| by_tcpdump(file)).flatten() {
        let ours = read.packets.iter().map(|packet| (seconds(packet.timestamp), hex(&packet.data)));
        assert_eq!(seen, ours.collect::<Vec<_>>(), "{}", file.display());
    }
}

/// Files of each format, order and resolution. What is in them is also tested against what was written, so each judge sees
/// each order and each resolution, but not each of these with each of those.
#[test]
fn judges_agree_on_every_order_and_resolution() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let is_big = order == ByteOrder::Big;
        let magics = if is_big { [0xa1b2_c3d4, 0x1c00_01ab] } else { [0xa1b2_3c4d, 0x1c00_01ac] };
        for magic in magics {
            let ixia = magic >> 16 == 0x1c00;
            let file = Bytes::new(order).pcap(magic);
            let file = if ixia { file.u32(0) } else { file };
            let file = (0..5u8)
                .fold(file, |file, len| file.record(1_700_000_000, 999_000 + u32::from(len), &frame(len)));
            agree(&write(&format!("{order}-{magic:x}.pcap"), &file.bytes), !ixia);
        }
        let second = 1_700_000_000u64;
        let resolutions = [
            (None, second * 1_000_000 + 7),
            (Some(0), second),
            (Some(3), second * 1000 + 7),
            (Some(9), second * 1_000_000_000 + 7),
            (Some(0x80 | 10), second * 1024 + 512),
        ];
        // tcpdump, which wants one resolution in all of the file, sees both orders.
        let wanted =
            |resolution: Option<u8>| resolution == Some(9) || (resolution.is_none_or(|r| r == 3)) == is_big;
        for (resolution, ticks) in resolutions.into_iter().filter(|(resolution, _)| wanted(*resolution)) {
            let file = Bytes::new(order).section().interface(resolution).interface(Some(9));
            let file = (1..5u8).fold(file, |file, len| file.packet(0, ticks + u64::from(len), &frame(len)));
            let file = file.packet(1, second * 1_000_000_000 + 999_999_999, &frame(9));
            agree(&write(&format!("{order}-{resolution:?}.pcapng"), &file.bytes), resolution == Some(9));
        }
    }
}

#[test]
fn what_editcap_writes_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source.pcapng");
    let file = Bytes::new(ByteOrder::Big).section().interface(Some(9));
    let file = (1..50u8).fold(file, |file, len| {
        file.packet(0, 1_700_000_000_000_000_000 + u64::from(len) * 1_001_001_000, &frame(len))
    });
    fs::write(&source, &file.bytes).unwrap();
    for (format, unit) in [("pcap", 1000), ("nsecpcap", 1), ("pcapng", 1), ("modpcap", 1000)] {
        let path = dir.path().join(format);
        if output("editcap", &["-F", format], &[&source, &path]).is_none() {
            return;
        }
        let expected: Vec<_> = all(&file.bytes)
            .packets
            .into_iter()
            .map(|packet| Kept { timestamp: packet.timestamp / unit * unit, ..packet })
            .collect();
        assert_eq!(all(&fs::read(&path).unwrap()).packets, expected, "{format}");
        agree(&path, true);
    }
}

#[test]
fn what_the_packers_pack_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source.pcap");
    let file = Bytes::new(ByteOrder::Little).pcap(0xa1b2_3c4d);
    let file = (0..6_000u32).fold(file, |file, n| file.record(n, n, &frame(u8::try_from(n % 200).unwrap())));
    fs::write(&source, &file.bytes).unwrap();
    let expected = all(&file.bytes).packets;
    for (program, arguments) in [
        ("gzip", &["-9c"][..]),
        ("zstd", &["-19", "--long=27", "-c"]),
        ("lz4", &["-9c"]),
        ("lz4", &["-BD", "-c"]),
    ] {
        let Ok(packed) = Command::new(program).args(arguments).arg(&source).output() else {
            let _ = writeln!(std::io::stderr(), "{program}: not installed, not tried");
            continue;
        };
        assert!(packed.status.success());
        let read = all(&packed.stdout);
        assert!(read.error.is_none(), "{program}: {:?}", read.error);
        assert_eq!(read.packets, expected, "{program}");
    }
}

#[test]
fn a_pipe_and_a_file_that_grows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    let good = Bytes::new(ByteOrder::Little).section().interface(Some(9)).packet(0, 7, &frame(3)).bytes;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let writer = std::thread::spawn({
        let (path, good) = (path.clone(), good.clone());
        move || {
            let mut pipe = fs::OpenOptions::new().write(true).open(path).unwrap();
            // One byte at a time: what is whole is given at once, not when a buffer is full.
            good.iter().for_each(|byte| pipe.write_all(&[*byte]).unwrap());
            pipe
        }
    });
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.next_packet().unwrap().unwrap().data, frame(3));
    drop(writer.join().unwrap());
    assert!(reader.next_packet().unwrap().is_none());
    assert_eq!(reader.size(), None);

    let path = dir.path().join("grows");
    fs::write(&path, &good).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.size(), Some(good.len() as u64));
    assert_eq!(reader.position(), 28);
    let more = Bytes::new(ByteOrder::Little).packet(0, 8, &frame(4)).bytes;
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(&more).unwrap();
    assert_eq!(reader.next_packet().unwrap().unwrap().timestamp, 7);
    assert_eq!(reader.next_packet().unwrap().unwrap().timestamp, 8);
    assert_eq!(reader.position(), (good.len() + more.len()) as u64);
}
