//! The `af_packet` source on real traffic: its special features. What all sources have in common is tested in
//! `capture`.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, capabilities, gettid, set_capabilities};
use weir::{Builder, Capture, Chunk, Delivery, Direction, Error, SourceChoice};
use weir_lab::{Checker, FrameSender, Generator, Network, Traffic, Veth, root_test, tcp_transfer};
use weir_savefile::pcapng::{InterfaceDescription, SectionHeader};

#[path = "common/mod.rs"]
mod common;

use common::{PATIENCE, drain, take, used, wait_for, wait_until_asleep};

fn on(interface: &str) -> Builder {
    common::capture().interface(interface).source(SourceChoice::AfPacket)
}

/// The same with room for so many packets of 60 bytes.
fn with_room_for(packets: u64, interface: &str) -> Builder {
    common::with_room_for(packets, 60).interface(interface).source(SourceChoice::AfPacket)
}

/// The same with so many chunks of 64 KiB.
fn with_chunks(chunks: u32, interface: &str) -> Builder {
    common::with_pool(chunks, 64 << 10).interface(interface).source(SourceChoice::AfPacket)
}

fn frames(chunk: &Chunk) -> impl Iterator<Item = Vec<u8>> {
    chunk.packets().map(|packet| packet.data.to_vec())
}

#[root_test]
fn root_frames_of_every_size_are_whole() {
    let network = Network::new(Veth::default().mtu(65_535)).unwrap();
    let sizes = (60..130).chain([1513, 1514, 9014, 32_768, 65_535, 65_536, 65_549]);
    let sent: Vec<_> =
        sizes.map(|size| Traffic::new(size).unwrap().between(network.pair()).frame(7)).collect();
    // The smallest ring, as where many interfaces share the memory, and the usual one.
    let few = Capture::builder().interface(&network.pair().rx.name).source(SourceChoice::AfPacket);
    for (builder, ring) in [(few.memory(4 << 20), "1 MiB"), (on(&network.pair().rx.name), "32 MiB")] {
        network.rx().run(|| {
            let mut capture = builder.open().unwrap();
            let detail = &capture.interfaces()[0].detail;
            assert!(detail.starts_with(&format!("TPACKET_V3, ring of {ring}, ")), "{detail}");
            FrameSender::new(&network.pair().tx).unwrap().send_frames(&sent).unwrap();
            let mut received = Vec::new();
            take(&mut capture, sent.len() as u64, |chunk| received.extend(frames(chunk)));
            drain(&mut capture, |_| panic!("everything was taken"));
            assert!(received == sent, "{} of {} frames, or changed ones", received.len(), sent.len());
        });
    }
}

#[root_test]
fn root_a_connection_is_captured_byte_by_byte() {
    // Fits into the kernel's ring, whoever takes it.
    const BYTES: u64 = 8 << 20;
    for mtu in [1500, 9000] {
        let network = Network::new(Veth::default().ipv4().mtu(mtu)).unwrap();
        network.rx().run(|| {
            let mut capture = on(&network.pair().rx.name).direction(Direction::In).open().unwrap();
            let mut stream = Stream::default();
            let report = std::thread::scope(|scope| {
                let transfer = scope.spawn(|| tcp_transfer(network.pair(), BYTES).unwrap());
                while !transfer.is_finished() {
                    if let Some(chunk) = capture.next(Duration::from_millis(10)).unwrap().taken() {
                        chunk.packets().for_each(|packet| stream.add(packet.data));
                    }
                }
                transfer.join().unwrap()
            });
            drain(&mut capture, |chunk| chunk.packets().for_each(|packet| stream.add(packet.data)));
            let total = capture.stats().unwrap().total();
            assert_eq!(total.lost, 0, "MTU {mtu}: {total:?}");
            assert!(stream.longest > 60_000, "no super-frame came: {}", stream.longest);
            let content = stream.content();
            assert_eq!(content.len() as u64, BYTES);
            assert_eq!(fnv(&content), report.sent_checksum);
        });
    }
}

/// One direction of a TCP connection over IPv4.
#[derive(Default)]
struct Stream {
    first: Option<u32>,
    segments: BTreeMap<u32, Vec<u8>>,
    longest: usize,
}

impl Stream {
    fn add(&mut self, frame: &[u8]) {
        self.longest = self.longest.max(frame.len());
        if frame[12..14] != [8, 0] || frame[23] != 6 {
            return;
        }
        let tcp = 14 + usize::from(frame[14] & 15) * 4;
        let data = tcp + usize::from(frame[tcp + 12] >> 4) * 4;
        let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let sequence = u32::from_be_bytes(frame[tcp + 4..tcp + 8].try_into().unwrap());
        // The first segment is the SYN, whose number counts as a byte.
        let first = *self.first.get_or_insert_with(|| sequence.wrapping_add(1));
        if end > data {
            self.segments.insert(sequence.wrapping_sub(first), frame[data..end].to_vec());
        }
    }

    fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        for (&at, segment) in &self.segments {
            let known = content.len() - at as usize; // sent once more
            content.extend_from_slice(segment.get(known..).unwrap_or_default());
        }
        content
    }
}

/// 64-bit FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[root_test]
fn root_stripped_tags_are_back_in_their_place() {
    let network = Network::new(Veth::default()).unwrap();
    let plain = Traffic::new(100).unwrap().between(network.pair()).frame(3);
    let tagged = |tags: &[u8]| {
        let mut frame = plain.clone();
        frame.splice(12..12, tags.iter().copied());
        frame
    };
    let sent = [
        tagged(&[]),
        tagged(&[0x81, 0, 0x20, 77]),
        tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0xef, 0xff]),
        tagged(&[0x81, 0, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7]),
        tagged(&[0x81, 0, 0, 0]),
    ];
    network.rx().run(|| {
        for snap_len in [1u32, 11, 12, 13, 15, 16, 17, 50, 104, 2000] {
            let mut capture = on(&network.pair().rx.name).snap_len(snap_len).open().unwrap();
            FrameSender::new(&network.pair().tx).unwrap().send_frames(&sent).unwrap();
            let mut received = Vec::new();
            take(&mut capture, sent.len() as u64, |chunk| {
                received.extend(
                    chunk.packets().map(|packet| (packet.data.to_vec(), packet.original_len as usize)),
                );
            });
            let expected: Vec<_> = sent
                .iter()
                .map(|frame| (frame[..frame.len().min(snap_len as usize)].to_vec(), frame.len()))
                .collect();
            assert_eq!(received, expected, "snap length {snap_len}");
            assert_eq!(capture.stats().unwrap().total().bytes, sent.iter().map(|f| f.len() as u64).sum());
        }
    });
}

#[root_test]
fn root_directions_are_told_and_chosen() {
    let network = Network::new(Veth::default()).unwrap();
    let pair = network.pair();
    let (arriving, leaving) = (Traffic::new(60).unwrap().frame(1), Traffic::new(70).unwrap().frame(2));
    network.rx().run(|| {
        for (direction, expected) in [
            (Direction::Both, vec![(60, Some(Direction::In)), (70, Some(Direction::Out))]),
            (Direction::In, vec![(60, None)]),
            (Direction::Out, vec![(70, None)]),
        ] {
            let mut capture = on(&pair.rx.name).direction(direction).open().unwrap();
            FrameSender::new(&pair.tx).unwrap().send_frames(std::slice::from_ref(&arriving)).unwrap();
            FrameSender::new(&pair.rx).unwrap().send_frames(std::slice::from_ref(&leaving)).unwrap();
            let mut seen = Vec::new();
            take(&mut capture, expected.len() as u64, |chunk| {
                seen.extend(chunk.packets().map(|packet| (packet.data.len(), packet.direction)));
            });
            drain(&mut capture, |_| panic!("everything was taken"));
            // Where only one direction is captured, the records need not tell it.
            if direction != Direction::Both {
                seen.iter_mut().for_each(|(_, told)| *told = told.filter(|&told| told != direction));
            }
            assert_eq!(seen, expected);
            let total = capture.stats().unwrap().total();
            assert_eq!((total.seen, total.captured), (expected.len() as u64, expected.len() as u64));
        }
    });
}

#[root_test]
fn root_packets_of_the_loopback_come_once() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        // Each of them is sent and received: both ways show the same packets.
        for (direction, told) in [
            (Direction::Both, Some(Direction::In)),
            (Direction::In, Some(Direction::In)),
            (Direction::Out, Some(Direction::Out)),
        ] {
            let mut capture = on("lo").direction(direction).open().unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for number in 0..50 {
                socket.send_to(&[number; 20], socket.local_addr().unwrap()).unwrap();
            }
            let mut numbers = Vec::new();
            take(&mut capture, 50, |chunk| {
                numbers.extend(chunk.packets().map(|packet| (packet.data[42], packet.direction)));
            });
            drain(&mut capture, |_| panic!("everything was taken"));
            assert_eq!(numbers, (0..50).map(|number| (number, told)).collect::<Vec<_>>());
            assert_eq!(capture.stats().unwrap().total().seen, 50);
        }
    });
}

/// Follows the numbers of received frames, and what their records tell of losses.
struct Gaps {
    checker: Checker,
    next: u64,
    missing: u64,
    told: u64,
}

impl Gaps {
    fn new(traffic: &Traffic) -> Self {
        Self { checker: Checker::new(traffic), next: 0, missing: 0, told: 0 }
    }

    fn add(&mut self, packet: &weir::Packet<'_>) {
        let number = self.checker.check(packet.data).expect("a frame as it was sent");
        self.missing += number - self.next;
        self.next = number + 1;
        self.told += packet.lost_before;
        assert!(
            self.told >= self.missing,
            "{} are missing before frame {number}: {} told",
            self.missing,
            self.told
        );
    }
}

#[root_test]
fn root_a_burst_fits_into_the_pool_while_the_handler_is_stopped() {
    const BURST: u64 = 350_000; // 32 MB of records, 51 MB in the kernel's ring of 34 MB
    const PART: u64 = 50_000; // fits into that ring, however long the thread that empties it waits for a processor
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture =
            with_room_for(BURST, &network.pair().rx.name).direction(Direction::In).open().unwrap();
        for part in 1..=BURST / PART {
            assert_eq!(generator.send(PART).unwrap().accepted, PART);
            wait_for(&mut capture, |account| account.total().captured >= part * PART);
        }
        let mut gaps = Gaps::new(&traffic);
        drain(&mut capture, |chunk| chunk.packets().for_each(|packet| gaps.add(&packet)));
        assert_eq!((gaps.next, gaps.missing), (BURST, 0));
        let total = capture.stats().unwrap().total();
        assert_eq!((total.seen, total.captured, total.lost), (BURST, BURST, 0));
    });
}

#[root_test]
fn root_losses_are_told_where_they_happened() {
    const BURST: u64 = 300_000; // the kernel's ring holds 233 000 at most, two small chunks next to nothing
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture = with_chunks(2, &network.pair().rx.name).open().unwrap();
        let (mut gaps, mut sent) = (Gaps::new(&traffic), 0);
        for burst in 0..4 {
            let count = if burst < 3 { BURST } else { 1 };
            assert_eq!(generator.send(count).unwrap().accepted, count);
            if burst == 1 {
                capture.stats().unwrap(); // a look at the counters moves nothing
            }
            let before = gaps.missing;
            sent += count;
            take(&mut capture, sent, |chunk| chunk.packets().for_each(|packet| gaps.add(&packet)));
            // The end of the last burst is missing before the first frame of this one. What the kernel has lost may be told with
            // an older frame, which lay in its ring meanwhile; but in the end there is none that was not missed.
            let told = format!("burst {burst}: {} missing, {} told", gaps.missing, gaps.told);
            assert_eq!(burst > 0, gaps.missing - before > BURST / 8, "{told}");
            assert!(gaps.told <= capture.stats().unwrap().total().lost, "{told}");
        }
        assert_eq!(gaps.told, gaps.missing);
        drain(&mut capture, |_| panic!("everything was taken"));
        let total = capture.stats().unwrap().total();
        assert_eq!((total.seen, total.lost), (3 * BURST + 1, gaps.missing));
        assert_eq!((total.captured, total.errors), (total.seen - total.lost, 0));
    });
}

#[root_test]
fn root_with_a_slow_reader_every_packet_is_captured_or_counted() {
    const COUNT: u64 = 1_500_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let mut capture = with_chunks(2, &network.pair().rx.name).open().unwrap();
        let mut gaps = Gaps::new(&traffic);
        let mut look = |chunk: &Chunk| {
            chunk.packets().for_each(|packet| gaps.add(&packet));
        };
        let sending = std::thread::spawn(move || generator.send(COUNT).unwrap());
        while !sending.is_finished() {
            if let Some(chunk) = capture.next(Duration::from_millis(10)).unwrap().taken() {
                look(&chunk);
                std::thread::sleep(Duration::from_millis(5));
            }
            let now = capture.stats().unwrap().total();
            assert_eq!(now.seen, now.captured + now.lost + now.errors);
        }
        let accepted = sending.join().unwrap().accepted;
        drain(&mut capture, |chunk| look(&chunk));
        let total = capture.stats().unwrap().total();
        assert_eq!((total.seen, total.errors), (accepted, 0));
        assert_eq!((total.captured, total.delivered), (accepted - total.lost, total.captured));
        assert!(total.lost > 0, "the reader was not slow");
        // What was lost last has no packet behind it.
        assert_eq!(gaps.missing + (COUNT - gaps.next), total.lost);
        assert!(gaps.told <= total.lost);
    });
}

#[root_test]
fn root_what_the_pool_has_no_room_for_is_not_lost_by_stopping() {
    const COUNT: u64 = 100_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        // With this the kernel fills its blocks, however slowly the frames come; so the ring holds them all.
        let delivery = Delivery::Batched { min_bytes: 1, timeout: Duration::from_millis(500) };
        let mut capture = with_chunks(3, &network.pair().rx.name).delivery(delivery).open().unwrap();
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        // The handler holds every chunk, and goes on to.
        let held = &mut Vec::new();
        hold_all(&mut capture, held, 3);

        capture.stop().unwrap();
        let stopped = capture.stats().unwrap().total();
        while let Some(chunk) = capture.next(Duration::ZERO).unwrap().taken() {
            held.push(chunk);
        }
        let mut gaps = Gaps::new(&traffic);
        for chunk in held.iter() {
            chunk.packets().for_each(|packet| gaps.add(&packet));
        }
        assert_eq!((gaps.next, gaps.missing, gaps.told), (COUNT, 0, 0));
        let total = capture.stats().unwrap().total();
        assert_eq!((total.seen, total.captured, total.delivered), (COUNT, COUNT, COUNT));
        // Stopping had already copied everything.
        assert_eq!((stopped.seen, stopped.captured, stopped.bytes), (COUNT, COUNT, COUNT * 60));
        held.clear();
        let pool = capture.stats().unwrap().interfaces[0].queues[0].pool;
        assert_eq!((pool.free + pool.open, pool.held, pool.total), (3, 0, 3));
    });
}

/// Takes chunks and holds them until all of so many are held.
fn hold_all(capture: &mut Capture, held: &mut Vec<Chunk>, chunks: u32) {
    let began = Instant::now();
    while capture.stats().unwrap().interfaces[0].queues[0].pool.held < chunks {
        assert!(began.elapsed() < PATIENCE, "{:?}", capture.stats());
        held.extend(capture.next(Duration::from_millis(10)).unwrap().taken());
    }
}

#[root_test]
fn root_a_full_pool_is_waited_for_asleep() {
    const COUNT: u64 = 5000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture = with_chunks(2, &network.pair().rx.name).open().unwrap();
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        let mut held = Vec::new();
        hold_all(&mut capture, &mut held, 2);
        while let Some(chunk) = capture.next(Duration::ZERO).unwrap().taken() {
            held.push(chunk);
        }
        let taken: usize = held.iter().map(Chunk::len).sum();
        let before = used().0;
        assert!(capture.next(Duration::from_millis(400)).unwrap().taken().is_none());
        let used = used().0 - before;
        // Whoever spins takes a good part of the 400 ms, on a busy machine too.
        assert!(used < Duration::from_millis(80), "{used:?} of 400 ms");

        // Chunks that come back from another thread are used: for a wait of this length nothing else would end it.
        let (waiter, began) = (gettid(), Instant::now());
        let mut packets = taken as u64;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                wait_until_asleep(waiter);
                drop(held);
            });
            packets += capture.next(3 * PATIENCE).unwrap().taken().expect("there is room again").len() as u64;
        });
        assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
        take(&mut capture, COUNT, |chunk| packets += chunk.len() as u64);
        assert_eq!(packets, COUNT);
    });
}

#[root_test]
fn root_a_batch_is_handed_over_when_its_time_has_come() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    network.rx().run(|| {
        let delivery = Delivery::Batched { min_bytes: 1 << 20, timeout: Duration::from_millis(200) };
        let mut capture = on(&network.pair().rx.name).delivery(delivery).open().unwrap();
        assert!(capture.next(Duration::from_millis(10)).unwrap().taken().is_none());
        let patience = Duration::from_secs(30);
        let start = Instant::now();
        let mut in_time = 0;
        while in_time < 3 {
            let began = Instant::now();
            sender.send_frames(&traffic.frames(0..10)).unwrap();
            // Far less than a batch. The time-out may come between two of them.
            let mut packets = 0;
            while packets < 10 {
                packets +=
                    capture.next(patience).unwrap().taken().expect("the time-out hands them over").len();
            }
            assert_eq!(packets, 10);
            // A busy machine may be late, but not always.
            in_time += u32::from(began.elapsed() < Duration::from_millis(400));
            assert!(start.elapsed() < patience, "{in_time} batches came in time");
        }
        // Stopping waits for the block that is open, and loses nothing of it.
        sender.send_frames(&traffic.frames(0..10)).unwrap();
        let mut packets = 0;
        drain(&mut capture, |chunk| packets += chunk.len());
        assert_eq!(packets, 10);
    });
}

#[root_test]
fn root_tshark_reads_the_records() {
    let network = Network::new(Veth::default().ipv4()).unwrap();
    network.rx().run(|| {
        let builder = common::with_room_for(2000, 5000).interface(&network.pair().rx.name);
        let mut capture = builder.source(SourceChoice::AfPacket).snap_len(5000).open().unwrap();
        tcp_transfer(network.pair(), 2 << 20).unwrap();
        let mut file = tempfile::Builder::new().suffix(".pcapng").tempfile().unwrap();
        let mut blocks = Vec::new();
        SectionHeader::default().append_to(&mut blocks);
        InterfaceDescription { link_type: 1, snap_len: 5000, name: Some("rx0"), ..Default::default() }
            .append_to(&mut blocks);
        let mut expected = Vec::new();
        drain(&mut capture, |chunk| {
            blocks.extend_from_slice(chunk.bytes());
            for packet in &chunk {
                let (seconds, nanoseconds) =
                    (packet.timestamp / 1_000_000_000, packet.timestamp % 1_000_000_000);
                let inbound = packet.direction == Some(Direction::In);
                expected.push(format!(
                    "{}\t{}\t{seconds}.{nanoseconds:09}\t{}",
                    packet.original_len,
                    packet.data.len(),
                    if inbound { "0x00000001" } else { "0x00000002" },
                ));
            }
        });
        file.write_all(&blocks).unwrap();
        let fields = "-T fields -e frame.len -e frame.cap_len -e frame.time_epoch -e frame.packet_flags";
        let output =
            Command::new("tshark").arg("-r").arg(file.path()).args(fields.split(' ')).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listing = String::from_utf8(output.stdout).unwrap();
        let read: Vec<&str> = listing.lines().collect();
        assert!(expected.len() > 30, "{} packets", expected.len());
        assert_eq!(read, expected);
    });
}

#[root_test]
fn root_without_the_capability_the_error_names_it() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let mut own = capabilities(None).unwrap();
        own.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, own).unwrap(); // of this thread, which ends with the test
        let error = on(&network.pair().rx.name).open().unwrap_err();
        assert!(matches!(&error, Error::Privilege { needs: "cap_net_raw", .. }), "{error:?}");
        assert!(error.to_string().contains(&network.pair().rx.name), "{error}");
        assert!(error.hint().unwrap().contains("cap_net_raw"));
    });
}
