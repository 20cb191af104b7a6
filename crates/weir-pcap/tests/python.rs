//! Runs Python programs on both libraries, and compares what they print: `ctypes`, and the bindings that Debian has.

mod programs;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use programs::library;
use tempfile::TempDir;
use weir_lab::root_test;
use weir_sys::netns::NetNs;

/// A capture with packets of several protocols.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/weir.pcapng");
/// Debian's, which finds Debian's bindings.
const PYTHON: &str = "/usr/bin/python3";

/// Two connected interfaces, and no traffic but what the programs send.
const INTERFACES: &str = "
set -e
for which in default all; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
ip link add d0 address 02:00:00:00:00:01 type veth peer name d1 address 02:00:00:00:00:02
for name in lo d0 d1; do ip link set $name up; done
until ip link show d0 | grep -q 'state UP' && ip link show d1 | grep -q 'state UP'; do sleep 0.05; done
";

/// A binding: the name of its program in `tests/python`, and what loads the library.
struct Binding {
    program: &'static str,
    load: &'static str,
}

const CTYPES: Binding =
    Binding { program: "by_ctypes", load: "import ctypes; ctypes.CDLL('libpcap.so.0.8')" };
const PCAPY: Binding = Binding { program: "by_pcapy", load: "import pcapy" };
const SCAPY: Binding =
    Binding { program: "by_scapy", load: "from scapy.all import conf; conf.use_pcap = True" };

impl Binding {
    /// Runs the program on both libraries, with these arguments after the file; fails if it prints less than `lines`.
    fn compare(&self, devices: &[&str], lines: usize, run: impl Fn(&mut Command) -> Output) {
        let home = tempfile::tempdir().expect("a directory");
        for soname in ["libpcap.so.0.8", "libpcap.so.1"] {
            symlink(library(), home.path().join(soname)).expect("a link");
        }
        match python(&home, false, &["-c", self.load]).output() {
            Err(error) => return weir_skip::this_test(format_args!("{PYTHON}: {error}")),
            Ok(output) if !output.status.success() => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let last = errors.lines().last().unwrap_or_default();
                return weir_skip::this_test(format_args!("{PYTHON}: {last}"));
            }
            Ok(_) => {}
        }
        // Each run has the library that it should have.
        let loaded = format!("{}; print('libweir_pcap.so' in open('/proc/self/maps').read())", self.load);
        for (ours, expected) in [(true, "True\n"), (false, "False\n")] {
            assert_eq!(succeeded(&run(&mut python(&home, ours, &["-c", &loaded]))), expected);
        }
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(self.program);
        let program = program.with_extension("py").display().to_string();
        let arguments = [&[program.as_str(), FILE], devices].concat();
        let [system, ours] = [false, true].map(|ours| succeeded(&run(&mut python(&home, ours, &arguments))));
        assert!(system.lines().count() >= lines, "{system}");
        assert_eq!(system, ours);
    }

    /// The same in a network of its own, with both interfaces.
    fn compare_live(&self, lines: usize) {
        let namespace = NetNs::new().expect("a namespace");
        let inside = |command: &mut Command| {
            let child = namespace.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
            child.expect("it starts").wait_with_output().expect("it ends")
        };
        succeeded(&inside(Command::new("sh").args(["-c", INTERFACES])));
        self.compare(&["d0", "d1"], lines, inside);
    }
}

fn python(home: &TempDir, ours: bool, arguments: &[&str]) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(arguments).env_remove("LD_LIBRARY_PATH").env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
    if ours {
        command.env("LD_LIBRARY_PATH", home.path());
    }
    command
}

fn succeeded(output: &Output) -> String {
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}\n{shown}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    shown
}

#[test]
fn ctypes_reads_files() {
    CTYPES.compare(&[], 16, |command| command.output().expect("it starts"));
}

#[test]
fn pcapy_reads_files() {
    PCAPY.compare(&[], 14, |command| command.output().expect("it starts"));
}

#[root_test]
fn root_ctypes_captures() {
    CTYPES.compare_live(28);
}

#[root_test]
fn root_pcapy_captures() {
    PCAPY.compare_live(22);
}

#[root_test]
fn root_scapy_captures_and_sends() {
    SCAPY.compare_live(27);
}
