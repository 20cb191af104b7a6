//! Flows that the kernel counts: how many, what becomes of those without room, and when they begin anew.

use std::thread;
use std::time::Duration;

use weir::flows::Counted;
use weir::{Capture, CaptureStats, Sample, SourceChoice, Steer};
use weir_lab::{FrameSender, Network, Veth, root_test};

use crate::common::{drain, take};
use crate::{assert_closed, on_rx};

/// Packets of a way that are captured.
const COPIED: u64 = 8;
const PACKETS: u64 = 20;

/// A frame of UDP from this port.
fn frame(port: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 38, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 18, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Sends packets from each port in turn, and returns what was captured and counted by then.
fn send(network: &Network, capture: &mut Capture, ports: &[u16], before: u64) -> (u64, u64) {
    let sender = FrameSender::new(&network.pair().tx).expect("a sender");
    for _ in 0..PACKETS {
        ports.iter().for_each(|port| sender.send(&frame(*port)).expect("a frame"));
    }
    take(capture, before + PACKETS * ports.len() as u64, |_| {});
    let total = capture.stats().expect("the account can be had").total();
    (total.captured, total.counted)
}

fn counted(capture: &mut Capture) -> Vec<Counted> {
    let mut all = Vec::new();
    capture.take_counted(|counted| all.push(counted));
    all.sort_by_key(|counted| counted.source.port);
    all
}

fn closed(capture: &Capture) -> CaptureStats {
    let account = capture.stats().expect("the account can be had");
    assert_closed(&account);
    account
}

#[root_test]
fn root_what_finds_no_room_is_captured_and_nothing_counted_is_forgotten() {
    let network = Network::new(Veth::default()).expect("a network");
    network.rx().run(|| {
        // A bucket of four ways.
        let mut capture =
            on_rx(&network).count_flows(1, Duration::from_secs(3600)).open().expect("a capture");
        let more = PACKETS - COPIED;
        assert_eq!(send(&network, &mut capture, &[1, 2, 3, 4], 0), (4 * COPIED, 4 * more));
        // None of them makes room before it is taken.
        let (captured, now) = send(&network, &mut capture, &[5, 6], 4 * PACKETS);
        assert_eq!((captured, now), (4 * COPIED + 2 * PACKETS, 4 * more));
        let taken = counted(&mut capture);
        let told: Vec<_> =
            taken.iter().map(|counted| (counted.source.port, counted.packets, counted.bytes)).collect();
        assert_eq!(told, [1, 2, 3, 4].map(|port| (port, more, more * 38)));
        assert!(taken.iter().all(|counted| counted.first <= counted.last && counted.flags == 0), "{taken:?}");
        assert!(counted(&mut capture).is_empty());
        // Now they do, once they have been silent for a second; and who was there before goes on being counted.
        thread::sleep(Duration::from_millis(1100));
        send(&network, &mut capture, &[4], 6 * PACKETS);
        let (_, now) = send(&network, &mut capture, &[5], 7 * PACKETS);
        assert_eq!(now, 4 * more + PACKETS + more);
        drain(&mut capture, drop);
        let told: Vec<_> =
            counted(&mut capture).iter().map(|counted| (counted.source.port, counted.packets)).collect();
        assert_eq!(told, [(4, PACKETS), (5, more)]);
        let total = closed(&capture).total();
        assert_eq!((total.seen, total.counted, total.captured), (8 * PACKETS, now, 8 * PACKETS - now));
    });
}

#[root_test]
fn root_after_a_silence_the_first_packets_are_captured_again() {
    let network = Network::new(Veth::default()).expect("a network");
    network.rx().run(|| {
        let idle = Duration::from_millis(50);
        let mut capture = on_rx(&network).count_flows(4096, idle).open().expect("a capture");
        let (first, _) = send(&network, &mut capture, &[1], 0);
        thread::sleep(2 * idle);
        let (both, _) = send(&network, &mut capture, &[1], PACKETS);
        // A busy machine may be silent in between.
        assert!(first >= COPIED && both - first >= COPIED, "{first} {both}");
        drain(&mut capture, drop);
        closed(&capture);
    });
}

#[root_test]
fn root_only_xdp_counts_flows_and_all_of_them() {
    let network = Network::new(Veth::default()).expect("a network");
    network.rx().run(|| {
        let counting = || on_rx(&network).count_flows(1, Duration::from_secs(1));
        let why = |builder: weir::Builder| builder.open().map(drop).expect_err("it cannot be").to_string();
        for (builder, told) in [
            (counting().source(SourceChoice::Tc), "only the xdp source counts flows in the kernel"),
            (counting().sample("1/2".parse::<Sample>().expect("a sample")), "only a sample is seen"),
            (counting().steer(Steer::Flow, 2), "are not steered"),
        ] {
            let why = why(builder);
            assert!(why.contains(told), "{why}");
        }
    });
}
