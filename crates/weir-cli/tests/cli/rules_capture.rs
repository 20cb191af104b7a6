//! `weir capture --rules`: what is captured, what is counted, and what becomes of a confined capture.

use std::fs;
use std::process::Output;

use serde_json::Value;
use weir_lab::root_test;

use crate::harness::{Running, directory, network, output, path, run, send, start, tshark, weir};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The packets of each rule, and those that were captured of it.
fn counts(account: &Value) -> Vec<(String, u64, Option<u64>)> {
    let [rules] = &account["rules"].as_array().expect("rules")[..] else { panic!("one interface") };
    let row = |row: &Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, row["packets"].as_u64().expect("a number"), row["captured"].as_u64())
    };
    assert_eq!(rules["total"]["packets"], account["seen"], "{account}");
    rules["rules"].as_array().expect("rules").iter().map(row).collect()
}

#[root_test]
fn root_a_capture_takes_what_rules_say_and_other_rules_if_it_is_not_confined() {
    let network = network();
    let directory = directory();
    let [file, socket, trace] = ["a.rules", "socket", "a.pcapng"].map(|name| path(&directory, name));
    let rules = "first: udp dst port 9 -> first 5 of each flow, block\nrest: -> capture\n";
    let others = "tenth: udp dst port 9 -> sample 1/10\n";
    for confine in [&[][..], &["--no-confine"]] {
        fs::write(&file, rules).expect("a file");
        let args = ["capture", "-i", "rx0", "-Q", "in", "--json", "--control", &socket, "--rules", &file];
        let running = start(&network, &[&args[..], &["-w", &trace], confine].concat());
        let ctl = |args: &[&str]| -> Output {
            output(&network, &mut weir(&[&["ctl", args[0], args[1], "-t", &socket], &args[2..]].concat()))
        };
        send(&network, 20);
        let shown: Value = serde_json::from_slice(&ctl(&["rules", "show", "--json"]).stdout).expect("JSON");
        assert_eq!(counts(&shown)[0], ("first".to_owned(), 20, Some(5)));
        let table = text(&ctl(&["rules", "show"]).stdout);
        let row = table.lines().find(|line| line.starts_with("first")).expect("a row");
        assert!(row.contains("captured (first 5 of each flow), blocked") && row.contains("20"), "{table}");
        let filter = ctl(&["filter", "udp"]);
        assert!(text(&filter.stderr).contains("the capture has rules"), "{}", text(&filter.stderr));

        fs::write(&file, others).expect("a file");
        let replaced = ctl(&["rules", "replace", &file]);
        let is_confined = confine.is_empty();
        assert_eq!(replaced.status.success(), !is_confined, "{}", text(&replaced.stderr));
        send(&network, 20);
        let ended = running.interrupt().succeeded();
        let (account, captured) = (ended.account().0, tshark(trace.as_ref(), &["frame.len"]).len());
        let expected = match is_confined {
            true => {
                assert!(text(&replaced.stderr).contains("start it with --no-confine"));
                // Both bursts are of one flow.
                (vec![("first".to_owned(), 40, Some(5)), ("rest".to_owned(), 0, Some(0))], 5)
            }
            false => {
                let events = output(&network, &mut weir(&["info", &trace])).stdout;
                assert!(text(&events).contains("rules replaced: 1 in force"), "{}", text(&events));
                (vec![("tenth".to_owned(), 20, Some(2))], 5 + 2)
            }
        };
        assert_eq!((counts(&account), captured), expected, "{}", ended.stderr);
        assert_eq!((&account["captured"], &account["lost"]), (&captured.into(), &0.into()));
        assert_eq!(account["confinement"].is_null(), !is_confined);
    }
}

#[root_test]
fn root_forwarding_has_rules_too() {
    let mut network = network();
    network.connect(weir_lab::Veth::default()).expect("a second pair");
    let directory = directory();
    let [file, socket, trace] = ["a.rules", "socket", "a.pcapng"].map(|name| path(&directory, name));
    fs::write(&file, "lab: udp dst port 9 -> first 3 of each flow, block\n").expect("a file");
    let args = ["forward", "rx0", "rx1", "--lose-tags", "--json", "--no-confine", "--control", &socket];
    let args = [&args[..], &["--rules", &file, "-w", &trace]].concat();
    let running = Running::spawn(&network, &mut weir(&args));
    running.wait_for("on exit: ");
    let ctl = |args: &[&str]| -> Output {
        output(&network, &mut weir(&[&["ctl", "rules", args[0], "-t", &socket], &args[1..]].concat()))
    };
    send(&network, 20);
    let table = text(&ctl(&["show"]).stdout);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        table
            .lines()
            .any(|line| words(line).starts_with("lab captured (first 3 of each flow), blocked 20 3 ")),
        "{table}"
    );
    fs::write(&file, "lab: tcp -> block, log\n").expect("a file");
    let replaced = ctl(&["replace", &file]);
    let said = text(&replaced.stderr);
    assert!(replaced.status.success() && said.contains("`log` is for weir guard"), "{said}");
    send(&network, 5);
    let ended = running.interrupt().succeeded();
    let account = ended.account().0;
    assert_eq!(
        ["seen", "blocked", "forwarded", "lost"].map(|key| account[key].as_u64()),
        [25, 20, 5, 0].map(Some),
        "{account}"
    );
    assert_eq!(account["rules"]["total"]["packets"], 25, "{account}");
    assert_eq!(tshark(trace.as_ref(), &["frame.len"]).len(), 3, "{}", ended.stderr);
}

#[root_test]
fn root_what_rules_of_a_capture_cannot_be_is_told_with_a_remedy() {
    let network = network();
    let directory = directory();
    let file = path(&directory, "a.rules");
    for (rules, args, said) in [
        ("-> capture", &["-i", "rx0", "udp"][..], "`not (FILTER) -> ignore`"),
        ("-> capture, block", &["-i", "rx0", "--source", "af_packet"], "try the tc source"),
        ("-> capture", &["-i", "rx0", "--mode", "exclusive"], "`capture, block`"),
        ("-> capture, block", &["-i", "any"], "try the tc source"),
        (
            "out: outbound -> capture\n-> ignore",
            &["-i", "rx0", "--source", "xdp"],
            "source xdp sees received packets only; `out` (",
        ),
    ] {
        fs::write(&file, rules).expect("a file");
        let args = [&["capture", "--rules", &file, "--duration", "100ms", "-w", "/dev/null"], args].concat();
        let ended = run(&network, &args);
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}
