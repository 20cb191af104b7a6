//! Sending: tcpdump at the other end receives every packet, byte by byte and in order; and errors say how many went out.
#![forbid(unsafe_code)]

mod live;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use weir::reader::Reader;
use weir::send::{Backend, MARK, Pace, SendError, SendQueue, SendReason, Sender, Sent};
use weir::{Error, ErrorKind};
use weir_lab::{LinkCounters, NetNs, Network, Veth, require_root};
use weir_sys::packet::{Instruction, PacketRing, RingOptions, SocketFilter, Traffic};
use weir_sys::tap::Tap;

/// Longest wait for what comes in any case.
const PATIENCE: Duration = Duration::from_secs(30);

/// `$check` as a test for each way into the kernel.
macro_rules! each_backend {
    ($check:ident: $ring:ident, $plain:ident) => {
        each_backend!($check: $ring Ring);
        each_backend!($check: $plain Plain);
    };
    ($check:ident: $test:ident $backend:ident) => {
        #[test]
        fn $test() {
            if require_root(stringify!($test)) {
                $check(Backend::$backend);
            }
        }
    };
}

fn network() -> Network {
    Network::new(Veth::default()).expect("a private network")
}

fn open(network: &Network, backend: Backend) -> Sender {
    let sender = network.tx().run(|| Sender::to("tx0").backend(backend).open()).expect("a sender");
    assert_eq!(sender.backend(), backend);
    sender
}

fn ip(netns: &NetNs, arguments: &str) {
    let status = netns.run(|| Command::new("ip").args(arguments.split(' ')).status().expect("ip runs"));
    assert!(status.success(), "ip {arguments}");
}

/// A frame of this length whose bytes tell its number.
fn frame(bytes: usize, number: usize) -> Vec<u8> {
    let mut frame = vec![2, 0x77, 0, 0, 0, 2, 2, 0x77, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend((frame.len()..bytes.max(frame.len())).map(|at| (at * 31 + number).to_le_bytes()[0]));
    frame.truncate(bytes);
    frame
}

fn tagged(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0, 0x60, 5]);
    frame
}

/// tcpdump at the other end, until it has so many packets.
struct Tcpdump {
    child: Child,
    stderr: BufReader<ChildStderr>,
    _directory: tempfile::TempDir,
    file: std::path::PathBuf,
}

impl Tcpdump {
    fn start(network: &Network, packets: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("received.pcap");
        let mut command = Command::new("tcpdump");
        let user = ["-Z", "root", "--time-stamp-precision=nano", "-B", "65536", "-s", "9100"];
        command.args(["-i", "rx0", "-c", &packets.to_string(), "-w"]).arg(&file).args(user);
        let mut child = network.rx().spawn(command.stderr(Stdio::piped())).expect("tcpdump starts");
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "tcpdump does not start");
        }
        Self { child, stderr, _directory: directory, file }
    }

    /// The packets with their times.
    fn received(mut self) -> Vec<(u64, Vec<u8>)> {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "tcpdump waits for more packets");
            thread::sleep(Duration::from_millis(5));
        }
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("0 packets dropped by kernel"), "{rest}");
        read(&self.file)
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        let _over = self.child.kill().and_then(|()| self.child.wait());
    }
}

fn read(file: &Path) -> Vec<(u64, Vec<u8>)> {
    let (mut reader, mut packets) = (Reader::open(file).unwrap(), Vec::new());
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push((packet.timestamp, packet.data.to_vec()));
    }
    packets
}

fn bytes(packets: Vec<(u64, Vec<u8>)>) -> Vec<Vec<u8>> {
    packets.into_iter().map(|(_, packet)| packet).collect()
}

fn counters(network: &Network) -> LinkCounters {
    LinkCounters::read(&network.pair().tx).unwrap()
}

each_backend!(every_byte_arrives_in_order: root_a_ring_sends_every_byte_in_order, root_calls_send_every_byte_in_order);

fn every_byte_arrives_in_order(backend: Backend) {
    let network = network();
    let mut sender = open(&network, backend);
    assert_eq!((sender.destination().link_type, sender.destination().longest()), (1, 1514));
    let mut frames: Vec<_> = (14..=1514).map(|bytes| frame(bytes, bytes)).collect();
    frames.extend((18..=1514).step_by(11).map(|bytes| tagged(frame(bytes, bytes))));
    let tcpdump = Tcpdump::start(&network, 2 * frames.len());
    let before = counters(&network);

    let mut total = Sent::default();
    for frame in &frames {
        let sent = sender.send(frame).unwrap();
        assert_eq!(sent, Sent { packets: 1, bytes: frame.len() as u64 });
        total += sent;
    }
    let mut queue = SendQueue::new();
    frames.iter().for_each(|frame| queue.push_timeless(frame));
    let report = sender.transmit(&queue, Pace::Top).unwrap();
    assert_eq!(report.sent, total);
    assert_eq!((report.gaps.count, report.timeless, report.backward, report.stopped), (0, 0, 0, false));

    let received = bytes(tcpdump.received());
    let sent = frames.iter().chain(&frames);
    assert!(received.iter().eq(sent), "other bytes, or in another order");
    assert_eq!(counters(&network).tx_packets - before.tx_packets, 2 * total.packets, "and nothing else");
}

each_backend!(large_packets_arrive: root_a_ring_sends_large_packets, root_calls_send_large_packets);

fn large_packets_arrive(backend: Backend) {
    let network = Network::new(Veth::default().mtu(9000)).unwrap();
    let mut sender = open(&network, backend);
    let frames: Vec<_> = (0..300).map(|number| frame(9014 - number, number)).collect();
    let tcpdump = Tcpdump::start(&network, frames.len());
    let mut queue = SendQueue::new();
    frames.iter().for_each(|frame| queue.push(0, frame));
    assert_eq!(sender.transmit(&queue, Pace::Top).unwrap().sent.bytes, queue.bytes() as u64);
    assert_eq!(bytes(tcpdump.received()), frames);
}

each_backend!(many_copies_are_counted: root_a_ring_counts_copies, root_calls_count_copies);

fn many_copies_are_counted(backend: Backend) {
    let network = network();
    let mut sender = open(&network, backend);
    for times in [0, 1, 1000, 100_000] {
        let before = counters(&network);
        let sent = sender.repeat(&frame(60, 1), times).unwrap();
        assert_eq!(sent, Sent { packets: times, bytes: times * 60 });
        // Before Linux 6.4, veth does not say when the other end has no room.
        let began = Instant::now();
        loop {
            let now = counters(&network);
            let [taken, dropped] = [now.tx_packets - before.tx_packets, now.tx_dropped - before.tx_dropped];
            if taken == times || taken + dropped == times {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{times}: {taken} taken, {dropped} dropped");
        }
    }
}

each_backend!(recorded_gaps_are_kept: root_a_ring_keeps_gaps, root_calls_keep_gaps);

fn recorded_gaps_are_kept(backend: Backend) {
    const GAP: u64 = 3_000_000;
    let network = network();
    let mut sender = open(&network, backend);
    let mut queue = SendQueue::new();
    let frames: Vec<_> = (0..40).map(|number| frame(60, number)).collect();
    for (number, frame) in frames.iter().enumerate() {
        queue.push(77 + GAP * number as u64, frame);
    }
    let recorded = Duration::from_nanos(GAP * (frames.len() as u64 - 1));
    for (pace, least) in [
        (Pace::Recorded { speed: 1.0 }, recorded),
        (Pace::Recorded { speed: 3.0 }, recorded / 3),
        (Pace::PacketsPerSecond(1000.0), Duration::from_millis(39)),
        (Pace::BitsPerSecond(480_000.0), Duration::from_millis(39)),
    ] {
        let tcpdump = Tcpdump::start(&network, frames.len());
        let report = sender.transmit(&queue, pace).unwrap();
        assert_eq!(report.sent, Sent { packets: 40, bytes: 2400 }, "{pace:?}");
        assert!(report.elapsed >= least, "{pace:?}: {report:?}");
        assert!(report.gaps.count == 39 && report.gaps.p50 <= report.gaps.p99, "{report:?}");
        assert!(report.gaps.p99 <= report.gaps.max, "{report:?}");
        let received = tcpdump.received();
        // The first packet may be late, but by no more than the gap before the second was off.
        let (first, last) = (received[0].0, received[39].0);
        let most_off = report.gaps.max * 39;
        assert!(Duration::from_nanos(last - first) + most_off >= least, "{pace:?}: {report:?}");
        assert_eq!(bytes(received), frames);
    }
}

each_backend!(packets_without_a_header_arrive: root_a_ring_sends_raw_packets, root_calls_send_raw_packets);

fn packets_without_a_header_arrive(backend: Backend) {
    let packet = |number: u8| match number % 2 {
        0 => [&[0x45, 0, 0, 21, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..], &[number]].concat(),
        _ => [&[0x60, 0, 0, 0, 0, 1, 253, 64][..], &[0; 32], &[number]].concat(),
    };
    let packets: Vec<_> = (0..100).map(packet).collect();
    let mut queue = SendQueue::new();
    packets.iter().for_each(|packet| queue.push_timeless(packet));
    NetNs::new().unwrap().run(|| {
        let tun = Tap::create_tun("tun0").unwrap();
        let mut sender = Sender::to("tun0").backend(backend).open().unwrap();
        let destination = sender.destination();
        assert_eq!((destination.link_type, destination.longest()), (101, 1500));
        assert_eq!(sender.transmit(&queue, Pace::Top).unwrap().sent.packets, 100);
        let (mut received, mut buffer) = (Vec::new(), [0; 2000]);
        while let Ok(bytes) = tun.sent(&mut buffer) {
            received.push(buffer[..bytes].to_vec());
        }
        // The kernel sends some of its own there.
        received.retain(|packet| packets.contains(packet));
        assert_eq!(received, packets);
    });
}

/// What an error says, and what it says was sent.
fn text(error: &SendError) -> (String, u64) {
    (error.to_string(), error.sent.packets)
}

each_backend!(lengths_are_checked: root_a_ring_checks_lengths, root_calls_check_lengths);

fn lengths_are_checked(backend: Backend) {
    let network = network();
    let mut sender = open(&network, backend);
    let tcpdump = Tcpdump::start(&network, 6);
    let mut queue = SendQueue::new();
    (0..3).for_each(|number| queue.push_timeless(&frame(1514, number)));
    queue.push_timeless(&frame(1515, 3));
    queue.push_timeless(&frame(60, 4));
    let error = sender.transmit(&queue, Pace::Top).unwrap_err();
    let why = "cannot send on `tx0`: a packet has 1515 bytes; the interface takes up to 1514; \
               try `ip link set tx0 mtu 1501`";
    assert_eq!(text(&error), (why.to_owned(), 3));
    let error = sender.send(&frame(13, 5)).unwrap_err();
    let why = "cannot send on `tx0`: a packet has 13 bytes; the shortest has 14; \
               try a whole packet, from its link-layer header on";
    assert_eq!(text(&error), (why.to_owned(), 0));

    // The kernel knows of a smaller MTU before the sender does.
    assert_eq!(sender.send(&frame(1514, 6)).unwrap().packets, 1);
    ip(network.tx(), "link set tx0 mtu 1400");
    queue = SendQueue::new();
    queue.push_timeless(&frame(1414, 7));
    queue.push_timeless(&frame(1415, 8));
    queue.push_timeless(&frame(60, 9));
    let error = sender.transmit(&queue, Pace::Top).unwrap_err();
    assert_eq!(error.reason, SendReason::TooLong { bytes: 1415, most: 1414, mtu: 1401 });
    assert_eq!(error.sent.packets, 1);
    // It goes on as if nothing had happened.
    assert_eq!(sender.send(&frame(60, 10)).unwrap().packets, 1);
    let expected = [(1514, 0), (1514, 1), (1514, 2), (1514, 6), (1414, 7), (60, 10)];
    assert_eq!(bytes(tcpdump.received()), expected.map(|(bytes, number)| frame(bytes, number)));
}

each_backend!(an_interface_may_go: root_a_ring_survives_its_interface, root_calls_survive_their_interface);

fn an_interface_may_go(backend: Backend) {
    let network = network();
    let mut sender = open(&network, backend);
    ip(network.tx(), "link set tx0 down");
    let error = sender.send(&frame(60, 0)).unwrap_err();
    let why = "cannot send on `tx0`: the interface is down; try `ip link set tx0 up`";
    assert_eq!(text(&error), (why.to_owned(), 0));
    let open_it = || network.tx().run(|| Sender::to("tx0").backend(backend).open());
    let error = open_it().unwrap_err();
    assert!(matches!(error, Error::InterfaceDown { .. }), "{error:?}");
    ip(network.tx(), "link set tx0 up");
    assert_eq!(sender.send(&frame(60, 1)).unwrap().packets, 1, "it is up again");

    ip(network.rx(), "link set rx0 down");
    let error = open_it().unwrap_err();
    assert!(error.to_string().contains("no carrier") && error.kind() == ErrorKind::Unsupported, "{error}");
    ip(network.rx(), "link set rx0 up");

    // It is deleted in the middle of a transmission. What arrived before is what was sent.
    let port = network.pair().rx.clone();
    let before = LinkCounters::read(&port).unwrap().rx_packets;
    let mut transmission = sender.begin(Pace::PacketsPerSecond(2000.0));
    let mut deleted = false;
    let error = loop {
        match transmission.packet(None, &frame(60, 2)) {
            Ok(goes_on) => assert!(goes_on),
            Err(error) => break error,
        }
        if transmission.sent().packets >= 200 && !deleted {
            transmission.flush().unwrap();
            let received = LinkCounters::read(&port).unwrap().rx_packets - before;
            assert_eq!(received, transmission.sent().packets);
            ip(network.tx(), "link delete tx0");
            deleted = true;
        }
    };
    assert_eq!(error.reason, SendReason::Gone);
    assert_eq!(error.to_string(), "cannot send on `tx0`: the interface is gone; try again once it is back");
    assert_eq!(error.sent.packets, transmission.sent().packets);
    assert!(error.sent.packets < 400, "{} after it was gone", error.sent.packets);
    drop(transmission);
    assert_eq!(sender.send(&frame(60, 3)).unwrap_err().reason, SendReason::Gone);
    let error = open_it().unwrap_err();
    assert!(matches!(error, Error::NoSuchInterface { .. }), "{error:?}");
}

each_backend!(a_flag_ends_it: root_a_flag_ends_a_ring, root_a_flag_ends_calls);

fn a_flag_ends_it(backend: Backend) {
    let network = network();
    let mut sender = open(&network, backend);
    let before = counters(&network).tx_packets;
    let mut queue = SendQueue::new();
    (0..5).for_each(|number| queue.push(number, &frame(60, 0)));
    queue.push(u64::MAX, &frame(60, 1)); // in five centuries
    let flag = sender.stop_flag();
    let report = thread::scope(|scope| {
        let sending = scope.spawn(|| sender.transmit(&queue, Pace::Recorded { speed: 1.0 }));
        let began = Instant::now();
        while counters(&network).tx_packets - before < 5 {
            assert!(began.elapsed() < PATIENCE, "the first packets do not come");
        }
        flag.store(true, Ordering::Relaxed);
        sending.join().unwrap().unwrap()
    });
    assert_eq!((report.sent.packets, report.stopped), (5, true));
    assert_eq!(sender.send(&frame(60, 1)).unwrap(), Sent::default());
    flag.store(false, Ordering::Relaxed);

    // Without a pause, too.
    let report = thread::scope(|scope| {
        let sending = scope.spawn(|| sender.repeat(&frame(60, 1), u64::MAX));
        let began = Instant::now();
        while counters(&network).tx_packets - before < 1000 {
            assert!(began.elapsed() < PATIENCE, "the copies do not come");
        }
        flag.store(true, Ordering::Relaxed);
        sending.join().unwrap().unwrap()
    });
    assert!(report.packets >= 995);
    assert_eq!(counters(&network).tx_packets - before, 5 + report.packets);
}

each_backend!(packets_are_marked: root_a_ring_marks_packets, root_calls_mark_packets);

fn packets_are_marked(backend: Backend) {
    let network = network();
    let mut witnesses = [MARK, 7, 0].map(|mark| witness(&network, mark));
    let with = |mark, times| {
        let builder = Sender::to("tx0").backend(backend).mark(mark);
        let mut sender = network.tx().run(|| builder.open()).unwrap();
        sender.repeat(&frame(60, 0), times).unwrap();
    };
    open(&network, backend).repeat(&frame(60, 0), 30).unwrap();
    with(Some(7), 500);
    with(None, 9000);
    assert_eq!(witnesses.each_mut().map(|ring| ring.statistics().unwrap().packets), [30, 500, 9000]);
}

/// Counts packets that are sent with this mark.
fn witness(network: &Network, mark: u32) -> PacketRing {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const SAME: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const MARK: u32 = 0xffff_f000 + 20; // SKF_AD_OFF + SKF_AD_MARK
    let program = [(LOAD, 0, 0, MARK), (SAME, 0, 1, mark), (RETURN, 0, 0, 60), (RETURN, 0, 0, 0)];
    let program = program.map(|(code, jt, jf, k)| Instruction { code, jt, jf, k });
    let options = RingOptions {
        interface: Some(network.pair().tx.index),
        traffic: Traffic::Sent,
        snap_len: 60,
        block_bytes: 1 << 16,
        blocks: 2,
        retire_ms: 10,
    };
    network.tx().run(|| PacketRing::open_behind(&options, SocketFilter::Classic(&program))).unwrap()
}
