//! `weir replay`: tcpdump at the other end receives what is in the file, and the summary says exactly what was sent.

mod refused;
mod rewriting;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;
use weir_lab::{LinkCounters, Network, Traffic, root_test};

use crate::harness::{Ended, Running, directory, network, path, start, until, weir};

const SECOND: u64 = 1_000_000_000;
/// A time as captures have it.
const START: u64 = 1_700_000_000 * SECOND;

/// A packet of a file: time in nanoseconds, original length, bytes.
type Packet = (u64, usize, Vec<u8>);

/// Writes a pcap file with nanoseconds.
fn pcap(directory: &TempDir, name: &str, link_type: u32, packets: &[Packet]) -> String {
    let mut file = Vec::new();
    let word = |number: u64| u32::try_from(number).expect("32 bits").to_le_bytes();
    for field in [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, link_type] {
        file.extend(field.to_le_bytes());
    }
    for (time, original, bytes) in packets {
        let lengths = [bytes.len() as u64, *original as u64];
        for field in [time / SECOND, time % SECOND, lengths[0], lengths[1]] {
            file.extend(word(field));
        }
        file.extend_from_slice(bytes);
    }
    let path = path(directory, name);
    fs::write(&path, file).expect("a file");
    path
}

/// UDP packets of several lengths, some with a VLAN tag, so far apart.
fn packets(number: u64, gap: u64) -> Vec<Packet> {
    let frame = |at: u64| {
        let size = usize::try_from(64 + at * 131 % 1400).expect("small");
        let traffic = Traffic::new(size).expect("size");
        let traffic = if at % 5 == 1 { traffic.vlan(7).expect("a tag") } else { traffic };
        (START + at * gap, size, traffic.frame(at))
    };
    (0..number).map(frame).map(|(time, _, bytes)| (time, bytes.len(), bytes)).collect()
}

#[root_test]
fn root_a_capture_leaves_out_what_is_replayed_beside_it() {
    let (network, directory) = (network(), directory());
    let file = pcap(&directory, "it.pcap", 1, &packets(20, 0));
    let written = path(&directory, "own.pcapng");
    let capture = start(&network, &["capture", "-i", "rx0", "--no-own", "--json", "-w", &written]);
    capture.wait_for("source tc: only tc sees the marks of packets");
    for args in [&["--top-speed"][..], &["--top-speed", "--mark", "0"]] {
        replay(&network, &[&[&*file], args].concat()).succeeded();
    }
    let account = capture.interrupt().succeeded().account();
    account.closes();
    let numbers = ["seen", "filtered", "captured"].map(|field| account.number(field));
    assert_eq!(numbers, [40, 20, 20], "{}", account.0);
}

/// tcpdump at the other end, until it has so many packets.
pub(crate) struct Tcpdump(Child, PathBuf);

impl Tcpdump {
    pub(crate) fn start(network: &Network, file: PathBuf, packets: usize) -> Self {
        let mut command = Command::new("tcpdump");
        command.args(["-i", "tx0", "-Z", "root", "-B", "65536", "-c", &packets.to_string(), "-w"]);
        let mut child = network.tx().spawn(command.arg(&file).stderr(Stdio::piped())).expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.expect("text").contains("listening on")), "tcpdump does not start");
        // What it says at its end has a reader.
        std::thread::spawn(move || lines.count());
        Self(child, file)
    }

    /// What it has received.
    pub(crate) fn received(mut self) -> Vec<String> {
        until("all packets", || self.0.try_wait().expect("a child").ok_or_else(String::new));
        shown(&self.1)
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        let _over = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The lines that tcpdump prints of a file: all bytes of each packet, without its time.
fn shown(file: &Path) -> Vec<String> {
    let output = Command::new("tcpdump").args(["-nt", "-xx", "-r"]).arg(file).output().expect("tcpdump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Packets that have left the receiving namespace.
pub(crate) fn left(network: &Network) -> u64 {
    LinkCounters::read(&network.pair().rx).expect("counters").tx_packets
}

fn replay(network: &Network, args: &[&str]) -> Ended {
    Running::spawn(network, &mut weir(&[&["replay", "-i", "rx0"], args].concat())).wait()
}

#[root_test]
fn root_a_file_arrives_as_it_is_in_every_way() {
    let (network, directory) = (network(), directory());
    let packets = packets(400, 100_000);
    let bytes: u64 = packets.iter().map(|(_, bytes, _)| *bytes as u64).sum();
    let file = pcap(&directory, "a.pcap", 1, &packets);
    let compressed = path(&directory, "a.pcapng.zst");
    Running::spawn(&network, &mut weir(&["read", &file, "-w", &compressed])).wait().succeeded();
    let sent = shown(Path::new(&file));
    let ways: [(&str, &[&str]); 8] = [
        (&file, &[]),
        (&file, &["--top-speed"]),
        (&file, &["-t", "--backend", "ring"]),
        (&file, &["--speed", "2.5x", "--backend", "plain", "--no-confine"]),
        (&file, &["--rate", "20kpps"]),
        (&file, &["--rate", "100Mbps", "--preload", "--mark", "0"]),
        (&compressed, &["-t", "--preload"]),
        (&compressed, &["-t", "--backend", "live"]),
    ];
    for (file, options) in ways {
        let tcpdump = Tcpdump::start(&network, directory.path().join("got.pcap"), packets.len());
        let before = left(&network);
        let ended = replay(&network, &[&[file, "--json"], options].concat()).succeeded();
        assert!(tcpdump.received() == sent, "{options:?}: other packets");
        assert_eq!(left(&network) - before, 400, "{options:?}");
        let account = ended.account();
        assert_eq!((account.number("packets"), account.number("bytes")), (400, bytes), "{options:?}");
        let named = options.iter().position(|&option| option == "--backend").map(|at| options[at + 1]);
        let backend = match named {
            Some("live") => "live frames",
            Some(name) => name,
            None => "plain",
        };
        assert_eq!(account.0["backend"], backend);
        assert!(ended.stderr.starts_with("400 packets, "), "{}", ended.stderr);
    }

    // tcpreplay sends the same.
    let tcpdump = Tcpdump::start(&network, directory.path().join("theirs.pcap"), packets.len());
    let mut theirs = Command::new("tcpreplay");
    Running::spawn(&network, theirs.args(["-q", "-t", "-i", "rx0", &file])).wait().succeeded();
    assert!(tcpdump.received() == sent, "tcpreplay sends something else");
}

#[root_test]
fn root_recorded_gaps_are_the_least_time_it_takes() {
    let (network, directory) = (network(), directory());
    let file = pcap(&directory, "a.pcap", 1, &packets(101, 2_000_000));
    for (options, least) in [
        (&["--loop", "1"][..], 0.2),
        (&["--speed", "4x"], 0.05),
        (&["--speed", "0.5x"], 0.4),
        (&["--rate", "1000pps"], 0.1),
        (&["-x", "10", "-l", "3"], 0.06),
    ] {
        let planned = replay(&network, &[&[&*file, "--json", "--dry-run"], options].concat()).succeeded();
        let account = replay(&network, &[&[&*file, "--json"], options].concat()).succeeded().account().0;
        let seconds = |account: &serde_json::Value| account["seconds"].as_f64().expect("a number");
        assert!(seconds(&account) >= least, "{options:?}: {account}");
        assert!((seconds(&planned.account().0) - least).abs() < 1e-6, "{options:?}: {}", planned.stderr);
        let off = |field: &str| account["gaps"][field].as_u64().expect("a number");
        assert_eq!(off("count") + 1, account["packets"].as_u64().expect("a number"));
        assert!(off("p50_ns") <= off("p99_ns") && off("p99_ns") <= off("max_ns"), "{account}");
        assert_eq!(account["reached"].is_null(), options[0] != "--rate", "{options:?}: {account}");
    }
    // The second and third have a time before that of the first, and go at once.
    let times = [10_000, 9_000, 8_000, 10_050].map(|ms| ms * SECOND / 1000);
    let back: Vec<_> =
        packets(4, SECOND).into_iter().zip(times).map(|((_, a, b), time)| (time, a, b)).collect();
    let back = pcap(&directory, "back.pcap", 1, &back);
    let planned = replay(&network, &[&back, "--json", "--dry-run"]).succeeded().account().0;
    assert!((planned["seconds"].as_f64().expect("a number") - 0.05).abs() < 1e-6, "{planned}");
    let ended = replay(&network, &[&file, "--json", "--rate", "99Tbps"]).succeeded();
    assert!(ended.stderr.contains("note: 99.0 Tbit/s was asked for and not reached"), "{}", ended.stderr);
    assert_eq!(ended.account().0["reached"], false);
}

#[root_test]
fn root_files_are_merged_selected_and_repeated() {
    let (network, directory) = (network(), directory());
    let all = packets(100, SECOND);
    let (even, odd): (Vec<_>, Vec<_>) =
        all.iter().cloned().partition(|(time, ..)| (time / SECOND).is_multiple_of(2));
    let files = [pcap(&directory, "even.pcap", 1, &even), pcap(&directory, "odd.pcap", 1, &odd)];
    let words = [&*files[0], &files[1], "-t", "-q", "--json"];
    let merged = shown(Path::new(&pcap(&directory, "all.pcap", 1, &all)));
    let tcpdump = Tcpdump::start(&network, directory.path().join("got.pcap"), 100);
    replay(&network, &words).succeeded();
    assert!(tcpdump.received() == merged, "in another order");

    let part = shown(Path::new(&pcap(&directory, "part.pcap", 1, &all[10..40])));
    for preload in [&[][..], &["--preload"]] {
        let tcpdump = Tcpdump::start(&network, directory.path().join("got.pcap"), 90);
        let options = [&["--loop", "3", "--from", "+10s", "--to", "+40s"], preload].concat();
        let account = replay(&network, &[&words[..], &options].concat()).succeeded().account();
        assert_eq!(account.number("packets"), 90);
        assert!(tcpdump.received() == [&part[..], &part, &part].concat(), "other packets");
    }
    let count = |options: &[&str]| {
        replay(&network, &[&words[..], options].concat()).succeeded().account().number("packets")
    };
    assert_eq!(count(&["-c", "7"]), 7);
    assert_eq!(count(&["--", "vlan"]), 20);
    assert_eq!(count(&["-l", "2", "-f", "vlan"]), 40);
    assert_eq!(count(&["--loop", "1000000", "--", "tcp"]), 0, "nothing, however often");
}

#[root_test]
fn root_standard_input_is_sent_as_it_comes() {
    let (network, directory) = (network(), directory());
    let packets = packets(50, 1);
    let file = fs::read(pcap(&directory, "a.pcap", 1, &packets)).expect("a file");
    let mut command = weir(&["replay", "-", "-i", "rx0", "-t", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = left(&network);
    let mut child = network.rx().spawn(&mut command).expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // All but the last packet: they leave without anything behind them.
    let last = 16 + packets[49].1;
    pipe.write_all(&file[..file.len() - last]).and_then(|()| pipe.flush()).expect("a reader");
    until("49 packets", || match left(&network) - before {
        49 => Ok(()),
        other => Err(other.to_string()),
    });
    pipe.write_all(&file[file.len() - last..]).expect("a reader");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"packets\":50,"));
    assert_eq!(left(&network) - before, 50);
}

#[root_test]
fn root_snapped_packets_are_skipped_cut_or_padded() {
    let (network, directory) = (network(), directory());
    let mut all = packets(10, 1);
    for at in [2, 6] {
        all[at].2.truncate(64);
    }
    all[2].1 = 1000;
    let file = pcap(&directory, "a.pcap", 1, &all);
    let whole = |how: &str| {
        let mut all = all.clone();
        match how {
            "skip" => all.retain(|(_, original, bytes)| bytes.len() == *original),
            "pad" => all.iter_mut().for_each(|(_, original, bytes)| bytes.resize(*original, 0)),
            _ => all.iter_mut().for_each(|(_, original, bytes)| *original = bytes.len()),
        }
        all
    };
    for (how, skipped) in [("skip", 2), ("cut", 0), ("pad", 0)] {
        let wanted = whole(how);
        let tcpdump = Tcpdump::start(&network, directory.path().join("got.pcap"), wanted.len());
        let ended = replay(&network, &[&file, "-t", "--json", "--snapped", how]).succeeded();
        let expected = shown(Path::new(&pcap(&directory, "wanted.pcap", 1, &wanted)));
        assert!(tcpdump.received() == expected, "{how}");
        let account = ended.account();
        let of = |field| account.number(field);
        assert_eq!((of("packets"), of("snapped"), of("skipped")), (wanted.len() as u64, 2, skipped), "{how}");
        assert!(ended.stderr.contains("note: 2 packets "), "{}", ended.stderr);
    }
}

#[root_test]
fn root_odd_times_do_not_hold_up_anything() {
    let (network, directory) = (network(), directory());
    let mut all = packets(10, 1000);
    (all[4].0, all[5].0, all[8].0) = (0, 0, START - 3600 * SECOND);
    let file = pcap(&directory, "a.pcap", 1, &all);
    let tcpdump = Tcpdump::start(&network, directory.path().join("got.pcap"), 10);
    let ended = replay(&network, &[&file, "--json"]).succeeded();
    assert!(tcpdump.received() == shown(Path::new(&file)), "in another order");
    let account = ended.account();
    assert_eq!((account.number("timeless"), account.number("backward")), (2, 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("note: 2 packets without a time: sent at once"), "{}", ended.stderr);
}

#[root_test]
fn root_a_signal_ends_it_with_the_exact_number() {
    let (network, directory) = (network(), directory());
    let mut all = packets(6, 1000);
    all[5].0 += 3600 * SECOND;
    let file = pcap(&directory, "a.pcap", 1, &all);
    for (signal, preload) in [(Signal::INT, "--snapped=skip"), (Signal::TERM, "--preload")] {
        let before = left(&network);
        let mut command = weir(&["replay", &file, "-i", "rx0", "--json", preload, "-f", "udp"]);
        let running = Running::spawn(&network, &mut command);
        until("five packets", || match left(&network) - before {
            5 => Ok(()),
            other => Err(other.to_string()),
        });
        // While it waits for an hour, it has no rights.
        let status = fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it runs");
        for line in
            ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
        {
            assert!(status.lines().any(|found| found == line), "no {line}: {status}");
        }
        running.signal(signal);
        let ended = running.wait().succeeded();
        let account = ended.account();
        assert_eq!((account.number("packets"), &account.0["stopped"]), (5, &true.into()));
        assert!(ended.stderr.contains("note: stopped by a signal"), "{}", ended.stderr);
        assert_eq!(left(&network) - before, 5);
    }
}
