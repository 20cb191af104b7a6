//! Compares sent frames, byte by byte, with what tcpdump, the network stack and sockets receive.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use weir_lab::{
    Action, Checked, FrameCheck, FrameSender, Generator, Hook, LinkCounters, Network, Port, Rate,
    SequenceCheck, StackCounters, Traffic, UdpSink, Veth, root_test,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;

/// Starts tcpdump on a port for `packets` packets and waits until it is ready. Its ring has slots of the frames' size,
/// to hold thousands of them.
fn tcpdump(port: &Port, packets: usize, traffic: &Traffic) -> Child {
    let (packets, size) = (packets.to_string(), (traffic.size() + 4).to_string());
    let mut command = Command::new("timeout");
    command
        .args(["60", "tcpdump", "-i", &port.name, "-c", &packets, "-B", "65536", "-Z", "root", "-s", &size]);
    command.args(["-Q", "in", "--immediate-mode", "-U", "-w", "-"]);
    let mut child = port
        .netns
        .spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
        .expect("tcpdump is installed");
    let mut messages = BufReader::new(child.stderr.as_mut().expect("a pipe"));
    let mut line = String::new();
    messages.read_line(&mut line).expect("tcpdump speaks");
    assert!(line.contains("listening on"), "{line}");
    child
}

/// Returns the packets of a capture file in native byte order.
fn packets(mut child: Child) -> Vec<Vec<u8>> {
    let mut file = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut file).expect("tcpdump writes");
    child.wait().expect("tcpdump ends");
    let mut packets = Vec::new();
    let mut rest = &file[24..];
    while let Some((header, data)) = rest.split_at_checked(16) {
        let [captured, original] =
            [8, 12].map(|at| u32::from_ne_bytes(*header[at..].first_chunk().expect("four bytes")));
        assert_eq!(captured, original, "tcpdump keeps whole packets");
        let (packet, next) = data.split_at(usize::try_from(captured).expect("small"));
        packets.push(packet.to_vec());
        rest = next;
    }
    packets
}

/// Waits for a limited time; a later assertion shows what is missing.
fn wait_until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
}

#[root_test]
fn root_each_byte_of_a_frame_is_checked() {
    const COUNT: u64 = 100_000;
    let network = Network::new(Veth::default()).expect("network");
    let pair = network.pair();
    // With this many flows, addresses differ, too.
    let traffic = Traffic::new(60).unwrap().flows(70_000).unwrap().between(pair);
    let check = FrameCheck::attach(&pair.rx, &traffic).expect("it is attached");
    let accepted = Generator::new(pair, &traffic).expect("generator").send(COUNT).expect("frames").accepted;
    let settled = |packets: u64| {
        wait_until(|| check.checked().packets >= packets);
        check.checked()
    };
    assert_eq!(settled(accepted), Checked { packets: accepted, wrong: 0, backward: 0 });

    let sender = FrameSender::new(&pair.tx).expect("a socket");
    let frame = traffic.frame(COUNT + 66_000);
    for place in 0..60 {
        let mut other = frame.clone();
        other[place] ^= 1 << (place % 8);
        sender.send(&other).expect("it is sent");
    }
    sender.send(&traffic.frame(7)).expect("it is sent");
    sender.send(&[&frame[..], &[0]].concat()).expect("it is sent");
    sender.send(&frame).expect("it is sent");
    sender.send(&frame).expect("it is sent");
    let packets = accepted + 64;
    assert_eq!(settled(packets), Checked { packets, wrong: 61, backward: 2 });
    let long = Traffic::new(61).unwrap();
    assert!(FrameCheck::attach(&pair.rx, &long).is_err(), "frames of another size are not known");
}

#[root_test]
fn root_tcpdump_sees_every_byte_as_it_should_be() {
    let network = Network::new(Veth::default()).expect("network");
    let pair = network.pair();
    let flows =
        |size: usize, flows| Traffic::new(size).expect("size").flows(flows).expect("flows").between(pair);
    let tagged = flows(64, 5).vlan(0x6005).expect("size");
    for traffic in [flows(60, 1), flows(61, 7), flows(1514, 100_000).scattered(), flows(256, 3), tagged] {
        let (count, capture) = (3000, tcpdump(&pair.rx, 3000, &traffic));
        let generator = Generator::new(pair, &traffic).expect("generator");
        let report = generator.rate(Rate::PerSecond(50_000)).expect("rate").send(count).expect("send");
        assert_eq!(report.accepted, count);
        let mut check = SequenceCheck::new(&traffic, report.sequences);
        packets(capture).iter().for_each(|packet| check.frame(packet));
        let result = check.finish();
        assert!(result.is_perfect(), "{traffic:?}: {:?} {:?}", result.total, result.first_corrupt);
    }
}

#[root_test]
fn root_single_frames_of_any_size_arrive_whole() {
    let network = Network::new(Veth::default().mtu(65535)).expect("network");
    let pair = network.pair();
    let sender = FrameSender::new(&pair.tx).expect("sender");
    for size in [60, 64, 1514, 1515, 4096, 9014, 40_000, 65_549] {
        let plain = Traffic::new(size).expect("size").between(pair).flows(3).expect("flows");
        let tagged = plain.clone().vlan(42).ok();
        for traffic in [Some(plain), tagged].into_iter().flatten() {
            let capture = tcpdump(&pair.rx, 20, &traffic);
            assert_eq!(sender.send_frames(&traffic.frames(7..27)).expect("send"), 20);
            let mut check = SequenceCheck::new(&traffic, 7..27);
            packets(capture).iter().for_each(|packet| check.frame(packet));
            let result = check.finish();
            assert!(result.is_perfect(), "{size}: {:?} {:?}", result.total, result.first_corrupt);
        }
    }
    let error = sender.send(&[0; 65_570]).expect_err("longer than the MTU");
    assert!(error.to_string().contains("65570 bytes"), "{error}");
}

#[root_test]
fn root_the_stack_gets_what_the_hook_passes() {
    let network = Network::new(Veth::default().ipv4()).expect("network");
    let pair = network.pair();
    let hook = Hook::attach(&pair.rx, Action::Pass).expect("hook");

    // The address does not exist: packets are counted and dropped without a reply.
    let before = StackCounters::read(network.rx()).expect("counters");
    let traffic = Traffic::new(60).expect("size").between(pair).flows(50_000).expect("flows");
    let report = Generator::new(pair, &traffic).expect("generator").send(200_000).expect("send");
    assert_eq!(hook.wait_for(report.accepted, PATIENCE), report.accepted);
    // The hook sees them before the stack.
    let grown = |name| StackCounters::read(network.rx()).expect("counters").get(name) - before.get(name);
    wait_until(|| grown("IpInReceives") >= report.accepted);
    assert_eq!(grown("IpInReceives"), report.accepted);
    assert_eq!(grown("IpInHdrErrors"), 0);
    assert_eq!(grown("IpOutRequests"), 0);
    let link = || LinkCounters::read(&pair.rx).expect("counters");
    wait_until(|| link().rx_packets >= report.accepted);
    let link = link();
    assert_eq!((link.rx_packets, link.tx_packets), (report.accepted, 0));
}

#[root_test]
fn root_a_socket_gets_every_datagram_in_order() {
    let network = Network::new(Veth::default().ipv4()).expect("network");
    let pair = network.pair();
    let hook = Hook::attach(&pair.rx, Action::Pass).expect("hook");
    let (datagrams, arrived) = mpsc::channel();
    let sink = UdpSink::start(&pair.rx, 4000, move |payload, sender| {
        datagrams.send((payload.to_vec(), sender.port())).expect("the test waits");
    })
    .expect("sink");

    let address = pair.rx.ipv4.expect("asked for");
    let traffic = Traffic::new(300).expect("size").between(pair).to(address, 4000).flows(9).expect("flows");
    let generator = Generator::new(pair, &traffic).expect("generator");
    let report = generator.rate(Rate::PerSecond(100_000)).expect("rate").send(20_000).expect("send");
    assert_eq!(report.accepted, 20_000);
    assert_eq!(hook.wait_for(20_000, PATIENCE), 20_000);

    for sequence in report.sequences {
        let (payload, port) = arrived.recv_timeout(PATIENCE).expect("another datagram");
        let frame = traffic.frame(sequence);
        assert_eq!(payload, frame[HEADERS..], "datagram {sequence}");
        assert_eq!(port.to_be_bytes(), frame[34..36]);
    }
    assert_eq!(sink.stop(), 20_000, "and no other");
}

/// What is called the limit of an engine with a copy does copy.
#[root_test]
fn root_the_limit_with_a_copy_writes_every_byte() {
    for size in [60, 61, 256, 1514] {
        let network = Network::new(Veth::default()).expect("a private network");
        let hook = Hook::attach(&network.pair().rx, Action::Write).expect("a program");
        let traffic = Traffic::new(size).expect("a size");
        let mut generator = Generator::new(network.pair(), &traffic).expect("a generator");
        assert_eq!(generator.send(100).expect("sent").accepted, 100);
        assert_eq!(hook.wait_for(100, PATIENCE), 100);
        let written = hook.written();
        let mut rest = written.as_slice();
        for frame in traffic.frames(0..100) {
            let padded = size.next_multiple_of(4);
            let (record, next) = rest.split_at(28 + padded + 4);
            assert_eq!(record[28..28 + size], frame, "{size}");
            let total = u32::try_from(record.len()).expect("small").to_ne_bytes();
            assert_eq!((&record[4..8], &record[28 + padded..]), (&total[..], &total[..]));
            rest = next;
        }
    }
}
