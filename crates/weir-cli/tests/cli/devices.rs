//! `weir devices` against iproute2, ethtool and bpftool.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use serde_json::Value;
use weir_lab::{Action, Hook, Network, Veth, root_test};

use crate::harness::{Ended, Running, run, weir};

/// What another program says as JSON inside the receiving namespace.
fn judge(network: &Network, program: &str, args: &[&str]) -> Value {
    let ended = Running::spawn(network, Command::new(program).args(args)).wait().succeeded();
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn tc(network: &Network, args: &str) {
    // A tilde stands for a space inside of a word.
    let words = args.split(' ').map(|word| word.replace('~', " "));
    Running::spawn(network, Command::new("tc").args(words)).wait().succeeded();
}

/// The device `name` as `weir devices --json` has it.
fn device(ended: &Ended, name: &str) -> Value {
    let listing: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(listing["type"], "devices");
    let devices = listing["devices"].as_array().expect("an array");
    devices.iter().find(|device| device["name"] == name).expect("it is listed").clone()
}

/// Runs weir as a user without any privilege.
fn as_nobody(network: &Network, args: &[&str]) -> Ended {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_weir")]).args(args);
    Running::spawn(network, &mut command).wait()
}

#[root_test]
fn root_it_agrees_with_iproute2_and_ethtool() {
    let network = Network::new(Veth::default().queues(2).mtu(1400).ipv4().ipv6()).expect("a private network");
    let own = device(&run(&network, &["devices", "--json"]).succeeded(), "rx0");

    let ip = &judge(&network, "ip", &["-j", "-d", "address", "show", "rx0"])[0];
    for (ours, theirs) in
        [("mtu", "mtu"), ("mac", "address"), ("index", "ifindex"), ("promiscuity", "promiscuity")]
    {
        assert_eq!(own[ours], ip[theirs], "{ours}");
    }
    assert_eq!(own["kind"], ip["linkinfo"]["info_kind"]);
    assert_eq!(own["queues"]["rx"], ip["num_rx_queues"]);
    assert_eq!(own["queues"]["tx"], ip["num_tx_queues"]);
    let theirs: Vec<String> = ip["addr_info"]
        .as_array()
        .expect("addresses")
        .iter()
        .map(|address| format!("{}/{}", address["local"].as_str().expect("an address"), address["prefixlen"]))
        .collect();
    assert_eq!(own["addresses"], Value::from(theirs));

    let ethtool = &judge(&network, "ethtool", &["--json", "-k", "rx0"])[0];
    let offloads = own["offloads"].as_object().expect("offloads");
    assert!(offloads.len() > 40, "{offloads:?}");
    let mut compared = 0;
    for (name, theirs) in ethtool.as_object().expect("features") {
        let Some(own) = offloads.get(name) else { continue };
        assert_eq!((&own["on"], &own["fixed"]), (&theirs["active"], &theirs["fixed"]), "{name}");
        compared += 1;
    }
    assert!(compared > 30, "{compared} of {ethtool}");
    assert_eq!(own["driver"]["name"], "veth");
    assert_eq!((&own["up"], &own["carrier"]), (&Value::from(true), &Value::from(true)));
    assert_eq!(own["auto"]["source"], "tc", "it has an address");
}

#[root_test]
fn root_programs_are_those_of_bpftool() {
    let network = Network::new(Veth::default()).expect("a private network");
    let port = &network.pair().rx;
    let _hook = Hook::attach(port, Action::Drop).expect("a program");
    tc(&network, "qdisc add dev rx0 clsact");
    tc(&network, "filter add dev rx0 egress prio 7 u32 match u32 0 0 flowid 1:1");
    tc(&network, "filter add dev rx0 ingress prio 3 bpf bytecode 1,6~0~0~0 flowid 1:1");

    let ended = run(&network, &["devices", "rx0", "--json"]).succeeded();
    let auto = device(&ended, "rx0")["auto"].clone();
    assert_eq!(auto["source"], "tc", "a veth carries both directions: {auto}");
    let programs = device(&ended, "rx0")["programs"].clone();
    let bpftool = judge(&network, "bpftool", &["-j", "net", "show", "dev", "rx0"]);
    let theirs = &bpftool[0]["xdp"][0];
    assert_eq!(programs[0]["hook"], "xdp native", "{programs} {theirs}");
    assert_eq!(programs[0]["id"], theirs["id"], "{programs} {theirs}");
    let id = theirs["id"].to_string();
    let shown = judge(&network, "bpftool", &["-j", "prog", "show", "id", &id]);
    assert_eq!(programs[0]["name"], shown["name"]);
    let owners = programs[0]["owners"].as_array().expect("owners");
    assert!(owners.iter().any(|owner| owner["pid"] == std::process::id()), "we hold it: {programs}");
    let rest: Vec<(&str, &str)> = programs.as_array().expect("programs")[1..]
        .iter()
        .map(|program| (program["hook"].as_str().expect("a hook"), program["name"].as_str().expect("a name")))
        .collect();
    assert_eq!(rest, [("clsact ingress", "bpf"), ("clsact egress", "u32")]);

    let page = String::from_utf8(run(&network, &["devices", "rx0"]).succeeded().stdout).expect("text");
    assert!(page.contains(&format!("(id {id})")) && page.contains("clsact egress: u32"), "{page}");
}

#[root_test]
fn root_without_privilege_it_tells_what_it_can() {
    let network = Network::new(Veth::default().ipv6()).expect("a private network");
    let table = String::from_utf8(as_nobody(&network, &["devices"]).succeeded().stdout).expect("text");
    assert!(table.contains("rx0") && table.contains("veth") && table.contains("fd77::2/64"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let page = as_nobody(&network, &["devices", "rx0"]).succeeded();
    let page = String::from_utf8(page.stdout).expect("text");
    assert!(page.contains("not visible to this user: tcx programs (CAP_NET_ADMIN"), "{page}");
    as_nobody(&network, &["devices", "rx9"]).failed(&["no interface named `rx9`", "rx0"]);
}

#[root_test]
fn root_another_namespace_is_looked_into() {
    let network = Network::new(Veth::default()).expect("a private network");
    let path = format!("/proc/{}/fd/{}", std::process::id(), network.rx().as_fd().as_raw_fd());
    let inside = run(&network, &["devices", "rx0", "--json"]).succeeded();
    let outside = weir(&["devices", "rx0", "--json", "--netns", &path]).output().expect("weir runs");
    assert_eq!(String::from_utf8_lossy(&outside.stdout), String::from_utf8_lossy(&inside.stdout));
    let wrong = weir(&["devices", "--netns", "no-such-namespace"]).output().expect("weir runs");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no-such-namespace"));
}
