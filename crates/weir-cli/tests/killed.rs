//! kill -9 at any moment: the system is as it was, and what was written can be read.
//!
//! A test program of its own: it looks at all programs and maps in the kernel, so nobody else may make any meanwhile.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use weir_lab::{Generator, Network, Traffic, Veth, require_root};

/// Programs and maps in the kernel, by kind, id and name.
fn objects() -> BTreeSet<(&'static str, u32, String)> {
    let programs =
        ProgInfoIter::default().map(|info| ("program", info.id, info.name.to_string_lossy().into_owned()));
    let maps = MapInfoIter::default().map(|info| ("map", info.id, info.name.to_string_lossy().into_owned()));
    programs.chain(maps).collect()
}

/// What `ip` and `tc` tell of the receiving interface.
fn link(network: &Network) -> String {
    let say = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (tool, args) = words.split_first().expect("a command");
        let output = network.rx().run(|| Command::new(tool).args(args).output().expect("it is installed"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let lines = [
        "ip -d link show rx0",
        "tc qdisc show dev rx0",
        "tc filter show dev rx0 ingress",
        "tc filter show dev rx0 egress",
    ];
    lines.map(say).concat()
}

/// Each way to be attached.
const WAYS: [&[&str]; 8] = [
    &["xdp"],
    &["xdp", "-f", "not vlan"],
    &["tc", "--tc-filters"],
    &["xdp", "--mode", "exclusive"],
    &["af_packet"],
    &["tc"],
    &["xdp+tc", "--tc-filters"],
    &["af_xdp", "--mode", "exclusive"],
];

const ROUNDS: usize = 48;

/// More than the kernel takes to begin with what it does once a process is gone.
const SETTLE: Duration = Duration::from_millis(100);

#[test]
fn root_nothing_is_left_after_kill_9() {
    if !require_root("root_nothing_is_left_after_kill_9") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("killed.pcapng");
    let network = Network::new(Veth::default()).expect("a private network");
    let traffic = Traffic::new(60).expect("size").between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    let (before, link_before) = (objects(), link(&network));
    assert!(!link_before.contains("xdp") && !link_before.contains("clsact"), "{link_before}");

    // From before anything is open to well into the capture; the steps are odd so that no beat is hit twice.
    for (round, way) in WAYS.iter().cycle().take(ROUNDS).enumerate() {
        let wait = Duration::from_micros(round as u64 * 5_923);
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(["capture", "-i", "rx0", "--source"]).args(*way).arg("-w").arg(&file);
        let mut weir =
            network.rx().spawn(weir.stdin(Stdio::null()).stderr(Stdio::null())).expect("weir starts");
        let began = Instant::now();
        while began.elapsed() < wait {
            generator.send(2_000).expect("frames");
        }
        weir.kill().expect("it runs");
        assert_eq!(weir.wait().expect("it can be waited for").code(), None, "it was killed");

        // Linux empties a map of programs in a work item once nobody has it open. Whoever opens the map by its number before
        // that, as `objects` does, and closes it again, has the item queued twice and the map kept for good
        // (prog_array_map_clear, kernel/bpf/arraymap.c, 6.18).
        thread::sleep(SETTLE);
        // The kernel frees programs and maps after a grace period.
        let patience = Instant::now() + Duration::from_secs(10);
        loop {
            let left: Vec<_> = objects().difference(&before).cloned().collect();
            if left.is_empty() && link(&network) == link_before {
                break;
            }
            assert!(Instant::now() < patience, "round {round} {way:?}: {left:?}, {}", link(&network));
            thread::sleep(Duration::from_millis(20));
        }

        if round == ROUNDS - 1 {
            let output = Command::new("tshark")
                .args(["-n", "-T", "fields", "-e", "frame.len", "-r"])
                .arg(&file)
                .output();
            let text = String::from_utf8(output.expect("tshark runs").stdout).expect("text");
            assert!(text.lines().all(|line| line == "60"), "a frame was changed");
            assert!(
                text.lines().count() > 1000,
                "what was written can be read: {} packets",
                text.lines().count()
            );
        }
    }
}
