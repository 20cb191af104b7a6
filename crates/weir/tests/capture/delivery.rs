//! When packets are handed over: at once, in batches, and without processor time when there are none.

use std::time::{Duration, Instant};

use weir::{Delivery, Mode, SourceChoice};
use weir_lab::{FrameSender, Network, Traffic, Veth, require_root};

use crate::on_rx;

const SOURCES: [(SourceChoice, Mode); 4] = [
    (SourceChoice::Xdp, Mode::Pass),
    (SourceChoice::Tc, Mode::Pass),
    (SourceChoice::AfPacket, Mode::Pass),
    (SourceChoice::AfXdp, Mode::Exclusive),
];

#[test]
fn root_a_lone_packet_rings() {
    if !require_root("root_a_lone_packet_rings") {
        return;
    }
    let network = Network::new(Veth::default()).unwrap();
    let frame = Traffic::new(60).unwrap().between(network.pair()).frame(0);
    for (source, mode) in SOURCES {
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
            let sender = FrameSender::new(&network.pair().tx).unwrap();
            let mut waits: Vec<Duration> = (0..20)
                .map(|_| {
                    // Let it fall asleep.
                    assert!(capture.next(Duration::from_millis(30)).unwrap().is_none());
                    let sent = Instant::now();
                    sender.send(&frame).unwrap();
                    let chunk = capture.next(Duration::from_secs(5)).unwrap().expect("the packet arrives");
                    assert_eq!(chunk.len(), 1);
                    sent.elapsed()
                })
                .collect();
            waits.sort_unstable();
            // The benchmark measures how soon; here it must be the bell that wakes, not the end of a wait.
            assert!(waits[10] < Duration::from_millis(20), "{source:?}: {waits:?}");
        });
    }
}

#[test]
fn root_an_idle_capture_takes_no_processor_time() {
    if !require_root("root_an_idle_capture_takes_no_processor_time") {
        return;
    }
    let network = Network::new(Veth::default()).unwrap();
    for (source, mode) in SOURCES {
        network.rx().run(|| {
            let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
            assert!(capture.next(Duration::from_millis(50)).unwrap().is_none());
            let before = thread_time();
            for _ in 0..3 {
                assert!(capture.next(Duration::from_millis(500)).unwrap().is_none());
            }
            let used = thread_time() - before;
            assert!(used < Duration::from_millis(8), "{source:?}: {used:?} of 1.5 s");
        });
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
fn root_batches_wait_for_their_size_or_their_time() {
    if !require_root("root_batches_wait_for_their_size_or_their_time") {
        return;
    }
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
        assert!(capture.next(Duration::from_millis(10)).unwrap().is_none());
        sender.send_frames(&traffic.frames(0..10)).unwrap();
        assert!(capture.next(Duration::from_millis(300)).unwrap().is_none(), "ten packets are no batch");
        sender.send_frames(&traffic.frames(10..200)).unwrap();
        let chunk = capture.next(Duration::from_secs(5)).unwrap().expect("a batch is there");
        assert!(chunk.bytes().len() >= 16 << 10);
        drop(capture);

        let mut capture = open(batched(1 << 20, Duration::from_millis(100)));
        assert!(capture.next(Duration::from_millis(10)).unwrap().is_none());
        sender.send_frames(&traffic.frames(0..10)).unwrap();
        let began = Instant::now();
        let chunk = capture.next(Duration::from_secs(5)).unwrap().expect("the time-out hands them over");
        assert_eq!(chunk.len(), 10);
        assert!(began.elapsed() < Duration::from_secs(2));
        drop((chunk, capture));

        let mut capture = open(Delivery::Active);
        sender.send_frames(&traffic.frames(0..1)).unwrap();
        assert_eq!(capture.next(Duration::from_secs(5)).unwrap().expect("it is there").len(), 1);
        assert!(capture.next(Duration::from_millis(20)).unwrap().is_none());
    });
}
