//! What a running weir may still do, as the kernel tells it; and that it does its work all the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use weir_lab::require_root;

use crate::harness::{Running, network, send, start, tshark, weir};

const SOURCES: [&[&str]; 4] = [
    &["--source", "xdp"],
    &["--source", "tc"],
    &["--source", "af_packet"],
    &["--source", "af_xdp", "--mode", "exclusive"],
];
/// Somebody: the number of `nobody` on Debian.
const NOBODY: u32 = 65534;
const SETTLE: Duration = Duration::from_millis(300);

/// A line of the status of each thread of a process: those of io_uring, which are the kernel's own, among them.
fn status(process: u32, name: &str) -> Vec<u64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let value = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of that name");
        Some(u64::from_str_radix(value.trim(), 16).expect("a number"))
    };
    tasks.filter_map(|task| of(task.expect("an entry"))).collect()
}

fn all_are(process: u32, name: &str, value: u64) {
    let found = status(process, name);
    assert!(!found.is_empty() && found.iter().all(|&found| found == value), "{name} {found:x?}");
}

#[test]
fn root_every_thread_is_confined_while_it_captures() {
    if !require_root("root_every_thread_is_confined_while_it_captures") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("confined.pcapng").display().to_string();
    for source in SOURCES {
        let network = network();
        let args = [&["capture", "-i", "rx0", "-v", "--json", "-w", &file], source].concat();
        let running = start(&network, &args);
        running.wait_for("confined: no capability, no new privileges; writes only in ");
        send(&network, 500);
        thread::sleep(SETTLE);
        for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            all_are(running.id(), name, 0);
        }
        all_are(running.id(), "NoNewPrivs:", 1);
        all_are(running.id(), "Seccomp:", 2);
        let threads = status(running.id(), "Threads:")[0];
        assert!(threads >= if source[1].starts_with("af_") { 2 } else { 1 });

        let ended = running.interrupt().succeeded();
        let account = ended.account();
        account.closes();
        assert_eq!(account.number("written"), 500, "{source:?}");
        assert_eq!(tshark(file.as_ref(), &["frame.len"]).len(), 500);
        let confinement = &account.0["confinement"];
        assert_eq!(confinement["capabilities"].as_array().map(Vec::len), Some(0), "{confinement}");
        assert_eq!(confinement["no_new_privileges"], true);
        assert!(confinement["system_calls"].as_u64().is_some_and(|calls| calls > 50), "{confinement}");
        assert_eq!(confinement["weaknesses"].as_array().map(Vec::len), Some(0), "{confinement}");
        // Detached and left without the capabilities that attaching took.
        let link = network.rx().run(|| Command::new("ip").args(["-d", "link", "show", "rx0"]).output());
        let link = String::from_utf8(link.expect("ip runs").stdout).expect("text");
        assert!(!link.contains("xdp") && link.contains("promiscuity 0 "), "{link}");
    }
}

#[test]
fn root_confinement_can_be_switched_off() {
    if !require_root("root_confinement_can_be_switched_off") {
        return;
    }
    let network = network();
    let args = ["count", "-i", "rx0", "--source", "xdp", "--no-confine", "--no-control", "-v", "--json"];
    let running = start(&network, &args);
    running.wait_for("not confined, as asked for");
    assert!(status(running.id(), "CapEff:").iter().all(|&capabilities| capabilities != 0));
    assert!(running.interrupt().succeeded().account().0["confinement"].is_null());
}

#[test]
fn root_root_keeps_what_it_takes_to_write_where_it_may_not_without() {
    if !require_root("root_root_keeps_what_it_takes_to_write_where_it_may_not_without") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).expect("ours");
    chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    let network = network();
    let file = directory.path().join("theirs.pcapng").display().to_string();
    let running = start(&network, &["capture", "-i", "rx0", "-v", "-w", &file]);
    running.wait_for("confined: no capability but DAC_OVERRIDE");
    let override_alone = 1 << 1;
    all_are(running.id(), "CapEff:", override_alone);
    send(&network, 10);
    thread::sleep(SETTLE);
    running.interrupt().succeeded().says("10 packets captured");
}

/// Runs a copy of the binary that has the capabilities, as somebody who has none.
fn with_file_capabilities(place: &Path, capabilities: &str, args: &[&str]) -> Command {
    let copy = place.join("weir");
    fs::copy(env!("CARGO_BIN_EXE_weir"), &copy).expect("a copy");
    let setcap = Command::new("setcap").arg(format!("{capabilities}+ep")).arg(&copy).status();
    assert!(setcap.expect("setcap is installed").success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(copy).args(args);
    command
}

#[test]
fn root_each_source_takes_the_capabilities_that_are_documented() {
    if !require_root("root_each_source_takes_the_capabilities_that_are_documented") {
        return;
    }
    let (ebpf, af_packet) =
        (&["cap_bpf", "cap_perfmon", "cap_net_admin", "cap_net_raw"][..], &["cap_net_raw"][..]);
    // Promiscuous mode is a packet socket's.
    let ebpf_alone = &["cap_bpf", "cap_perfmon", "cap_net_admin"][..];
    let cases = [
        ("xdp", &[][..], ebpf),
        ("xdp", &["-p"], ebpf_alone),
        ("tc", &[], ebpf),
        ("tc", &["-p"], ebpf_alone),
        ("af_packet", &[], af_packet),
    ];
    for (source, more, needed) in cases {
        let args = [&["count", "-i", "rx0", "--source", source, "--json", "-v"], more].concat();
        let place = tempfile::tempdir().expect("a directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        let network = network();
        let mut command = with_file_capabilities(place.path(), &needed.join(","), &args);
        let running = Running::spawn(&network, &mut command);
        running.wait_for("confined: no capability, no new privileges");
        all_are(running.id(), "CapPrm:", 0);
        send(&network, 100);
        thread::sleep(SETTLE);
        assert_eq!(running.interrupt().succeeded().account().number("captured"), 100, "{source}");

        // Each of them is needed.
        for left_out in needed {
            let rest: Vec<&str> = needed.iter().copied().filter(|one| one != left_out).collect();
            let rest = if rest.is_empty() { "cap_chown".to_owned() } else { rest.join(",") };
            let mut command = with_file_capabilities(place.path(), &rest, &args);
            let ended = Running::spawn(&network, &mut command).wait();
            let ended = ended.failed(&["permission denied", "setcap cap_"]);
            assert!(
                ended.stderr.contains(&needed.join(",")),
                "{source} without {left_out}: {}",
                ended.stderr
            );
        }
    }
}

#[test]
fn a_wrong_combination_is_refused() {
    let output = weir(&["count", "-v", "-q"]).output().expect("weir runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn root_root_reads_what_belongs_to_others() {
    if !require_root("root_root_reads_what_belongs_to_others") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("theirs.pcapng");
    let network = network();
    let running = start(&network, &["capture", "-i", "rx0", "-w", &file.display().to_string()]);
    send(&network, 3);
    thread::sleep(SETTLE);
    running.interrupt().succeeded();
    chown(&file, Some(NOBODY), Some(NOBODY)).expect("root may");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("root may");
    let file = file.display().to_string();
    for args in [&["read", "--count", &file][..], &["info", &file], &["info", "--no-confine", &file]] {
        let output = weir(args).output().expect("weir runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains('3'),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
