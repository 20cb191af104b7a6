//! What a pcapng file says of its packets, when it is written anew: nothing is lost, and nothing is made up.

use std::fs;
use std::path::Path;
use std::process::Command;

use weir::reader::ByteOrder;

use crate::files::Bytes;
use crate::support::{Place, frames, judge, stderr, succeeds, weir};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
/// 2023-11-14 22:13:20 UTC, in microseconds.
const TIME: u64 = 1_700_000_000_000_000;

/// What tshark reads of each packet.
pub(crate) fn seen(file: &Path) -> String {
    let fields = [
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "frame.comment",
        "frame.packet_flags",
        "frame.packet_flags_direction",
        "frame.packet_flags_reception_type",
        "frame.packet_flags_crc_error",
        "frame.packet_id",
        "frame.interface_queue",
        "frame.drop_count",
        "frame.verdict.hw",
        "frame.verdict.ebpf_tc",
        "frame.verdict.ebpf_xdp",
    ];
    let mut args = vec!["-n", "-T", "fields"];
    fields.iter().for_each(|field| args.extend(["-e", field]));
    args.push("-r");
    judge("tshark", &args, &[file])
}

/// The hashes of packets, which tshark shows of files that it takes apart instead of their packets.
pub(crate) fn hashes(file: &Path) -> String {
    let of = "pcapng.options.option.data.packet.hash";
    let (algorithm, data) = (format!("{of}.algorithm"), format!("{of}.data"));
    let read = ["-n", "-X", "read_format:MIME Files Format", "-T", "fields"];
    judge("tshark", &[&read[..], &["-e", &algorithm, "-e", &data, "-r"]].concat(), &[file])
}

/// A record with each option that the draft has for packets, and one with flags alone.
pub(crate) fn told(order: ByteOrder) -> Vec<u8> {
    let number = |value: u64| Bytes::new(order).u64(value).bytes;
    let word = |value: u32| Bytes::new(order).u32(value).bytes;
    let frame = frames().swap_remove(20);
    let length = u32::try_from(frame.len()).expect("short");
    let verdict = |kind: u8, value: u64| [vec![kind], number(value)].concat();
    let head = |body: Bytes, ticks| body.u32(0).time(ticks).u32(length).u32(length).padded(&frame);
    let file = Bytes::new(order).section().interface(None);
    let file = file.block(6, |body| {
        let body = head(body, TIME).option(1, b"the first").option(2, &word(0x0100_0009));
        // CRC32 of the packet.
        let body = body.option(3, &[2, 0xde, 0xad, 0xbe, 0xef]).option(4, &number(17));
        let body = body.option(5, &number(0x0102_0304_0506_0708)).option(6, &word(3));
        let body = body.option(7, &[0, 0xaa, 0xbb]).option(7, &verdict(1, 2)).option(7, &verdict(2, 1));
        body.option(1, b"the second").end()
    });
    let file = file.block(6, |body| head(body, TIME + 1).option(2, &word(0x0000_0008)).end());
    file.packet(0, TIME + 2, &frame).bytes
}

#[test]
fn what_is_said_of_packets_stays_with_them() {
    let place = Place::new();
    for order in ORDERS {
        let [original, copy, chosen, merged] =
            ["a.pcapng", "b.pcapng", "c.pcapng", "d.pcapng"].map(|name| place.path(name));
        fs::write(&original, told(order)).expect("a file");
        let expected = seen(&original);
        for part in ["the first,the second", "0x01000009", "17", "aa bb", "72623859790382856"] {
            assert!(expected.contains(part), "{part} in {expected}");
        }
        assert_eq!(hashes(&original), "2\tdeadbeef\n", "{order}");
        succeeds(&["read", "-w"], &[&copy, &original]);
        succeeds(&["read", "-f", "len > 0", "-c", "3", "-w"], &[&chosen, &original]);
        for copy in [&copy, &chosen] {
            assert_eq!(seen(copy), expected, "{order}");
            assert_eq!(hashes(copy), "2\tdeadbeef\n", "{order}");
        }
        // Of both files, by time.
        succeeds(&["read", "-w"], &[&merged, &original, &copy]);
        let twice: String = expected.lines().flat_map(|line| [line, "\n", line, "\n"]).collect();
        assert_eq!(seen(&merged), twice, "{order}");

        let pcap = place.path("e.pcap");
        let output = weir(&["read", "-w"], &[&pcap, &original]);
        assert!(
            stderr(&output).contains("pcap cannot store directions, losses, comments"),
            "{}",
            stderr(&output)
        );

        let lines = succeeds(&["read"], &[&copy]);
        assert!(lines.lines().next().expect("a line").ends_with("  [the first]  [the second]"), "{lines}");
        let objects = succeeds(&["read", "--json", "-c", "1"], &[&copy]);
        let object: serde_json::Value = serde_json::from_str(&objects).expect("JSON");
        assert_eq!(object["comment"], "the first\nthe second");
    }
}

/// In Simple Packet Blocks; elsewhere they would be packets of 1970.
#[test]
fn packets_without_a_time_stay_so() {
    let place = Place::new();
    let frame = frames().swap_remove(20);
    let length = u32::try_from(frame.len()).expect("short");
    for order in ORDERS {
        let [original, copy, cut, pcap] =
            ["a.pcapng", "b.pcapng", "c.pcapng", "d.pcap"].map(|name| place.path(name));
        let simple = |file: Bytes| file.block(3, |body| body.u32(length).padded(&frame));
        let file = simple(Bytes::new(order).section().interface(None)).packet(0, TIME, &frame);
        fs::write(&original, simple(file).bytes).expect("a file");
        let times = |file: &Path| {
            let fields = ["-n", "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.cap_len", "-r"];
            judge("tshark", &fields, &[file])
        };
        let timed = |length| format!("\t{length}\n1700000000.000000000\t{length}\n\t{length}\n");
        assert_eq!(times(&original), timed(length), "{order}");
        let output = weir(&["read", "-w"], &[&copy, &original]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(!stderr(&output).contains("1970"), "{}", stderr(&output));
        assert_eq!(times(&copy), timed(length), "{order}");
        succeeds(&["read", "-s", "40", "-w"], &[&cut, &original]);
        assert_eq!(times(&cut), timed(40), "{order}");
        assert_eq!(seen(&cut).replace("\t40\t", &format!("\t{length}\t")), seen(&copy), "{order}");

        // pcap has no place for that, and says so.
        let output = weir(&["read", "-w"], &[&pcap, &original]);
        assert!(stderr(&output).contains("note: 2 packets without a time"), "{}", stderr(&output));
    }
}

/// Files of packets of 60, 114 and 60 bytes whose snap length is 60: pcapng and pcap.
fn longer_than_named(order: ByteOrder) -> [Vec<u8>; 2] {
    let [long, short] = [[7; 100], [8; 100]].map(|bytes| [&[2; 12][..], &[0x88, 0xb5], &bytes].concat());
    let short = &short[..60];
    let pcapng = Bytes::new(order).section().block(1, |body| body.u16(1).u16(0).u32(60));
    let pcapng = pcapng.packet(0, TIME, short).packet(0, TIME + 1, &long).packet(0, TIME + 2, short);
    let pcap = Bytes::new(order).u32(0xa1b2_c3d4).u16(2).u16(4).u64(0).u32(60).u32(1);
    let packets = [(1, short), (2, &long[..]), (3, short)];
    let pcap = packets.into_iter().fold(pcap, |file, (n, data)| file.record(1_700_000_000, n, data));
    [pcapng.bytes, pcap.bytes]
}

fn lengths(file: &Path) -> String {
    judge("tshark", &["-n", "-T", "fields", "-e", "frame.cap_len", "-e", "frame.len", "-r"], &[file])
}

/// libpcap refuses a file of pcapng from a record on that is longer than the snap length, and cuts those of pcap: the
/// file names a larger one, so that nothing is cut.
#[test]
fn a_file_names_a_snap_length_that_its_packets_keep() {
    let place = Place::new();
    let dump = |file: &Path| judge("tcpdump", &["-n", "-tt", "-xx", "-r"], &[file]);
    for (order, format) in ORDERS.into_iter().flat_map(|order| [(order, 0), (order, 1)]) {
        let original = place.path("original");
        fs::write(&original, &longer_than_named(order)[format]).expect("a file");
        if format == 0 {
            let refused = Command::new("tcpdump").arg("-r").arg(&original).output().expect("tcpdump");
            assert!(!refused.status.success(), "tcpdump reads what it should refuse, so nothing is tried");
        }
        for (name, more) in [("b.pcapng", &[][..]), ("c.pcapng", &["-f", "len > 0"]), ("d.pcap", &[])] {
            let copy = place.path(name);
            let output = weir(&[&["read"], more, &["-w"]].concat(), &[&copy, &original]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert!(!stderr(&output).contains("cut"), "{}", stderr(&output));
            assert_eq!(lengths(&copy), "60\t60\n114\t114\n60\t60\n", "{order} {name}");
            let dump = dump(&copy);
            assert_eq!(dump.matches("1700000000.00000").count(), 3, "{order} {name}");
            assert!(dump.contains("0x0070:  0707"), "{order} {name}: {dump}");
        }
    }
}

/// Where the start of the file is out of reach, the packet is cut, and that is told.
#[test]
fn what_cannot_name_a_larger_snap_length_cuts_and_says_so() {
    let place = Place::new();
    let packed = place.path("b.gz");
    for file in longer_than_named(ByteOrder::NATIVE) {
        let original = place.path("original");
        fs::write(&original, &file).expect("a file");
        let output = weir(&["read", "-w"], &[&packed, &original]);
        let told = "note: 1 packet cut to the snap length of the interface";
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
        let [piped, whole] = ["c", "d.gz"].map(|name| place.path(name));
        let output = weir(&["read", "-w", "-"], &[&original]);
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
        fs::write(&piped, &output.stdout).expect("a file");
        assert_eq!(lengths(&packed), "60\t60\n60\t114\n60\t60\n");
        assert_eq!(lengths(&piped), lengths(&packed));
        let output = weir(&["read", "-s", "262144", "-w"], &[&whole, &original]);
        assert!(!stderr(&output).contains("note"), "{}", stderr(&output));
        assert_eq!(lengths(&whole), "60\t60\n114\t114\n60\t60\n");
    }
}

/// What a Simple Packet Block has of its packet, only the snap length says: it cannot be another afterwards.
#[test]
fn packets_without_a_time_keep_their_snap_length() {
    let place = Place::new();
    let [original, copy] = ["a.pcapng", "b.pcapng"].map(|name| place.path(name));
    let frame = [7; 114];
    let file = Bytes::new(ByteOrder::NATIVE).section().block(1, |body| body.u16(1).u16(0).u32(60));
    let file = file.block(3, |body| body.u32(114).padded(&frame[..60])).packet(0, TIME, &frame);
    fs::write(&original, file.bytes).expect("a file");
    let output = weir(&["read", "-w"], &[&copy, &original]);
    assert!(stderr(&output).contains("note: 1 packet cut"), "{}", stderr(&output));
    assert_eq!(lengths(&copy), "60\t114\n60\t114\n");
}

/// No other program reads packets over 256 KiB, but for those of a few link types.
#[test]
fn packets_that_nobody_reads_are_cut_and_told() {
    let place = Place::new();
    let original = place.path("a.pcapng");
    for (snap_len, format) in [(0, "b.pcapng"), (1 << 20, "b.pcapng"), (0, "c.pcap"), (1 << 20, "c.pcap")] {
        let file = Bytes::new(ByteOrder::NATIVE).section();
        let file = file.block(1, |body| body.u16(1).u16(0).u32(snap_len).option(9, &[9]).end());
        let file = file.packet(0, TIME * 1000, &[7; 60]).packet(0, TIME * 1000, &vec![7; 300_000]);
        fs::write(&original, file.packet(0, TIME * 1000, &[7; 60]).bytes).expect("a file");
        let copy = place.path(format);
        let output = weir(&["read", "-w"], &[&copy, &original]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("warning: 1 packet cut to 262144 bytes"), "{}", stderr(&output));
        assert_eq!(lengths(&copy), "60\t60\n262144\t300000\n60\t60\n", "{snap_len} {format}");
        assert_eq!(judge("tcpdump", &["-n", "-q", "-r"], &[&copy]).lines().count(), 3);
        // D-Bus has longer ones.
        let mut bytes = fs::read(&original).expect("a file");
        bytes[36..38].copy_from_slice(&231_u16.to_ne_bytes());
        fs::write(&original, bytes).expect("a file");
        succeeds(&["read", "-w"], &[&copy, &original]);
        assert_eq!(lengths(&copy), "60\t60\n300000\t300000\n60\t60\n", "{snap_len} {format}");
    }
}

type Options = Vec<(u16, Vec<u8>)>;

/// The options of each block of a type, as they stand in a file of this machine's byte order.
fn options(file: &[u8], kind: u32, fixed: usize) -> Vec<Options> {
    let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().expect("a word"));
    let half = |at: usize| u16::from_ne_bytes(file[at..at + 2].try_into().expect("a half"));
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let end = at + word(at + 4) as usize;
        if word(at) == kind {
            let (mut list, mut option) = (Vec::new(), at + 8 + fixed);
            while option < end - 4 && half(option) > 0 {
                let value = option + 4..option + 4 + usize::from(half(option + 2));
                list.push((half(option), file[value.clone()].to_vec()));
                option += 4 + value.len().next_multiple_of(4);
            }
            blocks.push(list);
        }
        at = end;
    }
    blocks
}

/// What a file of this byte order says of itself, its interface and its packet.
fn described(order: ByteOrder) -> Vec<u8> {
    let word = |value: u32| Bytes::new(order).u32(value).bytes;
    let number = |value: u64| Bytes::new(order).u64(value).bytes;
    let maker = |text: &[u8]| [&word(32_473), text].concat();
    let file = Bytes::new(order).block(0x0a0d_0d0a, |body| {
        let body = body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
        let body = body.option(1, b"first").option(1, b"second").option(2, b"machine").option(3, b"system");
        body.option(4, b"program")
            .option(2988, &maker(b"text"))
            .option(2989, &maker(b"bytes"))
            .option(19_372, &maker(b"stays"))
            .end()
    });
    let file = file.block(1, |body| {
        let body = body.u16(1).u16(0).u32(65_535).option(2, b"eth0").option(1, b"one").option(1, b"two");
        let body = body.option(4, &[10, 0, 0, 1, 255, 0, 0, 0]).option(4, &[10, 0, 0, 2, 255, 0, 0, 0]);
        let body = body.option(5, &[6; 17]).option(7, &[7; 8]).option(10, &word(19_800)).option(13, &[4]);
        let body = body.option(15, b"card").option(16, &number(1 << 33)).option(17, &number(1 << 34));
        body.option(19_373, &maker(b"stays")).end()
    });
    let file = file.block(0x4000_0bad, |body| body.u32(32_473).raw(b"stay"));
    let file = file.block(6, |body| {
        let body = body.u32(0).time(TIME).u32(60).u32(60).raw(&[7; 60]);
        body.option(2988, &maker(b"said")).option(19_372, &maker(b"stays")).end()
    });
    let file =
        file.block(4, |body| body.u16(0).u16(0).option(2, b"server").option(19_372, &maker(b"stays")).end());
    let file = file.block(0x0a0d_0d0a, |body| {
        body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX).option(1, b"later").end()
    });
    file.block(1, |body| body.u16(1).u16(0).u32(65_535)).packet(0, TIME, &[7; 60]).bytes
}

/// Comments, the machine, addresses and all else that another file may have of a file; not what is to stay in it.
#[test]
fn what_a_file_says_of_itself_stays_with_it() {
    let place = Place::new();
    let maker = |text: &[u8]| [&32_473_u32.to_ne_bytes(), text].concat();
    let program = concat!("weir ", env!("CARGO_PKG_VERSION")).as_bytes();
    for order in ORDERS {
        let [original, copy, merged, other] =
            ["a.pcapng", "b.pcapng", "c.pcapng", "d.pcapng"].map(|name| place.path(name));
        fs::write(&original, described(order)).expect("a file");
        succeeds(&["read", "-w"], &[&copy, &original]);
        let file = fs::read(&copy).expect("a file");
        let own = |list: &[(u16, &[u8])]| -> Options {
            list.iter().map(|(code, value)| (*code, value.to_vec())).collect()
        };
        let mut section = own(&[
            (1, b"first"),
            (2, b"machine"),
            (3, b"system"),
            (4, program),
            (1, b"second"),
            (2988, &maker(b"text")),
        ]);
        // Nobody but its maker can turn the bytes.
        if order == ByteOrder::NATIVE {
            section.push((2989, maker(b"bytes")));
        }
        assert_eq!(options(&file, 0x0a0d_0d0a, 16), [section], "{order}");
        let first = own(&[
            (2, b"eth0"),
            (9, &[9]),
            (13, &[4]),
            (15, b"card"),
            (1, b"one"),
            (1, b"two"),
            (4, &[10, 0, 0, 1, 255, 0, 0, 0]),
            (4, &[10, 0, 0, 2, 255, 0, 0, 0]),
            (5, &[6; 17]),
            (7, &[7; 8]),
            (10, &19_800_u32.to_ne_bytes()),
            (16, &(1_u64 << 33).to_ne_bytes()),
            (17, &(1_u64 << 34).to_ne_bytes()),
        ]);
        let second = own(&[(9, &[9]), (1, b"later")]);
        assert_eq!(options(&file, 1, 8), [first, second], "{order}");
        assert_eq!(options(&file, 6, 80), [own(&[(2988, &maker(b"said"))]), vec![]], "{order}");
        assert_eq!(options(&file, 4, 4), [own(&[(2, b"server")])], "{order}");
        assert!(options(&file, 0x4000_0bad, 0).is_empty(), "{order}");
        let dump = judge("tshark", &["-n", "-r"], &[&copy]);
        assert_eq!(dump.lines().count(), 2, "{dump}");

        // Of several files each says what is its own, once.
        let more = Bytes::new(order).block(0x0a0d_0d0a, |body| {
            body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX).option(1, b"another").end()
        });
        fs::write(&other, more.interface(None).packet(0, TIME, &[7; 60]).bytes).expect("a file");
        succeeds(&["read", "-w"], &[&merged, &copy, &other]);
        let info = succeeds(&["info", "--json"], &[&merged]);
        let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
        assert_eq!(info["comments"], serde_json::json!(["first", "second", "another"]));
    }
}

/// Bytes of the frame check sequence, from pcap to pcapng and back.
#[test]
fn the_length_of_the_check_sequence_is_kept() {
    let place = Place::new();
    let [original, between, back] = ["a.pcap", "b.pcapng", "c.pcap"].map(|name| place.path(name));
    for order in ORDERS {
        let pcap = Bytes::new(order).u32(0xa1b2_c3d4).u16(2).u16(4).u64(0).u32(65_535).u32(0x2400_0001);
        fs::write(&original, pcap.record(1_700_000_000, 0, &frames()[20]).bytes).expect("a file");
        succeeds(&["read", "-w"], &[&between, &original]);
        assert!(options(&fs::read(&between).expect("a file"), 1, 8)[0].contains(&(13, vec![4])), "{order}");
        for from in [&between, &original] {
            succeeds(&["read", "--micro", "-w"], &[&back, from]);
            assert_eq!(fs::read(&back).expect("a file")[20..24], 0x2400_0001_u32.to_ne_bytes(), "{order}");
        }
    }
}
