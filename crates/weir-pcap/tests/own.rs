//! weir's own extensions, with each source.

mod programs;

use std::fs;
use std::process::Command;

use programs::{Program, in_a_network};
use weir_lab::root_test;

/// What the program prints with a packet socket.
const LINES: &str = include_str!("c/own.txt");

#[root_test]
fn root_own_extensions() {
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
    let output = in_a_network(command.current_dir(directory.path()).env("WEIR_REPORT", "1"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.lines().any(|line| line.contains("d1: ") && !line.contains("in the process")), "{errors}");
    String::from_utf8(output.stdout).expect("text")
}
