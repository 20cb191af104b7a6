//! What a container has: the capabilities and the arguments in packaging/kubernetes/weir.yaml, and a read-only root.

use std::process::Command;

use weir_lab::root_test;

use crate::harness::{Running, directory, network, send, tshark};

const DAEMON_SET: &str = include_str!("../../../../packaging/kubernetes/weir.yaml");

/// The capabilities that the container keeps, as setpriv takes them.
fn capabilities() -> String {
    let line = DAEMON_SET.lines().find_map(|line| line.trim().strip_prefix("add: [")?.strip_suffix(']'));
    let names =
        line.expect("a list of capabilities").split(", ").map(|name| format!(",+{}", name.to_lowercase()));
    format!("-all{}", names.collect::<String>())
}

/// The arguments of the program.
fn arguments(source: &str, interface: &str, directory: &str) -> Vec<String> {
    let lines = DAEMON_SET.lines().map(str::trim).skip_while(|line| *line != "args:").skip(1);
    let words = lines.map_while(|line| line.strip_prefix("- ")).map(|word| {
        let word = word.trim_matches('"').replace("$(INTERFACE)", interface).replace("$(NODE)", "node");
        word.replace("/captures", directory)
    });
    let mut words: Vec<String> = words.collect();
    assert_eq!(words.first().map(String::as_str), Some("capture"), "{words:?}");
    // A test takes less memory.
    let memory = words.iter().position(|word| word == "--memory").expect("a limit") + 1;
    words[memory] = "64MiB".to_owned();
    words.extend(["--source", source, "-v"].map(str::to_owned));
    words
}

#[root_test]
fn root_a_container_captures_with_the_four_capabilities_that_it_is_given() {
    assert_eq!(capabilities(), "-all,+bpf,+perfmon,+net_admin,+net_raw");
    for source in ["xdp", "tc", "af_packet"] {
        let (network, directory) = (network(), directory());
        let captures = directory.path().display().to_string();
        let mut command = Command::new("unshare");
        let script =
            "mount --bind \"$0\" \"$0\" && mount -t tmpfs -o ro none /run && mount -o remount,bind,ro / &&
            ! touch /etc/weir-test 2>/dev/null && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script, &captures, "setpriv", "--no-new-privs"]);
        command
            .args([format!("--bounding-set={}", capabilities()), format!("--inh-caps={}", capabilities())]);
        command.arg(env!("CARGO_BIN_EXE_weir")).args(arguments(source, "rx0", &captures));
        let running = Running::spawn(&network, command.env_remove("XDG_RUNTIME_DIR"));
        running.wait_until_open();
        running.wait_for("confined: no capabilities, no new privileges");
        send(&network, 10);
        let ended = running.interrupt().succeeded();
        assert!(ended.stderr.contains("\n10 packets captured\n"), "{source}: {}", ended.stderr);
        assert!(!ended.stderr.contains("warning"), "{source}: {}", ended.stderr);
        let frames = tshark(&directory.path().join("node00.pcapng"), &["frame.number"]);
        assert_eq!(frames.len(), 10, "{source}");
    }
}
