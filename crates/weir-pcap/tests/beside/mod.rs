//! Runs a program twice at the same time, on the system's library and on ours, in a private network.
#![allow(dead_code, reason = "each test program needs some of it")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_lab::{FrameSender, Network, Veth};
use weir_sys::netns::NetNs;

use crate::programs::library;

/// How long a program may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(90);

/// Two connected interfaces, `tx0` and `rx0`, each in a namespace of its own, and a directory for each library.
pub(crate) struct Bench {
    pub(crate) network: Network,
    directory: TempDir,
}

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    System,
    Ours,
}

pub(crate) const BOTH: [Library; 2] = [Library::System, Library::Ours];

/// A program that runs. It is killed when this is dropped.
pub(crate) struct Running {
    what: String,
    child: Child,
    place: PathBuf,
}

/// What a program left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
    /// Its working directory.
    pub(crate) place: PathBuf,
}

impl Bench {
    /// `None`, and the test is skipped, if a program is missing.
    pub(crate) fn new(veth: Veth, programs: &[&str]) -> Option<Self> {
        for program in programs {
            if let Err(error) = Command::new(program).arg("--version").stdin(Stdio::null()).output() {
                weir_skip::this_test(format_args!("{program}: {error} (scripts/setup test)"));
                return None;
            }
        }
        let directory = tempfile::tempdir().expect("a directory");
        let lib = directory.path().join("lib");
        fs::create_dir(&lib).expect("a directory");
        for soname in ["libpcap.so.0.8", "libpcap.so.1"] {
            symlink(library(), lib.join(soname)).expect("a link");
        }
        // Programs that become another user write here, too.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("its mode");
        Some(Self { network: Network::new(veth).expect("a network"), directory })
    }

    /// Starts a program in a namespace, in an empty directory.
    pub(crate) fn start<S: AsRef<OsStr>>(
        &self,
        netns: &NetNs,
        program: &str,
        arguments: &[S],
        on: Library,
    ) -> Running {
        let place = self.directory.path().join(format!("{on:?}"));
        let _none_before = fs::remove_dir_all(&place);
        fs::create_dir(&place).expect("a directory");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("its mode");
        let file = |name| File::create(place.join(name)).expect("a file");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&place).env("LC_ALL", "C").env_remove("LD_LIBRARY_PATH");
        if on == Library::Ours {
            command.env("LD_LIBRARY_PATH", self.directory.path().join("lib"));
        }
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        let what = format!("{command:?} on {on:?}");
        let child = netns.spawn(&mut command).unwrap_or_else(|error| panic!("{what}: {error}"));
        Running { what, child, place }
    }

    /// Runs a program on each library at the same time: starts both, waits until each has printed
    /// `ready`, calls `traffic`, and waits for both to end.
    pub(crate) fn beside<S: AsRef<OsStr>>(
        &self,
        netns: &NetNs,
        program: &str,
        arguments: &[S],
        ready: &str,
        traffic: impl FnOnce(),
    ) -> [Outcome; 2] {
        let running = BOTH.map(|on| self.start(netns, program, arguments, on));
        running.iter().for_each(|one| one.says(ready));
        traffic();
        running.map(Running::end)
    }

    /// Sends the frames of `frames` from the other end to `rx0`, and then those of `back` from `rx0`.
    pub(crate) fn send(&self, frames: &[Vec<u8>], back: &[Vec<u8>]) {
        let pair = self.network.pair();
        for (port, frames) in [(&pair.tx, frames), (&pair.rx, back)] {
            let sent = FrameSender::new(port).and_then(|sender| sender.send_frames(frames));
            assert_eq!(sent.expect("they are sent"), frames.len() as u64);
        }
    }
}

impl Running {
    /// Waits until the program has printed `text`.
    pub(crate) fn says(&self, text: &str) {
        let begun = Instant::now();
        while !self.shown().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "{} does not say {text:?}: {}", self.what, self.shown());
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the program ends.
    pub(crate) fn end(mut self) -> Outcome {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "{} does not end: {}", self.what, self.shown());
            sleep(Duration::from_millis(5));
        };
        Outcome { status, out: self.read("out"), err: self.read("err"), place: self.place.clone() }
    }

    fn shown(&self) -> String {
        format!("\n{}\n{}", self.read("out"), self.read("err"))
    }

    fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.place.join(name)).expect("its file");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ended: io::Result<()> = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns what the system's tcpdump prints about a saved file, without times, in an order that does not depend on how
/// the processors took turns.
pub(crate) fn packets(file: &Path) -> Vec<String> {
    let output = Command::new("tcpdump").args(["-n", "-t", "-e", "-x", "-r"]).arg(file).output();
    let output = output.expect("tcpdump");
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    sorted(&String::from_utf8_lossy(&output.stdout))
}

/// Returns packets as tcpdump prints them, one each, in alphabetical order.
pub(crate) fn sorted(printed: &str) -> Vec<String> {
    let mut packets: Vec<String> = Vec::new();
    for line in printed.lines() {
        match packets.last_mut() {
            // More about the packet, or its bytes.
            Some(packet) if line.starts_with('\t') || line.starts_with("    ") => packet.push_str(line),
            _ => packets.push(line.to_owned()),
        }
    }
    packets.sort();
    packets
}
