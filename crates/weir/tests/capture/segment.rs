//! Splitting super-frames into segments: tshark finds every checksum correct and every byte of the stream.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir::writer::{Writer, WriterOptions};
use weir::{Direction, FileInterface, Mode, SourceChoice};
use weir_lab::{Network, Pair, Tagging, TcpReport, Veth, require_root, root_test, tcp_transfer};
use weir_sys::packet::Sender;

use crate::common::{drain, on_one_processor, take};
use crate::{assert_closed, on_rx};

const BYTES: u64 = 1 << 20;

/// Captures a transfer in `direction`, as seen from the receiving end, into `file`. Gives the lengths of the packets.
fn captured_transfer(
    network: &Network,
    direction: Direction,
    snap_len: u32,
    file: &Path,
) -> (TcpReport, BTreeMap<usize, u32>) {
    let pair = match direction {
        Direction::Out => Pair { tx: network.pair().rx.clone(), rx: network.pair().tx.clone() },
        _ => network.pair().clone(),
    };
    network.rx().run(|| {
        let builder = on_rx(network).source(SourceChoice::Tc).direction(Direction::Both).segment(true);
        let mut capture = builder.snap_len(snap_len).open().unwrap();
        let interfaces: Vec<_> = capture.interfaces().iter().map(FileInterface::from).collect();
        let mut writer = Writer::create(file, &interfaces, &WriterOptions::default()).unwrap();
        let mut lengths: BTreeMap<usize, u32> = BTreeMap::new();
        let mut look = |chunk: weir::Chunk| {
            for packet in &chunk {
                *lengths.entry(packet.original_len as usize).or_default() += 1;
                assert_eq!(packet.data.len(), packet.original_len.min(snap_len) as usize);
            }
            writer.write(chunk).unwrap();
        };
        let transfer = std::thread::spawn(move || tcp_transfer(&pair, BYTES).expect("the transfer succeeds"));
        while !transfer.is_finished() {
            capture.next(Duration::from_millis(10)).unwrap().taken().into_iter().for_each(&mut look);
        }
        let report = transfer.join().expect("the transfer does not panic");
        drain(&mut capture, &mut look);
        // The writer holds chunks until it has written them.
        writer.finish(&capture.stats().unwrap()).1.unwrap();
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let total = account.total();
        assert_eq!((total.lost, total.errors), (0, 0), "{total:?}");
        assert_eq!(total.captured, lengths.values().map(|&times| u64::from(times)).sum::<u64>());
        sort(file);
        (report, lengths)
    })
}

/// Brings the records of several queues into the order of their times.
fn sort(file: &Path) {
    let sorted = file.with_extension("sorted");
    let output = Command::new("reordercap").args([file, &sorted]).output().expect("reordercap runs");
    assert!(output.status.success(), "{output:?}");
    std::fs::rename(sorted, file).unwrap();
}

fn tshark(file: &Path, args: &[&str]) -> String {
    let checks = ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"];
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(file).args(checks.iter().flat_map(|check| ["-o", *check])).args(args);
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What tshark says of a file in one go.
struct Judgement {
    /// A packet a line: whether checksums are right, what it has to object, the tag, and bytes of the stream.
    packets: Vec<[String; 8]>,
    /// The bytes that the one side that sent any has sent, as tshark puts the stream together: how many, and FNV-1a.
    stream: (u64, u64),
}

impl Judgement {
    fn of(file: &Path) -> Self {
        let fields = ["ip.checksum.status", "tcp.checksum.status", "tcp.len", "vlan.id", "ieee8021ad.id"];
        let gaps =
            ["tcp.analysis.lost_segment", "tcp.analysis.ack_lost_segment", "tcp.analysis.out_of_order"];
        let fields = fields.into_iter().chain(gaps);
        let mut arguments = vec!["-T", "fields"];
        arguments.extend(fields.flat_map(|field| ["-e", field]));
        arguments.extend(["-z", "follow,tcp,raw,0"]);
        let text = tshark(file, &arguments);
        let (packets, stream) = text.split_once("\n=====").expect("behind the packets there is the stream");
        let columns = |line: &str| {
            let mut columns = line.split('\t').map(str::to_owned);
            [(); 8].map(|()| columns.next().unwrap_or_default())
        };
        Self { packets: packets.lines().map(columns).collect(), stream: checksum(stream) }
    }
}

/// Of the bytes of a stream that was followed: how many, and FNV-1a.
fn checksum(stream: &str) -> (u64, u64) {
    let hex = stream.lines().map(str::trim).filter(|line| line.len() > 1);
    let hex = hex.filter(|line| line.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let bytes = hex.flat_map(|line| {
        line.as_bytes()
            .chunks_exact(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
    });
    bytes.fold((0, 0xcbf2_9ce4_8422_2325), |(count, sum), byte| {
        (count + 1, (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    })
}

/// Tests of segments that are what the wire carries, so that they can run at the same time.
macro_rules! segments {
    ($($test:ident($veth:expr, $mtu:expr, $direction:ident, $tag:expr)),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                if require_root(stringify!($test)) {
                    segments_are_what_the_wire_carries($veth, $mtu, Direction::$direction, $tag);
                }
            }
        )+
    };
}

segments!(
    root_segments_are_what_the_wire_carries(Veth::default().ipv4(), 1500, In, None),
    root_segments_that_are_sent_are_what_the_wire_carries(Veth::default().ipv4(), 1500, Out, None),
    root_segments_of_ipv6_are_what_the_wire_carries(Veth::default().ipv6(), 1500, In, None),
    root_segments_of_ipv6_that_are_sent_are_what_the_wire_carries(Veth::default().ipv6(), 1500, Out, None),
    root_long_segments_are_what_the_wire_carries(Veth::default().ipv4().mtu(9000), 9000, Out, None),
    root_tagged_segments_are_what_the_wire_carries(Veth::default().ipv4(), 1500, In, Some(0x8100)),
    root_tagged_segments_of_ipv6_are_what_the_wire_carries(Veth::default().ipv6(), 1500, In, Some(0x88a8)),
);

fn segments_are_what_the_wire_carries(veth: Veth, mtu: usize, direction: Direction, tag: Option<u16>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("segments.pcapng");
    let network = Network::new(veth).unwrap();
    // The stack that receives would not take tagged frames, so a tag is put on and, behind the capture, taken off.
    let _tagging = tag.map(|protocol| Tagging::on(&network.pair().tx, protocol, 77).unwrap());
    let _untagging = tag.map(|_| Tagging::off(&network.pair().rx).unwrap());
    let (report, lengths) = captured_transfer(&network, direction, 262_144, &file);
    let longest = 14 + mtu + if tag.is_some() { 4 } else { 0 };
    assert!(lengths.keys().all(|&length| length <= longest), "{lengths:?}");
    assert!(lengths[&longest] > 50, "{lengths:?}");

    let Judgement { packets, stream } = Judgement::of(&file);
    let captured: u32 = lengths.values().sum();
    assert_eq!(packets.len(), captured as usize);
    for (number, packet) in (1..).zip(&packets) {
        let [ip, tcp, ..] = packet;
        let good = |status: &str| status == "1" || status == "Good";
        assert!((ip.is_empty() || good(ip)) && good(tcp), "bad checksums: packet {number}, {packet:?}");
        assert!(packet[5..].iter().all(String::is_empty), "gaps: packet {number}, {packet:?}");
    }
    assert_eq!(stream, (BYTES, report.sent_checksum));
    let is_tagged = |packet: &&[String; 8]| packet[2] != "0" && (packet[3] == "77" || packet[4] == "77");
    assert_eq!(packets.iter().any(|packet| is_tagged(&packet)), tag.is_some());
}

/// The ones' complement sum.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum = words.fold(0, |sum, word| ((sum + word) & 0xffff) + ((sum + word) >> 16));
    u16::try_from(sum).expect("it is folded")
}

/// A TCP super-frame, behind the header with which a packet socket takes it, with every flag that `flags` has.
fn super_frame(network: &Network, ipv6: bool, flags: u8, payload: u16, size: u16) -> Vec<u8> {
    let Pair { tx, rx } = network.pair();
    let length = 20 + payload;
    let addresses: Vec<u8> = if ipv6 { (101..133).collect() } else { vec![10, 1, 2, 3, 10, 4, 5, 6] };
    let pseudo = [&addresses[..], &[0, 0], &length.to_be_bytes(), &[0, 0, 0, 6]].concat();
    let ip = if ipv6 {
        [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[6, 64], &addresses].concat()
    } else {
        // The identification wraps around.
        let head = [&[0x45, 0][..], &(20 + length).to_be_bytes(), &[0xff, 0xfe, 0x40, 0, 64, 6]].concat();
        let check = !sum(&[&head[..], &[0, 0], &addresses].concat());
        [&head[..], &check.to_be_bytes(), &addresses].concat()
    };
    let sequence = [0xff, 0xff, 0xfc, 0];
    let tcp = [
        &[0, 7, 0, 9][..],
        &sequence,
        &[0, 0, 0, 1, 0x50, flags, 0x10, 0],
        &sum(&pseudo).to_be_bytes(),
        &[0, 0],
    ];
    let ethernet = [&rx.mac[..], &tx.mac, if ipv6 { &[0x86, 0xdd] } else { &[8, 0] }].concat();
    let data = (0..payload).map(|at| u8::try_from(at % 251).expect("it fits"));
    let frame = [&ethernet[..], &ip, &tcp.concat(), &data.collect::<Vec<_>>()].concat();
    // `struct virtio_net_hdr`: the checksum is wanted, the kind of segments, with ECN if there is CWR; headers, payload of a
    // segment; where the sum begins and is put.
    let start = u16::try_from(ethernet.len() + ip.len()).expect("it fits");
    let kind = if ipv6 { 4 } else { 1 } | if flags & 0x80 != 0 { 0x80 } else { 0 };
    let numbers = [start + 20, size, start, 16].map(u16::to_ne_bytes).concat();
    [&[1, kind][..], &numbers, &frame].concat()
}

/// What weir cuts in front of the device is what the kernel then sends.
#[root_test]
fn root_super_frames_are_cut_as_the_kernel_cuts_them() {
    let network = Network::new(Veth::default().feature("tso", false).feature("tx", false)).unwrap();
    let tx = &network.pair().tx;
    let sent = network.tx().run(|| {
        let builder = crate::common::capture().interface(&tx.name).source(SourceChoice::Tc);
        builder.direction(Direction::Out).segment(true).open().unwrap()
    });
    let received =
        network.rx().run(|| on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive).open().unwrap());
    let socket = network.tx().run(|| Sender::new(tx.index)).unwrap();
    socket.expect_offloads().unwrap();
    let mut captures = [sent, received];
    let mut count = 0;
    let mut compare = |ipv6: bool, flags: u8, (payload, size): (u16, u16)| {
        let frame = super_frame(&network, ipv6, flags, payload, size);
        // Then each side has its segments in one queue, and so in their order.
        on_one_processor(|| socket.send(&frame)).unwrap();
        count += u64::from(payload.div_ceil(size));
        // Taken at once, so that they do not overflow veth's ring.
        let [ours, theirs] = captures.each_mut().map(|capture| {
            let mut frames = Vec::new();
            take(capture, count, |chunk| frames.extend(chunk.packets().map(|packet| packet.data.to_vec())));
            frames
        });
        assert_eq!(ours, theirs, "IPv6: {ipv6}, flags {flags:#04x}, {payload} bytes by {size}");
    };
    for ipv6 in [false, true] {
        for flags in (0..8).map(|bit| 0x10 | 1 << bit).chain([0xff, 0x99]) {
            for sizes in [(4000, 1000), (3500, 1440), (1441, 1440), (100, 7)] {
                compare(ipv6, flags, sizes);
            }
        }
    }
    drop(captures);
    the_longest_headers_fit(&network, &socket);
}

/// Three tags, one of which the kernel takes out of the frame, and all options of IPv4 that there can be. The checksum is
/// that of the pseudo-header; weir fills it in.
fn the_longest_headers_fit(network: &Network, socket: &Sender) {
    let Pair { tx, rx } = network.pair();
    let tags = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 0x81, 0, 0, 6];
    let head = [0x4f, 0, 0, 86, 0, 1, 0x40, 0, 64, 6];
    let rest = [&[10, 1, 2, 3, 10, 4, 5, 6][..], &[1; 40]].concat();
    let ip = [&head[..], &(!sum(&[&head[..], &rest].concat())).to_be_bytes(), &rest].concat();
    let data = b"weir42";
    let tcp = |check: u16| {
        let numbers = [0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x10, 0];
        [&numbers[..], &check.to_be_bytes(), &[0, 0], data].concat()
    };
    let pseudo = sum(&[&rest[..8], &[0, 6, 0, 26]].concat());
    let frame = |check| [&rx.mac[..], &tx.mac, &tags, &[8, 0], &ip, &tcp(check)].concat();
    let sent = frame(pseudo);
    let whole = frame(!sum(&tcp(pseudo)));
    let mut capture =
        network.rx().run(|| on_rx(network).source(SourceChoice::Tc).segment(true).open().unwrap());
    // Behind the header with which the socket takes super-frames, which asks for nothing.
    socket.send(&[&[0; 10][..], &sent].concat()).unwrap();
    let mut frames = Vec::new();
    take(&mut capture, 1, |chunk| frames.extend(chunk.packets().map(|packet| packet.data.to_vec())));
    assert_eq!(frames, [whole]);
    let total = capture.stats().unwrap().total();
    assert_eq!((total.captured, total.errors), (1, 0));
}

#[root_test]
fn root_segments_are_cut_at_the_snap_length_and_say_so() {
    segments_are_cut(&[1, 13, 35, 54]);
}

#[root_test]
fn root_segments_are_cut_in_their_payload_and_say_so() {
    segments_are_cut(&[67, 97, 1513, 1514]);
}

fn segments_are_cut(snap_lens: &[u32]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cut.pcapng");
    let network = Network::new(Veth::default().ipv4()).unwrap();
    for &snap_len in snap_lens {
        let (_, lengths) = captured_transfer(&network, Direction::In, snap_len, &file);
        assert!(lengths[&1514] > 100, "{snap_len}: {lengths:?}");
        let text = tshark(&file, &["-T", "fields", "-e", "frame.len", "-e", "frame.cap_len"]);
        for line in text.lines() {
            let (long, cut) = line.split_once('\t').unwrap();
            let (long, cut): (u32, u32) = (long.parse().unwrap(), cut.parse().unwrap());
            assert_eq!(cut, long.min(snap_len));
        }
    }
}
