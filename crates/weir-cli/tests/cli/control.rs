//! Filters in captures, and what is asked of captures that run: `weir ctl`.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use weir_lab::{Network, require_root};

use crate::harness::{Running, capture, directory, network, path, run, send, start, tshark, weir};

const SETTLE: Duration = Duration::from_millis(400);
/// The last byte of a frame's number.
const EVEN: &str = "udp and ether[49] & 1 = 0";

/// `weir ctl` in the receiving namespace.
fn ctl(network: &Network, args: &[&str]) -> Output {
    let mut command = weir(&[&["ctl"], args].concat());
    network.rx().run(|| command.output()).expect("weir runs")
}

/// The same; it must succeed. Gives its standard output.
fn ctl_succeeds(network: &Network, args: &[&str]) -> String {
    let output = ctl(network, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn ended_at(running: Running) -> crate::harness::Account {
    thread::sleep(SETTLE);
    running.interrupt().succeeded().account()
}

#[test]
fn root_a_filter_is_told_counted_and_written_down() {
    if !require_root("root_a_filter_is_told_counted_and_written_down") {
        return;
    }
    for source in ["xdp", "tc", "xdp+tc", "af_packet"] {
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
}

#[test]
fn root_a_running_capture_takes_another_filter_and_the_file_says_when() {
    if !require_root("root_a_running_capture_takes_another_filter_and_the_file_says_when") {
        return;
    }
    for source in ["xdp", "tc", "xdp+tc", "af_packet"] {
        let (network, directory) = (network(), directory());
        let (file, socket) = (path(&directory, "changed.pcapng"), path(&directory, "socket"));
        let running =
            capture(&network, &["--source", source, "-w", &file, "--json", "-v", "--control", &socket]);
        running.wait_for("confined: no capability, no new privileges; writes only in ");
        send(&network, 100);
        thread::sleep(SETTLE);
        let times = ctl_succeeds(&network, &["filter", "-t", &socket, "--json", "--", EVEN]);
        let times: serde_json::Value = serde_json::from_str(&times).expect("JSON");
        assert!(times["in_force_nanoseconds"].as_u64().is_some_and(|time| time > 0), "{times}");
        running.wait_for(&format!("filter changed to `{EVEN}`"));
        send(&network, 100);
        thread::sleep(SETTLE);
        ctl_succeeds(&network, &["filter", "-t", &socket, "tcp", "port", "80"]);
        send(&network, 100);
        thread::sleep(SETTLE);
        ctl_succeeds(&network, &["filter", "-t", &socket, "--none"]);
        running.wait_for("filter removed");
        send(&network, 100);
        let account = ended_at(running);
        account.closes();
        assert_eq!(account.number("written"), 100 + 50 + 100, "{source}");
        assert!(!Path::new(&socket).exists(), "the socket goes with the capture");

        // Where it was said, among the packets: by the frames that came before.
        let bytes = fs::read(&file).expect("the file");
        let place = |text: &str| {
            bytes.windows(text.len()).position(|part| part == text.as_bytes()).expect("it is said")
        };
        let changes = [
            place(&format!("filter changed to: {EVEN}")),
            place("filter changed to: tcp port 80"),
            place("filter removed: every packet is wanted"),
        ];
        assert!(changes.is_sorted(), "{changes:?}");
        // 60 bytes and a record's head and foot, with directions.
        let frame = (60 + 32)..(60 + 32 + 24);
        assert!(frame.contains(&((changes[1] - changes[0]) / 50)), "{changes:?}: 50 frames in between");
        let judged = tshark(file.as_ref(), &["frame.number"]);
        assert_eq!(judged.len(), 250, "tshark reads it");
    }
}

#[test]
fn root_captures_are_listed_asked_and_found_again_after_a_kill() {
    if !require_root("root_captures_are_listed_asked_and_found_again_after_a_kill") {
        return;
    }
    let network = network();
    let running = start(&network, &["count", "-i", "rx0", "--source", "af_packet", "-v", "--", "udp"]);
    let process = running.id().to_string();
    let socket = format!("/run/weir/{process}.sock");
    running.wait_for(&format!("control: {socket}"));
    let list = ctl_succeeds(&network, &["list"]);
    let line = list.lines().find(|line| line.starts_with(&process)).expect("it is listed");
    assert!(line.contains("count on rx0, filter `udp`") && line.ends_with(&socket), "{line}");
    send(&network, 100);
    thread::sleep(Duration::from_millis(1300));
    let status = ctl_succeeds(&network, &["status", "--target", &process]);
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["type"], &status["captured"]), (&"account".into(), &100.into()));

    // What is wrong is told, and changes nothing; nonsense is of no effect.
    let wrong = ctl(&network, &["filter", "-t", &process, "tcp", "prot", "80"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[255; 64], &[2, 0, 0, 0, b'{', b'}']] {
        UnixStream::connect(&socket).and_then(|mut stream| stream.write_all(nonsense)).expect("it listens");
    }
    let list = ctl_succeeds(&network, &["list"]);
    assert!(list.contains("filter `udp`"), "{list}");

    running.signal(Signal::KILL);
    running.wait();
    assert!(Path::new(&socket).exists(), "it had no time to remove it");
    let gone = ctl(&network, &["status", "--target", &process]);
    assert!(!gone.status.success());
    assert!(!ctl_succeeds(&network, &["list"]).contains(&socket));
    assert!(!Path::new(&socket).exists(), "whoever looks removes it");
}

#[test]
fn root_a_wrong_expression_ends_before_anything_is_opened() {
    if !require_root("root_a_wrong_expression_ends_before_anything_is_opened") {
        return;
    }
    let (network, directory) = (network(), directory());
    let file = path(&directory, "none.pcapng");
    let ended = run(&network, &["capture", "-i", "rx0", "-w", &file, "--", "tcp prot 80"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("prot"), "{}", ended.stderr);
    assert!(!Path::new(&file).exists());
}

#[test]
fn root_a_set_changes_under_a_running_filter_and_the_file_says_how() {
    if !require_root("root_a_set_changes_under_a_running_filter_and_the_file_says_how") {
        return;
    }
    let exchanged = [("xdp", true), ("tc", true)];
    for (source, exchanged) in
        ["xdp", "tc", "xdp+tc", "af_packet"].map(|source| (source, false)).into_iter().chain(exchanged)
    {
        let (network, directory) = (network(), directory());
        let name = |name: &str| path(&directory, name);
        let (file, socket, set) = (name("set.pcapng"), name("socket"), name("wanted"));
        let expression = format!("udp and port in @{set}");
        fs::write(&set, "9999").expect("a set");
        let first = if exchanged { "arp" } else { &expression };
        let args = ["--source", source, "-w", &file, "--json", "-v", "--control", &socket, "--", first];
        let running = capture(&network, &args);
        running.wait_for("confined: no capability, no new privileges; writes only in ");
        if exchanged {
            ctl_succeeds(&network, &["filter", "-t", &socket, "--", &expression]);
        }
        let change = |words: &[&str], told: &str| {
            ctl_succeeds(&network, &[&["set", "-t", &socket, &set], words].concat());
            running.wait_for(&format!("set `{set}`: {told}"));
        };
        send(&network, 10);
        change(&["add", "9", "7000-7001"], "3 added, 0 removed");
        send(&network, 20);
        thread::sleep(SETTLE);
        change(&["remove", "9", "1"], "0 added, 1 removed");
        send(&network, 40);
        let members = name("members");
        fs::write(&members, "9, 7000 # and so on\n").expect("a file");
        change(&["replace", &format!("@{members}")], "1 added, 2 removed");
        send(&network, 80);
        let missing = ctl(&network, &["set", "-t", &socket, "missing", "add", "1"]);
        let told = String::from_utf8_lossy(&missing.stderr).into_owned();
        assert!(!missing.status.success() && told.contains(&format!("there: `{set}`")), "{told}");
        let account = ended_at(running);
        account.closes();
        assert_eq!(account.number("written"), 20 + 80, "{source}, exchanged: {exchanged}");
        let bytes = fs::read(&file).expect("the file");
        for told in ["3 added, 0 removed", "0 added, 1 removed", "1 added, 2 removed"] {
            let mark = format!("set `{set}`: {told}");
            assert!(bytes.windows(mark.len()).any(|part| part == mark.as_bytes()), "{mark}");
        }
    }
}

#[test]
fn root_a_set_in_the_process_is_refused() {
    if !require_root("root_a_set_in_the_process_is_refused") {
        return;
    }
    let (network, directory) = (network(), directory());
    let (socket, set) = (path(&directory, "socket"), path(&directory, "wanted"));
    fs::write(&set, "80").expect("a set");
    let filter = format!("port in @{set}");
    let running = start(&network, &["count", "-i", "any", "--control", &socket, "--", &filter]);
    let refused = ctl(&network, &["set", "-t", &socket, &set, "add", "81"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("weir ctl filter"), "{told}");
    running.interrupt().succeeded();
}
