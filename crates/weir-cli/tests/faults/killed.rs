//! kill -9 at any moment: the system is as it was, and what was written can be read.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_lab::{Call, Generator, NetNs, Network, Traffic, Veth, refuse, require_root, root_test};

use crate::left::{Watch, links, parent, processes};

/// Each way to be attached; tc with tcx, where the kernel has it, and without.
const WAYS: [&[&str]; 8] = [
    &["xdp"],
    &["xdp", "-f", "not vlan"],
    &["tc"],
    &["xdp", "--mode", "exclusive"],
    &["af_packet"],
    &["tc"],
    &["xdp+tc"],
    &["af_xdp", "--mode", "exclusive"],
];

/// How often it is killed in all, unless `WEIR_KILLS` says more (`make faults`).
const ROUNDS: u64 = 48;

#[test]
fn root_nothing_is_left_after_kill_9_of_xdp() {
    killed("root_nothing_is_left_after_kill_9_of_xdp", &[0, 1], "native XDP");
}

#[test]
fn root_nothing_is_left_after_kill_9_of_tc() {
    killed("root_nothing_is_left_after_kill_9_of_tc", &[2], "source tc");
}

#[root_test]
fn root_nothing_is_left_after_kill_9_of_tc_filters() {
    // The thread that starts all programs is started with the first: what is refused here is refused to them alone.
    let first = || {
        refuse(Call::LinkCreate);
        let here = NetNs::current().expect("this namespace");
        here.spawn(&mut Command::new("true")).and_then(|mut child| child.wait())
    };
    thread::spawn(first).join().expect("no panic").expect("true runs");
    killed("root_nothing_is_left_after_kill_9_of_tc_filters", &[5], "clsact");
    guard_killed();
}

/// Filters outlive the guard that would remove them. Then the capture does, if it has kept the right to; otherwise, or if it was
/// killed, too, the next one.
fn guard_killed() {
    let network = Network::new(Veth::default()).expect("a private network");
    let mut watch = Watch::over(&network);
    let words = tempfile::NamedTempFile::new().expect("a file");
    let said = || fs::read_to_string(&words).expect("what it said");
    let start = |more: &[&str]| {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(["capture", "-B", "8MiB", "-i", "rx0", "--source", "tc"]).args(more).stdin(Stdio::null());
        weir.stdout(Stdio::null()).stderr(fs::File::create(&words).expect("a file"));
        let weir = network.rx().spawn(&mut weir).expect("weir starts");
        let began = Instant::now();
        while !said().contains("; source tc") {
            assert!(began.elapsed() < Duration::from_secs(30), "{}", said());
            thread::sleep(Duration::from_millis(1));
        }
        weir
    };
    let end = |mut weir: Child, signal| {
        kill_process(Pid::from_child(&weir), signal).expect("it runs");
        weir.wait().expect("it can be waited for").code()
    };
    for (more, signal, code, is_left) in [
        (&["--no-confine"][..], Signal::INT, Some(0), false),
        (&[], Signal::INT, Some(1), true),
        (&[], Signal::KILL, None, true),
    ] {
        let weir = start(more);
        let guards = children(weir.id(), "tc-guard");
        assert_eq!(guards.len(), 1, "{guards:?}");
        guards.into_iter().for_each(|guard| kill_process(guard, Signal::KILL).expect("it runs"));
        assert_eq!(end(weir, signal), code, "{more:?}: {}", said());
        assert_eq!(
            said().contains("weir: cannot detach tc filters from interface"),
            code == Some(1),
            "{}",
            said()
        );
        if is_left {
            let left = links(&network);
            assert_eq!(left.matches("direct-action").count(), 2, "who has removed them? {left}");
            assert_eq!(end(start(&[]), Signal::INT), Some(0), "{}", said());
        }
        let changed = watch.changed();
        assert!(changed.is_none(), "{more:?} {signal:?}: {changed:?}");
        watch.ended(|| "a capture without its guard".to_owned());
    }
    let left = watch.left();
    assert!(left.is_none(), "left: {left:?}");
}

/// The children of a process that have this name.
fn children(process: u32, name: &str) -> Vec<Pid> {
    let all = processes().filter(|id| parent(*id) == Some(process));
    let is_so =
        |id: &u32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.trim_end() == name);
    all.filter(is_so).filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)).collect()
}

#[test]
fn root_nothing_is_left_after_kill_9_of_exclusive_captures() {
    killed("root_nothing_is_left_after_kill_9_of_exclusive_captures", &[3, 7], "mode exclusive");
}

#[test]
fn root_nothing_is_left_after_kill_9_of_af_packet_and_of_both() {
    killed("root_nothing_is_left_after_kill_9_of_af_packet_and_of_both", &[4, 6], "source xdp+tc");
}

/// Kills captures that are attached in these ways, in turn. The last says that it is attached by `means`.
fn killed(test: &str, ways: &[usize], means: &str) {
    if !require_root(test) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("killed.pcapng");
    let words = directory.path().join("words");
    let network = Network::new(Veth::default()).expect("a private network");
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    let mut watch = Watch::over(&network);
    let rounds = env::var("WEIR_KILLS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let all = (0..rounds).zip((0..WAYS.len()).cycle());
    let ours: Vec<_> = all.filter(|(_, way)| ways.contains(way)).collect();

    // From before anything is open to well into the capture; the steps are odd so that no beat is hit twice.
    for (place, &(round, way)) in ours.iter().enumerate() {
        let (way, is_last) = (WAYS[way], place + 1 == ours.len());
        let wait = Duration::from_micros(round * 5_923 % 290_000);
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(["capture", "-B", "8MiB", "-i", "rx0", "--source"]).args(way).arg("-w").arg(&file);
        let _of_the_round_before = fs::remove_file(&file);
        let mut weir = network
            .rx()
            .spawn(weir.stdin(Stdio::null()).stderr(fs::File::create(&words).expect("a file")))
            .expect("weir starts");
        let began = Instant::now();
        let written = || fs::metadata(&file).map_or(0, |data| data.len());
        // The last is killed when there is something to read.
        while began.elapsed() < wait || is_last && written() < 500_000 {
            generator.send(2_000).expect("frames");
            assert!(began.elapsed() < Duration::from_secs(30), "{way:?}: {} bytes written", written());
        }
        weir.kill().expect("it runs");
        assert_eq!(weir.wait().expect("it can be waited for").code(), None, "it was killed");

        let flaw = flaw(&file);
        assert!(flaw.is_none(), "round {round} {way:?}: {flaw:?}");
        watch.ended(|| format!("round {round} {way:?}"));
        let changed = watch.changed();
        assert!(changed.is_none(), "round {round} {way:?}: {changed:?}");
    }
    let said = fs::read_to_string(&words).expect("what it said");
    assert!(said.contains(means), "{said}");
    let output =
        Command::new("tshark").args(["-n", "-T", "fields", "-e", "frame.len", "-r"]).arg(&file).output();
    let text = String::from_utf8(output.expect("tshark runs").stdout).expect("text");
    assert!(text.lines().all(|line| line == "60"), "a frame was changed");
    assert!(text.lines().count() > 1000, "what was written can be read: {} packets", text.lines().count());

    drop(generator);
    let left = watch.left();
    assert!(left.is_none(), "left: {left:?}");
}

/// What is wrong with a file whose writer was killed: it is to have no hole, end at worst inside a record, be read up to there,
/// and be said to be unfinished.
fn flaw(file: &Path) -> Option<String> {
    const ENHANCED_PACKET: u32 = 6;
    // Killed before its first bytes, or before it was created.
    let bytes = fs::read(file).unwrap_or_default();
    let word = |bytes: &[u8], at: usize| {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().expect("four bytes")))
    };
    let (mut rest, mut packets) = (&bytes[..], 0);
    while let (Some(kind), Some(length)) = (word(rest, 0), word(rest, 4)) {
        let Some((block, behind)) = rest.split_at_checked(length as usize) else { break };
        let is_packet = kind == ENHANCED_PACKET;
        if word(block, block.len().saturating_sub(4)) != Some(length)
            || is_packet && word(block, 20) != Some(60)
        {
            return Some(format!("no block at byte {} of {}", bytes.len() - rest.len(), bytes.len()));
        }
        packets += u64::from(is_packet);
        rest = behind;
    }
    if bytes.is_empty() {
        return None;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(["info", "--json"]).arg(file).output();
    let output = output.expect("weir runs");
    let info: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let is_right = info["packets"] == packets && info["unfinished"] == true && info["loss"] == "unknown";
    (!is_right).then(|| format!("{packets} packets in {} bytes: {info} {output:?}", bytes.len()))
}
