//! Statistics on real interfaces. tcpdump, which captures the same traffic, is the judge.

mod beside;
mod keys;
mod spread;

use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir::parts::by_tc_filters;
use weir::statistics::{Count, Counts, MOST_FILTERS, Reading, StatisticsBuilder};
use weir::{Error, Filter, Mode, Namespace, SourceChoice, SourceKind, Statistics};
use weir_lab::{
    Action, FrameSender, Hook, Network, Port, Tagging, Traffic, Veth, require_kernel, require_root, root_test,
};
use weir_sys::bpf::query;
use weir_sys::filter::Side;
use weir_sys::link;

/// Longest wait for what comes in any case.
const PATIENCE: Duration = Duration::from_secs(30);

const FILTERS: [&str; 10] = [
    "",
    "udp port 53",
    "tcp port 443",
    "tcp",
    "arp",
    "ip6",
    "vlan",
    "vlan 5",
    "greater 200",
    "src host in {10.0.0.1, 10.0.0.3}",
];

/// What tcpdump calls the same. It does not look behind tags by itself: behind each `vlan`, it looks behind one more.
fn theirs(filter: &str) -> String {
    match filter {
        "" | "vlan" | "greater 200" => filter.to_owned(),
        "vlan 5" => "vlan 5 or vlan 5".to_owned(),
        "src host in {10.0.0.1, 10.0.0.3}" => theirs("(src host 10.0.0.1 or src host 10.0.0.3)"),
        one => format!("{one} or (vlan and {one}) or (vlan and {one})"),
    }
}

/// An Ethernet frame, with a tag inside if there is one.
fn ethernet(tag: Option<u16>, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
    if let Some(tag) = tag {
        frame.extend([0x81, 0]);
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An IPv4 packet from 10.0.0.`from` with a UDP or TCP header and `data` bytes behind it.
fn ipv4(from: u8, protocol: u8, port: u16, data: usize) -> Vec<u8> {
    let header: usize = if protocol == 6 { 20 } else { 8 };
    let length = u16::try_from(20 + header + data).expect("it fits");
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, 200]);
    packet.extend(40_000_u16.to_be_bytes());
    packet.extend(port.to_be_bytes());
    let mut rest = vec![0; header - 4 + data];
    match protocol {
        6 => rest[8] = 0x50,
        _ => rest[..2].copy_from_slice(&(length - 20).to_be_bytes()),
    }
    packet.extend(rest);
    packet
}

/// A mixture in which each filter finds something, and none everything but the first.
fn mixture(rounds: u16) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for round in 0..rounds {
        let from = u8::try_from(round % 5).expect("small");
        let size = usize::from(round) * 7 % 900;
        frames.push(ethernet(None, 0x800, &ipv4(from, 17, 53, size)));
        frames.push(ethernet(Some(5), 0x800, &ipv4(from, 17, 53, size)));
        frames.push(ethernet(None, 0x800, &ipv4(from, 6, 443, size)));
        frames.push(ethernet(Some(0x2007), 0x800, &ipv4(from, 6, 443, size)));
        frames.push(ethernet(None, 0x800, &ipv4(from, 6, 80, size)));
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
        arp.resize(28, 0);
        frames.push(ethernet(None, 0x806, &arp));
        let mut ipv6 = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
        ipv6.resize(40, 0);
        frames.push(ethernet(None, 0x86dd, &ipv6));
    }
    frames
}

/// tcpdump on the receiving interface, for one direction, until it has `packets`.
fn tcpdump(network: &Network, direction: &str, packets: usize, file: &Path) -> Child {
    let mut command = Command::new("tcpdump");
    command.args(["-i", &network.pair().rx.name, "-Q", direction, "-c", &packets.to_string()]);
    // Its buffer has a place for a frame of the snap length each.
    command.args(["--immediate-mode", "-B", "8192", "-s", "2048", "-w"]).arg(file);
    let mut child = network.rx().spawn(command.stderr(Stdio::piped())).expect("tcpdump starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert_ne!(said.read_line(&mut line).expect("text"), 0, "tcpdump ended");
    }
    // It goes on to write there.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    child
}

/// Waits for a program that ends by itself.
fn end(mut child: Child) {
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        if began.elapsed() > PATIENCE {
            let _over = child.kill();
            panic!("it does not end: packets are missing");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
}

/// What tcpdump finds in a file by `expression`: packets and bytes on the wire.
fn found(file: &Path, expression: &str) -> Count {
    let mut command = Command::new("tcpdump");
    command.arg("-r").arg(file).args(["-w", "-", expression]);
    let output = command.output().expect("tcpdump is installed");
    assert!(output.status.success(), "{expression}: {}", String::from_utf8_lossy(&output.stderr));
    let (mut count, mut rest) = (Count::default(), &output.stdout[24..]);
    while !rest.is_empty() {
        let number = |at: usize| u32::from_ne_bytes(*rest[at..].first_chunk().expect("a header"));
        count.packets += 1;
        count.bytes += u64::from(number(12));
        rest = &rest[16 + number(8) as usize..];
    }
    count
}

/// Statistics of the receiving interface with all filters.
fn on_rx(network: &Network, source: SourceChoice) -> StatisticsBuilder {
    let builder = Statistics::on(&network.pair().rx.name).source(source);
    FILTERS.iter().fold(builder, |builder, text| builder.filter(*text, Filter::new(*text)))
}

fn send(port: &Port, frames: &[Vec<u8>]) {
    FrameSender::new(port).expect("a sender").send_frames(frames).expect("frames are sent");
}

/// Sends packets both ways, and waits until tcpdump has written what `rx` has received and what it has sent to `files`.
fn send_both_ways(network: &Network, received: &[Vec<u8>], sent: &[Vec<u8>], files: &[PathBuf; 2]) {
    let dumps =
        [tcpdump(network, "in", received.len(), &files[0]), tcpdump(network, "out", sent.len(), &files[1])];
    send(&network.pair().tx, received);
    send(&network.pair().rx, sent);
    dumps.into_iter().for_each(end);
}

/// The kernels that began to have tcx, and to tell XDP of tags beside a frame.
const TCX: (u32, u32) = (6, 6);
const TOLD: (u32, u32) = (6, 8);
const TAGS: &str = "a tag beside a frame, which XDP is told of,";
const TAGGING: &str = "a tag beside a frame, for which the test attaches by tcx,";

/// Sends the mixture both ways past the statistics and tcpdump, and compares them.
fn agrees_with_tcpdump(
    builder: impl FnOnce(&Network) -> StatisticsBuilder + Send,
    beside: Option<(u16, u16)>,
) {
    let directory = TempDir::new().expect("a directory");
    let files = ["in.pcap", "out.pcap"].map(|name| directory.path().join(name));
    let network = Network::new(Veth::default()).expect("a private network");
    let (received, sent) = (mixture(60), mixture(25));
    let _tagging =
        beside.map(|(protocol, tci)| Tagging::on(&network.pair().tx, protocol, tci).expect("tags"));
    let mut statistics = network.rx().run(|| builder(&network).start().expect("it counts"));
    send_both_ways(&network, &received, &sent, &files);
    statistics.stop().expect("it stops");
    let reading = statistics.read().expect("counters");

    let sees_sent = statistics.info().source == SourceKind::Tc;
    let expected = |expression: &str| {
        let [received, sent] = [0, 1].map(|way| found(&files[way], expression));
        (received, if sees_sent { sent } else { Count::default() })
    };
    let all = (reading.total.received, reading.total.sent);
    assert_eq!(all, expected(""), "{:?}", statistics.info());
    assert_eq!(all.0.packets, received.len() as u64);
    for (filter, ours) in reading.filters.iter().zip(FILTERS) {
        assert_eq!(filter.name, ours);
        let counts = (filter.counts.received, filter.counts.sent);
        assert_eq!(counts, expected(&theirs(ours)), "`{ours}`, tags {beside:?}, {:?}", statistics.info());
        assert!(counts.0.packets > 0, "`{ours}` has nothing to find");
    }
}

#[root_test]
fn root_tc_counts_both_directions_as_tcpdump_does() {
    agrees_with_tcpdump(|network| on_rx(network, SourceChoice::Auto), None);
    if require_kernel("root_tc_counts_both_directions_as_tcpdump_does", TCX, TAGGING) {
        agrees_with_tcpdump(|network| on_rx(network, SourceChoice::Auto), Some((0x8100, 5)));
    }
}

#[root_test]
fn root_tc_filters_count_both_directions_as_tcpdump_does() {
    agrees_with_tcpdump(|network| by_tc_filters(on_rx(network, SourceChoice::Tc), true), None);
}

#[root_test]
fn root_xdp_counts_received_packets_as_tcpdump_does() {
    if require_kernel("root_xdp_counts_received_packets_as_tcpdump_does", TOLD, TAGS) {
        // The tags beside frames are those that the driver is asked for.
        for beside in [None, Some((0x8100, 5))] {
            agrees_with_tcpdump(|network| on_rx(network, SourceChoice::Xdp), beside);
        }
    }
}

/// That the verifier takes as many at each place is tested where the programs are (weir-bpf).
#[root_test]
fn root_many_filters_count_at_once() {
    let network = Network::new(Veth::default()).expect("a private network");
    let on = Statistics::on("rx0").source(SourceChoice::Xdp);
    let ports = 0..u16::try_from(MOST_FILTERS).expect("few");
    let builder =
        ports.fold(on, |on, port| on.filter(format!("{port}"), Filter::new(format!("udp port {port}"))));
    let mut statistics = network.rx().run(|| builder.start().expect("it counts"));
    for port in [7, 127] {
        let traffic = Traffic::new(60).expect("a size").between(network.pair());
        let frames = traffic.to([10, 9, 9, 9].into(), port).frames(0..u64::from(port));
        send(&network.pair().tx, &frames);
    }
    let reading = wait_for(&mut statistics, 134);
    statistics.stop().expect("it stops");
    let of = |name: &str| reading.filters.iter().find(|one| one.name == name).expect("it was added").counts;
    assert_eq!(of("7").received, Count { packets: 7, bytes: 7 * 60 });
    assert_eq!(of("127").received, Count { packets: 127, bytes: 127 * 60 });
    let all: u64 = reading.filters.iter().map(|one| one.counts.total().packets).sum();
    // The generator sends from one of these ports, too, if at all.
    assert!(all >= 134 && reading.total.total().packets == 134, "{reading:?}");
}

/// Waits until so many packets are counted.
fn wait_for(statistics: &mut Statistics, packets: u64) -> Reading {
    let began = Instant::now();
    loop {
        let reading = statistics.read().expect("counters");
        if reading.total.total().packets >= packets {
            return reading;
        }
        assert!(began.elapsed() < PATIENCE, "{packets} packets are not counted: {reading:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[root_test]
fn root_a_program_of_someone_else_stays() {
    let network = Network::new(Veth::default()).expect("a private network");
    let theirs = Hook::attach(&network.pair().rx, Action::Pass).expect("a program");
    network.rx().run(|| {
        let refused = on_rx(&network, SourceChoice::Xdp).start();
        let Err(error @ Error::Busy { program: Some(_), .. }) = refused else { panic!("{refused:?}") };
        assert!(error.hint().expect("advice").contains("use the tc source"), "{error}");
        let mut statistics = on_rx(&network, SourceChoice::Auto).start().expect("tc runs beside it");
        send(&network.pair().tx, &mixture(1));
        assert_eq!(wait_for(&mut statistics, 7).total.received.packets, 7);
    });
    assert_eq!(theirs.packets(), 7, "their program still runs");
}

#[root_test]
fn root_two_can_count_and_each_ends_alone() {
    if !require_kernel("root_two_can_count_and_each_ends_alone", TOLD, TAGS) {
        return;
    }
    let network = Network::new(Veth::default()).expect("a private network");
    network.rx().run(|| {
        let mut first = on_rx(&network, SourceChoice::Tc).start().expect("it counts");
        let mut second = on_rx(&network, SourceChoice::Tc).start().expect("it counts");
        let mut third = on_rx(&network, SourceChoice::Xdp).start().expect("it counts");
        send(&network.pair().tx, &mixture(1));
        for statistics in [&mut first, &mut second, &mut third] {
            wait_for(statistics, 7);
        }
        second.stop().expect("it stops");
        drop(third);
        send(&network.pair().tx, &mixture(1));
        wait_for(&mut first, 14);
        assert_eq!(second.read().expect("counters").total.total().packets, 7);
        let mut another = on_rx(&network, SourceChoice::Xdp).start().expect("nothing stayed attached");
        assert_eq!(another.read().expect("counters").total, Counts::default());
    });
}

#[root_test]
fn root_what_is_counted_exclusively_goes_no_further() {
    if !require_kernel("root_what_is_counted_exclusively_goes_no_further", TOLD, TAGS) {
        return;
    }
    let network = Network::new(Veth::default()).expect("a private network");
    network.rx().run(|| {
        let mut behind = on_rx(&network, SourceChoice::Tc).start().expect("it counts");
        let exclusive = on_rx(&network, SourceChoice::Auto).mode(Mode::Exclusive);
        let mut before = exclusive.filter("ours", Filter::new("udp")).start().expect("it counts");
        send(&network.pair().tx, &mixture(1));
        assert_eq!(wait_for(&mut before, 7).total.received.packets, 7);
        before.stop().expect("it stops");
        assert_eq!(behind.read().expect("counters").total.received.packets, 0, "all were dropped");
        send(&network.pair().tx, &mixture(1));
        assert_eq!(wait_for(&mut behind, 7).total.received.packets, 7, "packets pass again");
    });
}

#[root_test]
fn root_an_interface_that_goes_is_told_and_its_counts_stay() {
    for source in [SourceChoice::Tc, SourceChoice::Xdp] {
        if source == SourceChoice::Xdp
            && !require_kernel("root_an_interface_that_goes_is_told_and_its_counts_stay", TOLD, TAGS)
        {
            continue;
        }
        let network = Network::new(Veth::default()).expect("a private network");
        let path = format!("/proc/self/fd/{}", network.rx().as_fd().as_raw_fd());
        let namespace = Namespace::find(&path).expect("a namespace");
        let builder = on_rx(&network, source).namespace(Some(&namespace));
        let mut statistics = builder.start().expect("it counts in another namespace");
        send(&network.pair().tx, &mixture(1));
        wait_for(&mut statistics, 7);
        let deleted = network.rx().run(|| Command::new("ip").args(["link", "del", "rx0"]).status());
        assert!(deleted.expect("ip runs").success());
        let began = Instant::now();
        let error = loop {
            if let Err(error) = statistics.wait(Duration::from_millis(100)) {
                break error;
            }
            assert!(began.elapsed() < PATIENCE, "nobody noticed");
        };
        let told = error.to_string();
        assert!(told.ends_with("/rx0` is gone") && matches!(error, Error::InterfaceGone { .. }), "{told}");
        statistics.stop().expect("it stops");
        assert_eq!(statistics.read().expect("counters").total.received.packets, 7);
    }
}

#[root_test]
fn root_loopback_is_counted_once() {
    let network = Network::new(Veth::default()).expect("a private network");
    network.rx().run(|| {
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip runs").success());
        let mut statistics =
            Statistics::on("lo").filter("dns", Filter::new("udp port 53")).start().expect("it counts");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for _ in 0..5 {
            socket.send_to(b"12345678", "127.0.0.1:53").expect("it is sent");
        }
        let dns = loop {
            let reading = wait_for(&mut statistics, 5);
            if reading.filters[0].counts.received.packets >= 5 {
                break reading.filters[0].counts;
            }
        };
        assert_eq!(dns.received, Count { packets: 5, bytes: 5 * (14 + 20 + 8 + 8) });
        assert_eq!(dns.sent, Count::default());
    });
}

#[root_test]
fn root_a_wrong_filter_is_shown_with_its_place() {
    let network = Network::new(Veth::default()).expect("a private network");
    network.rx().run(|| {
        let builder = on_rx(&network, SourceChoice::Auto).filter("wrong", Filter::new("udp prot 53"));
        let error = builder.start().expect_err("it is wrong").to_string();
        assert!(error.starts_with("invalid filter: ") && error.contains("udp prot 53"), "{error}");
        assert!(error.contains('^'), "{error}");
    });
}

#[root_test]
fn root_filters_that_are_too_much_together_are_told() {
    let network = Network::new(Veth::default()).expect("a private network");
    let filter = |number: usize| {
        let terms = (0..200).map(|at| format!("ether[{}] = {}", 60 + at, (number + at * 7) % 256));
        terms.collect::<Vec<_>>().join(" or ")
    };
    network.rx().run(|| {
        let on = Statistics::on("rx0");
        let one = on.clone().filter("one", Filter::new(filter(0)));
        drop(one.start().expect("alone it is not too much"));
        let all = (0..MOST_FILTERS).fold(on, |on, n| on.filter(n.to_string(), Filter::new(filter(n))));
        let error = all.start().expect_err("it is too much").to_string();
        assert!(
            error.starts_with("cannot count these filters at once: ") && error.contains("try "),
            "{error}"
        );
    });
}

/// `kill -9` leaves nothing attached: the next one can take the same place.
#[test]
fn root_nothing_stays_after_a_kill() {
    const CHILD: &str = "WEIR_TEST_COUNTS_UNTIL_KILLED";
    if let Some(source) = std::env::var_os(CHILD) {
        let source = if source == "xdp" { SourceChoice::Xdp } else { SourceChoice::Tc };
        let _statistics = Statistics::on("rx0").source(source).start().expect("it counts");
        println!("\ncounting");
        loop {
            std::thread::park();
        }
    }
    if !require_root("root_nothing_stays_after_a_kill") {
        return;
    }
    let network = Network::new(Veth::default()).expect("a private network");
    for source in ["xdp", "tc"] {
        let what = "tc without a process that takes filters away";
        if source == "tc" && !require_kernel("root_nothing_stays_after_a_kill", TCX, what) {
            continue;
        }
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "root_nothing_stays_after_a_kill", "--nocapture"]).env(CHILD, source);
        let mut child = network.rx().spawn(command.stdout(Stdio::piped())).expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.expect("text") == "counting"), "it ended");
        let attached = || {
            network.rx().run(|| {
                let links = link::links().expect("interfaces");
                let rx0 = links.iter().find(|link| link.name == "rx0").expect("it is there");
                let tcx = query::tcx(rx0.index, Side::Ingress).expect("it can be asked");
                rx0.xdp_program.is_some() || tcx.is_some_and(|programs| !programs.is_empty())
            })
        };
        assert!(attached(), "{source}");
        kill_process(Pid::from_child(&child), Signal::KILL).expect("it runs");
        child.wait().expect("it can be waited for");
        assert!(!attached(), "{source}");
    }
}
