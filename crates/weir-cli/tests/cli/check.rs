//! `weir count --check`: test traffic whose fate the test decides.

use std::net::UdpSocket;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_lab::{FrameSender, Network, Traffic, Veth, root_test};
use weir_traffic::Signature;

use crate::harness::{Ended, arrive, directory, network, path, root_tests, run, start, start_quietly, weir};
use crate::signed::signed;

/// Sends frames of stream 7 as they are made.
struct Source<'a> {
    network: &'a Network,
    traffic: Traffic,
    sender: FrameSender,
}

impl<'a> Source<'a> {
    fn new(network: &'a Network) -> Self {
        let traffic = Traffic::new(64).expect("a size").flows(32).expect("flows").between(network.pair());
        Self { network, traffic, sender: FrameSender::new(&network.pair().tx).expect("a sender") }
    }

    /// Sends frames with these numbers, of one flow, all of which have arrived when this returns. A frame for which `flips`
    /// is true has one bit wrong.
    fn send(&self, flow: u64, sequences: &[u64], flips: impl Fn(u64) -> bool) {
        arrive(self.network.pair(), || {
            for &sequence in sequences {
                let mut frame = signed(&self.traffic, flow, Signature { stream: 7, sequence, time: now() });
                *frame.last_mut().expect("bytes") ^= u8::from(flips(sequence));
                self.sender.send(&frame).expect("a frame");
            }
            sequences.len() as u64
        });
    }

    /// Sends frames without signatures.
    fn send_others(&self, count: u64) {
        arrive(self.network.pair(), || {
            for mut frame in self.traffic.frames(0..count) {
                frame[42..60].fill(0);
                self.sender.send(&frame).expect("a frame");
            }
            count
        });
    }
}

/// The time as signatures say it.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    u64::try_from(since.as_nanos()).expect("not that late")
}

/// The numbers below `sent` without each 50th, of which each 30th comes twice and each 70th after the next one.
fn fates(sent: u64) -> (Vec<u64>, [u64; 3]) {
    let (mut arriving, mut left_out, mut twice, mut swapped) = (Vec::new(), 0, 0, 0);
    for sequence in 0..sent {
        match sequence {
            _ if sequence % 50 == 3 => left_out += 1,
            _ if sequence % 30 == 9 => {
                arriving.extend([sequence, sequence]);
                twice += 1;
            }
            _ if sequence % 70 == 6 => {
                let before = arriving.len() - 1;
                arriving.insert(before, sequence);
                swapped += 1;
            }
            _ => arriving.push(sequence),
        }
    }
    (arriving, [left_out, twice, swapped])
}

fn check(ended: &Ended) -> Value {
    let account = ended.account();
    account.closes();
    let check = account.0["check"].clone();
    let of = |field: &str| check[field].as_u64().unwrap_or_else(|| panic!("no number `{field}`: {check}"));
    let ends = ["intact", "duplicate", "corrupt", "other", "beyond_window", "beyond_streams"];
    assert_eq!(ends.map(of).iter().sum::<u64>(), of("frames"), "{check}");
    assert_eq!(of("frames"), account.number("delivered"), "{check}");
    check
}

fn says(check: &Value, expected: &Value) {
    for (field, expected) in expected.as_object().expect("fields") {
        assert_eq!(&check[field], expected, "{field}: {check}");
    }
}

root_tests! { every_fate_is_told:
    root_every_fate_is_told_xdp("xdp");
    root_every_fate_is_told_tc("tc");
    root_every_fate_is_told_af_packet("af_packet");
}

fn every_fate_is_told(source: &str) {
    const SENT: u64 = 1400;
    let network = network();
    let traffic = Source::new(&network);
    let (arriving, [left_out, twice, swapped]) = fates(SENT);
    assert!(left_out > 20 && twice > 20 && swapped > 10, "{left_out} {twice} {swapped}");
    let flips = |sequence: u64| sequence % 200 == 41;
    let expected = json!({
        "perfect": false, "lost_by_capture": 0, "expected": SENT + 4, "unexpected": 0, "other": 10,
        "intact": SENT - left_out - 7, "missing": left_out + 4, "duplicate": twice, "corrupt": 7,
        "reordered": swapped, "furthest_behind": 1, "unchecked": 0,
    });
    let expect = (SENT + 4).to_string();
    let begin = Instant::now();
    let args = ["count", "-i", "rx0", "--source", source, "--check", "--expect", &expect];
    let running = start(&network, &[&args[..], &["--json"]].concat());
    traffic.send(0, &arriving, flips);
    traffic.send_others(10);
    let ended = running.interrupt().failed(&[
        "test traffic is not as it was sent",
        &format!("{} missing, {twice} duplicate, 7 corrupt", left_out + 4),
    ]);
    let check = check(&ended);
    says(&check, &expected);
    let streams = check["streams"].as_array().expect("a list");
    assert_eq!(streams.len(), 1, "{check}");
    says(
        &streams[0],
        &json!({ "stream": 7, "lowest": 0, "highest": SENT - 1, "missing": left_out, "corrupt": 7 }),
    );
    let latency = &check["latency"];
    let of =
        |field: &str| latency[field].as_u64().unwrap_or_else(|| panic!("no number `{field}`: {latency}"));
    assert_eq!((of("frames"), of("negative")), (SENT - left_out - 7, 0), "{latency}");
    let times = ["min_ns", "p50_ns", "p99_ns", "max_ns"].map(of);
    assert!(times.is_sorted() && u128::from(times[3]) < begin.elapsed().as_nanos(), "{latency}");
    let buckets = check["histogram"].as_array().expect("a list");
    let sum: u64 = buckets.iter().map(|bucket| bucket["frames"].as_u64().expect("a number")).sum();
    assert_eq!(sum, of("frames"), "{check}");

    // The same for people.
    let running = start(&network, &args);
    traffic.send(0, &arriving, flips);
    let text = String::from_utf8(running.interrupt().failed(&["missing"]).stdout).expect("text");
    let words: Vec<&str> = text.split_whitespace().collect();
    let row = format!("7 0 to 1,399 1,365 28 {twice} 7 {swapped}");
    assert!(words.join(" ").contains(&row), "{row}: {text}");
    for part in ["0 other\n", "of 1,404 expected; the capture itself lost nothing\n", "\nlatency\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(['#', '█']), "{text}");
}

#[root_test]
fn root_what_arrives_as_it_was_sent_is_a_success() {
    let network = network();
    let traffic = Source::new(&network);
    let running = start(&network, &["count", "-i", "rx0", "--check", "--expect", "300", "--json"]);
    traffic.send(0, &(0..300).collect::<Vec<_>>(), |_| false);
    let check = check(&running.interrupt().succeeded());
    says(&check, &json!({ "perfect": true, "frames": 300, "intact": 300, "missing": 0, "unexpected": 0 }));
    // Nothing is no success, nor is it more than expected.
    let nothing = ["count", "-i", "rx0", "--check", "--duration", "10ms"];
    run(&network, &nothing)
        .failed(&["no intact frame with a signature arrived", "weir gen --template FILE --sign"]);
    let running = start_quietly(&network, &["count", "-i", "rx0", "--check", "--expect", "299", "-q"]);
    traffic.send(0, &(0..300).collect::<Vec<_>>(), |_| false);
    let ended = running.interrupt().failed(&["1 more than expected"]);
    assert!(ended.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&ended.stdout));
}

#[root_test]
fn root_queues_do_not_overtake_each_other_unless_that_is_asked_for() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let traffic = Source::new(&network);
    let numbers: Vec<u64> = (0..640).collect();
    for (order, in_order) in [(&[][..], true), (&["--order", "none"], false)] {
        let args = [&["count", "-i", "rx0", "--source", "xdp", "--check", "--json"], order].concat();
        let running = start(&network, &args);
        // All of it waits in the pools, with no frame on its way when the next flow begins.
        running.signal(Signal::STOP);
        for (flow, numbers) in (0..).zip(numbers.chunks(20)) {
            traffic.send(flow, numbers, |_| false);
        }
        running.signal(Signal::CONT);
        let ended = running.interrupt().succeeded();
        let queues = ended.account().0["queues"].as_array().expect("a list").clone();
        let busy = queues.iter().filter(|queue| queue["captured"].as_u64() > Some(0)).count();
        assert_eq!(busy, 2, "the flows have to use both queues: {queues:?}");
        let check = check(&ended);
        says(&check, &json!({ "perfect": true, "intact": 640, "missing": 0 }));
        assert_eq!(check["reordered"] == 0, in_order, "{order:?}: {check}");
    }
}

#[root_test]
fn root_what_the_capture_lost_is_told_from_what_the_network_lost() {
    const SENT: u64 = 5000;
    let network = network();
    let traffic = Source::new(&network);
    let small = ["-i", "rx0", "--source", "xdp", "-B", "64KiB", "--chunk-size", "4KiB", "--json"];
    let numbers: Vec<u64> = (0..SENT).filter(|number| number % 10 != 5).collect();
    let expect = SENT.to_string();
    let count = [&["count"], &small[..], &["--check", "--expect", &expect]].concat();
    for (more, status) in [(&[][..], 1), (&["--fail-on-loss"], 3)] {
        let running = start(&network, &[&count[..], more].concat());
        running.signal(Signal::STOP);
        traffic.send(0, &numbers, |_| false);
        running.signal(Signal::CONT);
        let ended = running.interrupt();
        assert_eq!(ended.status.code(), Some(status), "{}", ended.stderr);
        let lost = ended.account().number("lost");
        assert!(lost > 0);
        says(
            &check(&ended),
            &json!({ "lost_by_capture": lost, "missing": lost + SENT / 10, "duplicate": 0, "corrupt": 0 }),
        );
        assert_eq!(ended.stderr.contains("the capture lost them"), status == 1, "{}", ended.stderr);
    }

    // A file remembers it.
    let directory = directory();
    let file = path(&directory, "lossy.pcapng");
    let running = start(&network, &[&["capture", "-w", &file], &small[..]].concat());
    running.signal(Signal::STOP);
    traffic.send(0, &numbers, |_| false);
    running.signal(Signal::CONT);
    let lost = running.interrupt().succeeded().account().number("lost");
    let output =
        weir(&["read", "--check", "--expect", &expect, "--json", &file]).output().expect("weir runs");
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    says(
        &found,
        &json!({ "type": "check", "lost_by_capture": lost, "missing": lost + SENT / 10, "reordered": 0 }),
    );
    assert!(lost > 0);
}

#[root_test]
fn root_checksums_that_a_sender_left_to_its_card_are_not_called_corrupt() {
    let network = Network::new(Veth::default().ipv4()).expect("a private network");
    let socket = network.tx().run(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    let address = network.pair().rx.ipv4.expect("an address");
    for (interface, source) in [("rx0", "xdp"), ("rx0", "tc"), ("any", "af_packet")] {
        let args = ["count", "-i", interface, "--source", source, "--check", "--json", "udp", "port", "9"];
        let running = start(&network, &args);
        arrive(network.pair(), || {
            for sequence in 0..20 {
                let signature = Signature { stream: 1, sequence, time: now() };
                socket.send_to(&signature.to_bytes(), (address, 9)).expect("a datagram");
            }
            20
        });
        let check = check(&running.interrupt().succeeded());
        says(&check, &json!({ "perfect": true, "intact": 20, "unchecked": 20, "corrupt": 0, "other": 0 }));
    }
}

#[test]
fn handlers_cannot_judge_the_order() {
    let ended = weir(&["count", "-i", "lo", "--check", "--handlers", "2"]).output().expect("weir runs");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("omit --handlers"), "{said}");
}
