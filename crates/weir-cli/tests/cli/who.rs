//! `weir capture --who`: whose the packets of real programs are.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use weir_lab::{Network, Veth, root_test};

use crate::harness::{directory, loopback_up, output, path, start, until, weir};

/// Starts a program in the receiving namespace.
fn program(network: &Network, words: &[&str]) -> Child {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    network.rx().spawn(&mut command).expect("the program starts")
}

/// Returns who has sent each packet, and who gets it: name, number, and how that was found.
fn owners(lines: &str) -> Vec<[String; 2]> {
    let owner = |owner: &Value| {
        let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        format!("{}[{}] {}", text("name"), owner["pid"], text("found"))
    };
    let packets = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let packets = packets.filter(|packet| packet.get("interface").is_some());
    packets.map(|packet| [owner(&packet["sender"]), owner(&packet["receiver"])]).collect()
}

#[root_test]
fn root_packets_of_programs_have_their_processes() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    loopback_up(&network);
    let directory = directory();
    let file = path(&directory, "a.pcapng");
    let lines = start(&network, &["capture", "-i", "lo", "--who", "--json", "port 5201"]);
    let saved = start(&network, &["capture", "-i", "lo", "--who", "-w", &file, "port 5201"]);
    let mut server = program(&network, &["iperf3", "-s", "-1", "-p", "5201"]);
    until("the server to listen", || {
        let sockets = ["tcp", "tcp6"].map(|table| format!("/proc/{}/net/{table}", server.id()));
        let sockets = sockets.map(|table| fs::read_to_string(table).unwrap_or_default()).concat();
        // Its port, and the state: proc_net_tcp(5).
        let listens = sockets.lines().any(|line| line.contains(":1451 ") && line.contains(" 0A "));
        if listens { Ok(()) } else { Err(sockets) }
    });
    // The port of UDP that is connected is not known when its packets come.
    let words = ["iperf3", "-c", "127.0.0.1", "-p", "5201", "-u", "-l", "100", "-b", "0", "-k", "20"];
    let mut client = program(&network, &words);
    assert!(client.wait().expect("it ends").success());
    server.wait().expect("it ends");
    saved.interrupt().succeeded();
    let ended = lines.interrupt().succeeded();
    ended.account().closes();

    let shown = String::from_utf8(ended.stdout.clone()).expect("text");
    let shown = owners(&shown);
    assert!(shown.len() >= 40, "{shown:?}");
    let [theirs, ours] = [client.id(), server.id()].map(|number| format!("iperf3[{number}] "));
    let by =
        |packet: &[String; 2], from: &str, to: &str| packet[0].starts_with(from) && packet[1].starts_with(to);
    let known =
        shown.iter().filter(|packet| by(packet, &theirs, &ours) || by(packet, &ours, &theirs)).count();
    assert_eq!(known, shown.len(), "{theirs}{ours}{shown:#?}");

    // The file says the same, and more: programs.
    let read = output(&network, &mut weir(&["read", "--who", "--json", &file]));
    let read = String::from_utf8(read.stdout).expect("text");
    assert_eq!(owners(&read), shown);
    let ends_so = |end: &Value| end["program"].as_str().is_some_and(|program| program.ends_with("/iperf3"));
    let with_programs = read.lines().filter(|line| {
        let packet: Value = serde_json::from_str(line).expect("JSON");
        ends_so(&packet["sender"]) || ends_so(&packet["receiver"])
    });
    assert!(with_programs.count() >= 40);
}
