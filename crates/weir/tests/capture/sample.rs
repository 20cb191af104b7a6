//! Sampling: exactly every n-th packet of a queue, a random share of the packets, or of the flows. What is captured is part
//! of what a capture without sampling has, byte for byte.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::UdpSocket;
use std::ops::RangeInclusive;

use weir::{Builder, CaptureStats, Direction, Filter, Mode, Sample, SourceChoice, Steer};
use weir_lab::{FrameSender, Generator, Network, StackCounters, Traffic, Veth, root_test, tcp_transfer};

use crate::common::{drain, take, wait_for};
use crate::{assert_closed, on_rx};

/// Probability that a test of chance fails although all is right: the confidence is 99.9999 %.
const ERROR: f64 = 1e-6;

/// The numbers of successes in `n` independent trials with probability `p`, of which no smaller and no larger one occurs
/// with a probability of more than [`ERROR`]: quantiles of the binomial distribution.
fn likely(n: usize, p: f64) -> RangeInclusive<usize> {
    let mut factorials = vec![0.0];
    for i in 1..=n {
        factorials.push(factorials[i - 1] + (i as f64).ln());
    }
    let probability = |k: usize| {
        let choices = factorials[n] - factorials[k] - factorials[n - k];
        (choices + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
    };
    // The first number at which the tail is no longer negligible.
    let end = |numbers: &mut dyn Iterator<Item = usize>| {
        let mut tail = 0.0;
        for k in numbers {
            tail += probability(k);
            if tail >= ERROR / 2.0 {
                return k;
            }
        }
        unreachable!("all together are certain")
    };
    end(&mut (0..=n))..=end(&mut (0..=n).rev())
}

#[test]
fn likely_numbers_are_those_of_tables() {
    // By hand: of two coins, no number is unlikely. 2^-21 < 5e-7 < 2^-20.
    assert_eq!(likely(2, 0.5), 0..=2);
    assert_eq!((likely(20, 0.5), likely(21, 0.5)), (0..=20, 1..=20));
    // Near the normal distribution's 4.8916 standard deviations.
    let range = likely(100_000, 0.5);
    assert!(
        (49_224..=49_230).contains(range.start()) && (50_770..=50_776).contains(range.end()),
        "{range:?}"
    );
}

fn sample(text: &str) -> Sample {
    text.parse().expect("a sample")
}

/// What was captured, by queue and in order of arrival.
type Captured = BTreeMap<u32, Vec<Vec<u8>>>;

/// Captures what `send` sends, of which so many packets arrive.
fn captured(builder: Builder, packets: u64, send: impl FnOnce()) -> (Captured, CaptureStats) {
    let mut capture = builder.open().unwrap();
    let mut captured = Captured::new();
    let mut look = |chunk: &weir::Chunk| {
        for packet in chunk {
            captured.entry(packet.queue).or_default().push(packet.data.to_vec());
        }
    };
    send();
    take(&mut capture, packets, &mut look);
    drain(&mut capture, |chunk| look(&chunk));
    let account = capture.stats().unwrap();
    assert_closed(&account);
    let total = account.total();
    assert_eq!((total.seen, total.lost, total.errors), (packets, 0, 0), "{account:?}");
    let taken: usize = captured.values().map(Vec::len).sum();
    assert_eq!(taken as u64, total.captured);
    (captured, account)
}

each_way!(every_nth_packet_of_a_queue_is_captured);

fn every_nth_packet_of_a_queue_is_captured(source: SourceChoice, mode: Mode) {
    const EACH: u64 = 1000;
    // XDP with and without a program that is bound to the device.
    let is_xdp = !matches!(source, SourceChoice::Tc | SourceChoice::AfPacket);
    for rxvlan in [true, false].into_iter().take(if is_xdp { 2 } else { 1 }) {
        let network = Network::new(Veth::default().queues(2).feature("rxvlan", rxvlan)).unwrap();
        let traffic = Traffic::new(60).unwrap().flows(2).unwrap().between(network.pair());
        let run = |filter: Option<&str>, part: Option<&str>| {
            let received = || StackCounters::read(&network.pair().rx.netns).unwrap().get("IpInReceives");
            let before = received();
            let (captured, account) = network.rx().run(|| {
                let builder = on_rx(&network).source(source).mode(mode);
                let builder = filter.map(Filter::new).into_iter().fold(builder, Builder::filter);
                let builder = part.map(sample).into_iter().fold(builder, Builder::sample);
                captured(builder, 2 * EACH, || {
                    for cpu in 0..2 {
                        let generator =
                            Generator::numbered_from(u64::from(cpu) * EACH, network.pair(), &traffic);
                        assert_eq!(generator.unwrap().cpu(cpu).send(EACH).unwrap().accepted, EACH);
                    }
                })
            });
            // Only captured packets are taken from the host, and only in exclusive mode.
            let taken = if mode == Mode::Exclusive { account.total().captured } else { 0 };
            assert_eq!(received() - before, 2 * EACH - taken, "{source:?} {account:?}");
            (captured, account)
        };
        for filter in [None, Some("src port 1025")] {
            let (whole, account) = run(filter, None);
            assert_eq!(account.total().sampled_out, 0);
            let matching = if filter.is_some() { EACH } else { 2 * EACH };
            assert_eq!(account.total().captured, matching, "{source:?} {account:?}");
            for n in if filter.is_some() { &[7_usize][..] } else { &[1, 7, 5000] }.iter().copied() {
                let (part, account) = run(filter, Some(&format!("1/{n}")));
                let expected: Captured = whole
                    .iter()
                    .map(|(&queue, packets)| (queue, packets.iter().step_by(n).cloned().collect()))
                    .collect();
                assert!(part == expected, "{source:?} {filter:?} 1/{n}: {account:?}");
                for queue in &account.interfaces[0].queues {
                    let all = whole.get(&queue.queue).map_or(0, Vec::len);
                    let left_out = all - all.div_ceil(n);
                    assert_eq!(queue.counters.sampled_out, left_out as u64, "{source:?} {account:?}");
                }
            }
        }
    }
}

each_way!(a_random_share_is_captured);

fn a_random_share_is_captured(source: SourceChoice, mode: Mode) {
    const COUNT: usize = 20_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let sequence = |frame: &Vec<u8>| {
        let number = u64::from_be_bytes(*frame[44..].first_chunk().unwrap());
        assert_eq!(*frame, traffic.frame(number), "{number}");
        number
    };
    let mut before = Vec::new();
    for (text, p) in [("p=0.05", 0.05), ("p=0.05", 0.05), ("p=0.7", 0.7)] {
        let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
        let (captured, account) = network.rx().run(|| {
            let builder = crate::on_rx_with_room(&network, COUNT as u64, 60).source(source).mode(mode);
            captured(builder.sample(sample(text)), COUNT as u64, || {
                assert_eq!(generator.send(COUNT as u64).unwrap().accepted, COUNT as u64);
            })
        });
        let numbers: Vec<u64> = captured.values().flatten().map(sequence).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "each at most once, in order");
        assert!(likely(COUNT, p).contains(&numbers.len()), "{source:?} {text}: {account:?}");
        // Unlike with every n-th, each part of the sequence has its share.
        for part in 0..4 {
            let some = numbers.iter().filter(|&number| number % 4 == part).count();
            assert!(likely(COUNT / 4, p).contains(&some), "{source:?} {text}: {some} of part {part}");
        }
        assert_ne!(numbers, before, "drawn anew");
        before = numbers;
    }
}

/// The endpoints of UDP in IPv4 without a tag, in both directions the same.
fn flow(frame: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut ends = [(26, 34), (30, 36)]
        .map(|(host, port)| (frame[host..host + 4].to_vec(), frame[port..port + 2].to_vec()));
    ends.sort();
    ends.to_vec()
}

/// The same frame on its way back.
fn turned(frame: &[u8]) -> Vec<u8> {
    let mut back = frame.to_vec();
    for (at, length) in [(0, 6), (26, 4), (34, 2)] {
        let (one, other) = back[at..at + 2 * length].split_at_mut(length);
        one.swap_with_slice(other);
    }
    back
}

each_way!(flows_are_captured_whole_in_both_directions_or_not_at_all);

fn flows_are_captured_whole_in_both_directions_or_not_at_all(source: SourceChoice, mode: Mode) {
    const FLOWS: u32 = 2000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(FLOWS).unwrap().between(network.pair());
    let there = traffic.frames(0..2 * u64::from(FLOWS));
    let back: Vec<_> = there[..FLOWS as usize].iter().map(|frame| turned(frame)).collect();
    let mut sent: HashMap<_, Vec<Vec<u8>>> = HashMap::new();
    there.iter().chain(&back).for_each(|frame| sent.entry(flow(frame)).or_default().push(frame.clone()));
    assert_eq!(sent.len(), FLOWS as usize);
    // XDP does not see what is sent: there both ways arrive.
    let receives_only = matches!(source, SourceChoice::Xdp | SourceChoice::AfXdp);
    let from = if receives_only { &network.pair().tx } else { &network.pair().rx };
    let all = there.len() + back.len();
    let run = |builder: Builder| {
        network.rx().run(|| {
            captured(builder.source(source).mode(mode), all as u64, || {
                let send = |port, frames: &[Vec<u8>]| {
                    let sent = FrameSender::new(port).unwrap().send_frames(frames).unwrap();
                    assert_eq!(sent, frames.len() as u64);
                };
                send(&network.pair().tx, &there);
                send(from, &back);
            })
        })
    };
    let (captured, account) = run(on_rx(&network).sample(sample("flow:1/4")));
    let mut of_flow: HashMap<_, Vec<Vec<u8>>> = HashMap::new();
    captured.into_values().flatten().for_each(|frame| of_flow.entry(flow(&frame)).or_default().push(frame));
    for (flow, frames) in &mut of_flow {
        let sent = sent.get_mut(flow).expect("a flow that was sent");
        frames.sort();
        sent.sort();
        assert_eq!(frames, sent, "{source:?}: all of it");
    }
    assert!(likely(FLOWS as usize, 0.25).contains(&of_flow.len()), "{source:?} {account:?}");

    // Ports beyond the snap length count, too. Otherwise all of these would be one flow.
    let (_, account) = run(on_rx(&network).snap_len(20).sample(sample("flow:1/2")));
    let packets = usize::try_from(account.total().captured).unwrap();
    let flows = packets / 3;
    assert_eq!(packets, flows * 3, "{source:?} {account:?}");
    assert!(likely(FLOWS as usize, 0.5).contains(&flows), "{source:?} {account:?}");
}

each_way!(fragments_are_captured_with_their_flow:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_af_packet(AfPacket, Pass),
    root_af_xdp(AfXdp, Exclusive),
);

fn fragments_are_captured_with_their_flow(source: SourceChoice, mode: Mode) {
    const FLOWS: u16 = 100;
    let network = Network::new(Veth::default().ipv4().ipv6().wire_packets()).unwrap();
    for (any, address) in [("0.0.0.0", "10.77.0.2"), ("::", "fd77::2")] {
        let (captured, account) = network.rx().run(|| {
            let builder = on_rx(&network).source(source).mode(mode).direction(Direction::In);
            // What it takes to find each other is not counted in.
            let builder = builder.filter(Filter::new("udp or ip6 proto 17 or ip6[6] = 44"));
            let mut capture = builder.sample(sample("flow:1/2")).open().unwrap();
            let mut frames = Vec::new();
            network.tx().run(|| {
                for flow in 0..FLOWS {
                    let socket = UdpSocket::bind((any, 20_000 + flow)).unwrap();
                    // Three pieces, and one that is whole.
                    socket.send_to(&[7; 4000], (address, 9)).unwrap();
                    socket.send_to(b"whole", (address, 9)).unwrap();
                }
            });
            wait_for(&mut capture, |account| {
                account.total().captured + account.total().sampled_out >= 4 * u64::from(FLOWS)
            });
            drain(&mut capture, |chunk| frames.extend(chunk.packets().map(|packet| packet.data.to_vec())));
            (frames, capture.stats().unwrap())
        });
        assert_closed(&account);
        // Sent one after the other: four packets of each selected flow follow each other, in one queue.
        let flows = captured.len() / 4;
        assert_eq!(captured.len(), flows * 4, "{source:?} {address}: {account:?}");
        assert!(likely(FLOWS.into(), 0.5).contains(&flows), "{source:?} {address}: {account:?}");
        let whole = captured.iter().filter(|frame| frame.len() < 100).count();
        assert_eq!(whole, flows, "{source:?} {address}: one whole datagram of each flow");
        let orphans: u64 = account.interfaces[0].queues.iter().map(|queue| queue.orphans).sum();
        assert_eq!(orphans, 0, "{source:?} {address}: {account:?}");
    }
}

#[root_test]
fn root_interfaces_select_the_same_flows_and_targets_get_their_share() {
    const FLOWS: u32 = 1000;
    const TARGETS: u32 = 4;
    let mut network = Network::new(Veth::default()).unwrap();
    network.connect(Veth::default()).unwrap();
    let pairs = network.pairs();
    for (source, steered) in
        [(SourceChoice::Xdp, true), (SourceChoice::Tc, false), (SourceChoice::AfPacket, false)]
    {
        let mut flows = [HashSet::new(), HashSet::new()];
        let mut of_target = vec![0; TARGETS as usize];
        network.rx().run(|| {
            let builder = on_rx(&network).interface(&pairs[1].rx.name).source(source);
            let builder = if steered { builder.steer(Steer::Flow, TARGETS) } else { builder };
            let mut capture = builder.sample(sample("flow:1/3")).open().unwrap();
            let mut look = |chunk: &weir::Chunk| {
                for packet in chunk {
                    flows[packet.interface as usize].insert(packet.data[34..36].to_vec());
                    of_target[(packet.queue % TARGETS) as usize] += 1;
                }
            };
            for pair in pairs {
                let traffic = Traffic::new(60).unwrap().flows(FLOWS).unwrap().between(pair);
                let report = Generator::new(pair, &traffic).unwrap().send(FLOWS.into()).unwrap();
                assert_eq!(report.accepted, u64::from(FLOWS));
            }
            take(&mut capture, 2 * u64::from(FLOWS), &mut look);
        });
        assert_eq!(flows[0], flows[1], "{source:?}");
        assert!(likely(FLOWS as usize, 1.0 / 3.0).contains(&flows[0].len()), "{source:?}");
        if steered {
            for twice in of_target {
                let share = likely(flows[0].len(), 1.0 / f64::from(TARGETS));
                assert!(share.contains(&(twice / 2)), "{twice} of {} in a target", flows[0].len());
            }
        }
    }
}

#[root_test]
fn root_segments_are_sampled_one_by_one() {
    let network = Network::new(Veth::default().ipv4()).unwrap();
    let account = network.rx().run(|| {
        let builder = crate::on_rx_with_room(&network, 2000, 1514).source(SourceChoice::Tc);
        let builder = builder.direction(Direction::In).segment(true);
        let mut capture = builder.sample(sample("1/10")).open().unwrap();
        tcp_transfer(network.pair(), 1 << 20).expect("the transfer succeeds");
        drain(&mut capture, drop);
        capture.stats().unwrap()
    });
    assert_closed(&account);
    // 1 MiB has at least so many segments.
    assert!(account.total().seen > 700, "{account:?}");
    for queue in &account.interfaces[0].queues {
        assert_eq!(queue.counters.captured, queue.counters.seen.div_ceil(10), "{account:?}");
    }
}

#[root_test]
fn root_any_is_sampled_by_the_packets_that_it_keeps() {
    const FLOWS: u32 = 1000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(FLOWS).unwrap().between(network.pair());
    for (text, p) in [("flow:1/3", 1.0 / 3.0), ("p=0.3", 0.3)] {
        let (captured, account) = network.rx().run(|| {
            let builder = crate::common::capture().interface("any").filter(Filter::new("dst port 9"));
            let mut capture = builder.sample(sample(text)).open().unwrap();
            let mut frames = Vec::new();
            let sent =
                FrameSender::new(&network.pair().tx).unwrap().send_frames(&traffic.frames(0..FLOWS.into()));
            assert_eq!(sent.unwrap(), u64::from(FLOWS));
            wait_for(&mut capture, |account| {
                account.total().captured + account.total().sampled_out >= u64::from(FLOWS)
            });
            drain(&mut capture, |chunk| frames.extend(chunk.packets().map(|packet| packet.data.to_vec())));
            (frames, capture.stats().unwrap())
        });
        assert_closed(&account);
        assert!(likely(FLOWS as usize, p).contains(&captured.len()), "{text} {account:?}");
    }
}

#[root_test]
fn root_a_sample_of_nothing_is_refused() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        for (p, part) in [(0.0, "nothing"), (1.5, "at most 1"), (f64::NAN, "nothing"), (1e-12, "2^-32")] {
            let error = on_rx(&network).sample(Sample::Probability(p)).open().unwrap_err();
            assert!(
                matches!(error, weir::Error::Setting { .. }) && error.to_string().contains(part),
                "{error}"
            );
        }
    });
}
