//! Compares `weir-sys`'s view of devices with the network's configuration and with iproute2.
#![forbid(unsafe_code)]

use std::process::{Command, Stdio};

use weir_lab::{Action, Generator, Hook, NetNs, Network, Traffic, Veth, root_test};
use weir_sys::ethtool::Ethtool;
use weir_sys::link::{Link, links};
use weir_sys::{netdev, veth};

fn link(netns: &NetNs, name: &str) -> Link {
    let all = netns.run(links).expect("netlink answers");
    all.into_iter().find(|link| link.name == name).expect("the interface is there")
}

#[root_test]
fn root_a_pair_made_here_is_one_for_iproute2() {
    let netns = NetNs::new().expect("namespace");
    netns.run(|| veth::create("left", "right")).expect("a pair");
    let mut ip = Command::new("ip");
    ip.args(["-br", "link", "show", "type", "veth"]).stdout(Stdio::piped());
    let output = netns.spawn(&mut ip).expect("ip starts").wait_with_output().expect("ip ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("left@right") && text.contains("right@left"), "{text}");
    let left = link(&netns, "left");
    assert!(left.has_carrier() && left.kind.as_deref() == Some("veth"), "{left:?}");
    let error = netns.run(|| veth::create("left", "other")).expect_err("the name is taken");
    assert!(error.to_string().contains("left and other"), "{error}");
    assert_eq!(error.source.kind(), std::io::ErrorKind::AlreadyExists, "{error}");
}

/// Returns the output of a program in the namespace.
fn told(netns: &NetNs, program: &str, arguments: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).stdout(Stdio::piped());
    let output = netns.spawn(&mut command).expect("it starts").wait_with_output().expect("it ends");
    assert!(output.status.success(), "{program} {arguments}");
    String::from_utf8(output.stdout).expect("text")
}

#[root_test]
fn root_a_network_is_for_iproute2_and_ethtool_as_it_was_asked_for() {
    let veth = Veth::default().ipv4().ipv6().mtu(1400).queues(2).wire_packets().feature("rxvlan", false);
    let network = Network::new(veth).expect("a private network");
    let has = |text: &str, wanted: &[&str]| {
        wanted.iter().for_each(|wanted| assert!(text.contains(wanted), "{wanted:?} is not in {text}"));
    };
    for (port, host, peer) in [(&network.pair().tx, 1, 2), (&network.pair().rx, 2, 1)] {
        let about =
            |program, arguments: &str| told(&port.netns, program, &format!("{arguments} {}", port.name));
        let link = about("ip", "-d link show dev");
        has(&link, &["NOARP,UP,LOWER_UP", "mtu 1400", "state UP", "veth", "numtxqueues 2", "numrxqueues 2"]);
        has(&link, &[&format!("link/ether 02:77:00:00:00:0{host}")]);
        let addresses = about("ip", "-o address show dev");
        has(
            &addresses,
            &[&format!("inet 10.77.0.{host}/24"), &format!("inet6 fd77::{host}/64 scope global nodad")],
        );
        assert_eq!(addresses.lines().count(), 2, "no others: {addresses}");
        for known in [format!("10.77.0.{peer}"), format!("fd77::{peer}")] {
            let neighbour = format!("{known} lladdr 02:77:00:00:00:0{peer} PERMANENT");
            has(&about("ip", "neighbour show dev"), &[&neighbour]);
        }
        let features = about("ethtool", "-k");
        has(&features, &["generic-receive-offload: on", "generic-segmentation-offload: off"]);
        has(&features, &["tcp-segmentation-offload: off", "tx-checksumming: off", "rx-vlan-offload: off"]);
        has(&features, &["tx-vlan-offload: on"]);
    }
    has(&told(network.rx(), "ip", "link show dev lo"), &["LOOPBACK,UP"]);

    let loud = Network::new(Veth::default().chatter()).expect("a private network");
    assert!(!told(loud.rx(), "ip", "link show dev rx0").contains("NOARP"));
}

#[root_test]
fn root_a_counter_of_the_driver_is_the_one_of_ethtool() {
    let network = Network::new(Veth::default().queues(2)).expect("a private network");
    let pair = network.pair();
    let traffic = Traffic::new(60).expect("size").between(pair);
    assert_eq!(
        Generator::new(pair, &traffic).expect("generator").cpu(1).send(777).expect("send").accepted,
        777
    );
    let ethtool = pair.tx.netns.run(Ethtool::new).expect("a socket");
    let all = told(&pair.tx.netns, "ethtool", "-S tx0");
    for counter in ["peer_ifindex", "rx_queue_0_xdp_packets", "tx_queue_0_xdp_xmit", "tx_queue_1_xdp_xmit"] {
        let value = ethtool.counter("tx0", counter).expect("veth has it");
        assert!(
            all.lines().any(|line| line.trim() == format!("{counter}: {value}")),
            "{counter}: {value}, {all}"
        );
    }
    assert_eq!(ethtool.counter("tx0", "tx_queue_2_xdp_xmit"), None);
    assert_eq!(ethtool.counter("lo", "tx_queue_0_xdp_xmit"), None);
    assert_eq!(ethtool.counter("tx1", "tx_queue_0_xdp_xmit"), None);
}

#[root_test]
fn root_a_link_tells_of_queues_and_programs() {
    let network = Network::new(Veth::default().queues(3)).expect("a private network");
    let port = &network.pair().rx;
    let before = link(&port.netns, &port.name);
    assert_eq!((before.rx_queues, before.tx_queues, before.xdp_program), (3, 3, None));
    let hook = Hook::attach(port, Action::Drop).expect("a program");
    let during = link(&port.netns, &port.name);
    assert!(during.xdp.native.is_some() && during.xdp.generic.is_none(), "{during:?}");
    assert_eq!(during.xdp_program, during.xdp.native);
    drop(hook);
    assert_eq!(link(&port.netns, &port.name).xdp, before.xdp);
}

#[root_test]
fn root_veth_runs_xdp_programs() {
    let network = Network::new(Veth::default()).expect("a private network");
    let port = &network.pair().rx;
    let Some(all) = port.netns.run(netdev::xdp_abilities).expect("netlink answers") else { return };
    let veth = all.iter().find(|abilities| abilities.interface == port.index).expect("it is listed");
    assert!(veth.native() && veth.redirect() && !veth.zero_copy(), "{veth:?}");
    // Redirection to it requires NAPI on this end, which GRO has enabled.
    assert!(veth.redirect_target(), "{veth:?}");
}
