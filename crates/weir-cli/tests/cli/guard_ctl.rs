//! `weir ctl rules` as people use it: what it prints, and what it says of mistakes.

use std::fs::{self, File};
use std::process::{Command, Output};

use serde_json::Value;
use weir_lab::{FrameSender, root_test};

use crate::guard::{counts, frame, named};
use crate::harness::{directory, network, output, path, send, start, tshark, weir};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[root_test]
fn root_rules_are_shown_replaced_and_added_to_while_nobody_has_confirmed_them() {
    let network = network();
    let directory = directory();
    let [file, lines, socket, log] =
        ["a.rules", "lines", "socket", "log.pcapng"].map(|name| path(&directory, name));
    let write = |rules: &str| fs::write(&file, rules).expect("a file");
    write("lab: udp dst port 9 -> block\n");
    let always = ["guard", "-i", "rx0", "--json", "--control", &socket, "--rules", &file];
    let args = ["--dry-run", "--log", &log, "--exact", "100", "--confirm", "1h"];
    let running = start(&network, &[&always[..], &args].concat());
    let run = |command: &mut Command| -> Output { output(&network, command) };
    let ctl =
        |args: &[&str]| run(&mut weir(&[&["ctl", "rules", args[0], "-t", &socket], &args[1..]].concat()));
    let shown = || {
        let output = ctl(&["show"]);
        assert!(output.status.success() && text(&output.stderr).contains("without `weir ctl confirm`"));
        text(&output.stdout)
    };
    let counted = || -> Value { serde_json::from_slice(&ctl(&["show", "--json"]).stdout).expect("JSON") };
    send(&network, 10);
    let table = shown();
    let begins = |table: &str, row: &str| {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(table.lines().any(|line| words(line).starts_with(row)), "{row}: {table}");
    };
    begins(&table, "lab would be blocked 10 600 B");
    begins(&table, "no rule passed 0 0 B");

    // With the same action it goes on counting, with another one it counts anew.
    for (rules, packets, replaced) in [
        ("lab: udp and dst port 9 -> block\n", 10, 0),
        ("lab: udp dst port 9 -> pass\n", 0, 10),
        ("lab: udp dst port 9 -> block if over 1/h by src\n", 0, 10),
    ] {
        write(rules);
        let output = ctl(&["replace", &file]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("without `weir ctl confirm`, the rules are off again in"));
        let account = counted();
        assert_eq!(counts(&account), named(&[("lab", packets), ("none", 0)]), "{rules}");
        assert_eq!(account["replaced"]["packets"], replaced, "{rules}");
    }
    // Of a file with mistakes, all are told, and nothing changes.
    write("a: udp prot 9 -> block\nb: udp -> blck\nc: tcp -> block \\\nd: udp -> block\n");
    let output = ctl(&["replace", &file]);
    let said = text(&output.stderr);
    let places: Vec<usize> = [":1:8: ", ":2:11: ", ":4:1: "]
        .map(|place| said.find(&format!("a.rules{place}")).unwrap_or_else(|| panic!("{place}: {said}")))
        .into();
    assert!(places.is_sorted() && output.status.code() == Some(2), "{said}");
    for part in ["the `\\` at the end of line 3 joins this line to it", "the old rules stay in force"] {
        assert!(said.contains(part), "{part}: {said}");
    }

    // Exact rules: a file is read with `-`, and of very many mistakes the first are shown.
    let said = text(&ctl(&["add", &file]).stderr);
    assert!(said.contains("weir ctl rules add - < "), "{said}");
    fs::write(&lines, "block nothing\n".repeat(25)).expect("a file");
    let mut command = weir(&["ctl", "rules", "add", "-t", &socket, "-"]);
    let said = text(&run(command.stdin(File::open(&lines).expect("a file"))).stderr);
    assert!(said.contains("standard input:10:") && !said.contains("standard input:11:"), "{said}");
    assert!(said.contains("... and 15 more lines") && said.contains("0 exact rules added, 25 not"), "{said}");
    let rule = "block udp 10.77.0.2:4660 > 10.77.0.1:9";
    assert!(ctl(&["add", rule]).status.success());
    let sender = FrameSender::new(&network.pair().rx).expect("a sender");
    (0..5).for_each(|_| sender.send(&frame(network.pair(), 9, 60)).expect("it passes"));
    begins(&shown(), "exact rules as each says 5 ");

    let ended = running.interrupt().succeeded();
    assert_eq!(ended.account().0["exact"]["packets"], 5);
    // What would be blocked is in the log, of exact rules, too, and the log says that it is whole.
    let logged = tshark(log.as_ref(), &["frame.comment"]);
    let of_exact = logged.iter().filter(|comment| *comment == "exact rule: would be blocked");
    assert_eq!(of_exact.count(), 5, "{logged:?}");
    let info = run(&mut weir(&["info", "--json", &log]));
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!((&info["unfinished"], &info["lost"]), (&false.into(), &0.into()), "{info}");
}
