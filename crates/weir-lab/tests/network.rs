//! Tests of what passes through a network and what does not.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use weir_lab::{
    Action, FrameSender, Generator, Hook, LinkCounters, NetNs, Network, StackCounters, Traffic, Veth,
    root_test, tcp_transfer,
};
use weir_sys::link::{Link, links};
use weir_sys::veth;

const PATIENCE: Duration = Duration::from_secs(30);

#[root_test]
fn root_tcp_moves_bytes_unchanged() {
    let veths = [
        Veth::default().ipv4(),
        Veth::default().ipv4().wire_packets(),
        Veth::default().ipv6().mtu(9000).queues(2),
    ];
    for veth in veths {
        let network = Network::new(veth).expect("network");
        let before = StackCounters::read(network.rx()).expect("counters");
        let report = tcp_transfer(network.pair(), 5_000_001).expect("transfer");
        assert_eq!(report.bytes, 5_000_001);
        assert_eq!(report.sent_checksum, report.received_checksum);
        let after = StackCounters::read(network.rx()).expect("counters");
        assert_eq!(after.get("TcpPassiveOpens") - before.get("TcpPassiveOpens"), 1);
        let link = LinkCounters::read(&network.pair().rx).expect("counters");
        assert!(link.rx_bytes > report.bytes, "{link:?}");
    }
}

#[root_test]
fn root_a_silent_network_is_silent() {
    let network = Network::new(Veth::default().ipv4().ipv6()).expect("network");
    tcp_transfer(network.pair(), 1).expect("addresses work");
    wait_until(|| is_closed(network.tx()) && is_closed(network.rx()), "the connection is closed");
    let before = counters(&network);
    wait_until_another_has_spoken();
    assert_eq!(counters(&network), before);
}

fn counters(network: &Network) -> [LinkCounters; 2] {
    [&network.pair().tx, &network.pair().rx].map(|port| LinkCounters::read(port).expect("counters"))
}

fn wait_until(done: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}: in vain");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether no open connection can still send anything.
fn is_closed(netns: &NetNs) -> bool {
    const TIME_WAIT: &str = "06";
    let sockets = netns.run(|| fs::read_to_string("/proc/thread-self/net/tcp")).expect("it can be read");
    sockets.lines().skip(1).all(|socket| socket.split_whitespace().nth(3) == Some(TIME_WAIT))
}

/// Creates a network that is not silent, and waits until each end has sent everything that it sends on its own:
/// duplicate address detection, group membership reports, and finally router solicitations. A network created earlier
/// would have done so, too.
fn wait_until_another_has_spoken() {
    let loud = Network::new(Veth::default().ipv4().ipv6().chatter()).expect("network");
    let spoken = |netns: &NetNs| {
        let counters =
            netns.run(|| fs::read_to_string("/proc/thread-self/net/snmp6")).expect("it can be read");
        let has = |name| counters.lines().any(|line| line.starts_with(name) && !line.ends_with("\t0"));
        has("Icmp6OutRouterSolicits") && has("Icmp6OutNeighborSolicits") && has("Icmp6OutMLDv2Reports")
    };
    wait_until(|| spoken(loud.tx()) && spoken(loud.rx()), "a network that is not silent speaks");
}

#[root_test]
fn root_nothing_is_sent_before_the_test_sends() {
    let network = Network::new(Veth::default().ipv4().ipv6()).expect("network");
    wait_until_another_has_spoken();
    assert_eq!(counters(&network), [LinkCounters::default(); 2]);
}

#[root_test]
fn root_pairs_are_separate() {
    let mut network = Network::new(Veth::default()).expect("network");
    let macs = ([2, 0, 0, 0, 0, 8], [2, 0, 0, 0, 0, 9]);
    let second = network.connect(Veth::default().macs(macs.0, macs.1)).expect("second pair").clone();
    assert_eq!((second.tx.name.as_str(), second.rx.name.as_str()), ("tx1", "rx1"));
    assert_eq!((second.tx.mac, second.rx.mac), macs);

    let hooks: Vec<_> =
        network.pairs().iter().map(|pair| Hook::attach(&pair.rx, Action::Drop).expect("hook")).collect();
    let traffic = Traffic::new(60).expect("size").between(&second);
    Generator::new(&second, &traffic).expect("generator").send(1000).expect("send");
    assert_eq!(hooks[1].wait_for(1000, PATIENCE), 1000);
    assert_eq!(hooks[0].packets(), 0);
}

#[root_test]
fn root_cards_are_moved_with_their_names_and_are_silent() {
    let home = NetNs::new().expect("namespace");
    home.run(|| veth::create_down("left", "right")).expect("a pair");
    let network = home.run(|| Network::of_cards("left", "right")).expect("they are there");
    let pair = network.pair();
    assert_eq!((pair.tx.name.as_str(), pair.rx.name.as_str()), ("left", "right"));
    assert_eq!(home.run(links).expect("interfaces").len(), 1, "nothing but the loopback is left");
    let sender = FrameSender::new(&pair.tx).expect("sender");
    assert_eq!(sender.send_frames(&Traffic::new(60).expect("size").frames(0..10)).expect("send"), 10);
    wait_until_another_has_spoken();
    let [tx, rx] = counters(&network);
    assert_eq!((tx.tx_packets, tx.rx_packets, rx.tx_packets, rx.rx_packets), (10, 0, 0, 10));

    let error = home.run(|| Network::of_cards("left", "right")).expect_err("they are gone");
    assert!(error.to_string().contains("query interface left"), "{error}");
}

#[root_test]
fn root_cards_return_as_they_were() {
    let home = NetNs::new().expect("namespace");
    home.run(|| veth::create("left", "right")).expect("a pair");
    home.run(|| veth::create_down("up", "down")).expect("a pair");
    let seen = || {
        let of = |link: Link| (link.name.clone(), link.index, link.is_up(), link.resolves(), link.mtu);
        home.run(links).expect("interfaces").into_iter().map(of).collect::<Vec<_>>()
    };
    let before = seen();
    for (tx, rx) in [("left", "right"), ("up", "down")] {
        let network = home.run(|| Network::of_cards(tx, rx)).expect("they are there");
        assert_eq!(seen().len(), before.len() - 2);
        drop(network);
        assert_eq!(seen(), before);
    }
    home.run(|| Network::of_cards("left", "gone")).expect_err("there is no such card");
    assert_eq!(seen(), before, "the other was not kept");
}

#[root_test]
fn root_frames_sent_the_moment_a_network_is_there_arrive() {
    let traffic = Traffic::new(60).expect("size");
    for _ in 0..5 {
        let network = Network::new(Veth::default()).expect("network");
        let sender = FrameSender::new(&network.pair().tx).expect("sender");
        assert_eq!(sender.send_frames(&traffic.frames(0..10)).expect("send"), 10);
    }
}

#[root_test]
fn root_queues_are_as_many_as_asked_for() {
    let network = Network::new(Veth::default().queues(3)).expect("network");
    let mut list = Command::new("ls");
    let child = network.rx().spawn(list.arg("/sys/class/net/rx0/queues").stdout(Stdio::piped())).expect("ls");
    let output = child.wait_with_output().expect("ls");
    let queues: HashSet<_> = str::from_utf8(&output.stdout).expect("text").split_whitespace().collect();
    assert_eq!(queues, HashSet::from(["rx-0", "rx-1", "rx-2", "tx-0", "tx-1", "tx-2"]));
}

#[root_test]
fn root_what_the_kernel_refuses_is_told() {
    let error = Network::new(Veth::default().mtu(70_000)).expect_err("too large");
    assert!(error.to_string().contains("MTU of 70000: must be from 68 to 65535"), "{error}");
    let group = [1, 0, 0, 0, 0, 1];
    let error = Network::new(Veth::default().macs(group, group)).expect_err("an address of a group");
    assert!(error.to_string().contains("create the veth pair tx0 and rx0"), "{error}");
    let error = Network::new(Veth::default().feature("warp", true)).expect_err("no such feature");
    assert!(error.to_string().contains("feature warp of tx0"), "{error}");
    assert!(error.to_string().contains("ethtool -k"), "{error}");
    let error = Network::new(Veth::default().feature("rx-fcs", true)).expect_err("veth cannot");
    assert!(error.to_string().contains("feature rx-fcs of tx0"), "{error}");
}
