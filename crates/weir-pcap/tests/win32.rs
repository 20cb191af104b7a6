//! WinPcap's extensions. The system's library does not have them, so a C program says what it sees, and Debian's programs
//! read the files that are dumped.

mod programs;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use programs::{Program, in_a_network};
use weir_lab::{FrameSender, Network, Veth, root_test};

/// What the program prints.
const LINES: &str = include_str!("c/win32.txt");

#[root_test]
fn root_win32() {
    let program = Program::compile_for_ours("tests/c", "win32");
    thread::scope(|scope| {
        for kind in ["plain", "sanitized"] {
            scope.spawn(|| same(&run(&mut program.on_ours(kind)), LINES));
        }
    });
}

/// Weir's pool has its size since it was opened; all else is the same.
#[root_test]
fn root_win32_with_a_pool() {
    let program = Program::compile_for_ours("tests/c", "win32");
    let shown = run(program.on_ours("sanitized").env("WEIR_SOURCE", "tc").arg("pool"));
    let (begin, rest) = LINES.split_once("\nsetbuff = 0\n").expect("the line");
    let (_, rest) = rest.split_once("one of three").expect("the line");
    let pool = "\nsetbuff = -1 cannot set the size of the buffer: weir's pool is set up by pcap_activate;";
    let (ours, after) = shown.split_once(pool).unwrap_or_else(|| panic!("no {pool}: {shown}"));
    same(ours, begin);
    let (_, after) = after.split_once("one of three").expect("the line");
    same(after, rest);
}

/// Runs the program in a network and a directory of its own; judges the files that it leaves, and returns what it prints.
fn run(command: &mut Command) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let output = in_a_network(command.current_dir(&directory));
    let shown = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}\n{shown}\n{errors}", output.status);
    for (file, numbers) in [
        ("count.pcap", &[1, 2, 3][..]),
        ("size.pcap", &[6]),
        ("endless.pcap", &[8, 9, 10, 11]),
        ("parent.pcap", &[14]),
        ("closed.pcap", &[15, 16]),
    ] {
        let numbers: Vec<String> = numbers.iter().map(|number| format!("{number:02x}")).collect();
        assert_eq!(by_tcpdump(&directory.path().join(file)), numbers, "tcpdump reads {file}");
        assert_eq!(by_tshark(&directory.path().join(file)), numbers, "tshark reads {file}");
    }
    shown.into_owned()
}

fn same(shown: &str, wanted: &str) {
    for (number, (line, wanted)) in shown.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(line, wanted, "line {}:\n{shown}", number + 1);
    }
    assert_eq!(shown.lines().count(), wanted.lines().count(), "{shown}");
}

/// The example.
#[root_test]
fn root_rate_counts() {
    let program = Program::compile_for_ours("examples", "rate");
    let network = Network::new(Veth::default()).expect("a private network");
    let mut command = program.on_ours("sanitized");
    let child = network.rx().spawn(command.args(["rx0", "ether proto", "0x88b5"]).stdout(Stdio::piped()));
    let mut child = child.expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Vec<u64> {
        let line = lines.next().expect("a line").expect("text");
        let words = line.split(' ').filter_map(|word| word.parse().ok());
        words.collect()
    };
    // It counts now.
    assert_eq!(next()[1..], [0, 0]);
    let sender = FrameSender::new(&network.pair().tx).expect("a sender");
    for number in 0..10 {
        let kind = [0x88, 0xb5 + number % 2];
        let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &kind, &[number; 50]].concat();
        sender.send(&frame).expect("a frame");
    }
    let (mut packets, mut bytes, mut last) = (0, 0, 0);
    while packets < 5 {
        let line = next();
        assert!(line[0] > last, "a report without an interval: {line:?}");
        last = line[0];
        packets += line[1];
        bytes += line[2];
    }
    assert_eq!((packets, bytes), (5, 5 * 64));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the first byte behind the Ethernet header of each packet in a file, as the system's tcpdump reads it.
fn by_tcpdump(file: &Path) -> Vec<String> {
    let text = printed(Command::new("tcpdump").args(["-n", "-t", "-x", "-r"]).arg(file));
    let first = text.lines().filter_map(|line| line.strip_prefix("\t0x0000:  "));
    first.map(|bytes| bytes[..2].to_owned()).collect()
}

/// The same, as tshark reads it.
fn by_tshark(file: &Path) -> Vec<String> {
    let text = printed(Command::new("tshark").args(["-T", "fields", "-e", "data.data", "-r"]).arg(file));
    text.lines().map(|line| line[..2].to_owned()).collect()
}

/// The header is one for C++, too, and for programs that have `pcap.h` already.
#[test]
fn the_headers_are_for_c_and_for_cpp() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, compiler, standard) in [("a.c", "cc", "-std=c99"), ("a.cc", "c++", "-std=c++11")] {
        let source = directory.path().join(name);
        let text = "#include <pcap.h>\n#include <weir/win32-extensions.h>\n#include <weir/extensions.h>\n#include <weir/extensions.h>\n\
                    int main() { return pcap_sendqueue_alloc(1) == 0 || pcap_setmode(0, MODE_STAT) == 0 || weir_pcap_setfilter(0, 0) == 0; }\n";
        fs::write(&source, text).expect("a file");
        let mut command = Command::new(compiler);
        command.args([standard, "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror"]);
        command.args(["-Wno-long-long", "-c", "-o", "/dev/null"]).arg(&source);
        command.args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include")]);
        printed(&mut command);
    }
}
