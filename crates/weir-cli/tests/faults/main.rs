//! Each system call that touches a file, a map or a socket fails once, at each place: weir ends, says why, its account closes,
//! what it wrote can be read, and nothing is left.
//!
//! strace makes the calls fail. It counts the calls of each thread by itself, so the n-th call of each thread that makes so
//! many fails. Two things are beyond it: what goes through io_uring (so some cases run without), and writes that are short
//! (an answer that is made up would be a lie about the data; a disk that fills up cuts writes in earnest, `cli/forward.rs`).
//!
//! A few places are tried; with `WEIR_FAULTS=all` each one, with each error (`make faults`); with `WEIR_FAULTS=openat`
//! those of that call.
//!
//! Others may load programs and make maps meanwhile ([`left`]).
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "complaints as they are found: all places take long")]

mod judge;
mod killed;
mod left;
mod strace;

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use tempfile::TempDir;
use weir_lab::{FrameSender, Network, Traffic, Veth, require_root, root_test};

use crate::left::Watch;
use crate::strace::{Fault, Run};

/// A command line, in which `@` is a directory of its own, and the names of the files that it writes there.
struct Case {
    name: &'static str,
    line: &'static str,
    files: &'static [&'static str],
    /// io_uring is refused, whatever else fails.
    plain: bool,
}

const CAPTURES: [Case; 4] = [
    Case {
        name: "capture",
        line: "capture -B 8MiB -i rx0 -c 300 --duration 1s --json --control @/control.sock --metrics @/metrics.sock -w @/one.pcapng udp",
        files: &["one.pcapng"],
        plain: false,
    },
    Case {
        name: "rotation",
        line: "capture -B 8MiB -i rx0 --source tc -c 300 --duration 1s --json --no-control --rotate-count 80 -W 3 -w @/ring",
        files: &["ring0", "ring1", "ring2"],
        plain: false,
    },
    Case {
        name: "compression",
        line: "capture -B 8MiB -i rx0 -c 300 --duration 1s --json --no-control --rotate-count 200 --fsync -z true -w @/c.zst",
        files: &["c.zst", "c1.zst"],
        plain: false,
    },
    Case {
        name: "plain writes",
        line: "capture -B 8MiB -i rx0 --source af_packet -c 300 --duration 1s --json --no-control --format pcap -w @/plain.pcap",
        files: &["plain.pcap"],
        plain: true,
    },
];

const READS: [Case; 3] = [
    Case { name: "read", line: "read @/in.pcap -- udp port 9", files: &["in.pcap"], plain: false },
    Case {
        name: "rewriting",
        line: "read @/in.pcap -w @/out.pcapng.zst",
        files: &["in.pcap", "out.pcapng.zst"],
        plain: false,
    },
    Case {
        name: "splitting",
        line: "read @/in.pcap --split-by count:100 -w @/part.pcap",
        files: &["in.pcap", "part-00001.pcap", "part-00002.pcap", "part-00003.pcap"],
        plain: true,
    },
];

const FORWARD: Case = Case {
    name: "forward",
    line: "forward rx0 rx1 --duration 300ms --json --control @/control.sock -w @/copy.pcapng",
    files: &["copy.pcapng"],
    plain: false,
};

/// Between ten frames and the next.
const PAUSE: Duration = Duration::from_millis(2);

#[test]
fn root_a_capture_survives_each_call_that_fails() {
    capture("root_a_capture_survives_each_call_that_fails", 0);
}

#[test]
fn root_rotation_survives_each_call_that_fails() {
    capture("root_rotation_survives_each_call_that_fails", 1);
}

#[test]
fn root_compression_survives_each_call_that_fails() {
    capture("root_compression_survives_each_call_that_fails", 2);
}

#[test]
fn root_plain_writes_survive_each_call_that_fails() {
    capture("root_plain_writes_survive_each_call_that_fails", 3);
}

fn capture(test: &str, case: usize) {
    if require_root(test) {
        let network = Network::new(Veth::default()).expect("a private network");
        with_traffic(&network, &CAPTURES[case]);
    }
}

#[root_test]
fn root_forwarding_survives_each_call_that_fails() {
    let mut network = Network::new(Veth::default()).expect("a private network");
    network.connect(Veth::default()).expect("a second pair");
    with_traffic(&network, &FORWARD);
}

#[test]
fn a_reader_survives_each_call_that_fails() {
    let complaints: usize = READS.iter().map(|case| attempt(case, None)).sum();
    assert_eq!(complaints, 0, "they stand above");
}

/// Attempts it while frames are sent into the first pair; there may be no complaint.
fn with_traffic(network: &Network, case: &Case) {
    let sender = FrameSender::new(&network.pair().tx).expect("a sender");
    let frames = Traffic::new(60).expect("size").between(network.pair()).frames(0..10);
    let (hold, held) = mpsc::channel::<()>();
    let complaints = thread::scope(|scope| {
        scope.spawn(move || {
            while held.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                frames.iter().for_each(|frame| sender.send(frame).expect("it is sent"));
            }
        });
        let complaints = attempt(case, Some(network));
        drop(hold);
        complaints
    });
    assert_eq!(complaints, 0, "they stand above");
}

/// Runs the command once to see what calls it makes, and once for each that is to fail. Prints what there is to complain of,
/// and gives its number.
fn attempt(case: &Case, network: Option<&Network>) -> usize {
    let wanted = env::var("WEIR_FAULTS").ok();
    let mut watch = network.map(Watch::over);
    let (mut tried, mut met, mut complaints) = (0, 0, 0);
    // All calls; and those on the files alone, among which are all of the process that opens them.
    for files in [&[], case.files] {
        let whole = trial(case, network, files, None);
        let sound = judge::complaints(case, &whole.0, &whole.1, None);
        assert!(sound.is_empty(), "{} without a fault: {sound:?}", case.name);
        for fault in strace::faults(&whole.0.trace, wanted.as_deref()) {
            let (run, directory) = trial(case, network, files, Some(&fault));
            tried += 1;
            met += usize::from(run.injected().is_some());
            let found = judge::complaints(case, &run, &directory, Some(&fault));
            let at = run.injected().unwrap_or("not met");
            found.iter().for_each(|what| println!("{}: {fault} ({at}): {what}", case.name));
            if !found.is_empty() {
                println!("$ weir {}\n{}\n{}", case.line, run.stdout, run.stderr);
            }
            complaints += found.len();
            watch.iter_mut().for_each(|watch| watch.ended(|| fault.to_string()));
        }
    }
    let changed = watch.as_ref().and_then(Watch::changed);
    for left in changed.into_iter().chain(watch.and_then(Watch::left)) {
        println!("{}: left: {left}", case.name);
        complaints += 1;
    }
    println!("{}: {tried} faults, {met} of them met", case.name);
    assert!(met * 2 >= tried, "{}: only {met} of {tried} faults were met", case.name);
    complaints
}

/// One run in a directory of its own.
fn trial(case: &Case, network: Option<&Network>, files: &[&str], fault: Option<&Fault>) -> (Run, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    if network.is_none() {
        fs::write(directory.path().join("in.pcap"), pcap(300)).expect("room");
    }
    let mut command = Command::new("strace");
    let aside = tempfile::tempdir().expect("a directory");
    strace::options(&mut command, &aside.path().join("trace"), fault, case.plain);
    for file in files {
        command.arg("-P").arg(file).arg("-P").arg(directory.path().join(file));
    }
    command.arg(env!("CARGO_BIN_EXE_weir"));
    let path = directory.path().display().to_string();
    command.args(case.line.split(' ').map(|word| word.replace('@', &path)));
    (strace::run(&mut command, network, aside.path()), directory)
}

/// A file of numbered packets, UDP to port 9.
fn pcap(packets: u32) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1u32].map(u32::to_ne_bytes).concat();
    let traffic = Traffic::new(60).expect("size");
    for (second, frame) in (0..).zip(traffic.frames(0..packets.into())) {
        file.extend([second, 0, 60, 60u32].map(u32::to_ne_bytes).concat());
        file.extend(frame);
    }
    file
}

/// What is in the directory, by name.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
}
