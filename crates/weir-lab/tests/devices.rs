//! What `weir-sys` says of devices, against what the network was made with and what iproute2 says.
#![forbid(unsafe_code)]

use std::process::{Command, Stdio};

use weir_lab::{Hook, NetNs, Network, Verdict, Veth, require_root};
use weir_sys::link::{Link, links};
use weir_sys::{netdev, veth};

fn link(netns: &NetNs, name: &str) -> Link {
    let all = netns.run(links).expect("netlink answers");
    all.into_iter().find(|link| link.name == name).expect("the interface is there")
}

#[test]
fn root_a_pair_made_here_is_one_for_iproute2() {
    if !require_root("root_a_pair_made_here_is_one_for_iproute2") {
        return;
    }
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

#[test]
fn root_a_link_tells_of_queues_and_programs() {
    if !require_root("root_a_link_tells_of_queues_and_programs") {
        return;
    }
    let network = Network::new(Veth::default().queues(3)).expect("a private network");
    let port = &network.pair().rx;
    let before = link(&port.netns, &port.name);
    assert_eq!((before.rx_queues, before.tx_queues, before.xdp_program), (3, 3, None));
    let hook = Hook::attach(port, Verdict::Drop).expect("a program");
    let during = link(&port.netns, &port.name);
    assert!(during.xdp.native.is_some() && during.xdp.generic.is_none(), "{during:?}");
    assert_eq!(during.xdp_program, during.xdp.native);
    drop(hook);
    assert_eq!(link(&port.netns, &port.name).xdp, before.xdp);
}

#[test]
fn root_veth_runs_xdp_programs() {
    if !require_root("root_veth_runs_xdp_programs") {
        return;
    }
    let network = Network::new(Veth::default()).expect("a private network");
    let port = &network.pair().rx;
    let Some(all) = port.netns.run(netdev::xdp_abilities).expect("netlink answers") else { return };
    let veth = all.iter().find(|abilities| abilities.interface == port.index).expect("it is listed");
    assert!(veth.native() && veth.redirect() && !veth.zero_copy(), "{veth:?}");
    // A redirection to it needs NAPI on this end, which GRO has switched on.
    assert!(veth.redirect_target(), "{veth:?}");
}
