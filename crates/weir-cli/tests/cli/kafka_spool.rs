//! `weir flows --to kafka://...` without brokers: flows wait in the spool. With them, `make test-kafka`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use weir_lab::{Generator, Network, Traffic, root_test};

use crate::harness::{Ended, Running, arrive, directory, network, path, start, until, weir};

/// Sends a packet of each of ten flows.
fn send(network: &Network) {
    let traffic = Traffic::new(100).and_then(|traffic| traffic.flows(10)).expect("frames");
    let traffic = traffic.between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("a generator");
    arrive(network.pair(), || generator.send(10).expect("frames").accepted);
}

/// Returns the weir-export that has this spool.
fn export(spool: &Path) -> Pid {
    let word = format!("--spool={}", spool.display());
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found = numbers.find(|number: &i32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|found| found == word.as_bytes())
    });
    found.and_then(Pid::from_raw).expect("it runs")
}

fn spooled(spool: &Path) -> u64 {
    let sizes = fs::read_dir(spool).into_iter().flatten().flatten();
    sizes.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// Ends a run whose brokers are away. Returns its flows, and those of earlier runs in the spool.
fn end(running: Running) -> (u64, u64, u64) {
    count(&running.interrupt().succeeded())
}

fn count(ended: &Ended) -> (u64, u64, u64) {
    let export = &ended.account().0["flows"]["exports"][0];
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let [given, sent, queued, lost] = ["given", "sent", "queued", "lost"].map(|field| number(&export[field]));
    let kafka = &export["kafka"];
    assert_eq!((sent, queued, lost, number(&kafka["spooled"])), (0, given, 0, given), "{export}");
    assert_eq!(kafka["messages"], 0);
    (given, number(&kafka["earlier_spooled"]), number(&kafka["restarts"]))
}

#[root_test]
fn root_flows_wait_for_brokers_whoever_is_killed() {
    let (network, directory) = (network(), directory());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let spool = PathBuf::from(path(&directory, "spool"));
    // Nobody listens there.
    let to = format!("kafka://127.0.0.1:9/flows?spool={}", spool.display());
    let args = ["flows", "-i", "rx0", "--json", "--idle-timeout", "10ms", "--to", &to];
    let running = start(&network, &args);
    until("the first flow", || {
        send(&network);
        let told = running.stderr();
        if told.contains(" acknowledges no flows") { Ok(()) } else { Err(told) }
    });
    send(&network);
    until("the spool", || if spooled(&spool) > 0 { Ok(()) } else { Err(running.stderr()) });
    let first = export(&spool);
    let status = fs::read_to_string(format!("/proc/{}/status", first.as_raw_nonzero())).expect("it runs");
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect("a line").trim();
    assert_ne!(line("Uid:").split_whitespace().next(), Some("0"));
    assert_eq!((line("CapEff:"), line("NoNewPrivs:")), ("0000000000000000", "1"));
    kill_process(first, Signal::KILL).expect("it runs");
    running.wait_for("which had ended with signal: 9 (SIGKILL), runs again");
    send(&network);
    let (given, earlier, restarts) = end(running);
    assert!(given >= 30 && (earlier, restarts) == (0, 1), "{given}, {earlier}, {restarts}");

    // Another run finds them, and leaves its own when it is killed.
    let running = start(&network, &args);
    running.wait_for(&format!("{given} flows of earlier runs are in the spool; they are sent first"));
    let before = spooled(&spool);
    until("more in the spool", || {
        send(&network);
        if spooled(&spool) > before { Ok(()) } else { Err(running.stderr()) }
    });
    running.signal(Signal::KILL);
    running.wait();
    let running = start(&network, &args);
    let (_, earlier, _) = end(running);
    assert!(earlier > given, "{earlier}, {given}");

    // The flow of a file waits for brokers, but not for long once a signal has come.
    let file = path(&directory, "a.pcap");
    fs::write(&file, one_packet()).expect("room");
    let args = ["flows", "-r", &file, "--json", "--to", &to];
    let running = Running::spawn(&network, &mut weir(&args));
    running.wait_for_lines(1);
    running.signal(Signal::TERM);
    let (given, now, _) = count(&running.wait().succeeded());
    assert!(given == 1 && now >= earlier, "{given}, {now}, {earlier}");
}

/// A file of pcap with a packet of UDP.
fn one_packet() -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let packet =
        [&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 8, 0, 0, 8, 0, 0][..]]
            .concat();
    let head = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 101, 1_700_000_000, 5, 28, 28]);
    [head, packet].concat()
}
