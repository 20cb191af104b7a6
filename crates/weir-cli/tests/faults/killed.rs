//! kill -9 at any moment: the system is as it was, and what was written can be read.

use std::env;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_lab::{Generator, Network, Traffic, Veth, require_root};

use crate::left::Before;

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

/// How often it is killed, unless `WEIR_KILLS` says more (`make faults`).
const ROUNDS: u64 = 48;

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
    let before = Before::of(&network);
    let rounds = env::var("WEIR_KILLS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));

    // From before anything is open to well into the capture; the steps are odd so that no beat is hit twice.
    for (round, way) in (0..rounds).zip(WAYS.iter().cycle()) {
        let wait = Duration::from_micros(round * 5_923 % 290_000);
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

        let left = before.left(&network);
        assert!(left.is_none(), "round {round} {way:?}: {left:?}");

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
