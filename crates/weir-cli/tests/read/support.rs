//! Files to read, and programs that read them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir::writer::{Format, Writer, WriterOptions};
use weir::{CaptureStats, Direction, FileInterface, Packet};
use weir_lab::{FrameSender, Network, Traffic};

use crate::contract;

/// Longest that anything may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for `what` until `look` finds it; else that says what there is instead.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(start.elapsed() < PATIENCE, "waited for {what}; there is: {seen}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A program that is killed with the test that fails.
pub(crate) struct Guarded(pub(crate) Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // Of no effect on one that has been waited for.
        let _over = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// 2023-11-14 22:13:20 UTC.
pub(crate) const EPOCH: u64 = 1_700_000_000_000_000_000;

/// A directory of its own, and what is in it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("it can be read");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }
}

/// Ethernet frames of many protocols, those that weir-dissect is tested with.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let lines = include_str!("../../../weir-dissect/tests/frames.txt").lines();
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16);
        digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal")).collect()
    };
    let ethernet = lines.filter_map(|line| line.strip_prefix("1 "));
    let frames = ethernet.map(|line| {
        let (original_len, data) = line.split_once(' ').expect("two fields");
        (original_len.parse::<usize>().expect("a number"), hex(data.trim_matches('-')))
    });
    frames
        .filter(|(original_len, data)| *original_len == data.len() && data.len() > 14)
        .map(|(_, data)| data)
        .collect()
}

/// Writes a file with weir's own writer: each packet as (interface, time, bytes, lost before).
pub(crate) fn write(path: &Path, format: Format, names: &[(&str, u16)], packets: &[(u32, u64, &[u8], u64)]) {
    let packets = packets.iter().map(|&(interface, timestamp, data, lost_before)| {
        weir::with!(
            packet(timestamp, data),
            interface,
            direction = Some(Direction::In).filter(|_| lost_before > 0),
            lost_before
        )
    });
    write_packets(path, format, names, &packets.collect::<Vec<_>>());
}

/// A whole packet of the first interface.
pub(crate) fn packet(timestamp: u64, data: &[u8]) -> Packet<'_> {
    weir::with!(Packet::new(timestamp, data), original_len = u32::try_from(data.len()).expect("short"))
}

/// The same of whole packets.
pub(crate) fn write_packets(path: &Path, format: Format, names: &[(&str, u16)], packets: &[Packet<'_>]) {
    write_with(path, &weir::with!(WriterOptions::default(), format), names, packets);
}

/// The same with any options.
pub(crate) fn write_with(
    path: &Path,
    options: &WriterOptions,
    names: &[(&str, u16)],
    packets: &[Packet<'_>],
) {
    let interfaces: Vec<_> = names
        .iter()
        .map(|(name, link_type)| {
            weir::with!(FileInterface::new(*link_type), name = Some((*name).to_owned()), snap_len = 262_144)
        })
        .collect();
    let mut writer = Writer::create(path, &interfaces, options).expect("a file");
    for packet in packets {
        writer.packet(packet).expect("a packet");
    }
    writer.finish(&CaptureStats::default()).1.expect("whole");
}

/// All frames, a millisecond apart, in a pcap file as tcpdump writes it.
pub(crate) fn pcap(path: &Path) -> usize {
    let frames = frames();
    let packets: Vec<_> =
        (0..).zip(&frames).map(|(n, data)| (0, EPOCH + n * 1_000_000, data.as_slice(), 0)).collect();
    write(path, Format::Pcap { nanoseconds: false }, &[("", 1)], &packets);
    frames.len()
}

pub(crate) fn weir(args: &[&str], paths: &[&Path]) -> Output {
    command(env!("CARGO_BIN_EXE_weir"), args, paths)
}

/// What weir prints on standard output, having succeeded.
pub(crate) fn succeeds(args: &[&str], paths: &[&Path]) -> String {
    let output = weir(args, paths);
    assert_eq!(output.status.code(), Some(0), "weir {args:?} {paths:?}: {}", all(&output));
    stdout(&output)
}

/// What another program prints on standard output, having succeeded.
pub(crate) fn judge(program: &str, args: &[&str], paths: &[&Path]) -> String {
    let output = command(program, args, paths);
    assert!(output.status.success(), "{program} {args:?} {paths:?}: {}", all(&output));
    stdout(&output)
}

fn command(program: &str, args: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(program);
    let output = command.args(args).args(paths).env("TZ", "Asia/Kolkata").output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; `scripts/setup test` installs it"));
    contract::printed(&contract::words(&command), &output.stdout, &output.stderr);
    output
}

/// Records what arrives at the receiving end while `work` is done, with tcpdump.
pub(crate) fn record(network: &Network, file: &Path, work: impl FnOnce()) {
    let pair = network.pair();
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-n", "-i", &pair.rx.name, "-U", "-Z", "root", "-w"]).arg(file);
    let tcpdump = network.rx().spawn(tcpdump.stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut tcpdump = Guarded(tcpdump.expect("tcpdump"));
    // It says that it listens; what it says later is read so that it never waits.
    let mut said = BufReader::new(tcpdump.0.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert!(said.read_line(&mut line).expect("text") > 0, "tcpdump has ended");
    }
    let rest = thread::spawn(move || {
        let mut rest = String::new();
        let _ended = said.read_to_string(&mut rest);
    });
    work();
    // What is sent last is in the file last; it may be one that tcpdump has no room for.
    let sender = FrameSender::new(&pair.tx).expect("a socket");
    let last = Traffic::new(60).expect("a size").between(pair).frame(0);
    until("the last frame in tcpdump's file", || {
        sender.send(&last).expect("a frame");
        let bytes = fs::read(file).expect("the file");
        let there = bytes.windows(last.len()).any(|part| part == last);
        if there { Ok(()) } else { Err(format!("{} bytes", bytes.len())) }
    });
    let pid = rustix::process::Pid::from_child(&tcpdump.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    tcpdump.0.wait().expect("it ends");
    rest.join().expect("no panic");
}

/// All that a program has said.
fn all(output: &Output) -> String {
    format!("{}; standard output:\n{}standard error:\n{}", output.status, stdout(output), stderr(output))
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Time, lengths and bytes of each packet, as tshark reads them.
pub(crate) fn packets(file: &Path) -> Vec<String> {
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.cap_len"];
    let heads = judge("tshark", &[&fields, &["-n", "-r"][..]].concat(), &[file]);
    let dump = judge("tcpdump", &["-t", "-q", "-n", "-xx", "-r"], &[file]);
    let bytes: String = dump.lines().filter(|line| line.starts_with('\t')).collect();
    heads.lines().map(str::to_owned).chain([bytes]).collect()
}
