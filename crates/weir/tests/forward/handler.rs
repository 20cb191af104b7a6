//! Packets that pass through a handler: inspected, changed, dropped; and a middlebox between real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::thread;
use std::time::{Duration, Instant};

use weir::forward::{ForwardLane, ForwardPacket, Verdict};
use weir::{Error, Filter, Namespace};
use weir_lab::{FrameSender, Generator, NetNs, Network, SequenceCheck, Traffic, Veth, root_test};
use weir_sys::kernel;

use crate::common::{PATIENCE, wait_until};
use crate::kernel::REDIRECTED;
use crate::middlebox::{Rewrite, transport};
use crate::{RATE, at, between, closed, forth, frames, lab, open_with, two, wait_for};

/// All are forwarded as they are.
fn pass(_: &mut ForwardPacket<'_, '_>) -> Verdict {
    Verdict::Forward
}

#[root_test]
fn root_what_handlers_forward_arrives_as_it_was_both_ways_at_once() {
    both_ways((1, 1));
    both_ways((2, 2));
}

#[root_test]
fn root_what_handlers_forward_arrives_as_it_was_where_the_ends_have_other_queues() {
    both_ways((2, 1));
    both_ways((1, 2));
}

/// Forwards both ways at once between ends of so many queues.
fn both_ways(queues: (u32, u32)) {
    const COUNT: u64 = 20_000;
    let network = lab(Veth::default().queues(queues.0), Veth::default().queues(queues.1));
    let forward = open_with(&network, forth().both(true), |_| pass).expect("it forwards");
    assert!(forward.directions()[1].detail.contains("AF_XDP, "), "{:?}", forward.directions());
    let [here, there] = [0, 1].map(|number| &network.pairs()[number]);
    let captures = [at(there), at(here)];
    let traffics = [here, there].map(|pair| Traffic::new(60).unwrap().flows(8).unwrap().between(pair));
    let accepted = thread::scope(|scope| {
        let sending = [(0, here, &traffics[0]), (1, there, &traffics[1])].map(|(cpu, pair, traffic)| {
            let generator = Generator::new(pair, traffic).expect("it loads").cpu(cpu).rate(RATE);
            let mut generator = generator.expect("a rate");
            scope.spawn(move || generator.send(COUNT).expect("frames").accepted)
        });
        sending.map(|sending| sending.join().expect("no panic"))
    });
    let account = closed(forward);
    for (((capture, traffic), way), accepted) in
        captures.into_iter().zip(&traffics).zip(&account.directions).zip(accepted)
    {
        let mut check = SequenceCheck::new(traffic, 0..COUNT);
        let counters = way.total();
        frames(capture, counters.forwarded).iter().for_each(|frame| check.frame(frame));
        let report = check.finish();
        // A machine that is busy elsewhere may be too slow for a handler; then the account says so. In a guest not all that
        // is generated finds room in the ring before it.
        let total = report.total;
        assert_eq!((total.duplicated, total.reordered, report.corrupt), (0, 0, 0), "{queues:?} {total:?}");
        let lost = counters.no_room + COUNT - accepted;
        assert_eq!((total.received, total.lost), (counters.forwarded, lost), "{queues:?} {counters:?}");
        assert_eq!((counters.seen, counters.bytes), (accepted, accepted * 60), "{queues:?}");
        assert!(accepted > COUNT / 10 && counters.forwarded > 0, "{queues:?} {accepted} {counters:?}");
    }
}

#[root_test]
fn root_a_packet_is_changed_ended_or_never_comes() {
    const COUNT: u64 = 4000;
    /// So many at once find room, however late they are taken.
    const ONCE: u64 = 200;
    let network = two();
    // Of four flows one ends here, one is made longer at both ends, one is for the stack, and one passes as it is.
    let handler = |lane: ForwardLane| {
        assert_eq!((lane.direction, lane.queue), (0, 0));
        |packet: &mut ForwardPacket<'_, '_>| match packet.data()[35] & 3 {
            0 => Verdict::Drop,
            1 => {
                packet.grow_head(4).expect("room").copy_from_slice(b"head");
                packet.grow_tail(4).expect("room").copy_from_slice(b"tail");
                Verdict::Forward
            }
            _ => Verdict::Forward,
        }
    };
    let filter = Filter::new("not udp src port 1026");
    let mut forward = open_with(&network, forth().filter(filter), handler).expect("it forwards");
    let capture = at(&network.pairs()[1]);
    let traffic = Traffic::new(60).unwrap().flows(4).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("it loads");
    for sent in (1..=COUNT / ONCE).map(|turn| turn * ONCE) {
        assert_eq!(generator.send(ONCE).expect("frames").accepted, ONCE);
        wait_for(&mut forward, sent);
    }
    let counters = closed(forward).total();
    let each = COUNT / 4;
    assert_eq!(
        (counters.seen, counters.filtered, counters.dropped + counters.no_room),
        (COUNT, each, each),
        "{counters:?}"
    );
    assert_eq!((counters.forwarded, counters.changed, counters.no_room), (2 * each, each, 0), "{counters:?}");
    let expected = (0..COUNT).filter_map(|number| match number % 4 {
        1 => Some([b"head", &traffic.frame(number)[..], b"tail"].concat()),
        3 => Some(traffic.frame(number)),
        _ => None,
    });
    assert!(frames(capture, counters.forwarded).into_iter().eq(expected));
}

/// What a handler gives to the host's stack, the sockets of the host receive; a handler that gives too much loses it and says so.
#[root_test]
fn root_what_is_for_the_host_reaches_its_sockets() {
    const COUNT: u16 = 200;
    let network = lab(Veth::default().ipv4().wire_packets(), Veth::default());
    let pair = network.pair();
    let address = pair.rx.ipv4.expect("it has one");
    let own = pair.rx.mac;
    let handler = move |_| {
        move |packet: &mut ForwardPacket<'_, '_>| {
            if packet.data()[..6] == own { Verdict::Stack } else { Verdict::Forward }
        }
    };
    let forward = open_with(&network, forth(), handler).expect("it forwards");
    let capture = at(&network.pairs()[1]);
    let receiver = network.rx().run(|| UdpSocket::bind((address, 9)).expect("a socket"));
    receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    let sender = pair.tx.netns.run(|| UdpSocket::bind(("0.0.0.0", 0)).expect("a socket"));
    let datagram = |number: u16| vec![number.to_le_bytes()[0]; usize::from(number) * 7 + 1];
    let mut buffer = [0; 2000];
    for number in 0..COUNT {
        sender.send_to(&datagram(number), (address, 9)).expect("it is sent");
        let length = receiver.recv(&mut buffer).expect("it is received");
        assert_eq!(buffer[..length], datagram(number));
    }
    // And those that are for others still go on.
    let other = Traffic::new(60).unwrap().between(&network.pairs()[1]).frame(1);
    FrameSender::new(&pair.tx).expect("a socket").send(&other).expect("it is sent");
    assert_eq!(frames(capture, 1), [other]);
    let counters = closed(forward).total();
    assert_eq!(
        (counters.passed, counters.forwarded, counters.lost()),
        (u64::from(COUNT), 1, 0),
        "{counters:?}"
    );

    let everything = |_| |_: &mut ForwardPacket<'_, '_>| Verdict::Stack;
    let forward = open_with(&network, forth(), everything).expect("it forwards");
    let traffic = Traffic::new(60).unwrap().between(pair);
    let accepted = Generator::new(pair, &traffic).expect("it loads").send(100_000).expect("frames").accepted;
    let counters = closed(forward).total();
    assert_eq!((counters.seen, counters.passed + counters.no_room), (accepted, accepted), "{counters:?}");
}

#[root_test]
fn root_a_handler_that_panics_is_told_and_its_packets_go_nowhere() {
    let network = two();
    let panics = |_| |_: &mut ForwardPacket<'_, '_>| -> Verdict { panic!("the test wants that") };
    let mut forward = open_with(&network, forth(), panics).expect("it forwards");
    let capture = at(&network.pairs()[1]);
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("it loads");
    generator.send(1).expect("a frame");
    let start = Instant::now();
    let error = loop {
        assert!(start.elapsed() < PATIENCE, "it is not told");
        if let Err(error) = forward.wait(Duration::from_millis(10)) {
            break error;
        }
    };
    assert!(error.to_string().contains("a handler panicked"), "{error}");
    // The kernel takes the socket out of its map a moment after it is closed; what comes before that is as the first one is.
    let (start, mut before) = (Instant::now(), 1);
    while forward.stats().expect("it counts").total().errors == 0 {
        assert!(start.elapsed() < PATIENCE, "{:?}", forward.stats());
        before += generator.send(1).expect("a frame").accepted;
    }
    let after = generator.send(10).expect("frames").accepted;
    wait_until(
        || forward.stats().is_ok_and(|account| account.total().seen == before + after),
        || "not all are seen".to_owned(),
    );
    forward.stop().expect("it stops");
    let counters = forward.stats().expect("it counts").total();
    assert_eq!((counters.seen, counters.forwarded), (before + after, 0), "{counters:?}");
    assert!(counters.errors > after && counters.errors < counters.seen, "{counters:?}");
    assert_eq!(counters.in_flight(), counters.seen - counters.errors, "{counters:?}");
    assert!(frames(capture, 0).is_empty());
}

#[root_test]
fn root_packets_that_do_not_fit_into_a_frame_are_refused_before_they_come() {
    let jumbo = || Veth::default().mtu(9000);
    let error = open_with(&lab(jumbo(), jumbo()), forth(), |_| pass).expect_err("must be refused");
    assert!(matches!(&error, Error::Forward(problem) if problem.to_string().contains("9000")), "{error}");
    // A frame holds more than veth has in one buffer, and older kernels do not redirect several.
    let mtu = if kernel::version() < REDIRECTED { 3498 } else { 3818 };
    let long = || Veth::default().mtu(mtu);
    let network = lab(long(), long());
    let forward = open_with(&network, forth(), |_| pass).expect("it forwards");
    let capture = at(&network.pairs()[1]);
    let frame = Traffic::new(mtu as usize + 14).unwrap().between(network.pair()).frame(1);
    FrameSender::new(&network.pair().tx).expect("a socket").send(&frame).expect("it is sent");
    let received = frames(capture, 1);
    assert_eq!(closed(forward).total().lost(), 0);
    assert_eq!(received, [frame]);
}

/// The namespace, as the library is told of it.
fn namespace(netns: &NetNs) -> Namespace {
    Namespace::find(&format!("/proc/self/fd/{}", netns.as_fd().as_raw_fd())).expect("it is there")
}

/// Two hosts that see each other at .1 and .2, though between them there are two pairs and a middlebox, in namespaces of
/// their own:
///
/// ```text
///  here.tx: tx0 .1 ---- here.rx: rx0 == weir == there.tx: tx0 ---- there.rx: rx0 .2
/// ```
#[root_test]
fn root_a_middlebox_between_real_sockets_keeps_checksums_right() {
    const BYTES: usize = 1 << 20;
    let host = || Network::new(Veth::default().ipv4().ipv6().wire_packets()).expect("a private network");
    let (here, there) = (host(), host());
    let rewrite = |lane: ForwardLane| match lane.direction {
        0 => Rewrite { of_destination: true, from: 8080, to: 80 },
        _ => Rewrite { of_destination: false, from: 80, to: 8080 },
    };
    let builder = between("rx0", "tx0").both(true);
    let builder = builder.namespaces(Some(&namespace(here.rx())), Some(&namespace(there.tx())));
    let forward = builder.open_with(rewrite).expect("it forwards");

    let bytes: Vec<u8> = (0..=250).cycle().step_by(7).take(BYTES).collect();
    for address in ["10.77.0.2", "fd77::2"] {
        let address = address.parse().expect("an address");
        let listener =
            there.rx().run(|| TcpListener::bind(SocketAddr::new(address, 80))).expect("it listens");
        let echo = thread::spawn(move || {
            let (mut stream, from) = listener.accept().expect("somebody connects");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("it can be read");
            stream.write_all(&all).expect("it can be written");
            from
        });
        let patience = PATIENCE;
        let far = SocketAddr::new(address, 8080);
        let mut stream = here.tx().run(|| TcpStream::connect_timeout(&far, patience)).expect("it connects");
        stream.set_read_timeout(Some(patience)).expect("a time");
        stream.write_all(&bytes).expect("it can be written");
        stream.shutdown(std::net::Shutdown::Write).expect("no more");
        let mut back = Vec::new();
        stream.read_to_end(&mut back).expect("it comes back");
        assert!(back == bytes, "{} bytes came back", back.len());
        assert_eq!(echo.join().expect("no panic"), stream.local_addr().expect("an address"));

        let server = there.rx().run(|| UdpSocket::bind(SocketAddr::new(address, 80))).expect("a socket");
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let client = here.tx().run(|| UdpSocket::bind(any)).expect("a socket");
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(patience)).expect("a time");
        }
        let mut buffer = [0; 2000];
        for length in [0, 1, 100, 1000] {
            client.send_to(&bytes[..length], far).expect("it is sent");
            let (received, from) = server.recv_from(&mut buffer).expect("it arrives");
            server.send_to(&buffer[..received], from).expect("it is sent back");
            let (received, from) = client.recv_from(&mut buffer).expect("it arrives");
            assert_eq!((&buffer[..received], from), (&bytes[..length], far));
        }
    }
    let account = closed(forward);
    for way in &account.directions {
        let counters = way.total();
        assert!(counters.changed > 100 && counters.changed <= counters.forwarded, "{counters:?}");
    }
}

#[test]
fn the_middlebox_reads_no_further_than_a_frame_reaches() {
    // TCP over IPv4 behind a VLAN tag, cut everywhere.
    let mut frame = [0; 64];
    frame[12..18].copy_from_slice(&[0x81, 0, 0, 6, 8, 0]);
    frame[18] = 0x45;
    frame[27] = 6;
    for length in 0..=frame.len() {
        // Up to the ports.
        assert_eq!(transport(&frame[..length]).is_some(), length >= 42, "{length}");
    }
}
