//! `weir doctor`: with all privileges, with those that the README names, and with none.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use weir_lab::{Action, Hook, Network, Veth, root_test};

use crate::harness::{Ended, Running, network, run, weir};

/// Runs a program as a user without any privilege.
fn as_nobody(network: &Network, program: &str, args: &[&str]) -> Ended {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]).args(args);
    Running::spawn(network, &mut command).wait()
}

fn diagnosis(ended: &Ended) -> Value {
    let all: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(all["type"], "doctor");
    for check in all["checks"].as_array().expect("checks") {
        for field in ["group", "name", "found"] {
            assert!(check[field].is_string(), "{field}: {check}");
        }
        assert!(
            ["ok", "note", "weak", "missing", "unknown"].contains(&check["state"].as_str().expect("a state")),
            "{check}"
        );
    }
    all
}

/// The check `name` of a group.
fn check<'a>(diagnosis: &'a Value, group: &str, name: &str) -> &'a Value {
    let all = diagnosis["checks"].as_array().expect("checks");
    let found = all.iter().find(|check| check["group"] == group && check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {group}, {name}: {diagnosis}"))
}

/// The command in an advice that begins with an option.
fn command_of(remedy: &str) -> &str {
    remedy.split_once(": ").expect("a command after the option").1
}

/// Everything of the receiving namespace that a probe could have changed.
fn traces(network: &Network) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", "ip -d link; tc qdisc; bpftool net; ls /run/netns 2>/dev/null || true"]);
    let ended = Running::spawn(network, &mut command).wait().succeeded();
    String::from_utf8(ended.stdout).expect("text")
}

#[root_test]
fn root_all_sources_work_and_nothing_is_left() {
    let network = network();
    let before = traces(&network);
    let all = diagnosis(&run(&network, &["doctor", "--json"]).succeeded());
    assert_eq!(traces(&network), before);
    assert_eq!(all["works"], serde_json::json!(["xdp", "tc", "af_packet"]), "{all}");
    assert_eq!(all["missing"], 0);
    for source in ["xdp", "tc", "af_packet"] {
        let found = check(&all, "sources", source)["found"].as_str().expect("text");
        assert!(found.contains("captures on a private veth"), "{found}");
    }
    assert_eq!(all["best"][0]["interface"], "rx0");
    assert_eq!(all["best"][0]["source"], "tc", "both directions of a veth: {all}");
    let text = String::from_utf8(run(&network, &["doctor", "-i", "rx0"]).succeeded().stdout).expect("text");
    let last = text.split("\n\n").last().expect("a last paragraph").replace('\n', " ");
    assert!(last.starts_with("capturing works with: xdp, tc, af_packet; best on rx0: tc ("), "{text}");
}

#[root_test]
fn root_an_interface_is_told_what_changes_packets() {
    let network = Network::new(Veth::default().ipv4()).expect("a private network");
    let _hook = Hook::attach(&network.pair().rx, Action::Pass).expect("a program");
    let ended = run(&network, &["doctor", "-i", "rx0", "--json"]).succeeded();
    let all = diagnosis(&ended);
    let group = "interface rx0";
    let remedies = [
        ("merging", "ethtool -K rx0 gro off"),
        ("cutting", "ethtool -K rx0 tso off gso off"),
        ("checksums", "ethtool -K rx0 tx off"),
    ];
    for (name, remedy) in remedies {
        let check = check(&all, group, name);
        assert_eq!(check["state"], "note", "every host has it: {check}");
        let found = check["remedy"].as_str().expect("a command");
        assert!(found.starts_with("use --segment; ") && found.contains("CPU"), "{check}");
        assert!(command_of(found).starts_with(remedy), "{check}");
    }
    let programs = check(&all, group, "programs");
    assert_eq!(programs["state"], "weak", "xdp is taken: {programs}");
    assert_eq!(all["best"][0]["source"], "tc");

    // What it advises is what it then finds.
    for (name, _) in remedies {
        let remedy = check(&all, group, name)["remedy"].as_str().expect("a command").to_owned();
        let mut words = command_of(&remedy).split(' ');
        let mut command = Command::new(words.next().expect("a program"));
        Running::spawn(&network, command.args(words)).wait().succeeded();
    }
    let all = diagnosis(&run(&network, &["doctor", "-i", "rx0", "--json"]).succeeded());
    for (name, _) in remedies {
        assert_eq!(check(&all, group, name)["state"], "ok", "{}", check(&all, group, name));
    }
}

#[root_test]
fn root_what_it_advises_for_another_namespace_is_done_there() {
    let network = Network::new(Veth::default().ipv4()).expect("a private network");
    let _hook = Hook::attach(&network.pair().rx, Action::Pass).expect("a program");
    let path = format!("/proc/{}/fd/{}", std::process::id(), network.rx().as_fd().as_raw_fd());
    let look = || {
        let output = weir(&["doctor", "-i", "rx0", "--netns", &path, "--json"]).output().expect("weir runs");
        let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        all
    };
    let paste = |command: &str| Command::new("sh").args(["-c", command]).output().expect("sh runs");
    let all = look();
    let group = "interface rx0";
    for name in ["merging", "cutting", "checksums"] {
        let remedy = command_of(check(&all, group, name)["remedy"].as_str().expect("a command"));
        assert!(remedy.starts_with(&format!("nsenter --net={path} ethtool -K rx0 ")), "{remedy}");
        let pasted = paste(remedy);
        assert!(pasted.status.success(), "{remedy}: {pasted:?}");
    }
    let remedy = check(&all, group, "programs")["remedy"].as_str().expect("a command");
    assert!(remedy.starts_with(&format!("to see whose it is: weir devices --netns {path} rx0")), "{remedy}");
    let all = look();
    for name in ["merging", "cutting", "checksums"] {
        assert_eq!(check(&all, group, name)["state"], "ok", "{}", check(&all, group, name));
    }
}

#[root_test]
fn root_without_privilege_it_says_what_is_missing() {
    let network = network();
    let ended = as_nobody(&network, env!("CARGO_BIN_EXE_weir"), &["doctor", "--json"])
        .failed(&["requirements for capturing are missing"]);
    let all = diagnosis(&ended);
    assert_eq!(all["works"], serde_json::json!([]), "{all}");
    for (group, name) in
        [("sources", "xdp"), ("sources", "af_packet"), ("kernel", "bpf(2)"), ("privileges", "for xdp, tc")]
    {
        let check = check(&all, group, name);
        assert_eq!(check["state"], "missing", "{check}");
        let remedy = check["remedy"].as_str().expect("a command");
        assert!(remedy.contains("setcap cap_bpf"), "{check}");
        assert!(remedy.ends_with(env!("CARGO_BIN_EXE_weir")), "it is not on the PATH: {check}");
    }
    assert_eq!(
        check(&all, "kernel", "CLOCK_TAI in eBPF")["state"],
        "unknown",
        "not tried is not said to be there"
    );

    let ended = as_nobody(&network, env!("CARGO_BIN_EXE_weir"), &["doctor"]).failed(&["are missing"]);
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(text.contains("capturing does not work here") && !text.contains("panicked"), "{text}");
}

#[root_test]
fn root_the_capabilities_it_names_are_enough() {
    let network = network();
    let ended = as_nobody(&network, env!("CARGO_BIN_EXE_weir"), &["doctor", "--json"]);
    let all = diagnosis(&ended);
    let remedy = check(&all, "sources", "xdp")["remedy"].as_str().expect("a command").to_owned();
    let granted =
        remedy.split("setcap ").nth(1).and_then(|rest| rest.split(' ').next()).expect("capabilities");

    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let binary = dir.path().join("weir");
    fs::copy(env!("CARGO_BIN_EXE_weir"), &binary).expect("a copy");
    let binary = binary.to_str().expect("a path of letters");
    let set = Command::new("setcap").args([granted, binary]).status().expect("setcap is installed");
    assert!(set.success(), "setcap {granted}");

    let all = diagnosis(&as_nobody(&network, binary, &["doctor", "--json"]).succeeded());
    assert_eq!(all["works"], serde_json::json!(["xdp", "tc", "af_packet"]), "{all}");
    // And it is true: they do capture.
    for source in ["xdp", "tc", "af_packet"] {
        let args = ["capture", "-i", "rx0", "--source", source, "--duration", "200ms", "-q"];
        as_nobody(&network, binary, &args).succeeded();
    }
}
