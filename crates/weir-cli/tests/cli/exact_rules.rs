//! `weir ctl rules add`, `remove`, `list` and `flush`.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Output};

use serde_json::Value;
use weir_lab::{Network, Pair, Veth, root_test};

use crate::guard::{counts, received};
use crate::harness::{directory, output, path, send_each, start, until, weir};

/// A frame to the receiving end, of UDP to this port.
fn udp(pair: &Pair, port: u8) -> Vec<u8> {
    let [from, to] = addresses(pair).map(|address| address.octets());
    let head = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    let mut frame = [&pair.rx.mac[..], &pair.tx.mac, &[8, 0], &head, &from, &to].concat();
    frame.extend([0, 9, 0, port, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

fn addresses(pair: &Pair) -> [Ipv4Addr; 2] {
    [&pair.tx, &pair.rx].map(|end| end.ipv4.expect("an address"))
}

/// A connection from the sending end to the receiving one, as both have it.
fn connect(pair: &Pair) -> [TcpStream; 2] {
    let [_, to] = addresses(pair);
    let listener = pair.rx.netns.run(|| TcpListener::bind((to, 0))).expect("a port");
    let to = listener.local_addr().expect("an address");
    let client = pair.tx.netns.run(|| TcpStream::connect(to)).expect("a connection");
    [client, listener.accept().expect("a connection").0]
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[root_test]
fn root_exact_rules_are_added_counted_kept_and_removed() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let pair = network.pair();
    let directory = directory();
    let (file, lines, socket) =
        (path(&directory, "a.rules"), path(&directory, "lines"), path(&directory, "socket"));
    fs::write(&file, "scan: udp dst port 10 -> pass, learn block for 1h\n").expect("a file");
    let args = ["guard", "-i", "rx0", "--json", "--control", &socket, "--rules", &file, "--exact", "3"];
    let running = start(&network, &args);
    let run = |command: &mut Command| output(&network, command);
    let ctl = |command: &str, args: &[&str]| {
        run(&mut weir(&[&["ctl", "rules", command, "-t", &socket], args].concat()))
    };
    let succeeds = |command: &str, args: &[&str]| {
        let output = ctl(command, args);
        assert!(output.status.success(), "{}", said(&output));
        output
    };
    let list = || -> Vec<Value> {
        let listed = String::from_utf8(succeeds("list", &["--json"]).stdout).expect("text");
        listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let packets_of = |wanted: &str| {
        let rules = list();
        let rule = rules.iter().find(|rule| rule["packets_of"] == *wanted);
        rule.unwrap_or_else(|| panic!("{wanted}: {rules:?}"))["packets"].as_u64()
    };
    let [[mut client, mut server], [mut other_client, mut other]] = [connect(pair), connect(pair)];
    let end = |stream: &TcpStream| stream.local_addr().expect("an address");
    let stopped = format!("tcp {} > {}", end(&client), end(&server));
    let [from, to] = addresses(pair);
    let [learned, counted, passed, late] = [10, 11, 12, 13].map(|port| format!("udp {from}:9 > {to}:{port}"));
    succeeds("add", &[&format!("block {stopped}")]);
    client.write_all(b"a").expect("room");
    other_client.write_all(b"b").expect("room");
    other.read_exact(&mut [0]).expect("what was sent");
    until("a blocked packet", || match packets_of(&stopped) {
        Some(1..) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    server.set_nonblocking(true).expect("a socket");
    let error = server.read(&mut [0]).expect_err("it is blocked");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    succeeds("remove", &[&stopped]);
    server.set_nonblocking(false).expect("a socket");
    let mut word = [0];
    server.read_exact(&mut word).expect("what was sent again");
    assert_eq!(&word, b"a");
    let missing = ctl("remove", &[&stopped]);
    assert!(
        !missing.status.success() && said(&missing).contains("there is no such rule"),
        "{}",
        said(&missing)
    );

    send_each(pair, &[udp(pair, 10)]);
    let text = format!("# too many\nblock {counted} for 2h idle\npass {passed}\nblock {late}\nblck {late}\n");
    fs::write(&lines, text).expect("a file");
    let mut command = weir(&["ctl", "rules", "add", "-t", &socket, "-"]);
    let refused = run(command.stdin(File::open(&lines).expect("a file")));
    let full = format!(
        "standard input:4: cannot add `block {late}`: the table of 3 exact rules is full; try --exact"
    );
    for part in [&full, "standard input:5:1: expected `block`", "2 exact rules added, 2 not"] {
        assert!(said(&refused).contains(part), "{part}: {}", said(&refused));
    }
    assert_eq!(refused.status.code(), Some(1));
    send_each(pair, &vec![udp(pair, 11); 7]);
    assert_eq!((packets_of(&counted), packets_of(&learned)), (Some(7), None));

    succeeds("replace", &[&file]);
    send_each(pair, &[udp(pair, 11), udp(pair, 11), udp(pair, 10)]);
    let rules = list();
    let rule = rules.iter().find(|rule| rule["packets_of"] == *counted).expect("it is there");
    assert_eq!((&rule["packets"], &rule["bytes"], &rule["fate"]), (&9.into(), &540.into(), &"block".into()));
    // It begins anew with each packet, and when the rules are replaced.
    let left = rule["seconds_left"].as_f64().expect("a time");
    assert!((3600.0..=7200.0).contains(&left) && rule["idle_seconds"] == 7200.0, "{rule}");
    assert!(rule["last"].is_string(), "{rule}");
    let scan = rules.iter().find(|rule| rule["learned_by"] == "scan").expect("it is there");
    assert!(scan["packets_of"] == *learned && scan["idle_seconds"].is_null(), "{scan}");
    let table = String::from_utf8(succeeds("list", &[]).stdout).expect("text");
    assert!(table.lines().any(|line| line.contains(" of 2 h 00 min idle")), "{table}");

    let flushed = succeeds("flush", &[]);
    assert!(said(&flushed).contains("3 exact rules removed") && list().is_empty(), "{}", said(&flushed));
    let before = received(&pair.rx.netns);
    send_each(pair, &[udp(pair, 11)]);
    until("a packet in the stack", || match received(&pair.rx.netns) - before {
        1.. => Ok(()),
        none => Err(none.to_string()),
    });
    let ended = running.interrupt().succeeded();
    let account = ended.account().0;
    assert_eq!(counts(&account)[0], ("scan".to_owned(), 2));
    assert!(account["exact"]["packets"].as_u64() >= Some(10), "{account}");
    assert!(ended.stderr.lines().any(|line| line.starts_with("exact rules ")), "{}", ended.stderr);
}
