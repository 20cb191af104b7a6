//! Frames that the kernel makes itself: all arrive, in order, and are counted exactly.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use weir::ErrorKind;
use weir::send::{Due, LiveFrames, SendQueue, SendReason, Sender};
use weir_lab::{Action, Hook, LinkCounters, Network, Veth, root_test};
use weir_sys::ethtool::Ethtool;
use weir_sys::kernel;
use weir_traffic::{Description, Signature, Sizes, Tables};

use crate::{PATIENCE, Tcpdump, bytes, ip, network};

const STREAM: u16 = 0x0102;

fn tables(flows: u32, sizes: Sizes) -> Tables {
    Tables::new(&Description { flows, sizes: Some(sizes), ..Description::new(false) }).unwrap()
}

fn generator(network: &Network, sizes: Sizes) -> Result<LiveFrames, weir::Error> {
    network.tx().run(|| Sender::to("tx0").live(&tables(1, sizes), STREAM))
}

/// All `frames`, as fast as possible.
fn at_once(frames: u64) -> impl FnMut(u64, Duration) -> Due {
    move |made, _| if made < frames { Due::Now(frames - made) } else { Due::Over }
}

/// The same in bursts of up to a hundred, which find room at the other end: each waits until the one before is there.
fn in_bursts(network: &Network, frames: u64) -> impl FnMut(u64, Duration) -> Due {
    let rx = network.pair().rx.clone();
    let before = LinkCounters::read(&rx).unwrap().rx_packets;
    let mut last = (0, Duration::ZERO);
    move |made, elapsed| {
        if last.0 != made {
            last = (made, elapsed);
        }
        let came = LinkCounters::read(&rx).unwrap().rx_packets - before;
        match frames - made {
            _ if came < made => {
                assert!(elapsed - last.1 < PATIENCE, "{came} of {made} frames came");
                Due::In(Duration::from_micros(100))
            }
            0 => Due::Over,
            left => Due::Now(left.min(100)),
        }
    }
}

#[root_test]
fn root_live_packets_of_a_queue_arrive_in_turn() {
    /// They fill several blocks.
    const PACKETS: u64 = 700;
    const ROUNDS: u64 = 9;
    let network = network();
    let tables = tables(3, Sizes::Range(60, 1514));
    let mut queue = SendQueue::new();
    let mut packet = Vec::new();
    for number in 0..PACKETS {
        tables.write(number, number, STREAM, &mut packet);
        queue.push_timeless(&packet);
    }
    let mut live = network.tx().run(|| Sender::to("tx0").live_queue(&queue)).unwrap();
    let tcpdump = Tcpdump::start(&network, usize::try_from(ROUNDS * PACKETS).unwrap());
    let report = network.tx().run(|| live.run(0, in_bursts(&network, ROUNDS * PACKETS))).unwrap();
    let received = bytes(tcpdump.received());
    assert_eq!((report.made.packets, report.sent), (ROUNDS * PACKETS, ROUNDS * PACKETS));
    assert_eq!(report.made.bytes, ROUNDS * queue.bytes() as u64);
    let all: Vec<&[u8]> = queue.iter().map(|(_, packet)| packet).collect();
    for (number, packet) in received.iter().enumerate() {
        assert_eq!(packet, all[number % all.len()], "{number}");
    }
    let nothing = network.tx().run(|| Sender::to("tx0").live_queue(&SendQueue::new())).unwrap_err();
    assert!(nothing.to_string().contains("there are no packets"), "{nothing}");
}

#[root_test]
fn root_live_frames_arrive_in_order() {
    const FRAMES: u64 = 20_000;
    let network = network();
    let tables = tables(3, Sizes::Imix);
    let mut live = network.tx().run(|| Sender::to("tx0").live(&tables, STREAM)).unwrap();
    let first = (1 << 40) + 3;
    let tcpdump = Tcpdump::start(&network, usize::try_from(FRAMES).unwrap());
    let report = network.tx().run(|| live.run(first, in_bursts(&network, FRAMES))).unwrap();
    let received = bytes(tcpdump.received());
    assert_eq!((report.made.packets, report.sent, report.stopped), (FRAMES, FRAMES, false));
    assert_eq!(report.made.bytes, received.iter().map(|frame| frame.len() as u64).sum::<u64>());
    let mut expected = Vec::new();
    for (number, frame) in (first..).zip(&received) {
        let signature = Signature::from_bytes(&frame[tables.head_length..]).expect("a signature");
        tables.write(number, signature.time, STREAM, &mut expected);
        assert_eq!(frame, &expected, "{number}");
    }
}

#[root_test]
fn root_live_frames_are_counted_exactly() {
    let network = network();
    let hook = Hook::attach(&network.pair().rx, Action::Drop).unwrap();
    let mut live = generator(&network, Sizes::Fixed(60)).unwrap();
    let mut all = 0;
    for frames in [0, 1, 64, 65, 65_537, 500_000] {
        let report = network.tx().run(|| live.run(all, at_once(frames))).unwrap();
        assert_eq!((report.made.packets, report.made.bytes, report.sent), (frames, 60 * frames, frames));
        all += frames;
        assert_eq!(hook.wait_for(all, PATIENCE), all);
    }

    let flag = live.stop_flag();
    let (report, stopper) = thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            flag.store(true, Ordering::Relaxed);
        });
        let run = network.tx().run(|| live.run(all, |_, _| Due::Now(u64::MAX)));
        (run.unwrap(), stopper.join())
    });
    stopper.unwrap();
    assert!(report.stopped && report.made.packets > 0 && report.sent == report.made.packets, "{report:?}");
    all += report.made.packets;
    assert_eq!(hook.wait_for(all, PATIENCE), all);
}

#[root_test]
fn root_live_frames_need_a_driver_that_takes_them() {
    const REFUSED: &str = "cannot send live frames: its driver takes no redirected packets";
    let deaf = Network::new(Veth::default().feature("gro", false)).unwrap();
    if kernel::version() < (6, 3) {
        // Nobody tells: the other end is out of sight.
        let mut live = generator(&deaf, Sizes::Fixed(60)).unwrap();
        let report = deaf.tx().run(|| live.run(0, at_once(100))).unwrap();
        assert!(!live.is_known_to_work());
        assert_eq!((report.made.packets, report.sent), (100, 0));
    } else {
        let refused = generator(&deaf, Sizes::Fixed(60)).unwrap_err();
        assert_eq!(refused.to_string(), format!("interface `tx0`: {REFUSED}"));
    }
    // In sight it tells on any kernel.
    ip(deaf.tx(), "link add near type veth peer name far");
    ["near", "far"].iter().for_each(|end| ip(deaf.tx(), &format!("link set {end} up")));
    let near = || deaf.tx().run(|| Sender::to("near").live(&tables(1, Sizes::Fixed(60)), STREAM));
    let refused = near().unwrap_err();
    assert!(refused.to_string().ends_with(REFUSED), "{refused}");
    deaf.tx().run(|| Ethtool::new().unwrap().set_features("far", &[("rx-gro", true)])).unwrap();
    assert!(near().unwrap().is_known_to_work());
    let network = network();
    let refused = generator(&network, Sizes::Fixed(1515)).unwrap_err();
    assert!(
        refused.to_string().contains("a packet has 1515 bytes; the interface takes up to 1514"),
        "{refused}"
    );
    ip(network.tx(), "link set tx0 down");
    assert_eq!(generator(&network, Sizes::Fixed(60)).unwrap_err().kind(), ErrorKind::InterfaceDown);
}

#[root_test]
fn root_live_frames_say_how_many_went_out_before_an_error() {
    for (change, reason) in [("link set tx0 down", SendReason::Down), ("link del tx0", SendReason::Gone)] {
        let network = network();
        let hook = Hook::attach(&network.pair().rx, Action::Drop).unwrap();
        let mut live = generator(&network, Sizes::Fixed(60)).unwrap();
        let mut is_changed = false;
        let due = |made, _| {
            if made > 100_000 && !is_changed {
                is_changed = true;
                assert!(Command::new("ip").args(change.split(' ')).status().unwrap().success());
            }
            Due::Now(u64::MAX)
        };
        let error = network.tx().run(|| live.run(0, due)).unwrap_err();
        assert_eq!(error.reason, reason);
        assert!(error.sent.packets > 100_000 && hook.packets() <= error.sent.packets, "{error:?}");
    }
}
