//! What a running weir may still do, as the kernel tells it; and that it does its work all the same.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};
use weir_lab::root_test;
use weir_sys::user::PASSING;

use crate::control::{VERSION, as_member, as_user, ctl, given_to, places, told};
use crate::harness::{
    CONFINED, Mounts, NOBODY, Running, directory, network, output, own_user, path, root_tests, send,
    send_off, start, tshark, until, weir,
};

/// The numbers in a line of the status of each thread of a process: those of io_uring, which are the kernel's own, among them.
fn numbers(process: u32, name: &str, radix: u32) -> Vec<Vec<u64>> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let value = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of that name");
        let number = |word| u64::from_str_radix(word, radix).expect("a number");
        Some(value.split_whitespace().map(number).collect())
    };
    tasks.filter_map(|task| of(task.expect("an entry"))).collect()
}

/// The number in such a line.
pub(crate) fn status(process: u32, name: &str) -> Vec<u64> {
    numbers(process, name, 16).into_iter().flatten().collect()
}

fn all_are(process: u32, name: &str, value: u64) {
    let found = status(process, name);
    assert!(!found.is_empty() && found.iter().all(|&found| found == value), "{name} {found:x?}");
}

/// All threads of a process are this user, with this group and those groups besides, and cannot become another.
fn all_belong_to(process: u32, uid: u32, gid: u32, groups: &[u32]) {
    for (name, wanted) in [("Uid:", vec![uid; 4]), ("Gid:", vec![gid; 4]), ("Groups:", groups.to_vec())] {
        let wanted: Vec<u64> = wanted.into_iter().map(u64::from).collect();
        let found = numbers(process, name, 10);
        assert!(
            !found.is_empty() && found.iter().all(|found| *found == wanted),
            "{name} {found:?}, not {wanted:?}"
        );
    }
}

/// The processes beside a capture that are called `name`.
fn beside(process: u32, name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("it is there").flatten();
    let is_one = |of: &u32| {
        let Ok(status) = fs::read_to_string(format!("/proc/{of}/status")) else { return false };
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        line("Name:") == Some(name) && line("PPid:") == Some(&process.to_string())
    };
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
}

/// The only one of that name.
pub(crate) fn one_beside(process: u32, name: &str) -> u32 {
    let found = beside(process, name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found[0]
}

/// Waits until a process is no more.
pub(crate) fn wait_for_the_end_of(process: u32) {
    until(&format!("the end of process {process}"), || {
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return Ok(()) };
        Err(status)
    });
}

root_tests! { every_thread_is_confined_while_it_captures:
    root_every_thread_is_confined_while_it_captures_xdp(&["--source", "xdp"]);
    root_every_thread_is_confined_while_it_captures_tc(&["--source", "tc"]);
    root_every_thread_is_confined_while_it_captures_af_packet(&["--source", "af_packet"]);
    root_every_thread_is_confined_while_it_captures_af_xdp(&["--source", "af_xdp", "--mode", "exclusive"]);
}

fn every_thread_is_confined_while_it_captures(source: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("confined.pcapng").display().to_string();
    let network = network();
    let args = [&["capture", "-i", "rx0", "-v", "--json", "-w", &file], source].concat();
    let running = start(&network, &args);
    running.wait_for(CONFINED);
    send(&network, 500);
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        all_are(running.id(), name, 0);
    }
    all_are(running.id(), "NoNewPrivs:", 1);
    all_are(running.id(), "Seccomp:", 2);
    let user = own_user(running.id());
    all_belong_to(running.id(), user.uid, user.gid, &user.groups);
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
    assert_eq!(
        (confinement["user"].as_str(), &confinement["written"]),
        (Some(&*user.name), &serde_json::json!([]))
    );
    let data = fs::metadata(&file).expect("it");
    assert_eq!((data.uid(), data.mode() & 0o7777), (0, 0o600), "who started it owns the files");
    assert!(confinement["system_calls"].as_u64().is_some_and(|calls| calls > 50), "{confinement}");
    assert_eq!(confinement["weaknesses"].as_array().map(Vec::len), Some(0), "{confinement}");
    // Detached and left without the capabilities that attaching took.
    let link = network.rx().run(|| Command::new("ip").args(["-d", "link", "show", "rx0"]).output());
    let link = String::from_utf8(link.expect("ip runs").stdout).expect("text");
    assert!(!link.contains("xdp") && link.contains("promiscuity 0 "), "{link}");
}

#[root_test]
fn root_confinement_can_be_switched_off() {
    let network = network();
    let args = ["count", "-i", "rx0", "--source", "xdp", "--no-confine", "--no-control", "-v", "--json"];
    let running = start(&network, &args);
    running.wait_for("not confined, as requested");
    assert!(status(running.id(), "CapEff:").iter().all(|&capabilities| capabilities != 0));
    assert!(running.interrupt().succeeded().account().0["confinement"].is_null());
}

#[root_test]
fn root_who_opens_files_keeps_what_it_takes_to_write_where_it_may_not_without() {
    let override_alone = 1 << 1;
    for (owner, kept) in [(NOBODY, override_alone), (0, 0)] {
        let directory = directory();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).expect("ours");
        chown(directory.path(), Some(owner), Some(owner)).expect("root may");
        let network = network();
        let file = path(&directory, "theirs.pcapng");
        let running = start(&network, &["capture", "-i", "rx0", "-v", "-w", &file]);
        running.wait_for(CONFINED);
        all_are(running.id(), "CapEff:", 0);
        let files = one_beside(running.id(), "weir-files");
        for name in ["CapPrm:", "CapEff:"] {
            // The other thread waits for the end of the capture.
            let mut of_each = status(files, name);
            of_each.sort_unstable();
            assert_eq!(of_each, [0, kept], "{name}");
        }
        send(&network, 10);
        running.interrupt().succeeded().says("10 packets captured");
    }
}

#[root_test]
fn root_files_are_opened_by_a_process_that_does_nothing_else() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "f");
    let capture = || start(&network, &["capture", "-i", "rx0", "-w", &file, "-v", "--rotate-count", "10"]);
    let running = capture();
    running.wait_for(CONFINED);
    let files = one_beside(running.id(), "weir-files");
    all_belong_to(
        files,
        0,
        0,
        &numbers(std::process::id(), "Groups:", 10)[0]
            .iter()
            .map(|&group| u32::try_from(group).expect("a group"))
            .collect::<Vec<_>>(),
    );
    all_are(files, "Seccomp:", 2);
    all_are(files, "NoNewPrivs:", 1);
    // One opens files, the other waits for the end of the capture.
    assert_eq!(status(files, "Threads:"), [2, 2]);
    all_are(files, "CapEff:", 0);
    let open = fs::read_dir(format!("/proc/{files}/fd")).expect("it runs").flatten();
    let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let of_the_capture = |target: &std::path::PathBuf| {
        let target = target.to_string_lossy();
        ["bpf", "io_uring", "packet", ".pcapng"].iter().any(|part| target.contains(part))
    };
    assert_eq!(open.filter(of_the_capture).collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
    running.interrupt().succeeded();
    assert!(!fs::exists(format!("/proc/{files}")).expect("proc is there"), "it has been waited for");

    // It goes with the capture, whatever became of that.
    let running = capture();
    let files = one_beside(running.id(), "weir-files");
    running.signal(Signal::KILL);
    running.wait();
    wait_for_the_end_of(files);

    // Without it there is no other file, and that is said.
    let running = capture();
    let files = Pid::from_raw(i32::try_from(one_beside(running.id(), "weir-files")).expect("a number"));
    kill_process(files.expect("not zero"), Signal::KILL).expect("it runs");
    send_off(&network, 100);
    running.wait().failed(&["the helper process that opens files (weir-files) has ended"]);

    // Who writes no file needs none.
    let running = start(&network, &["capture", "-i", "rx0", "-v", "--no-control"]);
    running.wait_for(CONFINED);
    assert!(beside(running.id(), "weir-files").is_empty());
    running.interrupt().succeeded();
}

#[root_test]
fn root_files_of_flows_are_begun_by_a_process_that_does_nothing_else() {
    let (network, directory) = (network(), directory());
    let to = format!("file:{}", path(&directory, "flows"));
    let running = start(&network, &["flows", "-i", "rx0", "-v", "--lines", "--to", &to]);
    running.wait_for(CONFINED);
    let files = one_beside(running.id(), "weir-archive");
    all_are(files, "Seccomp:", 2);
    all_are(files, "NoNewPrivs:", 1);
    all_are(files, "CapEff:", 0);
    // It goes with weir, whatever became of that.
    running.signal(Signal::KILL);
    running.wait();
    wait_for_the_end_of(files);
}

#[root_test]
fn root_who_opens_files_ends_with_the_capture_whatever_it_waits_for() {
    let (network, directory) = (network(), directory());
    // A file system of which nobody answers.
    let options = "fd=3,rootmode=40000,user_id=0,group_id=0";
    let mount = format!("exec 3<>/dev/fuse && mount -i -t fuse -o {options} none {}", path(&directory, ""));
    let mounts = Mounts::with(&mount);
    let file = path(&directory, "f");
    let mut running = Running::spawn(&network, &mut mounts.weir(&["capture", "-i", "rx0", "-w", &file]));
    let files = until("who opens files", || {
        assert!(running.is_running());
        beside(running.id(), "weir-files").pop().ok_or_else(|| "nobody".to_owned())
    });
    running.signal(Signal::KILL);
    wait_for_the_end_of(files);
    running.wait();
}

#[root_test]
fn root_sockets_go_with_the_capture_whoever_it_has_become() {
    let (network, here, theirs) = (network(), directory(), directory());
    chown(theirs.path(), Some(NOBODY), None).expect("root may");
    let (control, metrics) = (path(&here, "control"), path(&here, "metrics"));
    for user in [&[][..], &["-Z", "nobody"], &["-Z", "root"]] {
        let file = path(&theirs, &format!("f{}", user.concat()));
        for command in [&["count"][..], &["capture", "-w", &file]] {
            let sockets = ["-i", "rx0", "--control", &control, "--metrics", &metrics];
            let running = start(&network, &[command, &sockets, user].concat());
            assert!(Path::new(&control).exists() && Path::new(&metrics).exists());
            running.interrupt().succeeded();
            assert!(!Path::new(&control).exists() && !Path::new(&metrics).exists(), "{command:?} {user:?}");
        }
    }
}

#[root_test]
fn root_who_captures_is_who_was_asked_for() {
    let network = network();
    let groups = numbers(std::process::id(), "Groups:", 10)[0]
        .iter()
        .map(|&group| u32::try_from(group).expect("a group"))
        .collect::<Vec<_>>();
    let nobody = (NOBODY, NOBODY, vec![NOBODY]);
    let root = (0, 0, groups);
    let cases = [
        (&[][..], None, "; user "),
        (&["-Z", "nobody"], Some(nobody.clone()), "; user nobody; writes no file"),
        (&["-Z", "root"], Some(root.clone()), "runs as root, as requested"),
        (&["--no-confine"], Some(root), "not confined, as requested"),
        (&["--no-confine", "-Z", "nobody"], Some(nobody), "not confined, as requested"),
    ];
    for command in [&["count"][..], &["capture", "-w", "/dev/null"]] {
        for (args, asked, said) in &cases {
            let running = start(
                &network,
                &[command, &["-i", "rx0", "--source", "xdp", "-v", "--no-control"], args].concat(),
            );
            running.wait_for(said);
            let (uid, gid, groups) = asked.clone().unwrap_or_else(|| {
                let user = own_user(running.id());
                (user.uid, user.gid, user.groups)
            });
            all_belong_to(running.id(), uid, gid, &groups);
            send(&network, 10);
            running.interrupt().succeeded().says("10 packets captured");
        }
    }
}

#[root_test]
fn root_without_a_user_of_its_own_a_capture_is_who_nobody_else_is() {
    // As on a machine without the package.
    let mounts = Mounts::with(
        "mount -t tmpfs none /mnt && grep -v ^weir: /etc/passwd > /mnt/passwd && mount --bind /mnt/passwd /etc/passwd",
    );
    let network = network();
    let capture = || {
        let args =
            ["count", "-i", "rx0", "--source", "af_packet", "-B", "2MiB", "-v", "--no-control", "--json"];
        let running = Running::spawn(&network, &mut mounts.weir(&args));
        running.wait_for(CONFINED);
        let number = numbers(running.id(), "Uid:", 10)[0][0];
        let uid = u32::try_from(number).expect("a user");
        assert!(PASSING.contains(&uid), "{uid}");
        all_belong_to(running.id(), uid, uid, &[uid]);
        (running, uid)
    };
    let ((mut one, first), (mut other, second)) = (capture(), capture());
    assert_ne!(first, second);
    for (process, stranger) in [(one.id(), NOBODY), (one.id(), second), (other.id(), first)] {
        let kill = format!("kill -KILL {process}");
        let mut as_stranger = Command::new("sh");
        let output = as_stranger.args(["-c", &kill]).uid(stranger).gid(stranger).output().expect("sh runs");
        assert!(!output.status.success(), "user {stranger} has killed the capture of another");
    }
    assert!(one.is_running() && other.is_running());
    for (running, uid) in [(one, first), (other, second)] {
        let account = running.interrupt().succeeded().account();
        assert_eq!(account.0["confinement"]["user"], uid.to_string());
    }
}

#[root_test]
fn root_a_program_for_finished_files_runs_beside_a_capture_that_is_confined() {
    let network = network();
    for (args, uid) in [(&[][..], 0), (&["-Z", "nobody"], NOBODY)] {
        let (directory, other) = (directory(), directory());
        for place in [&directory, &other] {
            chown(place.path(), Some(uid), None).expect("root may");
            fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        }
        let script = other.path().join("done");
        fs::write(&script, "#!/bin/sh\ncat /proc/self/status > $0.status\n").expect("room");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("ours");
        let file = path(&directory, "f");
        let command = ["capture", "-i", "rx0", "-v", "-w", &file, "-z", &script.display().to_string()];
        let running = start(&network, &[&command, args].concat());
        running.wait_for("; writes no files; ");
        all_are(running.id(), "Seccomp:", 2);
        all_are(running.id(), "CapPrm:", 0);
        let files = one_beside(running.id(), "weir-files");
        assert!(numbers(files, "Uid:", 10).iter().all(|found| *found == [u64::from(uid); 4]));
        let runner = one_beside(running.id(), "weir-run");
        all_are(runner, "CapPrm:", 0);
        running.interrupt().succeeded();
        let status = fs::read_to_string(other.path().join("done.status")).expect("it has run");
        let line =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect("a line").trim();
        assert_eq!((line("NoNewPrivs:"), line("CapPrm:")), ("1", "0000000000000000"));
        assert_eq!(line("Uid:").split_whitespace().next(), Some(&*uid.to_string()));
    }
}

/// Runs a copy of the binary that has the capabilities, as somebody who has none.
fn with_file_capabilities(place: &Path, capabilities: &str, args: &[&str]) -> Command {
    let copy = place.join("weir");
    fs::copy(env!("CARGO_BIN_EXE_weir"), &copy).expect("a copy");
    let setcap = Command::new("setcap").arg(format!("{capabilities}+ep")).arg(&copy).status();
    assert!(setcap.expect("setcap is installed").success());
    as_nobody(&copy, args)
}

/// Runs `copy` as somebody who has no capabilities.
fn as_nobody(copy: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(copy).args(args);
    command
}

const EBPF: &[&str] = &["cap_bpf", "cap_perfmon", "cap_net_admin", "cap_net_raw"];
/// Promiscuous mode is a packet socket's.
const EBPF_ALONE: &[&str] = &["cap_bpf", "cap_perfmon", "cap_net_admin"];

root_tests! { each_source_takes_the_capabilities_that_are_documented:
    root_each_source_takes_the_capabilities_that_are_documented_xdp("xdp", &[], EBPF);
    root_each_source_takes_the_capabilities_that_are_documented_xdp_alone("xdp", &["-p"], EBPF_ALONE);
    root_each_source_takes_the_capabilities_that_are_documented_tc("tc", &[], EBPF);
    root_each_source_takes_the_capabilities_that_are_documented_tc_alone("tc", &["-p"], EBPF_ALONE);
    root_each_source_takes_the_capabilities_that_are_documented_af_packet("af_packet", &[], &["cap_net_raw"]);
}

fn each_source_takes_the_capabilities_that_are_documented(source: &str, more: &[&str], needed: &[&str]) {
    let args = [&["count", "-i", "rx0", "-B", "8MiB", "--source", source, "--json", "-v"], more].concat();
    let place = tempfile::tempdir().expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let network = network();
    let mut command = with_file_capabilities(place.path(), &needed.join(","), &args);
    let running = Running::spawn(&network, &mut command);
    running.wait_for("confined: no capabilities, no new privileges");
    all_are(running.id(), "CapPrm:", 0);
    send(&network, 100);
    assert_eq!(running.interrupt().succeeded().account().number("captured"), 100, "{source}");

    // Each of them is needed.
    for left_out in needed {
        let rest: Vec<&str> = needed.iter().copied().filter(|one| one != left_out).collect();
        let rest = if rest.is_empty() { "cap_chown".to_owned() } else { rest.join(",") };
        let mut command = with_file_capabilities(place.path(), &rest, &args);
        let ended = Running::spawn(&network, &mut command).wait();
        let ended = ended.failed(&["permission denied", "setcap cap_"]);
        assert!(ended.stderr.contains(&needed.join(",")), "{source} without {left_out}: {}", ended.stderr);
    }
}

#[root_test]
fn root_who_may_capture_may_nothing_more() {
    let place = directory();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let network = network();
    let all = "cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw";
    let exclusive = ["count", "-i", "rx0", "-B", "8MiB", "--mode", "exclusive", "--json"];
    let cases: [(&[&str], &str); 4] = [
        (&exclusive, "cannot use --mode exclusive"),
        (&["capture", "-i", "rx0", "-B", "8MiB", "--mode", "exclusive"], "cannot use --mode exclusive"),
        (&["forward", "rx0", "rx0"], "cannot forward packets"),
        (&["forward", "--end", "rx0", "rx0"], "cannot forward packets"),
    ];
    for (args, what) in cases {
        let ended = Running::spawn(&network, &mut with_file_capabilities(place.path(), all, args)).wait();
        ended.failed(&[what, "only cover captures", "run as root"]);
    }
    // The file's right to capture with packet sockets is none to send with them.
    let sends = ["gen", "-i", "rx0", "-c", "1"];
    let ended =
        Running::spawn(&network, &mut with_file_capabilities(place.path(), "cap_net_raw", &sends)).wait();
    ended.failed(&["only cover captures", "run as root"]);
    let sockets = place.path().join("sockets");
    fs::create_dir(&sockets).expect("room");
    chown(&sockets, Some(NOBODY), Some(NOBODY)).expect("root may");
    let socket = path(&place, "sockets/own");
    let args = ["count", "-i", "rx0", "-B", "8MiB", "--source", "xdp", "--json", "--control", &socket];
    let running = Running::spawn(&network, &mut with_file_capabilities(place.path(), all, &args));
    running.wait_until_open();
    // Whoever has the descriptor of a program, or of what it takes to have one made, can send any frames. The capture
    // gives its user none, though it puts filters in force;
    let nothing = r#"{"interface":0,"form":{"classic":[[6,0,0,0]]},"sets":[],"descriptors":0}"#;
    let put = format!(r#"{{"put":{{"filter":null,"programs":[{nothing}]}}}}"#);
    for (ask, expected) in [(r#""slots""#, r#""made_here":true"#), (&put, "only root may send programs")] {
        let request = format!(r#"{{"version":{VERSION},"ask":{ask}}}"#);
        let (answer, descriptors) = as_member(&socket, NOBODY, |stream| told(&stream, &request));
        assert!(answer.contains(expected) && descriptors.is_empty(), "{answer}");
    }
    // nor can it be taken from the process,
    let process = Pid::from_raw(running.id().cast_signed()).expect("a process");
    let process = pidfd_open(process, PidfdFlags::empty()).expect("it runs");
    for number in 0..64 {
        let taken = as_user(NOBODY, || pidfd_getfd(&process, number, PidfdGetfdFlags::empty()));
        assert_eq!(taken.err(), Some(Errno::PERM), "{number}");
    }
    let copy = place.path().join("weir");
    let asked = output(&network, &mut as_nobody(&copy, &["ctl", "filter", "-t", &socket, "--", "arp"]));
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    running.wait_for("filter changed to `arp`");
    send(&network, 10);
    assert_eq!(running.interrupt().succeeded().account().number("captured"), 0);
    // and weir's own `ctl` neither: not with its capabilities, to whoever listens, not even to root,
    let genuine = path(&place, "genuine");
    let running = start(&network, &["count", "-i", "rx0", "--source", "xdp", "--control", &genuine]);
    let places = places(&genuine);
    assert!(!places.1.is_empty(), "{}", places.0);
    let refused = given_to(&sockets.join("root"), 0, &places, || {
        output(
            &network,
            &mut as_nobody(&copy, &["ctl", "filter", "-t", &path(&place, "sockets/root"), "udp"]),
        )
    });
    assert!(refused.1.is_none(), "no program is sent: {:?}", refused.1);
    let message = String::from_utf8_lossy(&refused.0.stderr).into_owned();
    assert!(message.contains("permission denied"), "{message}");
    // and not as root, to another user.
    let sent = given_to(&sockets.join("nobody"), NOBODY, &places, || {
        ctl(&network, &["filter", "-t", &path(&place, "sockets/nobody"), "udp"])
    });
    let (request, descriptors) = sent.1.expect("a request");
    assert!(request.contains(r#""filter""#) && descriptors.is_empty(), "{request}");
    running.interrupt().succeeded();

    // Who was given them as his own is as free as root.
    let mut command = Command::new("setpriv");
    let ambient = all.replace("cap_", "+");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args([format!("--inh-caps={ambient}"), format!("--ambient-caps={ambient}")]);
    let copy = place.path().join("own");
    fs::copy(env!("CARGO_BIN_EXE_weir"), &copy).expect("a copy");
    let running = Running::spawn(&network, command.arg(copy).args(exclusive));
    running.wait_until_open();
    send(&network, 10);
    assert_eq!(running.interrupt().succeeded().account().number("captured"), 10);
}

#[root_test]
fn root_who_reads_files_is_confined_and_has_its_own_opened() {
    let (network, directory) = (network(), directory());
    let (pipe, file) = (path(&directory, "pipe"), path(&directory, "file"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let cases: [(&[&str], usize); 3] = [
        (&["filter", "--run", &pipe, "tcp"], 0),
        (&["read", "--count", &pipe], 0),
        (&["read", "-w", &file, &pipe], 1),
    ];
    for (args, helpers) in cases {
        let mut running = Running::spawn(&network, &mut weir(args));
        // It waits for somebody who writes.
        until("confinement", || {
            assert!(running.is_running(), "{args:?}");
            let modes = status(running.id(), "Seccomp:");
            if modes.iter().all(|&mode| mode == 2) { Ok(()) } else { Err(format!("{modes:?}")) }
        });
        all_are(running.id(), "CapPrm:", 0);
        assert_eq!(beside(running.id(), "weir-files").len(), helpers, "{args:?}");
        fs::write(&pipe, "no packets").expect("it reads");
        assert!(!running.wait().status.success());
    }
}

#[test]
fn a_wrong_combination_is_refused() {
    let output = weir(&["count", "-v", "-q"]).output().expect("weir runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[root_test]
fn root_root_reads_what_belongs_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("theirs.pcapng");
    let network = network();
    let running = start(&network, &["capture", "-i", "rx0", "-w", &file.display().to_string()]);
    send(&network, 3);
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
