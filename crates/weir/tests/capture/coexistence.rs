//! Other programs on the interface, and interfaces that fail.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir::{Builder, Direction, Error, Filter, Mode, Setting, SourceChoice, SourceKind};
use weir_lab::{Action, FrameSender, Hook, Network, Traffic, Veth, root_test};

use crate::common::{PATIENCE, take_of, wait_for};
use crate::on_rx;

#[root_test]
fn root_a_program_of_someone_else_stays() {
    let network = Network::new(Veth::default()).unwrap();
    let theirs = Hook::attach(&network.pair().rx, Action::Pass).unwrap();
    let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..5);
    network.rx().run(|| {
        let refused = on_rx(&network).source(SourceChoice::Xdp).open();
        assert!(matches!(refused, Err(Error::Busy { program: Some(_), .. })), "{refused:?}");
        for source in [SourceChoice::Auto, SourceChoice::AfXdp] {
            let refused = on_rx(&network).source(source).mode(Mode::Exclusive).open();
            assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
        }

        // For received packets of a port without addresses `auto` would take xdp, and says why it does not.
        let mut capture = on_rx(&network).direction(Direction::In).open().unwrap();
        let interface = &capture.interfaces()[0];
        assert_eq!(interface.source, SourceKind::Tc);
        let why = &interface.why;
        assert!(
            why.contains("another XDP program is attached to `rx0` (id ") && why.contains("`pass_all`"),
            "{why}"
        );
        let holder = format!("; process {}: ", std::process::id());
        assert!(why.contains(&holder), "{why}");
        let sender = FrameSender::new(&network.pair().tx).unwrap();
        let mut packets = 0;
        take_of(&mut capture, || sender.send_frames(&frames).unwrap(), |chunk| packets += chunk.len());
        assert_eq!(packets, 5);
    });
    assert_eq!(theirs.packets(), 5, "their program still runs");
}

#[root_test]
fn root_auto_does_not_disturb_an_interface_that_the_host_uses() {
    for (veth, received, both) in [
        (Veth::default(), SourceKind::Xdp, SourceKind::Tc),
        (Veth::default().ipv4(), SourceKind::Tc, SourceKind::Tc),
    ] {
        let network = Network::new(veth).unwrap();
        network.rx().run(|| {
            for (direction, source) in [(Direction::In, received), (Direction::Both, both)] {
                let capture = on_rx(&network).direction(direction).open().unwrap();
                assert_eq!(capture.interfaces()[0].source, source, "{:?}", capture.interfaces()[0]);
            }
        });
    }
}

/// veth with GRO goes on receiving while a program is taken off, and may give the program a packet of no interface then: to look
/// at which one it is would be the end of the kernel.
#[root_test]
fn root_captures_come_and_go_while_packets_arrive() {
    let network = Network::new(Veth::default()).unwrap();
    let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..500);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let sender = FrameSender::new(&network.pair().tx).unwrap();
            let (frames, over) = (&frames, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let _no_room = sender.send_frames(frames);
                }
            });
        }
        network.rx().run(|| {
            for round in 0..24 {
                let filter = (round % 2 == 1).then(|| Filter::new("ip6 and udp port 7 or ifindex 1"));
                let builder =
                    filter.into_iter().fold(on_rx(&network).source(SourceChoice::Xdp), Builder::filter);
                let mut capture = builder.open().unwrap();
                drop(capture.next(Duration::from_millis(5)).unwrap());
                capture.stop().unwrap();
            }
        });
        over.store(true, Ordering::Relaxed);
    });
}

each_way!(an_interface_that_goes_is_told_and_what_was_captured_is_there);

fn an_interface_that_goes_is_told_and_what_was_captured_is_there(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..100);
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        FrameSender::new(&network.pair().tx).unwrap().send_frames(&frames).unwrap();
        wait_for(&mut capture, |account| account.total().captured == 100);
        let name = &network.pair().rx.name;
        assert!(Command::new("ip").args(["link", "del", name]).status().unwrap().success());
        let began = Instant::now();
        let mut packets = 0;
        let error = loop {
            match capture.next(Duration::from_millis(100)) {
                Ok(next) => packets += next.taken().map_or(0, |chunk| chunk.len()),
                Err(error) => break error,
            }
            assert!(began.elapsed() < PATIENCE, "{source:?}: nobody noticed");
        };
        assert!(matches!(error, Error::InterfaceGone { .. } | Error::InterfaceDown { .. }), "{error:?}");
        capture.stop().unwrap();
        while let Some(chunk) = capture.next(Duration::ZERO).unwrap().taken() {
            packets += chunk.len();
        }
        assert_eq!(packets, 100, "{source:?}: {:?}", capture.stats());
    });
}

#[root_test]
fn root_absurd_wishes_are_answered() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let xdp = || on_rx(&network).source(SourceChoice::Xdp);
        assert!(matches!(xdp().chunks(1).open(), Err(Error::Shape(_))));
        assert!(matches!(xdp().chunk_size(0).open(), Err(Error::Shape(_))));
        assert!(matches!(xdp().chunk_size(u32::MAX).open(), Err(Error::Shape(_))));
        assert!(matches!(xdp().chunks(1 << 20).open(), Err(Error::Memory { .. })));
        assert!(matches!(xdp().snap_len(0).open(), Err(Error::Setting { setting: Setting::SnapLen, .. })));
        assert!(matches!(xdp().direction(Direction::Out).open(), Err(Error::Conflict { .. })));
        let both = on_rx(&network).source(SourceChoice::AfPacket).mode(Mode::Exclusive).open();
        assert!(matches!(both, Err(Error::Conflict { .. })));
        for source in [SourceChoice::Tc, SourceChoice::XdpTc] {
            let exclusive = on_rx(&network).source(source).mode(Mode::Exclusive).open();
            assert!(matches!(exclusive, Err(Error::Conflict { .. })));
        }
        let af_xdp = || on_rx(&network).source(SourceChoice::AfXdp);
        assert!(
            matches!(af_xdp().open(), Err(Error::Conflict { .. })),
            "it would take the host's traffic away"
        );
        let sent = af_xdp().mode(Mode::Exclusive).direction(Direction::Out).open();
        assert!(matches!(sent, Err(Error::Conflict { .. })));
        let all = weir::Capture::builder().interface("any").source(SourceChoice::AfXdp).open();
        assert!(matches!(all, Err(Error::Unsupported { .. })), "{all:?}");
        assert!(matches!(af_xdp().mode(Mode::Exclusive).chunks(1).open(), Err(Error::Shape(_))));
        for source in [SourceChoice::Xdp, SourceChoice::XdpTc, SourceChoice::AfPacket, SourceChoice::AfXdp] {
            let segmented = on_rx(&network).source(source).segment(true).open();
            assert!(matches!(segmented, Err(Error::Conflict { .. })));
        }
        let segmented = weir::Capture::builder().interface("any").segment(true).open();
        assert!(matches!(segmented, Err(Error::Conflict { .. })), "{segmented:?}");
        let twice = weir::Capture::builder().interface("lo").source(SourceChoice::XdpTc).open();
        assert!(matches!(twice, Err(Error::Conflict { .. })), "{twice:?}");
        let segmented = on_rx(&network).mode(Mode::Exclusive).segment(true).open();
        assert!(matches!(segmented, Err(Error::Conflict { .. })));
        for way in [Direction::In, Direction::Out] {
            let one = on_rx(&network).source(SourceChoice::XdpTc).direction(way).open();
            assert!(matches!(one, Err(Error::Conflict { .. })));
        }
        let twice = on_rx(&network).interface(&network.pair().rx.name).open();
        assert!(matches!(twice, Err(Error::InterfaceTwice { .. })));
        assert!(matches!(weir::Capture::builder().open(), Err(Error::NoInterface)));
        Command::new("ip").args(["link", "set", &network.pair().rx.name, "down"]).status().unwrap();
        assert!(matches!(on_rx(&network).open(), Err(Error::InterfaceDown { .. })));
    });
}
