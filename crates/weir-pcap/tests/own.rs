//! weir's own extensions, with each source.

mod programs;

use std::fs;
use std::process::{Command, Output, Stdio};

use programs::Program;
use weir_lab::require_root;
use weir_sys::netns::NetNs;

/// Two connected interfaces.
const INTERFACES: &str = "
set -e
for which in default all; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
ip link add d0 address 02:00:00:00:00:01 type veth peer name d1 address 02:00:00:00:00:02
ip link set d0 up
ip link set d1 up
until ip link show d0 | grep -q 'state UP' && ip link show d1 | grep -q 'state UP'; do sleep 0.05; done
";

/// What the program prints with a packet socket.
const LINES: &str = include_str!("c/own.txt");

#[test]
fn root_own_extensions() {
    if !require_root("root_own_extensions") {
        return;
    }
    let program = Program::compile_for_ours("tests/c", "own");
    for kind in ["plain", "sanitized"] {
        assert_eq!(printed(program.on_ours(kind).arg("d1")), LINES, "{kind}");
    }
    // Packets of a chunk come together, and the process has none to reject.
    for device in ["xdp:d1", "tc:d1", "xdp+tc:d1"] {
        let mut together = printed(program.on_ours("sanitized").arg(device));
        together = together.replacen("more than one at once: 1", "more than one at once: 0", 2);
        assert_eq!(together, LINES, "{device}");
    }
}

/// Runs a command in a network of its own and a directory with the set `hosts`; returns what it prints.
fn printed(command: &mut Command) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("hosts"), "10.0.0.1\n10.0.0.3\n").expect("a file");
    let namespace = NetNs::new().expect("a namespace");
    let run = |command: &mut Command| -> Output {
        let child = namespace.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        child.expect("it starts").wait_with_output().expect("it ends")
    };
    assert!(run(Command::new("sh").arg("-c").arg(INTERFACES)).status.success());
    let output = run(command.current_dir(directory.path()).env("WEIR_REPORT", "1"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.lines().any(|line| line.contains("d1: ") && !line.contains("in the process")), "{errors}");
    String::from_utf8(output.stdout).expect("text")
}
