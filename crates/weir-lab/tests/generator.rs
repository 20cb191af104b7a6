//! The generator, counted by the smallest possible receiver.

use std::time::{Duration, Instant};
use std::{iter, thread};

use weir_lab::{Action, Error, Generator, Hook, Network, Rate, Traffic, Veth, root_test};

const PATIENCE: Duration = Duration::from_secs(30);

#[root_test]
fn root_every_frame_that_was_accepted_arrives() {
    let network = Network::new(Veth::default().queues(2)).expect("network");
    let pair = network.pair();
    for (size, flows, cpu) in [(60, 1, 0), (60, 1000, 1), (256, 7, 0), (1514, 3, 1), (1514, 1, 0)] {
        let hook = Hook::attach(&pair.rx, Action::Drop).expect("hook");
        let traffic = Traffic::new(size).expect("size").flows(flows).expect("flows").between(pair);
        let mut generator = Generator::new(pair, &traffic).expect("generator").cpu(cpu);
        let mut accepted = 0;
        for count in [1, 63, 100_000, 65_537] {
            let report = generator.send(count).expect("send");
            assert_eq!(report.sent(), count);
            assert_eq!(report.accepted + report.refused, count);
            accepted += report.accepted;
            assert_eq!(hook.wait_for(accepted, PATIENCE), accepted, "{count} frames of {size} bytes");
        }
        let queue = usize::try_from(generator.queue()).expect("queue");
        assert_eq!(hook.by_queue()[queue], accepted, "all on the CPU's queue");
    }
}

#[root_test]
fn root_two_generators_fill_two_queues_at_the_same_time() {
    let network = Network::new(Veth::default().queues(2)).expect("network");
    let pair = network.pair();
    let hook = Hook::attach(&pair.rx, Action::Drop).expect("hook");
    let traffic = Traffic::new(60).expect("size").between(pair);
    let send = |cpu| {
        let generator = Generator::numbered_from(u64::from(cpu) * 1_000_000, pair, &traffic);
        generator.expect("generator").cpu(cpu).send(500_000).expect("send").accepted
    };
    let accepted = thread::scope(|scope| {
        let second = scope.spawn(|| send(1));
        [send(0), second.join().expect("no panic")]
    });
    hook.wait_for(accepted.iter().sum(), PATIENCE);
    assert_eq!(hook.by_queue(), accepted);
}

#[root_test]
fn root_numbers_go_on_from_call_to_call() {
    let network = Network::new(Veth::default()).expect("network");
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut generator = Generator::numbered_from(500, network.pair(), &traffic).expect("generator");
    assert_eq!(generator.send(10).expect("send").sequences, 500..510);
    assert_eq!(generator.send(0).expect("send").sequences, 510..510);
    assert_eq!(generator.send(100_000).expect("send").sequences, 510..100_510);
}

#[root_test]
fn root_a_rate_is_kept() {
    let network = Network::new(Veth::default()).expect("network");
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut full = Generator::new(network.pair(), &traffic).expect("generator");
    for rate in [1_000, 100_000, 1_000_000] {
        let generator = Generator::new(network.pair(), &traffic).expect("generator");
        let mut generator = generator.rate(Rate::PerSecond(rate)).expect("rate");
        // A busy machine may delay the last burst of an attempt, or be too slow for the rate, but nothing makes it
        // early.
        let reached = retry(|| {
            let reached = generator.send(rate / 5).expect("send").rate();
            assert!(reached < 1.1 * rate as f64, "{reached} instead of {rate} frames a second");
            reached > 0.5 * rate as f64 || reached > 0.5 * full.send(rate / 5).expect("send").rate()
        });
        assert!(reached, "{rate} frames a second are never reached");
    }
}

#[root_test]
fn root_time_is_kept() {
    let network = Network::new(Veth::default()).expect("network");
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let time = Duration::from_millis(200);
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    let in_time = retry(|| {
        let elapsed = generator.send_for(time).expect("send").elapsed;
        assert!(elapsed >= time, "{elapsed:?}");
        elapsed < 5 * time
    });
    assert!(in_time, "it never ends in time");
}

/// Repeats until it succeeds, on a machine that may be busy.
fn retry(is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    iter::repeat_with(is_so).take_while(|_| start.elapsed() < PATIENCE).any(|so| so)
}

#[root_test]
fn root_what_cannot_be_sent_says_why() {
    let network = Network::new(Veth::default().mtu(9000)).expect("network");
    let pair = network.pair();
    let traffic = Traffic::new(3400).expect("size").between(pair);
    let report = Generator::new(pair, &traffic).expect("generator").send(1000).expect("send");
    assert_eq!(report.accepted, 1000, "frames longer than Ethernet's are fine");

    let traffic = Traffic::new(4000).expect("size").between(pair);
    let error = Generator::new(pair, &traffic).expect("generator").send(1).expect_err("too long");
    assert!(matches!(error, Error::TooLongForLiveFrames { size: 4000 }), "{error}");

    let traffic = Traffic::new(60).expect("size").between(pair);
    let error = Generator::new(pair, &traffic).expect("generator").cpu(900).send(1).expect_err("no such CPU");
    assert!(error.to_string().contains("CPU 900"), "{error}");
}

#[root_test]
fn root_a_receiver_without_napi_is_refused() {
    let network = Network::new(Veth::default().feature("gro", false)).expect("network");
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let error = Generator::new(network.pair(), &traffic).and_then(|mut generator| generator.send(1));
    // Where the kernel does not tell before 6.3, the driver refuses every frame.
    match error {
        Ok(report) => assert_eq!((report.accepted, report.refused), (0, 1)),
        Err(error) => assert!(error.to_string().contains("takes no redirected packets"), "{error}"),
    }
}
