//! Captures on devices with both libraries, in private networks: see `conformance.rs`.

mod programs;

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use programs::{Program, in_a_network, library};
use weir_lab::{require_root, root_test};
use weir_sys::netns::NetNs;

#[root_test]
fn root_live() {
    Program::compile("live").compare_by(&[], in_a_network);
}

/// Threads that are cancelled while they wait for packets, with a packet socket and with a pool behind our library.
#[root_test]
fn root_cancelled_threads() {
    let program = Program::compile("cancel");
    for source in ["af_packet", "tc"] {
        let run = |command: &mut Command| in_a_network(command.env("WEIR_SOURCE", source).args(["d0", "d1"]));
        program.compare_by(&[], run);
    }
}

/// What the system's library does not do reliably: a lone packet without a timeout, and filters for a direction.
#[root_test]
fn root_live_beyond_libpcap() {
    let program = Program::compile("live");
    let output = in_a_network(program.on_ours("sanitized").env("WEIR_REPORT", "1").arg("ours"));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
    let lone = "idle 1\nreadable 1\npcap_next_ex = 1\npcap_next_ex = 1\nidle 1\n";
    assert_eq!(shown.matches(lone).count(), 3, "{shown}");
    let (inbound, outbound) = shown.split_once("filter \"outbound\": 0 0\n").expect("both filters");
    let (_, inbound) = inbound.split_once("filter \"inbound\": 0 0\n").expect("both filters");
    assert!(inbound.starts_with("  60 of 60 bytes, now: "), "{inbound}");
    assert_eq!(inbound.lines().count(), 2, "{inbound}");
    assert_eq!(outbound, "  then 0\n");
    let reported = String::from_utf8_lossy(&output.stderr);
    let line = "weir: d0: packet socket; received 2, lost 0, lost by the device 0";
    assert!(reported.lines().any(|reported| reported == line), "{reported}");
}

/// The same with weir's pool behind our library, but for what `live.c` says about it.
fn with_a_pool(test: &str, source: &str, word: &str) {
    if require_root(test) {
        let run = |command: &mut Command| in_a_network(command.env("WEIR_SOURCE", source).arg(word));
        // What differs without the sanitizer differs without a pool, too.
        Program::compile("live").compare_kinds(&["sanitized"], &[], run);
    }
}

#[test]
fn root_live_with_tc() {
    with_a_pool("root_live_with_tc", "tc", "pool");
}

#[test]
fn root_live_with_xdp() {
    with_a_pool("root_live_with_xdp", "xdp", "received");
}

#[test]
fn root_live_with_xdp_and_tc() {
    with_a_pool("root_live_with_xdp_and_tc", "xdp+tc", "pool");
}

#[test]
fn root_live_with_what_weir_chooses() {
    with_a_pool("root_live_with_what_weir_chooses", "auto", "pool");
}

/// In the stack XDP sees no tag that is beside the frame: a capture says so, and takes no filter that asks for tags.
#[root_test]
fn root_tags_that_xdp_does_not_see() {
    let namespace = NetNs::new().expect("a namespace");
    let run = |command: &mut Command| {
        let child = namespace.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        child.expect("it starts").wait_with_output().expect("it ends")
    };
    let shell = |script: &str| {
        let done = run(Command::new("sh").arg("-ec").arg(script));
        assert!(done.status.success(), "{done:?}");
    };
    // With fewer queues than the other end sends on, veth runs no program itself.
    shell(
        "ip link add far0 numtxqueues 2 type veth peer name near0 numtxqueues 1 numrxqueues 1
         ip link set far0 up
         ip link set near0 up",
    );
    let tcpdump = |source: &str, filter: &str| {
        let mut command = Command::new("tcpdump");
        command.env("LD_PRELOAD", library()).env("WEIR_SOURCE", source);
        let output = run(command.args(["-B", "2048", "-i", "near0", "-d", filter]));
        // Whoever lists programs at that moment keeps those of a process that has ended.
        let shown = || String::from_utf8(run(Command::new("ip").args(["link", "show", "near0"])).stdout);
        let start = Instant::now();
        while shown().expect("UTF-8").contains("xdp") {
            assert!(start.elapsed() < Duration::from_secs(30), "{source} {filter}: a program stays");
            thread::sleep(Duration::from_millis(20));
        }
        (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let text = "VLAN tags may be missing: near0 can strip them";
    let keep = "ethtool -K far0 txvlan off tx-vlan-stag-hw-insert off";
    for source in ["xdp", "xdp+tc"] {
        for (filter, taken) in
            [("udp", true), ("vlan 6", false), ("not vlan", false), ("ether proto 0x8100", false)]
        {
            let (success, said) = tcpdump(source, filter);
            assert_eq!(success, taken, "{source} {filter}: {said}");
            assert!(said.starts_with(&format!("tcpdump: WARNING: {text}")), "{source} {filter}: {said}");
            assert!(said.contains(keep), "{source} {filter}: {said}");
            assert_eq!(said.contains(&format!("tcpdump: {text}")), !taken, "{source} {filter}: {said}");
        }
    }
    for source in ["auto", "tc"] {
        let (success, said) = tcpdump(source, "vlan 6");
        assert!(success && !said.contains("VLAN"), "{source}: {said}");
    }
    shell(keep);
    let (success, said) = tcpdump("xdp", "vlan 6");
    assert!(success && !said.contains("VLAN"), "{said}");
}
