//! Captures in event loops, stopped and looked at from elsewhere.

use std::os::fd::AsFd;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::gettid;
use weir::{Capture, CaptureStats, Change, Chunk, Delivery, Mode, Next, SourceChoice, Window};
use weir_lab::{FrameSender, Generator, Network, SequenceCheck, Traffic, Veth, root_test};

use crate::common::{PATIENCE, example, used, wait_until, wait_until_asleep};
use crate::{assert_closed, on_rx};

/// Waits for the descriptor. Whether it is readable.
fn is_readable(capture: &impl AsFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).unwrap();
    poll(&mut [PollFd::new(capture, PollFlags::IN)], Some(&wait)).unwrap() > 0
}

/// Asks until there is nothing more and the descriptor says so. What came.
fn settle(capture: &mut Capture) -> Vec<Chunk> {
    let (mut chunks, began) = (Vec::new(), Instant::now());
    loop {
        assert!(is_readable(capture, PATIENCE), "it is readable until it has said that there is nothing");
        while let Some(chunk) = capture.try_next().unwrap().taken() {
            chunks.push(chunk);
        }
        // It looks again within a millisecond, and then sleeps until the next second.
        if !is_readable(capture, Duration::from_millis(50)) {
            return chunks;
        }
        assert!(began.elapsed() < PATIENCE, "it is readable again and again");
    }
}

each_way!(whoever_polls_gets_each_packet);

fn whoever_polls_gets_each_packet(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 5_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        let mut check = SequenceCheck::new(&traffic, 0..COUNT);
        assert!(settle(&mut capture).is_empty());
        // One by one: each of them rings.
        let mut sent = 0;
        while sent < 20 {
            sent += generator.send(1).unwrap().accepted;
            assert!(is_readable(&capture, PATIENCE), "{source:?}: {:?}", capture.stats());
            let chunks = settle(&mut capture);
            assert_eq!(chunks.iter().map(Chunk::len).sum::<usize>(), 1, "{source:?}");
            chunks.iter().flat_map(Chunk::packets).for_each(|packet| check.frame(packet.data));
        }
        // And all the others at once.
        let sender = thread::spawn(move || generator.send(COUNT - sent).unwrap());
        let (mut packets, began) = (sent, Instant::now());
        while packets < COUNT {
            assert!(began.elapsed() < PATIENCE, "{source:?}: {packets} {:?}", capture.stats());
            assert!(is_readable(&capture, PATIENCE), "{source:?}: {packets} {:?}", capture.stats());
            while let Some(chunk) = capture.try_next().unwrap().taken() {
                packets += chunk.len() as u64;
                chunk.packets().for_each(|packet| check.frame(packet.data));
            }
        }
        sender.join().unwrap();
        let report = check.finish();
        assert!(report.is_perfect(), "{source:?}: {report:?}");
        capture.stop().unwrap();
        let last = capture.try_next().unwrap();
        assert!(matches!(last, Next::Over), "{source:?}: {last:?}");
        assert!(is_readable(&capture, Duration::ZERO), "whoever waits hears that it is over");
        assert_closed(&capture.stats().unwrap());
    });
}

each_way!(asking_never_sleeps_and_an_idle_loop_takes_no_processor_time);

fn asking_never_sleeps_and_an_idle_loop_takes_no_processor_time(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        settle(&mut capture);
        let before = used();
        for _ in 0..2_000 {
            assert!(matches!(capture.try_next().unwrap(), Next::NotYet));
        }
        let sleeps = used().1 - before.1;
        assert!(sleeps < 20, "{source:?}: asked 2000 times it slept {sleeps} times");
        let (before, began, mut looks) = (used(), Instant::now(), 0);
        while began.elapsed() < Duration::from_millis(1_250) {
            is_readable(&capture, Duration::from_secs(1));
            assert!(capture.try_next().unwrap().taken().is_none());
            looks += 1;
        }
        let time = used().0 - before.0;
        assert!(looks < 10 && time < Duration::from_millis(50), "{source:?}: {looks} looks, {time:?}");
    });
}

each_way!(a_silent_capture_is_stopped_from_elsewhere);

fn a_silent_capture_is_stopped_from_elsewhere(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        let (stop, sleeper) = (capture.stop_handle(), gettid());
        for wait in [0, 10] {
            let next = capture.next(Duration::from_millis(wait)).unwrap();
            assert!(matches!(next, Next::NotYet), "{source:?}: {next:?}");
        }
        generator.send(7).unwrap();
        let mut packets = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                wait_until_asleep(sleeper);
                stop.clone().stop();
            });
            let began = Instant::now();
            loop {
                match capture.next(Duration::MAX).unwrap() {
                    Next::Taken(chunk) => packets += chunk.len(),
                    Next::NotYet => {}
                    Next::Over => break,
                }
                assert!(began.elapsed() < PATIENCE);
            }
        });
        assert!(stop.is_stopped());
        let last = capture.next(Duration::MAX).unwrap();
        assert!(matches!(last, Next::Over), "nothing comes any more: {last:?}");
        let account = capture.stats().unwrap();
        assert_eq!((packets, account.total().delivered), (7, 7), "{source:?}");
        assert_closed(&account);
        drop(capture);
        stop.stop();
    });
}

#[root_test]
fn root_an_event_loop_hears_of_the_order_to_stop() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).open().unwrap();
        let mut last = capture.observer();
        settle(&mut capture);
        let stop = capture.stop_handle();
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(20));
                stop.stop();
            });
            loop {
                match capture.try_next().unwrap() {
                    Next::Taken(chunk) => panic!("{} packets from nowhere", chunk.len()),
                    Next::NotYet => assert!(is_readable(&capture, PATIENCE)),
                    Next::Over => break,
                }
            }
        });
        assert!(last.events().is_empty());
    });
}

#[root_test]
fn root_batches_and_packets_by_time_wake_an_event_loop_when_they_are_due() {
    let network = Network::new(Veth::default()).unwrap();
    let frame = Traffic::new(60).unwrap().between(network.pair()).frame(0);
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    let time = Duration::from_millis(300);
    let batched = Delivery::Batched { min_bytes: 1 << 20, timeout: time };
    network.rx().run(|| {
        for builder in [on_rx(&network).delivery(batched), on_rx(&network).by_time(Window::Of(time))] {
            let mut capture = builder.open().unwrap();
            assert!(capture.try_next().unwrap().taken().is_none());
            let sent = Instant::now();
            sender.send(&frame).unwrap();
            let (mut packets, mut looks) = (0, 0);
            while packets == 0 {
                assert!(is_readable(&capture, PATIENCE), "{:?}", capture.stats());
                packets += capture.try_next().unwrap().taken().map_or(0, |chunk| chunk.len());
                looks += 1;
            }
            assert!(sent.elapsed() < PATIENCE);
            // A batch is due within the time, whenever it began.
            assert!(looks < 20, "it was woken {looks} times for a packet");
        }
    });
}

#[root_test]
fn root_observers_see_what_the_capture_sees_and_hold_nothing_open() {
    let network = Network::new(Veth::default()).unwrap();
    let name = network.pair().rx.name.clone();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(SourceChoice::Xdp).open().unwrap();
        let mut observer = capture.observer();
        let mut early = observer.clone();
        let ip = |state| {
            let status = std::process::Command::new("ip").args(["link", "set", &name, state]).status();
            assert!(status.unwrap().success());
        };
        generator.send(9).unwrap();
        let mut packets = 0;
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let seen = |account: CaptureStats| account.total().delivered;
                wait_until(|| seen(observer.stats().unwrap()) == 9, || "9 packets are not seen".to_owned());
                ip("down");
                let mut events = Vec::new();
                let heard = || {
                    events.extend(observer.events());
                    !events.is_empty()
                };
                wait_until(heard, || "nobody hears of it".to_owned());
                events
            });
            while !other.is_finished() {
                packets +=
                    capture.next(Duration::from_millis(100)).unwrap().taken().map_or(0, |chunk| chunk.len());
            }
            let events = other.join().unwrap();
            assert_eq!(events[0].change, Change::Down);
            assert_eq!(capture.events(), events);
            assert_eq!(early.events(), events, "each hears of it");
        });
        assert_eq!(packets, 9);
        // Dropped, the capture takes its program along, whoever looks on.
        ip("up");
        drop(capture);
        on_rx(&network).source(SourceChoice::Xdp).open().expect("the interface is free");
        let last = early.stats().unwrap();
        assert_eq!((last.total().delivered, last.interfaces.len()), (9, 1));
        assert_eq!(early.stats().unwrap().elapsed, last.elapsed);
    });
}

#[root_test]
fn root_the_tokio_example_captures_and_stops_at_once() {
    let network = Network::new(Veth::default()).unwrap();
    let name = network.pair().rx.name.clone();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    let mut child =
        network.rx().run(|| example("tokio").arg(&name).stdout(Stdio::piped()).spawn().expect("it starts"));
    let pid = Pid::from_child(&child);
    // Once it sleeps it has opened its capture, and has handled signals since before that.
    wait_until_asleep(pid);
    let before = sleeps(pid);
    generator.send(1000).unwrap();
    wait_until(|| sleeps(pid) > before, || "the packets do not wake it".to_owned());
    wait_until_asleep(pid);
    kill_process(pid, Signal::INT).unwrap();
    let began = Instant::now();
    wait_until(|| child.try_wait().unwrap().is_some(), || "it goes on".to_owned());
    assert!(began.elapsed() < PATIENCE);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [taken, captured, 0] if taken == captured && taken > 0), "{text}");
}

/// Returns how often a thread has gone to sleep.
fn sleeps(thread: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", thread.as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("the kernel counts them")
}
