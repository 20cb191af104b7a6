//! Devices that only the system's library serves, with and without it: see `conformance.rs`.

mod programs;

use std::panic::resume_unwind;
use std::process::{Command, Output, Stdio};
use std::thread;

use programs::Program;
use weir_lab::root_test;
use weir_sys::netns::NetNs;

/// A log of packets.
const LOG: &str = "
set -e
ip link set lo up
nft 'add table ip t; add chain ip t c { type filter hook output priority 0; }; add rule ip t c udp dport 9 log group 5'
";

/// Runs a command in a network of its own, with that log.
fn with_a_log(command: &mut Command) -> Output {
    let namespace = NetNs::new().expect("a namespace");
    let run = |command: &mut Command| {
        let child = namespace.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        child.expect("it starts").wait_with_output().expect("it ends")
    };
    let made = run(Command::new("sh").arg("-c").arg(LOG));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    run(command)
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

/// Every function of a handle on a log of packets, and what other devices answer. The sanitizers end a process that loads
/// the system's library as ours does, so they see nothing of it.
#[root_test]
fn root_foreign() {
    if let Err(error) = Command::new("nft").arg("--version").output() {
        return weir_skip::this_test(format_args!("nft: {error} (scripts/setup test)"));
    }
    let program = Program::compile("foreign");
    let [system, ours] = thread::scope(|scope| {
        [program.on_systems(), program.on_ours("plain")]
            .map(|mut command| scope.spawn(move || lines(&with_a_log(&mut command))))
            .map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    assert_eq!(ours, system);
    let got = system.iter().filter(|line| line.contains(" 80 of 80 bytes, the last 0x1")).count();
    assert_eq!(got, 7, "{system:#?}");
}

/// Without the system's library, there are no such devices, and opening one says why.
#[root_test]
fn root_foreign_without_the_library() {
    const HIDDEN: &str = r#"
for library in /usr/lib/*/libpcap.so.0.8 /usr/lib/*/libpcap.so.1; do
    [ ! -e "$library" ] || mount --bind /dev/null "$library"
done
exec "$0" "$@""#;
    let program = Program::compile("foreign");
    for (kind, reason) in [("plain", "file too short"), ("sanitized", "this process runs with a sanitizer")] {
        let plain = program.on_ours(kind);
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "--net", "sh", "-c", HIDDEN]).arg(plain.get_program()).arg("look");
        inside.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let shown = lines(&inside.output().expect("it starts"));
        let listed: Vec<&str> =
            shown.iter().filter_map(|line| line.split_once(' ')).map(|both| both.0).collect();
        assert_eq!(listed[..3], ["any", "lo", "pcap_open_live(nflog:5):"], "{shown:#?}");
        let why = "only the system's libpcap captures on this device, and it cannot be used";
        let clear = |line: &&String| line.contains(why) && line.contains(reason);
        assert_eq!(shown.iter().filter(clear).count(), 10, "{shown:#?}");
        assert!(
            shown
                .last()
                .is_some_and(|line| line.ends_with("No such device exists (No such device exists)\""))
        );
    }
}
