//! Steering: on a device with one queue, each flow, in both directions and with fragments, has one handler, and every
//! handler has some flows.

use std::collections::{HashMap, HashSet};
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use weir::{
    Builder, CaptureStats, Direction, Error, Filter, Mode, PacketCounters, Plan, SourceChoice, Steer,
};
use weir_lab::{FrameSender, Generator, Network, Tagging, Traffic, Veth, root_test};

use crate::common::{self, PATIENCE};
use crate::{assert_closed, on_rx};

/// Handlers, and targets.
const HANDLERS: usize = 4;
const TARGETS: u32 = 4;

/// What each handler was given.
type Given = Vec<Vec<Vec<u8>>>;

/// Has as many handlers as targets take packets until so many were wanted or not, and says what became of all.
fn handle(builder: Builder, packets: u64, send: impl FnOnce()) -> (Given, CaptureStats) {
    let mut capture = builder.open().unwrap();
    let handlers = capture.handlers(&Plan::new(HANDLERS)).unwrap();
    let threads = handlers.into_iter().map(|handler| {
        std::thread::spawn(move || {
            let mut given = Vec::new();
            let run = handler.run(|share| {
                given.extend(share.packets().map(|packet| packet.data.to_vec()));
                ControlFlow::Continue(())
            });
            run.map(|()| given)
        })
    });
    let threads: Vec<_> = threads.collect();
    send();
    let began = Instant::now();
    let all_came = |total: &PacketCounters| {
        let ended = total.captured + total.filtered.expect("counted") + total.lost + total.errors;
        ended >= packets && total.delivered == total.captured
    };
    while !all_came(&capture.stats().unwrap().total()) {
        assert!(began.elapsed() < PATIENCE, "{:?}", capture.stats().unwrap());
        assert!(
            capture.next(Duration::from_millis(10)).unwrap().taken().is_none(),
            "handlers have the queues"
        );
    }
    capture.stop().unwrap();
    let given = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
    let account = capture.stats().unwrap();
    assert_closed(&account);
    assert_adds_up(&account);
    (given, account)
}

/// A capture of what arrives: with tc the one program of two, which takes the kernel half the time to verify.
fn arriving(network: &Network, source: SourceChoice, mode: Mode) -> Builder {
    on_rx(network).source(source).mode(mode).direction(Direction::In)
}

/// Each packet is in the sum of one target, queues are those of their targets, and each handler has what is for its target.
fn assert_adds_up(account: &CaptureStats) {
    let targets = account.targets();
    let mut total = PacketCounters::default();
    targets.iter().for_each(|&counters| total += counters);
    assert_eq!((total, targets.len()), (account.total(), TARGETS as usize));
    for queue in account.interfaces.iter().flat_map(|interface| &interface.queues) {
        assert_eq!(queue.target, Some(queue.queue % TARGETS));
    }
    for (handler, target) in account.handlers.iter().zip(&targets) {
        assert_eq!(handler.packets, target.delivered, "{account:?}");
    }
}

/// Which handler has each kind of packet, of which none may be with two.
fn divided<K: std::hash::Hash + Eq + std::fmt::Debug>(
    given: &Given,
    kind: impl Fn(&[u8]) -> Option<K>,
) -> HashMap<K, usize> {
    let mut at = HashMap::new();
    for (handler, packets) in given.iter().enumerate() {
        for packet in packets {
            let Some(kind) = kind(packet) else { continue };
            let seen = *at.entry(kind).or_insert(handler);
            assert_eq!(seen, handler, "{packet:02x?}");
        }
    }
    at
}

fn handlers_with_some<K>(at: &HashMap<K, usize>) -> usize {
    at.values().collect::<HashSet<_>>().len()
}

/// The ports of UDP in IPv4, as both ways have them.
fn ports(frame: &[u8]) -> Option<[u16; 2]> {
    let ip = frame.get(14..).filter(|_| frame[12..14] == [8, 0] && frame[23] == 17)?;
    let behind = ip.get(usize::from(ip[0] & 15) * 4..)?;
    let port = |at: usize| Some(u16::from_be_bytes(*behind.get(at..)?.first_chunk()?));
    let (one, other) = (port(0)?, port(2)?);
    Some([one.min(other), one.max(other)])
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

each_way!(a_flow_is_with_one_handler_both_ways_and_all_have_some:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
);

fn a_flow_is_with_one_handler_both_ways_and_all_have_some(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 3000;
    // With and without a program that is bound to the device.
    for rxvlan in [true, false] {
        let network = Network::new(Veth::default().feature("rxvlan", rxvlan)).unwrap();
        let traffic = Traffic::new(60).unwrap().flows(200).unwrap().scattered().between(network.pair());
        let back: Vec<Vec<u8>> = traffic.frames(0..500).iter().map(|frame| turned(frame)).collect();
        // XDP does not see what is sent: there both ways arrive.
        let from = if source == SourceChoice::Xdp { &network.pair().tx } else { &network.pair().rx };
        let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
        let (given, account) = network.rx().run(|| {
            let builder = on_rx(&network).source(source).mode(mode).steer(Steer::Flow, TARGETS);
            handle(builder, COUNT + 500, || {
                assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
                assert_eq!(FrameSender::new(from).unwrap().send_frames(&back).unwrap(), 500);
            })
        });
        let at = divided(&given, ports);
        assert_eq!((at.len(), handlers_with_some(&at)), (200, HANDLERS), "{source:?} {account:?}");
        assert_eq!(account.total().captured, COUNT + 500, "{source:?}");
    }
}

#[root_test]
fn root_fragments_of_real_datagrams_are_with_the_flow() {
    const FLOWS: u16 = 60;
    for (version, address) in [(4, "10.77.0.2"), (6, "fd77::2")] {
        let network = Network::new(Veth::default().ipv4().ipv6().wire_packets()).unwrap();
        for source in [SourceChoice::Xdp, SourceChoice::Tc] {
            let (given, account) = network.rx().run(|| {
                let builder = on_rx(&network).source(source).direction(Direction::In);
                handle(builder.steer(Steer::Flow, TARGETS), u64::from(FLOWS) * 4, || {
                    network.tx().run(|| {
                        for flow in 0..FLOWS {
                            let any = if version == 4 { "0.0.0.0" } else { "::" };
                            let socket = UdpSocket::bind((any, 20_000 + flow)).unwrap();
                            // Three pieces, and one that is whole.
                            socket.send_to(&[7; 4000], (address, 9)).unwrap();
                            socket.send_to(b"whole", (address, 9)).unwrap();
                        }
                    });
                })
            });
            // The datagram, and of what has ports the flow.
            let datagram = |frame: &[u8]| match version {
                4 => (frame[20] & 0x3f != 0 || frame[21] != 0).then(|| frame[18..20].to_vec()),
                _ => (frame[20] == 44).then(|| frame[58..62].to_vec()),
            };
            let flow = |frame: &[u8]| {
                let at = match version {
                    4 => (frame[20] & 0x1f == 0 && frame[21] == 0).then_some(34)?,
                    _ if frame[20] == 44 => (frame[56..58] == [0, 1]).then_some(62)?,
                    _ => 54,
                };
                Some(frame[at..at + 2].to_vec())
            };
            let (datagrams, flows) = (divided(&given, datagram), divided(&given, flow));
            assert_eq!((datagrams.len(), flows.len()), (FLOWS.into(), FLOWS.into()), "{version} {source:?}");
            assert_eq!(handlers_with_some(&datagrams), HANDLERS);
            let queues = &account.interfaces[0].queues;
            assert_eq!(queues.iter().map(|queue| queue.orphans).sum::<u64>(), 0, "{account:?}");
        }
    }
}

/// A datagram of VXLAN with `inner` in it.
fn vxlan(outer: &Traffic, inner: &[u8]) -> Vec<u8> {
    let mut frame = outer.frame(0)[..42].to_vec();
    frame.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    frame.extend(inner);
    let length = |from: usize| u16::try_from(frame.len() - from).unwrap().to_be_bytes();
    let (ip, udp) = (length(14), length(34));
    frame[16..18].copy_from_slice(&ip);
    frame[38..40].copy_from_slice(&udp);
    frame
}

each_way!(a_tunnel_is_one_flow_or_those_inside: root_xdp(Xdp, Pass), root_tc(Tc, Pass));

fn a_tunnel_is_one_flow_or_those_inside(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let outer = Traffic::new(60).unwrap().between(network.pair()).to([10, 0, 0, 9].into(), 4789);
    let inner = Traffic::new(100).unwrap().flows(50).unwrap().between(network.pair());
    let there = inner.frames(0..200);
    let frames = there.iter().map(|frame| vxlan(&outer, frame));
    let frames: Vec<_> = frames.chain(there.iter().map(|frame| vxlan(&outer, &turned(frame)))).collect();
    for (steer, handlers) in [(Steer::Flow, 1), (Steer::Inner, HANDLERS)] {
        let (given, account) = network.rx().run(|| {
            handle(arriving(&network, source, mode).steer(steer, TARGETS), 400, || {
                let sender = FrameSender::new(&network.pair().tx).unwrap();
                assert_eq!(sender.send_frames(&frames).unwrap(), 400);
            })
        });
        let at = divided(&given, |frame| ports(frame.get(50..)?));
        assert_eq!((at.len(), handlers_with_some(&at)), (50, handlers), "{source:?} {steer:?} {account:?}");
    }
}

each_way!(vlans_go_by_their_number_in_the_frame_and_beside_it: root_xdp(Xdp, Pass), root_tc(Tc, Pass));

fn vlans_go_by_their_number_in_the_frame_and_beside_it(source: SourceChoice, mode: Mode) {
    for (beside, inside) in
        [(None, None), (None, Some(6)), (Some((0x8100, 0x3007)), None), (Some((0x88a8, 5)), Some(6))]
    {
        let network = Network::new(Veth::default()).unwrap();
        let mut traffic = Traffic::new(100).unwrap().flows(9).unwrap().between(network.pair());
        if let Some(tag) = inside {
            traffic = traffic.vlan(tag).unwrap();
        }
        let tx = &network.pair().tx;
        let _tagging = beside.map(|(protocol, tci)| Tagging::on(tx, protocol, tci).unwrap());
        let vlan = beside.map(|(_, tci)| tci & 0xfff).or(inside).unwrap_or(0);
        // What a filter does not want has no target.
        for (filter, wanted) in [(None, 10), (Some("udp"), 10), (Some("tcp"), 0)] {
            let (given, account) = network.rx().run(|| {
                let builder = arriving(&network, source, mode).steer(Steer::Vlan, TARGETS);
                let builder = filter.map(Filter::new).into_iter().fold(builder, Builder::filter);
                handle(builder, 10, || {
                    let frames = traffic.frames(0..10);
                    assert_eq!(FrameSender::new(tx).unwrap().send_frames(&frames).unwrap(), 10);
                })
            });
            let packets: Vec<u64> = given.iter().map(|packets| packets.len() as u64).collect();
            let mut expected = vec![0; HANDLERS];
            expected[usize::from(vlan) % HANDLERS] = wanted;
            assert_eq!(packets, expected, "{source:?} {beside:?} {inside:?} {filter:?}");
            let total = account.total();
            assert_eq!((total.seen, total.filtered), (10, Some(10 - wanted)), "{source:?} {filter:?}");
            assert_eq!(account.targets()[0].filtered, total.filtered);
        }
    }
}

#[root_test]
fn root_targets_have_their_turns() {
    const COUNT: u64 = 2001;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    let (given, _) = network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::Xdp).mode(Mode::Exclusive);
        handle(builder.steer(Steer::RoundRobin, TARGETS), COUNT, || {
            assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        })
    });
    let packets: Vec<usize> = given.iter().map(Vec::len).collect();
    assert_eq!(packets, [501, 500, 500, 500]);
}

#[root_test]
fn root_queues_and_interfaces_have_the_same_targets() {
    let mut network = Network::new(Veth::default().queues(2)).unwrap();
    network.connect(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(100).unwrap();
    let pairs = network.pairs();
    let (given, account) = network.rx().run(|| {
        let builder = on_rx(&network).interface(&pairs[1].rx.name).source(SourceChoice::Xdp);
        let builder = builder.mode(Mode::Exclusive).steer(Steer::Flow, TARGETS);
        handle(builder, 600, || {
            for (pair, cpu) in [(&pairs[0], 0), (&pairs[0], 1), (&pairs[1], 0)] {
                let traffic = traffic.clone().between(pair);
                assert_eq!(Generator::new(pair, &traffic).unwrap().cpu(cpu).send(200).unwrap().accepted, 200);
            }
        })
    });
    let at = divided(&given, ports);
    assert_eq!((at.len(), handlers_with_some(&at)), (100, HANDLERS));
    let busy = |number: usize| {
        account.interfaces[number].queues.iter().filter(|queue| queue.counters.seen > 0).count()
    };
    assert_eq!((busy(0), busy(1)), (2 * HANDLERS, HANDLERS), "{account:?}");
}

#[root_test]
fn root_what_cannot_be_steered_is_refused() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let refusal = |builder: Builder| builder.open().unwrap_err();
        let options = |error: Error, part: &str| {
            assert!(
                matches!(error, Error::Setting { .. } | Error::Conflict { .. })
                    && error.to_string().contains(part),
                "{error}"
            );
        };
        options(refusal(on_rx(&network).steer(Steer::Flow, 0)), "1 to 256");
        options(refusal(on_rx(&network).steer(Steer::Vlan, 257)), "1 to 256");
        for (source, mode) in [(SourceChoice::AfPacket, Mode::Pass), (SourceChoice::AfXdp, Mode::Exclusive)] {
            options(refusal(on_rx(&network).source(source).mode(mode).steer(Steer::Flow, 2)), "xdp and tc");
        }
        options(refusal(common::capture().interface("any").steer(Steer::Flow, 2)), "a named interface");
        // Of memory, chunks are made fewer at first; where that is not enough, it is said.
        let large = on_rx(&network).chunks(1 << 16).chunk_size(1 << 20).steer(Steer::Flow, 256);
        let large = refusal(large.source(SourceChoice::Xdp));
        assert!(matches!(large, Error::Memory { .. }), "{large}");

        let mut capture = on_rx(&network).steer(Steer::Flow, 4).open().unwrap();
        let detail = &capture.interfaces()[0].detail;
        assert!(detail.contains("steered by flow to 4 targets"), "{detail}");
        options(capture.handlers(&Plan::new(3)).unwrap_err(), "4 targets for 3 handlers");
        options(capture.handlers(&Plan::new(8).advanced(50)).unwrap_err(), "4 targets for 8 handlers");
        let two = capture.handlers(&Plan::new(2)).unwrap();
        assert_eq!(two.len(), 2);
        assert!(
            capture.next(Duration::from_millis(10)).unwrap().taken().is_none(),
            "handlers have the queues"
        );
    });
}
