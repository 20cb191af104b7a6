//! Captured packets equal sent ones: every byte, in order, with lengths, tags and times.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, SystemTime};

use weir::{Mode, SourceChoice, Timestamps};
use weir_lab::{FrameSender, Network, Pair, Port, Tagging, Traffic, Veth, root_test, tcp_transfer};

use crate::common::{self, drain, take};
use crate::{assert_closed, capture_frames, on_rx, on_rx_with_room, on_wire, send_and_take, send_past};

each_way!(every_byte_of_every_size_arrives_in_order);

fn every_byte_of_every_size_arrives_in_order(source: SourceChoice, mode: Mode) {
    // No more than AF_XDP has frames: nothing is lost, however long a pump has to wait for its processor.
    const COUNT: u64 = 5_000;
    let sizes = [60, 61, 62, 63, 64, 65, 127, 128, 129, 255, 256, 257, 385, 1023, 1024, 1514];
    let network = Network::new(Veth::default()).unwrap();
    let builder = on_rx_with_room(&network, COUNT, 1514).source(source).mode(mode);
    let mut capture = network.rx().run(|| builder.open().unwrap());
    let (mut frames, mut bytes) = (0, 0);
    for size in sizes {
        let traffic = Traffic::new(size).unwrap().flows(7).unwrap().between(network.pair());
        let report = send_past(&mut capture, &network, &traffic, COUNT).finish();
        let total = capture.stats().unwrap().total();
        let told = (&report, &total);
        assert!(report.is_perfect(), "{source:?} {mode:?} {size}: {told:?}");
        assert_eq!(report.total.received, COUNT, "{source:?} {mode:?} {size}: {told:?}");
        (frames, bytes) = (frames + COUNT, bytes + COUNT * size as u64);
        assert_eq!((total.captured, total.lost, total.bytes), (frames, 0, bytes), "{size}");
    }
    drain(&mut capture, |_| panic!("everything was taken"));
    assert_closed(&capture.stats().unwrap());
}

each_way!(longer_packets_are_cut_at_the_snap_length_and_say_so);

fn longer_packets_are_cut_at_the_snap_length_and_say_so(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(200).unwrap().between(network.pair());
    network.rx().run(|| {
        for snap_len in [1u32, 14, 17, 60, 199, 200, 201] {
            let mut capture = on_rx(&network).source(source).mode(mode).snap_len(snap_len).open().unwrap();
            let frames = traffic.frames(0..3);
            let cut = |frame: &Vec<u8>| (frame[..frame.len().min(snap_len as usize)].to_vec(), 200);
            let taken = send_and_take(&mut capture, &network.pair().tx, &frames);
            assert_eq!(taken, frames.iter().map(cut).collect::<Vec<_>>(), "{source:?} {mode:?} {snap_len}");
            drain(&mut capture, |_| panic!("everything was taken"));
        }
    });
}

each_way!(jumbo_frames_in_several_buffers_are_captured_whole);

fn jumbo_frames_in_several_buffers_are_captured_whole(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default().mtu(65535)).unwrap();
    network.rx().run(|| {
        for size in [1515, 2048, 2049, 3000, 4096, 5001, 9014, 32_768, 65_535, 65_536, 65_549] {
            let traffic = Traffic::new(size).unwrap().between(network.pair());
            let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
            let frames = traffic.frames(0..5);
            let taken = send_and_take(&mut capture, &network.pair().tx, &frames);
            let whole = taken.iter().zip(&frames).all(|(taken, frame)| taken == &(frame.clone(), size));
            assert!(whole && taken.len() == 5, "{source:?} {mode:?} {size}: {}", taken.len());
            drain(&mut capture, |_| panic!("everything was taken"));
        }
    });
}

// veth cuts super-frames for an XDP program in the driver, so they meet XDP in the stack, on the loopback.
#[root_test]
fn root_super_frames_of_a_tcp_transfer_are_captured_whole_by_xdp_on_the_loopback() {
    super_frames_are_captured_whole(SourceChoice::Xdp, "lo");
}

#[root_test]
fn root_super_frames_of_a_tcp_transfer_are_captured_whole_by_tc() {
    super_frames_are_captured_whole(SourceChoice::Tc, "lo");
    super_frames_are_captured_whole(SourceChoice::Tc, "rx0");
}

#[root_test]
fn root_super_frames_of_a_tcp_transfer_are_captured_whole_by_af_packet() {
    super_frames_are_captured_whole(SourceChoice::AfPacket, "lo");
    super_frames_are_captured_whole(SourceChoice::AfPacket, "rx0");
}

fn super_frames_are_captured_whole(source: SourceChoice, interface: &str) {
    // The kernel's ring for packets of a socket and the pool of a queue have room for all of them.
    const BYTES: u64 = 16 << 20;
    let network = Network::new(Veth::default().ipv4()).unwrap();
    let pair = match interface {
        "lo" => loopback(&network),
        _ => network.pair().clone(),
    };
    network.rx().run(|| {
        let builder = common::with_pool(80, common::CHUNK_SIZE).interface(interface).source(source);
        let mut capture = builder.direction(weir::Direction::In).open().unwrap();
        let (mut payload, mut longest) = (0u64, 0);
        let mut look = |chunk: &weir::Chunk| {
            for packet in chunk {
                assert_eq!(packet.data.len(), packet.original_len as usize, "cut");
                longest = longest.max(packet.data.len());
                payload += tcp_payload(packet.data);
            }
        };
        std::thread::scope(|scope| {
            let transfer = scope.spawn(|| tcp_transfer(&pair, BYTES).expect("the transfer succeeds"));
            while !transfer.is_finished() {
                capture.next(Duration::from_millis(10)).unwrap().taken().iter().for_each(&mut look);
            }
            transfer.join().expect("the transfer does not panic");
        });
        drain(&mut capture, |chunk| look(&chunk));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let total = account.total();
        assert_eq!(total.lost, 0, "{source:?} {interface}: {total:?}");
        // A retransmission may double some of it.
        assert!(
            (BYTES..BYTES + BYTES / 10).contains(&payload),
            "{source:?} {interface}: {payload} bytes of payload captured: {total:?}"
        );
        assert!(longest > 60_000, "{source:?} {interface}: no super-frame came: {longest}");
    });
}

/// The loopback of the receiving namespace, as a pair.
fn loopback(network: &Network) -> Pair {
    let lo = Port { name: "lo".into(), ipv4: Some(Ipv4Addr::LOCALHOST), ..network.pair().rx.clone() };
    Pair { tx: lo.clone(), rx: lo }
}

/// Bytes of payload of an IPv4 TCP frame.
fn tcp_payload(frame: &[u8]) -> u64 {
    if frame[12..14] != [8, 0] || frame[23] != 6 {
        return 0;
    }
    let ip = usize::from(frame[14] & 15) * 4;
    let tcp = usize::from(frame[14 + ip + 12] >> 4) * 4;
    // The length field of a super-frame beyond 64 KiB would be 0; veth's are below.
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    (total - ip - tcp) as u64
}

each_way!(vlan_tags_are_where_they_were_on_the_wire);

fn vlan_tags_are_where_they_were_on_the_wire(source: SourceChoice, mode: Mode) {
    // A tag beside the frame, as a VLAN interface or a device that strips tags leaves it; one in the frame as well (QinQ);
    // one in the frame alone.
    let one: &[u8] = &[0x81, 0, 0, 77];
    let two: &[u8] = &[0x88, 0xa8, 0x20, 5, 0x81, 0, 0, 77];
    let network = Network::new(Veth::default()).unwrap();
    let tx = &network.pair().tx;
    for (beside, wire_tags) in [(Some((0x8100, 77)), one), (Some((0x88a8, 0x2005)), two), (None, one)] {
        let mut traffic = Traffic::new(100).unwrap().between(network.pair());
        if wire_tags.len() > 4 || beside.is_none() {
            traffic = traffic.vlan(77).unwrap();
        }
        let _tagging = beside.map(|(protocol, tci)| Tagging::on(tx, protocol, tci).unwrap());
        network.rx().run(|| {
            for snap_len in [13u32, 15, 16, 50, 2000] {
                let mut capture =
                    on_rx(&network).source(source).mode(mode).snap_len(snap_len).open().unwrap();
                let cut = |sequence| {
                    let wire = on_wire(&traffic, sequence, beside.is_some(), wire_tags);
                    (wire[..wire.len().min(snap_len as usize)].to_vec(), wire.len())
                };
                let taken = send_and_take(&mut capture, tx, &traffic.frames(0..3));
                let told = format!("{source:?} {mode:?} {beside:?} {snap_len}");
                assert_eq!(taken, (0..3).map(cut).collect::<Vec<_>>(), "{told}");
                drain(&mut capture, |_| panic!("everything was taken: {told}"));
            }
        });
    }
}

#[root_test]
fn root_time_stamps_are_those_of_the_wall_clock() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let now = || {
        u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()).unwrap()
    };
    for (source, stamps) in [
        (SourceChoice::Xdp, Timestamps::Kernel),
        (SourceChoice::Xdp, Timestamps::Batch),
        (SourceChoice::Xdp, Timestamps::None),
        (SourceChoice::Tc, Timestamps::Kernel),
        (SourceChoice::AfPacket, Timestamps::Kernel),
        (SourceChoice::AfXdp, Timestamps::Kernel),
        (SourceChoice::AfXdp, Timestamps::Batch),
        (SourceChoice::AfXdp, Timestamps::None),
    ] {
        network.rx().run(|| {
            let mode = if source == SourceChoice::AfXdp { Mode::Exclusive } else { Mode::Pass };
            let mut capture = on_rx(&network).source(source).mode(mode).timestamps(stamps).open().unwrap();
            let before = now();
            let sender = FrameSender::new(&network.pair().tx).unwrap();
            for round in 0..3 {
                sender.send_frames(&traffic.frames(round * 300..(round + 1) * 300)).unwrap();
                // More than a tick of the kernel's timer, in which one reading of the clock may serve several.
                std::thread::sleep(Duration::from_millis(20));
            }
            common::wait_for(&mut capture, |account| account.total().captured == 900);
            let after = now();
            // By queue: a sender that changes the processor changes the queue, where a queue is a processor.
            let (mut last, mut packets) = (BTreeMap::new(), 0);
            drain(&mut capture, |chunk| {
                for packet in &chunk {
                    packets += 1;
                    if stamps == Timestamps::None {
                        assert_eq!(packet.timestamp, 0);
                        continue;
                    }
                    let before_it = last.insert(packet.queue, packet.timestamp).unwrap_or(0);
                    assert!(packet.timestamp >= before_it, "{source:?} {stamps:?}: time runs backwards");
                    // A tick of the kernel's timer is what `Batch` may be late by.
                    assert!(
                        (before - 10_000_000..=after).contains(&packet.timestamp),
                        "{source:?} {stamps:?}"
                    );
                }
            });
            assert_eq!(packets, 900, "{source:?} {stamps:?}");
        });
    }
}

#[root_test]
fn root_generic_xdp_captures_where_the_driver_has_none() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let mut capture = common::capture().interface("lo").source(SourceChoice::Xdp).open().unwrap();
        let interface = &capture.interfaces()[0];
        assert!(interface.detail.starts_with("generic XDP"), "{interface:?}");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        for number in 0..100u8 {
            socket.send_to(&[number; 40], to).unwrap();
        }
        let mut numbers = Vec::new();
        take(&mut capture, 100, |chunk| numbers.extend(chunk.packets().map(|packet| packet.data[42])));
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<u8>>());
        // Mode pass: the socket got them as well.
        let mut buffer = [0; 64];
        assert_eq!(socket.recv(&mut buffer).unwrap(), 40);
        drain(&mut capture, |_| panic!("everything was taken"));
        assert_closed(&capture.stats().unwrap());
    });
}

each_way!(mode_decides_whether_the_host_sees_the_packets);

fn mode_decides_whether_the_host_sees_the_packets(source: SourceChoice, mode: Mode) {
    // No more than AF_XDP has frames: nothing is lost, however long a pump has to wait for its processor.
    const COUNT: u64 = 10_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let received = || weir_lab::StackCounters::read(network.rx()).unwrap().get("IpInReceives");
    let before = received();
    let builder = on_rx(&network).source(source).mode(mode);
    let (report, _) = capture_frames(&network, builder, &traffic, COUNT);
    assert_eq!(report.total.received, COUNT);
    // A source may have a packet before the host has.
    let wanted = if mode == Mode::Exclusive { 0 } else { COUNT };
    common::wait_until(|| received() - before >= wanted, || format!("{} of {wanted}", received() - before));
    assert_eq!(received() - before, wanted, "{source:?} {mode:?}");
}
