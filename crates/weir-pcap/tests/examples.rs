//! Runs the examples in C on both libraries.

mod programs;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use programs::{Difference, Program};
use rustix::process::{Pid, Signal, kill_process};
use weir_lab::{FrameSender, Network, Veth, root_test};

/// A capture with packets of several protocols.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/weir.pcapng");
/// Frames that are sent.
const FRAMES: u8 = 20;

const VERSION: Difference =
    Difference { line: "standard error: libpcap version 1.10.3", why: "the text names weir, too" };

#[test]
fn print_reads_files() {
    Program::compile_in("examples", "print").compare_by(&[VERSION], |command| {
        let output = command.args([FILE, "tcp", "or", "udp"]).output().expect("it starts");
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 10, "{output:?}");
        output
    });
}

/// At the same time, on one interface.
#[root_test]
fn root_print_captures() {
    let program = Program::compile_in("examples", "print");
    let network = Network::new(Veth::default()).expect("a private network");
    let begin = |mut command: Command| {
        command.args(["-i", "rx0", "ether", "proto", "0x88b5"]);
        let child = network.rx().spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut child = child.expect("it starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let version = errors.next().expect("a line").expect("text");
        assert!(version.contains("libpcap version 1.10.3") && version.ends_with(", EN10MB"), "{version}");
        (child, errors)
    };
    let captures = [program.on_systems(), program.on_ours("plain"), program.on_ours("sanitized")].map(begin);
    let sender = FrameSender::new(&network.pair().tx).expect("a sender");
    for number in 0..FRAMES {
        // Every other one is not for the filter.
        let kind = [0x88, 0xb5 + number % 2];
        let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &kind, &[number; 50]].concat();
        sender.send(&frame).expect("a frame");
    }
    let seen = captures.map(|(child, errors)| {
        let lines = until_interrupted(child);
        let counts: Vec<String> = errors.map(|line| line.expect("text")).collect();
        let all = usize::from(FRAMES / 2);
        assert_eq!(counts, [format!("{all} packets received, 0 lost")]);
        assert_eq!(lines.len(), all);
        lines
    });
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    assert!(
        seen[0][3].starts_with("64 of 64 bytes  ff ff ff ff ff ff 02 00 00 00 00 01 88 b5 06"),
        "{}",
        seen[0][3]
    );
}

/// Ends a program as Ctrl-C does once it has printed as many lines as it should; returns all, without their times.
fn until_interrupted(mut child: Child) -> Vec<String> {
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut seen: Vec<_> = lines.by_ref().take(usize::from(FRAMES / 2)).collect();
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    seen.extend(lines);
    assert!(child.wait().expect("it ends").success());
    let without_time = |line: String| line.split_once("  ").expect("a time").1.to_owned();
    seen.into_iter().map(|line| without_time(line.expect("text"))).collect()
}
