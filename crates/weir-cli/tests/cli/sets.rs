//! Sets of filters in captures, which change while the filter runs: `weir ctl set`.

use std::fs;
use std::thread;

use weir_lab::root_test;

use crate::control::{NAMES, VERSION, ctl, ctl_succeeds, ended_at, say};
use crate::harness::{CONFINED, capture, directory, network, path, root_tests, send, start};

root_tests! { a_set_changes_under_a_running_filter_and_the_file_says_how:
    root_a_set_changes_under_a_running_filter_and_the_file_says_how_xdp("xdp", false);
    root_a_set_changes_under_a_running_filter_and_the_file_says_how_tc("tc", false);
    root_a_set_changes_under_a_running_filter_and_the_file_says_how_xdp_and_tc("xdp+tc", false);
    root_a_set_changes_under_a_running_filter_and_the_file_says_how_af_packet("af_packet", false);
    root_a_set_changes_under_a_filter_that_was_exchanged_and_the_file_says_how_xdp("xdp", true);
    root_a_set_changes_under_a_filter_that_was_exchanged_and_the_file_says_how_tc("tc", true);
}

fn a_set_changes_under_a_running_filter_and_the_file_says_how(source: &str, exchanged: bool) {
    let (network, directory) = (network(), directory());
    let name = |name: &str| path(&directory, name);
    let (file, socket, set) = (name("set.pcapng"), name("socket"), name("wanted"));
    let expression = format!("udp and port in @{set}");
    fs::write(&set, "9999").expect("a set");
    let first = if exchanged { "arp" } else { &expression };
    let args = ["--source", source, "-w", &file, "--json", "-v", "--control", &socket, "--", first];
    let running = capture(&network, &args);
    running.wait_for(CONFINED);
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
    change(&["remove", "9", "1"], "0 added, 1 removed");
    send(&network, 40);
    let members = name("members");
    fs::write(&members, "9, 7000 # and so on\n").expect("a file");
    change(&["replace", &format!("@{members}")], "1 added, 2 removed");
    send(&network, 80);
    let missing = ctl(&network, &["set", "-t", &socket, "missing", "add", "1"]);
    let told = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success() && told.contains(&format!("changeable: `{set}`")), "{told}");
    let account = ended_at(running);
    account.closes();
    assert_eq!(account.number("written"), 20 + 80, "{source}, exchanged: {exchanged}");
    let bytes = fs::read(&file).expect("the file");
    for told in ["3 added, 0 removed", "0 added, 1 removed", "1 added, 2 removed"] {
        let mark = format!("set `{set}`: {told}");
        assert!(bytes.windows(mark.len()).any(|part| part == mark.as_bytes()), "{mark}");
    }
}

#[root_test]
fn root_a_set_in_the_process_is_refused() {
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

#[root_test]
fn root_members_are_read_as_the_expression_means_them() {
    let network = network();
    let mac = network.pair().rx.mac.map(|byte| format!("{byte:02x}")).join(":");
    // The frames go to 198.19.0.1. A number is a network behind `net`, and not the address 0.0.0.198.
    for (words, first, member, wrong) in [
        ("host in", "10.0.0.1", "198.19.0.1", "10.0.0.1/33"),
        ("net in", "10.0.0.0/8", "198", "198.19.0.1/8"),
        ("dst net in", "10, fe80::/10", "198.19.0.0/16", "fe80::1/10"),
        ("ether host in", "02:00:00:00:00:01", &mac, "02:00:00:00:00"),
        ("not vlan in", "5", "100-200", "5000"),
    ] {
        let directory = directory();
        let (socket, set) = (path(&directory, "socket"), path(&directory, "wanted"));
        fs::write(&set, first).expect("a set");
        let filter = format!("{words} @{set}");
        let args = ["count", "-i", "rx0", "--source", "tc", "--json", "--control", &socket, "--", &filter];
        let running = start(&network, &args);
        send(&network, 10);
        let refused = ctl(&network, &["set", "-t", &socket, &set, "add", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{words} {wrong}");
        ctl_succeeds(&network, &["set", "-t", &socket, &set, "add", member]);
        send(&network, 20);
        let ended = running.interrupt().succeeded();
        let captured = if words.starts_with("not") { 30 } else { 20 };
        assert_eq!(ended.account().number("captured"), captured, "{words}: {}", ended.stderr);
        assert!(!ended.stderr.contains("partly"), "{words}: {}", ended.stderr);
    }
}

#[root_test]
fn root_who_changes_a_set_is_told_what_the_capture_has_counted() {
    let (network, directory) = (network(), directory());
    let (socket, set) = (path(&directory, "socket"), path(&directory, "wanted"));
    fs::write(&set, "1").expect("a set");
    let hosts = path(&directory, "hosts");
    fs::write(&hosts, "").expect("a set");
    let filter = format!("port in @{set} or host in @{hosts}");
    let running =
        start(&network, &["count", "-i", "rx0", "--source", "tc", "--control", &socket, "--", &filter]);

    // Two at once: whoever comes second finds what the first has made of it.
    let replace = |members: &str| {
        let output = ctl(&network, &["set", "-t", &socket, &set, "replace", members]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = thread::scope(|scope| {
        let other = scope.spawn(|| replace("10000-14999"));
        [replace("20000-24999"), other.join().expect("no panic")].concat()
    });
    for part in ["5000 added, 1 removed", "5000 added, 5000 removed"] {
        assert!(told.contains(part), "{told}");
    }

    // As many as there is room for, as long as they can be, and one more.
    let many: String = (0..100_000_u32)
        .map(|number| {
            format!("2001:0db8:0000:0000:0000:ffff:{:04x}:{:04x}/128\n", number >> 16, number & 0xffff)
        })
        .collect();
    let file = path(&directory, "many");
    fs::write(&file, many).expect("a file");
    let change = |words: &[&str]| {
        let output = ctl(&network, &[&["set", "-t", &socket, &hosts], words].concat());
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (well, told) = change(&["replace", &format!("@{file}")]);
    assert!(well && told.contains("100000 added, 0 removed"), "{told}");
    let (well, told) = change(&["add", "2001:db8::"]);
    assert!(!well && told.contains("cannot change the whole set") && told.contains("100 000"), "{told}");
    running.wait_for(&format!("set `{hosts}`: partly changed: "));

    // Who invents names fills neither memory nor log with them.
    let change = |name: &str, text: &str| {
        format!(
            r#"{{"version":{VERSION},"ask":{{"change_set":{{"name":"{name}","change":"add","members":{{"text":"{text}","names":{NAMES}}}}}}}}}"#
        )
    };
    let (_, answer) = say(&socket, &change(&"n".repeat(100_000), "1"));
    assert!(answer.contains("no set of this name"), "{answer}");
    // Nor is a client believed what it has changed: the capture counts.
    let (_, answer) = say(
        &socket,
        &format!(
            r#"{{"version":{VERSION},"ask":{{"changed":{{"added":0,"removed":18446744073709551615}}}}}}"#
        ),
    );
    assert!(answer.contains("unknown request"), "{answer}");

    // Another filter has the members that the file has.
    for forgotten in [true, false] {
        let output = ctl(&network, &["filter", "-t", &socket, "--", &filter]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = format!("set `{set}` is reloaded from its file");
        assert!(output.status.success() && told.contains(&expected) == forgotten, "{told}");
    }
    let ended = running.interrupt().succeeded();
    assert!(!ended.stderr.contains("nnnn") && !ended.stderr.contains("1844674"), "{}", ended.stderr);
}
