//! Filters in captures, and what is asked of captures that run: `weir ctl`.

use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Gid, Pid, Signal, Uid, kill_process};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use weir_lab::{Network, Veth, root_test};

use crate::harness::{
    CONFINED, Mounts, NOBODY, Running, capture, directory, network, output, path, root_tests, run, send,
    start, start_quietly, tshark, until, weir,
};

/// The last byte of a frame's number.
pub(crate) const EVEN: &str = "udp and ether[51] & 1 = 0";

/// `weir ctl` in the receiving namespace.
pub(crate) fn ctl(network: &Network, args: &[&str]) -> Output {
    output(network, &mut weir(&[&["ctl"], args].concat()))
}

/// The same; it must succeed. Gives its standard output.
pub(crate) fn ctl_succeeds(network: &Network, args: &[&str]) -> String {
    succeeded(ctl(network, args))
}

fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Waits until the file has this text, as a mark among its packets.
fn wait_for_mark(file: &str, text: &str) {
    until(&format!("`{text}` in {file}"), || {
        let bytes = fs::read(file).expect("the file");
        let said = bytes.windows(text.len()).any(|part| part == text.as_bytes());
        if said { Ok(()) } else { Err(format!("{} bytes without", bytes.len())) }
    });
}

pub(crate) fn ended_at(running: Running) -> crate::harness::Account {
    running.interrupt().succeeded().account()
}

root_tests! { a_filter_is_told_counted_and_written_down:
    root_a_filter_is_told_counted_and_written_down_xdp("xdp");
    root_a_filter_is_told_counted_and_written_down_tc("tc");
    root_a_filter_is_told_counted_and_written_down_xdp_and_tc("xdp+tc");
    root_a_filter_is_told_counted_and_written_down_af_packet("af_packet");
}

fn a_filter_is_told_counted_and_written_down(source: &str) {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "even.pcapng");
    let args = ["--source", source, "-w", &file, "--json", "--no-control", "--", EVEN];
    let running = capture(&network, &args);
    running.wait_for(&format!("filter `{EVEN}`"));
    send(&network, 500);
    let account = ended_at(running);
    account.closes();
    assert_eq!(account.number("captured"), 250, "{source}");
    assert!(account.number("filtered") >= 250, "{source}");
    assert_eq!(account.0["interfaces"][0]["filter"], EVEN);
    assert_eq!(tshark(file.as_ref(), &["frame.interface_id"]).len(), 250);
    let described = fs::read(&file).expect("the file");
    assert!(described.windows(EVEN.len()).any(|part| part == EVEN.as_bytes()), "if_filter");
}

root_tests! { a_running_capture_takes_another_filter_and_the_file_says_when:
    root_a_running_capture_takes_another_filter_and_the_file_says_when_xdp("xdp");
    root_a_running_capture_takes_another_filter_and_the_file_says_when_tc("tc");
    root_a_running_capture_takes_another_filter_and_the_file_says_when_xdp_and_tc("xdp+tc");
    root_a_running_capture_takes_another_filter_and_the_file_says_when_af_packet("af_packet");
}

fn a_running_capture_takes_another_filter_and_the_file_says_when(source: &str) {
    let (network, directory) = (network(), directory());
    let (file, socket) = (path(&directory, "changed.pcapng"), path(&directory, "socket"));
    let running = capture(&network, &["--source", source, "-w", &file, "--json", "-v", "--control", &socket]);
    running.wait_for(CONFINED);
    send(&network, 100);
    let times = ctl_succeeds(&network, &["filter", "-t", &socket, "--json", "--", EVEN]);
    let times: serde_json::Value = serde_json::from_str(&times).expect("JSON");
    assert!(times["in_force_nanoseconds"].as_u64().is_some_and(|time| time > 0), "{times}");
    running.wait_for(&format!("filter changed to `{EVEN}`"));
    wait_for_mark(&file, &format!("filter changed to: {EVEN}"));
    send(&network, 100);
    ctl_succeeds(&network, &["filter", "-t", &socket, "tcp", "port", "80"]);
    wait_for_mark(&file, "filter changed to: tcp port 80");
    send(&network, 100);
    ctl_succeeds(&network, &["filter", "-t", &socket, "--none"]);
    running.wait_for("filter removed");
    send(&network, 100);
    let account = ended_at(running);
    account.closes();
    assert_eq!(account.number("written"), 100 + 50 + 100, "{source}");
    assert!(!Path::new(&socket).exists(), "the socket goes with the capture");

    // Where it was said, among the packets: by the frames that came before.
    let bytes = fs::read(&file).expect("the file");
    let place =
        |text: &str| bytes.windows(text.len()).position(|part| part == text.as_bytes()).expect("it is said");
    let changes = [
        place(&format!("filter changed to: {EVEN}")),
        place("filter changed to: tcp port 80"),
        place("filter removed: every packet matches"),
    ];
    assert!(changes.is_sorted(), "{changes:?}");
    // 60 bytes and a record's head and foot, with directions.
    let frame = (60 + 32)..(60 + 32 + 24);
    assert!(frame.contains(&((changes[1] - changes[0]) / 50)), "{changes:?}: 50 frames in between");
    let judged = tshark(file.as_ref(), &["frame.number"]);
    assert_eq!(judged.len(), 250, "tshark reads it");
}

root_tests! { the_account_has_all_that_came_before_it_is_asked_for:
    root_the_account_has_all_that_came_before_it_is_asked_for_file(
        &["capture", "-i", "rx0", "--source", "xdp", "-w", "/dev/null"], "captured"
    );
    root_the_account_has_all_that_came_before_it_is_asked_for_tc(
        &["capture", "-i", "rx0", "--source", "tc"], "captured"
    );
    root_the_account_has_all_that_came_before_it_is_asked_for_active(
        &["count", "-i", "rx0", "--source", "xdp", "--active"], "captured"
    );
    root_the_account_has_all_that_came_before_it_is_asked_for_handlers(
        &["count", "-i", "rx0", "--source", "xdp", "--handlers", "2", "--steer", "flow"], "captured"
    );
    root_the_account_has_all_that_came_before_it_is_asked_for_forward(&["forward", "rx0", "rx1"], "seen");
}

fn the_account_has_all_that_came_before_it_is_asked_for(args: &[&str], field: &str) {
    let (mut network, directory) = (network(), directory());
    network.connect(Veth::default()).expect("a second pair");
    let socket = path(&directory, "socket");
    let running = start_quietly(&network, &[args, &["-q", "--control", &socket]].concat());
    for round in 1..=4 {
        send(&network, 1000);
        let status = ctl_succeeds(&network, &["status", "-t", &socket]);
        let told: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        assert_eq!(told[field], round * 1000, "round {round}: {status}");
    }
    running.interrupt().succeeded();
}

#[root_test]
fn root_captures_are_listed_asked_and_found_again_after_a_kill() {
    // In a /run that nobody else sees: everybody who looks around there removes what is left of those who were killed.
    let (network, run) = (network(), Mounts::with("mount -t tmpfs none /run"));
    let start = |args: &[&str]| {
        let running = Running::spawn(&network, &mut run.weir(args));
        running.wait_until_open();
        running
    };
    let ctl = |args: &[&str]| output(&network, &mut run.weir(&[&["ctl"], args].concat()));
    let ctl_succeeds = |args: &[&str]| succeeded(ctl(args));
    let count = ["count", "-B", "8MiB", "-i", "rx0", "--source", "af_packet", "-v", "--", "udp"];
    let running = start(&count);
    let process = running.id().to_string();
    let socket = format!("/run/weir/{process}.sock");
    running.wait_for(&format!("control: {socket}"));
    let list = ctl_succeeds(&["list"]);
    let line = list.lines().find(|line| line.starts_with(&process)).expect("it is listed");
    assert!(line.contains("count on rx0, filter `udp`") && line.ends_with(&socket), "{line}");
    send(&network, 100);
    until("an account of 100 packets", || {
        let status = ctl_succeeds(&["status", "--target", &process]);
        let told: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        assert_eq!(told["type"], "account");
        if told["captured"] == 100 { Ok(()) } else { Err(status) }
    });

    // What it is told to print on other people's terminals is no order to them.
    let directory = directory();
    let strange = start(&[
        "capture",
        "-B",
        "8MiB",
        "-i",
        "rx0",
        "--source",
        "tc",
        "-w",
        &path(&directory, "a\x1b[2Jb"),
    ]);
    let list = ctl_succeeds(&["list"]);
    assert!(list.contains("a\\u{1b}[2Jb") && !list.contains('\x1b'), "{list}");
    // One that was stopped is told of, too.
    strange.signal(Signal::STOP);
    until("all its threads to stop", || {
        let tasks = fs::read_dir(format!("/proc/{}/task", strange.id())).expect("it runs").flatten();
        let stat = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).ok();
        let running = tasks.filter_map(stat).find(|stat| !stat.contains(") T "));
        running.map_or(Ok(()), Err)
    });
    let list = ctl(&["list"]);
    let told = String::from_utf8_lossy(&list.stderr).into_owned();
    assert!(list.status.success() && told.contains("did not answer"), "{told}");
    strange.signal(Signal::CONT);
    strange.interrupt().succeeded();

    // What is wrong is told, and changes nothing; nonsense is of no effect.
    let never = ctl(&["filter", "-t", &process, "tcp", "and", "udp"]);
    let told = String::from_utf8_lossy(&never.stderr).into_owned();
    assert!(never.status.success() && told.contains("no packet can ever match"), "{told}");
    ctl_succeeds(&["filter", "-t", &process, "udp"]);
    let wrong = ctl(&["filter", "-t", &process, "tcp", "prot", "80"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[255; 64], &[2, 0, 0, 0, b'{', b'}']] {
        UnixStream::connect(run.path(&socket))
            .and_then(|mut stream| stream.write_all(nonsense))
            .expect("it listens");
    }
    let list = ctl_succeeds(&["list"]);
    assert!(list.contains("filter `udp`"), "{list}");

    running.signal(Signal::KILL);
    running.wait();
    assert!(Path::new(&run.path(&socket)).exists(), "it had no time to remove it");
    let gone = ctl(&["status", "--target", &process]);
    assert!(!gone.status.success());
    assert!(!ctl_succeeds(&["list"]).contains(&socket));
    assert!(!Path::new(&run.path(&socket)).exists(), "whoever looks removes it");
}

#[root_test]
fn root_a_wrong_expression_ends_before_anything_is_opened() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "none.pcapng");
    let ended = run(&network, &["capture", "-i", "rx0", "-w", &file, "--", "tcp prot 80"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("prot"), "{}", ended.stderr);
    assert!(!Path::new(&file).exists());
}

/// The time of the mark that says `what`, and of each frame of the file its time and number; the frames in front of the mark first.
struct Marked {
    mark: u64,
    before: Vec<(u64, u8)>,
    behind: Vec<(u64, u8)>,
}

impl Marked {
    fn read(file: &str, what: &str) -> Self {
        const STATISTICS: u32 = 5;
        const PACKET: u32 = 6;
        let bytes = fs::read(file).expect("the file");
        let mut marked = Self { mark: 0, before: Vec::new(), behind: Vec::new() };
        let mut rest = &bytes[..];
        while rest.len() >= 12 {
            let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().expect("four bytes"));
            let block = &rest[..word(4) as usize];
            let time = u64::from(word(12)) << 32 | u64::from(word(16));
            let said = block.windows(what.len()).any(|part| part == what.as_bytes());
            match word(0) {
                STATISTICS if said => marked.mark = time,
                PACKET if marked.mark == 0 => marked.before.push((time, block[28 + 51])),
                PACKET => marked.behind.push((time, block[28 + 51])),
                _ => {}
            }
            rest = &rest[block.len()..];
        }
        assert!(marked.mark > 0, "`{what}` is said");
        marked
    }
}

root_tests! { no_packet_behind_a_mark_has_met_the_filter_before:
    root_no_packet_behind_a_mark_has_met_the_filter_before_xdp("xdp");
    root_no_packet_behind_a_mark_has_met_the_filter_before_tc("tc");
    root_no_packet_behind_a_mark_has_met_the_filter_before_af_packet("af_packet");
}

fn no_packet_behind_a_mark_has_met_the_filter_before(source: &str) {
    const ODD: &str = "udp and ether[51] & 1 = 1";
    let (network, directory) = (network(), directory());
    let (file, socket) = (path(&directory, "changed.pcapng"), path(&directory, "socket"));
    let running =
        capture(&network, &["--source", source, "-w", &file, "--json", "--control", &socket, "--", EVEN]);
    let (sent, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                send(&network, 2000);
                sent.fetch_add(2000, Ordering::Relaxed);
            }
        });
        let more_are_sent = || {
            let wanted = sent.load(Ordering::Relaxed) + 4000;
            until(&format!("{wanted} frames to be sent"), || match sent.load(Ordering::Relaxed) {
                sent if sent >= wanted => Ok(()),
                sent => Err(format!("{sent}; ended: {}", sending.is_finished())),
            });
        };
        more_are_sent();
        ctl_succeeds(&network, &["filter", "-t", &socket, "--", ODD]);
        wait_for_mark(&file, &format!("filter changed to: {ODD}"));
        more_are_sent();
        over.store(true, Ordering::Relaxed);
        sending.join().expect("frames are sent");
    });
    ended_at(running).closes();
    let Marked { mark, before, behind } = Marked::read(&file, &format!("filter changed to: {ODD}"));
    assert!(!before.is_empty() && !behind.is_empty(), "{source}");
    assert!(behind.iter().all(|(_, number)| number & 1 == 1), "{source}: by their place");
    let mut later = before.iter().chain(&behind).filter(|(time, _)| *time > mark);
    assert!(later.all(|(_, number)| number & 1 == 1), "{source}: by their time");
}

#[root_test]
fn root_a_change_is_in_the_file_though_the_capture_ends_at_once() {
    let (network, directory) = (network(), directory());
    let (file, socket) = (path(&directory, "ended.pcapng"), path(&directory, "socket"));
    for source in ["xdp", "tc", "af_packet"] {
        let running = capture(&network, &["--source", source, "-w", &file, "--control", &socket]);
        ctl_succeeds(&network, &["filter", "-t", &socket, "--", EVEN]);
        running.interrupt().succeeded();
        let bytes = fs::read(&file).expect("the file");
        let said = format!("filter changed to: {EVEN}");
        assert!(bytes.windows(said.len()).any(|part| part == said.as_bytes()), "{source}");
    }
}

/// Says this to the capture at `socket`. Its answer, and the connection, which lasts as long as that is kept.
pub(crate) fn say(socket: &str, words: &str) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(socket).expect("the capture listens");
    let length = u32::try_from(words.len()).expect("short").to_le_bytes();
    stream.write_all(&[&length, words.as_bytes()].concat()).expect("it hears");
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer).expect("all of it");
    (stream, String::from_utf8(answer).expect("text"))
}

#[root_test]
fn root_who_speaks_another_version_of_the_protocol_is_told_so() {
    let (network, directory) = (network(), directory());
    let socket = path(&directory, "socket");
    let running = start(&network, &["count", "-i", "rx0", "--source", "tc", "--control", &socket]);
    for words in [r#"{"version":1,"ask":"slots"}"#, r#"{"version":4000000000,"ask":{"unheard_of":[1]}}"#] {
        let (_, answer) = say(&socket, words);
        assert!(answer.starts_with(r#"{"refused""#) && answer.contains("protocol version"), "{answer}");
    }
    ctl_succeeds(&network, &["status", "-t", &socket]);
    running.interrupt().succeeded();
}

/// The system's directory for sockets, as it is once a capture of root's has run.
fn system() -> &'static Path {
    let system = Path::new("/run/weir");
    fs::create_dir_all(system).expect("root may");
    system
}

#[root_test]
fn root_whoever_locks_the_directory_of_sockets_holds_up_nobody() {
    let network = network();
    let held = File::open(system()).expect("anybody may open it");
    flock(&held, FlockOperation::NonBlockingLockShared).expect("nobody locks it");
    let running = start(&network, &["count", "-i", "rx0", "--source", "tc", "-v"]);
    running.wait_for(&format!("control: /run/weir/{}.sock", running.id()));
    ctl_succeeds(&network, &["status", "-t", &running.id().to_string()]);
    running.interrupt().succeeded();
    // Nor can others open what is locked instead.
    let mode = fs::metadata(system()).expect("it is there").mode();
    assert_eq!(mode & 0o022, 0, "nobody else makes files there: {mode:o}");
}

/// `weir` by a copy that anybody may run, as user 12345 of group `group`.
fn as_somebody(network: &Network, place: &Path, group: u32, args: &[&str]) -> Output {
    let copy = place.join("asks");
    fs::copy(env!("CARGO_BIN_EXE_weir"), &copy).expect("a copy");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=12345", &format!("--regid={group}"), "--clear-groups"]).arg(copy).args(args);
    network.rx().run(|| command.output()).expect("setpriv is installed")
}

#[root_test]
fn root_members_of_the_group_for_control_may_ask_and_nobody_else() {
    let (network, directory) = (network(), directory());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let group =
        weir_sys::user::group("nogroup").expect("a group database").expect("it is everywhere in Debian");
    let socket = path(&directory, "socket");
    for (args, members) in [(&["--control-group", "nogroup"][..], true), (&[], false)] {
        let running = start(
            &network,
            &[&["count", "-i", "rx0", "--source", "tc", "--control", &socket], args].concat(),
        );
        let ask = |group| as_somebody(&network, directory.path(), group, &["ctl", "status", "-t", &socket]);
        let answer = ask(group);
        let told = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert_eq!(answer.status.success(), members, "{told}");
        assert_eq!(String::from_utf8_lossy(&answer.stdout).contains("\"captured\""), members);
        let stranger = ask(group - 1);
        let told = String::from_utf8_lossy(&stranger.stderr).into_owned();
        assert!(!stranger.status.success() && told.contains("its --control-group and root"), "{told}");
        running.interrupt().succeeded();
    }
    let ended = run(&network, &["count", "-i", "rx0", "--control-group", "no-such-group"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("no group named `no-such-group`"), "{}", ended.stderr);
}

root_tests! { a_member_exchanges_filters_and_is_given_nothing_else:
    root_a_member_exchanges_filters_and_is_given_nothing_else_xdp("xdp");
    root_a_member_exchanges_filters_and_is_given_nothing_else_tc("tc");
    root_a_member_exchanges_filters_and_is_given_nothing_else_af_packet("af_packet");
}

fn a_member_exchanges_filters_and_is_given_nothing_else(source: &str) {
    const ODD: &str = "udp and ether[51] & 1 = 1";
    let (network, directory) = (network(), directory());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let socket = path(&directory, "socket");
    let members = path(&directory, "members");
    fs::write(&members, "10.9.8.7").expect("room");
    fs::set_permissions(&members, fs::Permissions::from_mode(0o600)).expect("ours");
    let args =
        ["-i", "rx0", "--source", source, "--json", "--control-group", "nogroup", "--control", &socket];
    let running = start(&network, &[&["count"], &args[..]].concat());
    let (answer, descriptors) = told_a_member(&socket, &format!(r#"{{"version":{VERSION},"ask":"slots"}}"#));
    assert!(answer.contains("\"made_here\":true"), "{answer}");
    assert_eq!(descriptors.len(), 0, "{answer}");
    // A program that takes nothing, under another name.
    let nothing = r#"{"interface":0,"form":{"classic":[[6,0,0,0]]},"sets":[],"descriptors":0}"#;
    let put =
        format!(r#"{{"version":{VERSION},"ask":{{"put":{{"filter":"all of it","programs":[{nothing}]}}}}}}"#);
    let (answer, _) = told_a_member(&socket, &put);
    assert!(answer.contains("only root may send programs"), "{answer}");
    let (answer, _) =
        told_a_member(&socket, &format!(r#"{{"version":{VERSION},"ask":{{"count":{{"on":false}}}}}}"#));
    assert!(answer.contains("only root and the capture's user may switch statistics"), "{answer}");
    // A file that only root may read, which a member's own `weir` would not open.
    let named = format!(
        r#"{{"text":"host in @{members}","pcap":false,"names":{{"hosts":{{}},"networks":{{}},"ethernets":{{}},"services":{{}},"protocols":{{}},"sets":{{}}}}}}"#
    );
    let (answer, _) =
        told_a_member(&socket, &format!(r#"{{"version":{VERSION},"ask":{{"filter":{named}}}}}"#));
    assert!(answer.contains("was not read"), "{answer}");
    send(&network, 10);
    let filter = |words: &[&str]| {
        let all = [&["ctl", "filter", "-t", &socket], words].concat();
        as_somebody(&network, directory.path(), NOBODY, &all)
    };
    succeeded(filter(&["--", ODD]));
    running.wait_for(&format!("filter changed to `{ODD}` (by user 12345)"));
    send(&network, 100);
    // A set that this user has made changes inside the capture: no descriptor of it leaves, which would keep its memory.
    fs::set_permissions(&members, fs::Permissions::from_mode(0o644)).expect("ours");
    succeeded(filter(&["--", &format!("{ODD} or host in @{members}")]));
    let (answer, descriptors) = told_a_member(&socket, &format!(r#"{{"version":{VERSION},"ask":"sets"}}"#));
    assert!(answer.contains(&members) && descriptors.is_empty(), "{answer}");
    let change = ["ctl", "set", "-t", &socket, &members, "add", "10.9.8.8"];
    succeeded(as_somebody(&network, directory.path(), NOBODY, &change));
    running.wait_for(&format!("set `{members}`: 1 added, 0 removed (by user 12345)"));
    let wrong = filter(&["tcp", "prot", "80"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    succeeded(filter(&["--none"]));
    running.wait_for("filter removed: every packet matches (by user 12345)");
    send(&network, 100);
    let account = ended_at(running);
    account.closes();
    assert_eq!(account.number("captured"), 10 + 50 + 100, "{source}");
}

/// No names.
pub(crate) const NAMES: &str =
    r#"{"hosts":{},"networks":{},"ethernets":{},"services":{},"protocols":{},"sets":{}}"#;

/// The version of the protocol.
pub(crate) const VERSION: u32 = 8;

/// Works as this user of the group `nogroup`.
pub(crate) fn as_user<T: Send>(user: u32, work: impl FnOnce() -> T + Send) -> T {
    let become_user = || {
        let (group, user) = (Gid::from_raw(NOBODY), Uid::from_raw(user));
        set_thread_groups(&[]).expect("root may");
        set_thread_res_gid(group, group, group).expect("root may");
        set_thread_res_uid(user, user, user).expect("root may");
        work()
    };
    // Who a thread is, is its own affair.
    thread::scope(|scope| scope.spawn(become_user).join().expect("no panic"))
}

/// Works with a connection to the capture at `socket` as this user of the group `nogroup`.
pub(crate) fn as_member<T: Send>(socket: &str, user: u32, work: impl FnOnce(UnixStream) -> T + Send) -> T {
    as_user(user, || work(UnixStream::connect(socket).expect("a member may")))
}

/// A message, and the descriptors that come with it.
pub(crate) type Message = (String, Vec<OwnedFd>);

/// What root is told of the places of filters, with all that it takes to build programs for them.
pub(crate) fn places(socket: &str) -> Message {
    let stream = UnixStream::connect(socket).expect("it listens");
    told(&stream, &format!(r#"{{"version":{VERSION},"ask":"slots"}}"#))
}

/// Listens at `socket` as `user`, and tells the client that `work` runs of these places. What the client asks next.
pub(crate) fn given_to<T>(
    socket: &Path,
    user: u32,
    places: &Message,
    work: impl FnOnce() -> T,
) -> (T, Option<Message>) {
    let listener = as_user(user, || UnixListener::bind(socket).expect("its directory"));
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).expect("root may");
    let serve = || {
        let (stream, _) = listener.accept().expect("a client");
        heard(&stream).expect("a question");
        write_message(&stream, &places.0, &places.1);
        heard(&stream)
    };
    thread::scope(|scope| {
        let asked = scope.spawn(serve);
        (work(), asked.join().expect("no panic"))
    })
}

/// The answer to what a member says, and the descriptors that come with it.
fn told_a_member(socket: &str, words: &str) -> Message {
    as_member(socket, 12345, |stream| told(&stream, words))
}

/// The answer to `words`, and the descriptors that come with it.
pub(crate) fn told(stream: &UnixStream, words: &str) -> Message {
    write_message(stream, words, &[]);
    heard(stream).expect("an answer")
}

fn write_message(mut stream: &UnixStream, words: &str, descriptors: &[OwnedFd]) {
    let length = u32::try_from(words.len()).expect("short").to_le_bytes();
    let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(128))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(descriptors.is_empty() || beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(stream, &[IoSlice::new(&length)], &mut beside, SendFlags::empty()).expect("it hears");
    stream.write_all(words.as_bytes()).expect("it hears");
}

/// The next message; `None`: the peer has closed the connection.
fn heard(mut stream: &UnixStream) -> Option<Message> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(128))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut length)];
    let received = recvmsg(stream, &mut into, &mut beside, RecvFlags::WAITALL).expect("a message");
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let descriptors = rights.flatten().collect();
    if received.bytes == 0 {
        return None;
    }
    let mut answer = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut answer).expect("all of it");
    Some((String::from_utf8(answer).expect("text"), descriptors))
}

#[root_test]
fn root_members_make_way_for_root() {
    let (network, directory) = (network(), directory());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let (socket, members) = (path(&directory, "socket"), path(&directory, "members"));
    fs::write(&members, "10.9.8.7").expect("room");
    let args = ["count", "-i", "rx0", "--source", "tc", "--control-group", "nogroup", "--control", &socket];
    let filter = format!("host in @{members}");
    let running = start(&network, &[&args[..], &["--", &filter]].concat());
    let connections = as_member(&socket, 12345, |stream| {
        let replace = format!(
            r#"{{"version":{VERSION},"ask":{{"change_set":{{"name":"{members}","change":"replace","members":{{"text":"10.9.8.6-oops","names":{NAMES}}}}}}}}}"#
        );
        // Refused before anything changes.
        let (answer, _) = told(&stream, &replace);
        assert!(answer.contains("unknown host"), "{answer}");
        // Others who say nothing, more than are let wait.
        let idle = (0..200).filter_map(|_| UnixStream::connect(&socket).ok());
        [stream].into_iter().chain(idle).collect::<Vec<_>>()
    });
    ctl_succeeds(&network, &["set", "-t", &socket, &members, "add", "10.9.8.8"]);
    running.wait_for(&format!("set `{members}`: 1 added, 0 removed"));
    drop(connections);
    running.interrupt().succeeded();
}

#[root_test]
fn root_what_a_member_wants_has_its_limits() {
    let (network, directory) = (network(), directory());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let socket = path(&directory, "socket");
    let args = ["count", "-i", "rx0", "--source", "tc", "--control-group", "nogroup", "--control", &socket];
    let running = start(&network, &args);
    let wanted = |text: &str| {
        let filter = serde_json::json!({ "text": text, "pcap": false, "names": "NAMES" });
        let ask = serde_json::json!({ "version": VERSION, "ask": { "filter": filter } });
        told_a_member(&socket, &ask.to_string().replace("\"NAMES\"", NAMES)).0
    };
    // Deep, long and wide: each is refused in words, and the next is answered.
    let terms = (0..20_000).map(|number| format!("tcp[((tcp[12] & 0xf0) >> 2):4] = {number}"));
    let long = terms.collect::<Vec<_>>().join(" or ");
    for text in [&"(".repeat(1 << 20), &"not ".repeat(1 << 18), &long] {
        let answer = wanted(text);
        assert!(answer.contains("\"refused\""), "{} ...", &answer[..answer.len().min(300)]);
        println!("{}", &answer[..answer.len().min(300)]);
    }
    // Neither a colour of weir's own nor a bell, in a filter or in the name of a set; and the head of a long word.
    let answer = wanted("udp # \u{1b}[31mred\u{7}");
    assert!(answer.contains("\"done\""), "{answer}");
    running.wait_for(r"filter changed to `udp # \u{1b}[31mred\u{7}`");
    let set = r#""sets":{"\u001b[31mred":{"Ok":"10.9.8.7"}}"#;
    let named = format!(
        r#"{{"version":{VERSION},"ask":{{"filter":{{"text":"host in @\u001b[31mred","pcap":false,"names":{}}}}}}}"#,
        NAMES.replace(r#""sets":{}"#, set)
    );
    let (answer, _) = told_a_member(&socket, &named);
    assert!(answer.contains("\"done\""), "{answer}");
    let change = format!(
        r#"{{"version":{VERSION},"ask":{{"change_set":{{"name":"\u001b[31mred","change":"add","members":{{"text":"10.9.8.8","names":{NAMES}}}}}}}}}"#
    );
    let (answer, _) = told_a_member(&socket, &change);
    assert_eq!(answer, r#"{"changed":{"added":1,"removed":0}}"#);
    running.wait_for("set ` [31mred`: 1 added, 0 removed");
    let answer = wanted(&format!("udp#{}", "x".repeat(9000)));
    assert!(answer.contains("\"done\""), "{answer}");
    running.wait_for("filter changed to `udp#xxxx");
    let ended = running.interrupt().succeeded();
    assert!(!ended.stderr.contains("\u{1b}[31mred"), "{}", ended.stderr);
}

#[root_test]
fn root_a_service_has_its_socket_in_its_own_directory_and_its_group_may_ask() {
    // As a service manager starts what packaging/weir@.service says: a user with capabilities and directories of its own.
    let capabilities = "+net_raw,+net_admin,+bpf,+perfmon";
    for source in ["xdp", "tc", "af_packet"] {
        let (network, directory) = (network(), directory());
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        let own = tempfile::tempdir_in(system()).expect("a directory below the system's");
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        let state = directory.path().join("state");
        fs::create_dir(&state).expect("room");
        for place in [own.path(), &state] {
            chown(place, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        let copy = directory.path().join("weir");
        fs::copy(env!("CARGO_BIN_EXE_weir"), &copy).expect("a copy");
        let file = state.join("%Y%m%d.pcapng").display().to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["--no-new-privs", &format!("--inh-caps={capabilities}")]);
        command.arg(format!("--ambient-caps={capabilities}")).arg(copy);
        command.args([
            "capture",
            "-i",
            "rx0",
            "-B",
            "8MiB",
            "-w",
            &file,
            "-v",
            "--json",
            "--control-group",
            "nogroup",
            "--source",
        ]);
        let running = Running::spawn(&network, command.arg(source).env("RUNTIME_DIRECTORY", own.path()));
        running.wait_until_open();
        let socket = own.path().join(format!("{}.sock", running.id())).display().to_string();
        running.wait_for(&format!("control: {socket}"));
        running.wait_for("confined: no capabilities, no new privileges; writes no files");
        let list = ctl_succeeds(&network, &["list"]);
        assert!(list.lines().any(|line| line.ends_with(&socket)), "{list}");
        let process = running.id().to_string();
        let answer = as_somebody(&network, directory.path(), NOBODY, &["ctl", "status", "-t", &process]);
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        send(&network, 10);
        assert_eq!(ended_at(running).number("written"), 10, "{source}");
        assert!(!Path::new(&socket).exists(), "it goes with the capture");
    }
}

#[root_test]
fn root_a_socket_that_cannot_be_had_is_said_to_those_who_asked_and_the_capture_goes_on() {
    let network = network();
    system();
    let start = |more: &[&str]| {
        let mut command = Command::new("unshare");
        let script = "mount -t tmpfs -o ro none /run/weir && exec \"$@\"";
        command.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_weir")]);
        command.args(["count", "-i", "rx0", "-B", "8MiB", "--json"]).args(more);
        let running = Running::spawn(&network, command.env_remove("XDG_RUNTIME_DIR"));
        running.wait_until_open();
        running
    };
    let running = start(&["--control-group", "nogroup"]);
    running.wait_for("warning: cannot listen for `weir ctl` at /run/weir/");
    send(&network, 10);
    assert_eq!(ended_at(running).number("captured"), 10);
    let ended = start(&[]).interrupt().succeeded();
    assert!(!ended.stderr.contains("/run/weir"), "nobody asked: {}", ended.stderr);
    // One that was asked for by name is an error.
    let ended = run(&network, &["count", "-i", "rx0", "--control", "/sys/socket"]);
    ended.failed(&["cannot listen at /sys/socket"]);
}

/// Ctrl-Z and `fg` do not end the wait for an answer, although the kernel interrupts it (signal(7)).
#[test]
fn a_wait_for_an_answer_outlasts_a_stop() {
    let directory = directory();
    let socket = path(&directory, "s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut command = weir(&["ctl", "status", "-t", &socket]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir runs");
    let (mut stream, _) = listener.accept().expect("a client");
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a length");
    let length = u32::from_le_bytes(length).try_into().expect("small");
    stream.read_exact(&mut vec![0; length]).expect("a question");
    let pid = Pid::from_child(&child);
    let is_in = |states: &str| {
        until(&format!("state {states}"), || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
            let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
            if state.is_some_and(|state| states.contains(state)) { Ok(()) } else { Err(stat) }
        });
    };
    is_in("S");
    kill_process(pid, Signal::STOP).expect("it runs");
    is_in("T");
    kill_process(pid, Signal::CONT).expect("it runs");
    is_in("SZ");
    // There is no answer, but that is what it waits for.
    drop(stream);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("nterrupted"), "{said}");
}
