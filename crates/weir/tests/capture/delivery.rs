//! When packets are delivered: at once, in batches, and without using the CPU while there are none.

use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use weir::{Delivery, Mode, SourceChoice};
use weir_lab::{FrameSender, Network, Traffic, Veth, root_test};

use crate::common::{PATIENCE, used, wait_for, wait_until_asleep};
use crate::on_rx;

each_way!(a_lone_packet_rings);

fn a_lone_packet_rings(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let frame = Traffic::new(60).unwrap().between(network.pair()).frame(0);
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        let sleeper = gettid();
        for _ in 0..5 {
            let began = Instant::now();
            let chunk = thread::scope(|scope| {
                scope.spawn(|| {
                    wait_until_asleep(sleeper);
                    sender.send(&frame).unwrap();
                });
                capture.next(3 * PATIENCE).unwrap().taken().expect("the packet arrives")
            });
            assert_eq!(chunk.len(), 1);
            // The benchmark measures how soon; here it must be the notifier that wakes, not the end of the wait.
            assert!(began.elapsed() < 2 * PATIENCE, "{source:?}: {:?}", began.elapsed());
        }
    });
}

each_way!(an_idle_capture_takes_no_processor_time);

fn an_idle_capture_takes_no_processor_time(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        assert!(capture.next(Duration::from_millis(50)).unwrap().taken().is_none());
        let before = used();
        for _ in 0..2 {
            assert!(capture.next(Duration::from_millis(300)).unwrap().taken().is_none());
        }
        let after = used();
        let (time, sleeps) = (after.0 - before.0, after.1 - before.1);
        // Each wait is one sleep, with a short one before it at most; whoever spins takes a good part of the 600 ms.
        assert!(sleeps < 10 && time < Duration::from_millis(60), "{source:?}: {sleeps} sleeps, {time:?}");
    });
}

#[root_test]
fn root_batches_wait_for_their_size_or_their_time() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let batched = |min_bytes, timeout| Delivery::Batched { min_bytes, timeout };
    network.rx().run(|| {
        let sender = FrameSender::new(&network.pair().tx).unwrap();
        let open = |delivery| {
            on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive).delivery(delivery).open().unwrap()
        };
        // Each record has 92 bytes: ten are too few, two hundred enough.
        let mut capture = open(batched(16 << 10, Duration::from_secs(60)));
        // The first look is due at once; the batches begin behind it.
        assert!(capture.next(Duration::from_millis(10)).unwrap().taken().is_none());
        sender.send_frames(&traffic.frames(0..10)).unwrap();
        wait_for(&mut capture, |account| account.total().captured == 10);
        assert!(
            capture.next(Duration::from_millis(50)).unwrap().taken().is_none(),
            "ten packets are no batch"
        );
        sender.send_frames(&traffic.frames(10..200)).unwrap();
        let chunk = capture.next(PATIENCE).unwrap().taken().expect("a batch is there");
        assert!(chunk.bytes().len() >= 16 << 10);
        drop(capture);

        let mut capture = open(batched(1 << 20, Duration::from_millis(100)));
        assert!(capture.next(Duration::from_millis(10)).unwrap().taken().is_none());
        sender.send_frames(&traffic.frames(0..10)).unwrap();
        wait_for(&mut capture, |account| account.total().captured == 10);
        let began = Instant::now();
        let chunk = capture.next(3 * PATIENCE).unwrap().taken().expect("the time-out hands them over");
        assert_eq!(chunk.len(), 10);
        // Not the end of the wait.
        assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
        drop((chunk, capture));

        let mut capture = open(Delivery::Active);
        sender.send_frames(&traffic.frames(0..1)).unwrap();
        assert_eq!(capture.next(PATIENCE).unwrap().taken().expect("it is there").len(), 1);
        assert!(capture.next(Duration::from_millis(20)).unwrap().taken().is_none());
    });
}
