//! `weir stat` on several interfaces. tcpdump, which captures on each of them, is the judge.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use weir_lab::{Network, Pair, Veth, root_test};

use crate::harness::{Ended, directory, network, path, start};
use crate::stat::{json_lines, number, send_from};

/// Two pairs between the same namespaces.
fn two_pairs() -> Network {
    let mut network = network();
    network.connect(Veth::default()).expect("a second pair");
    network
}

/// Packets from these ports, to each of the interfaces.
const FIRST: [(u16, usize); 3] = [(4001, 30), (4002, 7), (4003, 3)];
const SECOND: [(u16, usize); 2] = [(4001, 5), (4004, 20)];

/// Starts tcpdump, which ends after so many packets.
fn tcpdump(network: &Network, pair: &Pair, packets: usize, file: &str) -> Child {
    let mut command = Command::new("tcpdump");
    command.args(["-i", &pair.rx.name, "-c", &packets.to_string(), "-w", file]);
    // Its buffer has a place for a frame of the snap length each.
    command.args(["--immediate-mode", "-B", "8192", "-s", "2048"]);
    let mut child = network.rx().spawn(command.stderr(Stdio::piped())).expect("tcpdump starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert_ne!(said.read_line(&mut line).expect("text"), 0, "tcpdump ended");
    }
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    child
}

/// What tcpdump counts in these files by `expression`.
pub(crate) fn judged(files: &[&str], expression: &str) -> u64 {
    let count = |file: &&str| {
        let output = Command::new("tcpdump").args(["--count", "-r", file, expression]).output();
        let output = output.expect("tcpdump is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
        number.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    files.iter().map(count).sum()
}

fn packets(ports: &[(u16, usize)]) -> usize {
    ports.iter().map(|(_, packets)| packets).sum()
}

/// Runs weir on both interfaces beside tcpdump, and sends to each. Returns what weir printed, and what tcpdump saw.
fn beside_tcpdump(args: &[&str], lines: usize) -> (Ended, tempfile::TempDir) {
    let (network, directory) = (two_pairs(), directory());
    let [one, other] = network.pairs() else { panic!("two pairs") };
    let files = ["0", "1"].map(|name| path(&directory, name));
    let mut judges = [
        tcpdump(&network, one, packets(&FIRST), &files[0]),
        tcpdump(&network, other, packets(&SECOND), &files[1]),
    ];
    let running = start(&network, &[&["stat", "-i", "rx0,rx1", "--every", "20ms"], args].concat());
    send_from(one, &FIRST);
    send_from(other, &SECOND);
    judges.iter_mut().for_each(|judge| assert!(judge.wait().expect("it ends").success()));
    running.wait_for_lines(lines);
    (running.interrupt().succeeded(), directory)
}

fn of_interface<'a>(account: &'a Value, name: &str) -> &'a Value {
    let mut each = account["interfaces"].as_array().expect("interfaces").iter();
    each.find(|one| one["interface"] == name).unwrap_or_else(|| panic!("no {name}: {account}"))
}

#[root_test]
fn root_each_interface_has_rows_and_keys_are_summed_up() {
    let args = ["--json", "--by", "sport", "--sizes", "few: src port 4001 or src port 4004"];
    let (ended, directory) = beside_tcpdump(&args, 3);
    let files = ["0", "1"].map(|name| path(&directory, name));
    let files = [files[0].as_str(), files[1].as_str()];
    let lines = json_lines(&ended);
    let (account, intervals) = lines.split_last().expect("lines");
    for (place, name) in ["rx0", "rx1"].into_iter().enumerate() {
        let one = of_interface(account, name);
        assert_eq!(number(&one["total"], "packets"), judged(&files[place..=place], ""), "{one}");
        let expected = judged(&files[place..=place], "src port 4001 or src port 4004");
        assert_eq!(number(&one["filters"][0], "packets"), expected, "{one}");
        assert_eq!((&one["source"], &one["gone"], &one["keys"]), (&"tc".into(), &false.into(), &Value::Null));
        let grown = |line: &Value| number(&of_interface(line, name)["filters"][0], "packets");
        assert_eq!(intervals.iter().map(grown).sum::<u64>(), expected);
    }
    assert_eq!(number(&account["total"], "packets"), judged(&files, ""));
    let keys = account["keys"].as_array().expect("keys");
    let found: Vec<_> =
        keys.iter().map(|one| (number(&one["key"], "sport"), number(one, "packets"))).collect();
    let expected = [4001, 4004].map(|port| (port, judged(&files, &format!("src port {port}"))));
    assert_eq!(found, expected, "{account}");
    assert_eq!(number(&account["sizes"][1], "packets"), judged(&files, "src port 4001 or src port 4004"));
    assert!(account.get("interface").is_none() && account.get("source").is_none(), "{account}");
}

#[root_test]
fn root_keys_of_each_interface_if_asked_for() {
    let (ended, directory) = beside_tcpdump(&["--csv", "--by", "sport", "--per-interface"], 5);
    let files = ["0", "1"].map(|name| path(&directory, name));
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mut lines = text.lines();
    let head = "elapsed_seconds,seconds,interface,filter,sport,received_packets,received_bytes,sent_packets,sent_bytes";
    assert_eq!(lines.next(), Some(head));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let sum = |interface: &str, filter: &str, port: &str| -> u64 {
        let rows = rows.iter().filter(|row| row[2..5] == [interface, filter, port]);
        rows.map(|row| row[5].parse::<u64>().expect("packets")).sum()
    };
    for (interface, file) in ["rx0", "rx1"].into_iter().zip(&files) {
        for port in ["4001", "4002", "4003", "4004"] {
            let expected = judged(&[file], &format!("src port {port}"));
            assert_eq!(sum(interface, "(key)", port), expected, "{interface} {port}: {text}");
        }
        assert_eq!(sum(interface, "(all)", ""), judged(&[file], ""));
    }
    assert_eq!(sum("(sum)", "(all)", ""), judged(&files.each_ref().map(String::as_str), ""));
    assert!(!text.contains("(sum),(key)"), "{text}");

    let (ended, _directory) = beside_tcpdump(&["--by", "sport"], 20);
    for line in [
        "interface  sport     received     bytes  sent  bytes",
        "rx0        (all)           40  2.34 KiB     0    0 B",
        "rx1        (all)           25  1.46 KiB     0    0 B",
        "(sum)      4001            35  2.05 KiB     0    0 B",
        "(sum)      (all)           65  3.81 KiB     0    0 B",
    ] {
        ended.says(line);
    }
}

fn delete(network: &Network, name: &str) {
    let deleted = network.rx().run(|| Command::new("ip").args(["link", "del", name]).status());
    assert!(deleted.expect("ip runs").success());
}

#[root_test]
fn root_an_interface_that_is_gone_ends_only_its_rows() {
    for last_too in [false, true] {
        let network = two_pairs();
        let [one, other] = network.pairs() else { panic!("two pairs") };
        let running = start(&network, &["stat", "-i", "rx0,rx1", "--every", "20ms", "--json", "udp"]);
        send_from(one, &FIRST);
        delete(&network, "rx0");
        running.wait_for("notice: rx0 is gone; what was counted on it is kept");
        let before = running.stdout().lines().count();
        send_from(other, &SECOND);
        running.wait_for_lines(before + 3);
        let ended = if last_too {
            delete(&network, "rx1");
            running.wait().failed(&["interface `rx1` is gone"])
        } else {
            running.interrupt().succeeded()
        };
        let lines = json_lines(&ended);
        let (account, intervals) = lines.split_last().expect("lines");
        let there = |line: &&Value| line["interfaces"].as_array().is_some_and(|each| each.len() == 2);
        let with_both = intervals.iter().take_while(there).count();
        let is_of_first = |one: &Value| one["interface"] == "rx0";
        let each = intervals[with_both..].iter().flat_map(|line| line["interfaces"].as_array());
        assert!(!each.flatten().any(is_of_first));
        assert!(with_both > 0 && with_both < intervals.len(), "{with_both} of {}", intervals.len());
        let grown: u64 = intervals.iter().map(|line| number(&line["total"], "packets")).sum();
        let (first, second) = (packets(&FIRST) as u64, packets(&SECOND) as u64);
        assert_eq!((grown, number(&account["total"], "packets")), (first + second, first + second));
        let gone = ["rx0", "rx1"].map(|name| of_interface(account, name)["gone"].as_bool());
        assert_eq!(gone, [Some(true), Some(last_too)]);
        assert_eq!(number(&of_interface(account, "rx0")["filters"][0], "packets"), first);
    }
}
