//! Captures on devices with both libraries, in private networks: see `conformance.rs`.

mod programs;

use std::process::Command;

use programs::{Program, in_a_network};
use weir_lab::require_root;

#[test]
fn root_live() {
    if require_root("root_live") {
        Program::compile("live").compare_by(&[], in_a_network);
    }
}

/// Threads that are cancelled while they wait for packets, with a packet socket and with a pool behind our library.
#[test]
fn root_cancelled_threads() {
    if require_root("root_cancelled_threads") {
        let program = Program::compile("cancel");
        for source in ["af_packet", "tc"] {
            let run =
                |command: &mut Command| in_a_network(command.env("WEIR_SOURCE", source).args(["d0", "d1"]));
            program.compare_by(&[], run);
        }
    }
}

/// What the system's library does not do reliably: a lone packet without a timeout, and filters for a direction.
#[test]
fn root_live_beyond_libpcap() {
    if !require_root("root_live_beyond_libpcap") {
        return;
    }
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
        Program::compile("live").compare_by(&[], run);
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
