//! `weir guard` on real interfaces.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{
    Action, FrameSender, Generator, Hook, LinkCounters, NetNs, Network, Pair, StackCounters, Traffic, Veth,
    root_test,
};
use weir_sys::bpf::query;
use weir_sys::filter::Side;

use crate::harness::{
    Running, directory, generate, network, output, path, root_tests, send, start, tshark, until, weir,
};

/// `weir guard` of the receiving end, with rules of this text.
struct Guarded {
    running: Running,
    _directory: tempfile::TempDir,
}

fn guard(network: &Network, rules: &str, args: &[&str]) -> Guarded {
    let directory = directory();
    let file = path(&directory, "edge.rules");
    fs::write(&file, rules).expect("a file");
    let args = [&["guard", "-i", "rx0", "--json", "--no-control", "--rules", &file], args].concat();
    Guarded { running: start(network, &args), _directory: directory }
}

/// The packets of each rule in the account, then of none; with those of replaced ones they are all packets.
pub(crate) fn counts(account: &Value) -> Vec<(String, u64)> {
    let packets = |row: &Value| row["packets"].as_u64().expect("a number");
    let rules = account["rules"].as_array().expect("rules").iter().filter(|rule| rule["continue"] == false);
    let rows = rules.map(|rule| (rule["name"].as_str().expect("a name").to_owned(), packets(rule)));
    let rows: Vec<_> = rows.chain([("none".to_owned(), packets(&account["no_rule"]))]).collect();
    let learned = account["rules"].as_array().expect("rules").iter().filter_map(|rule| rule.get("learned"));
    let sum: u64 = rows.iter().map(|(_, packets)| *packets).chain(learned.map(packets)).sum();
    let others = packets(&account["replaced"]) + packets(&account["exact"]);
    assert_eq!(sum + others, packets(&account["total"]), "{account}");
    rows
}

pub(crate) fn named(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|&(name, packets)| (name.to_owned(), packets)).collect()
}

/// A frame from the receiving end, of UDP to this port.
pub(crate) fn frame(pair: &Pair, port: u16, length: usize) -> Vec<u8> {
    let ip = u16::try_from(length - 14).expect("short").to_be_bytes();
    let udp = u16::try_from(length - 34).expect("short").to_be_bytes();
    let head = [0x45, 0, ip[0], ip[1], 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1];
    let ports = [0x12, 0x34, port.to_be_bytes()[0], port.to_be_bytes()[1], udp[0], udp[1], 0, 0];
    let mut frame = [&pair.tx.mac[..], &pair.rx.mac, &[8, 0], &head, &ports].concat();
    frame.resize(length, 0);
    frame
}

/// What is attached to the receiving end: XDP, and tc in both directions.
pub(crate) fn programs(network: &Network) -> usize {
    let rx = &network.pair().rx;
    rx.netns.run(|| {
        let links = weir_sys::link::links().expect("links");
        let link = links.into_iter().find(|link| link.index == rx.index).expect("it is there");
        let tcx = |side| query::tcx(rx.index, side).expect("tcx").map_or(0, |ids| ids.len());
        usize::from(link.xdp_program.is_some()) + tcx(Side::Ingress) + tcx(Side::Egress)
    })
}

pub(crate) fn received(namespace: &NetNs) -> u64 {
    StackCounters::read(namespace).expect("counters").get("IpInReceives")
}

root_tests! { each_packet_is_counted_for_the_rule_that_decides_about_it:
    root_each_packet_is_counted_for_the_rule_that_decides_about_it_xdp("xdp");
    root_each_packet_is_counted_for_the_rule_that_decides_about_it_tc("tc");
}

fn each_packet_is_counted_for_the_rule_that_decides_about_it(source: &str) {
    let network = network();
    let pair = network.pair();
    let rules = "\
        in9:  inbound and udp dst port 9   -> capture, block\n\
        out9: outbound and udp dst port 9  -> pass\n\
        long: greater 500                  -> block\n";
    let guarded = guard(&network, rules, &["--source", source, "--interval", "20ms"]);
    guarded.running.wait_for("weir guard captures nothing");
    let before = (received(&pair.rx.netns), LinkCounters::read(&pair.tx).expect("counters").rx_packets);
    send(&network, 1000);
    let sender = FrameSender::new(&pair.rx).expect("a sender");
    let lengths = [(9, 60, 10), (9, 600, 1), (10, 600, 3), (10, 60, 7)];
    for (port, length, count) in lengths {
        // One that is blocked is an error of whoever sends it.
        (0..count).for_each(|_| drop(sender.send(&frame(pair, port, length))));
    }
    let arrived = || LinkCounters::read(&pair.tx).expect("counters").rx_packets - before.1;
    until("18 frames", || if arrived() >= 18 { Ok(()) } else { Err(arrived().to_string()) });
    guarded.running.wait_for_lines(1);
    assert_eq!(received(&pair.rx.netns), before.0, "nothing got to the stack");
    let ended = guarded.running.interrupt().succeeded();
    assert_eq!((arrived(), programs(&network)), (18, 0));
    let account = ended.account().0;
    assert_eq!(counts(&account), named(&[("in9", 1000), ("out9", 11), ("long", 3), ("none", 7)]));
    assert_eq!(account["rules"][0]["bytes"], 60_000, "{account}");
    assert_eq!((&account["received"], &account["sent"]), (&source.into(), &true.into()));
    for line in ["in9      blocked        1,000  58.6 KiB", "total                   1,021"] {
        assert!(ended.stderr.lines().any(|found| found.starts_with(line)), "{line}: {}", ended.stderr);
    }
    send(&network, 5);
    until("5 packets in the stack", || match received(&pair.rx.netns) - before.0 {
        5.. => Ok(()),
        fewer => Err(fewer.to_string()),
    });
}

#[root_test]
fn root_rules_learn_and_have_limits() {
    let network = network();
    let rules = "\
        all:  udp                        -> continue\n\
        few:  udp dst port 9 and inbound -> block if over 100/h by dst\n\
        scan: udp dst port 10            -> block, learn pass for 1h\n";
    let guarded = guard(&network, rules, &[]);
    send(&network, 1000);
    let sender = FrameSender::new(&network.pair().rx).expect("a sender");
    (0..5).for_each(|_| drop(sender.send(&frame(network.pair(), 10, 60))));
    let ended = guarded.running.interrupt().succeeded();
    let account = ended.account().0;
    assert_eq!(counts(&account), named(&[("few", 1000), ("scan", 1), ("none", 0)]));
    let rules = &account["rules"];
    assert_eq!((&rules[0]["continue"], &rules[0]["packets"]), (&true.into(), &1001.into()), "{account}");
    assert_eq!(rules[2]["learned"]["packets"], 4, "{account}");
    assert_eq!((&rules[1]["over"], rules[1].get("learned")), (&"100/h by dst".into(), None));
    let passed = received(&network.pair().rx.netns);
    assert!((1..1000).contains(&passed), "{passed} within the limit");
    let beyond = 1000 - passed;
    assert_eq!(rules[1]["beyond"]["packets"], beyond, "{account}");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        format!("few passed {passed} "),
        format!("few, over 100/h by dst blocked {beyond} "),
        "scan, learned passed 4 ".to_owned(),
        "all (continue) 1,001 ".to_owned(),
    ] {
        let is_there = ended.stderr.lines().any(|found| words(found).starts_with(&line));
        assert!(is_there, "{line}: {}", ended.stderr);
    }
}

/// A listener at the receiving end.
fn listen(network: &Network) -> TcpListener {
    let rx = &network.pair().rx;
    rx.netns.run(|| TcpListener::bind((rx.ipv4.expect("an address"), 0))).expect("a port")
}

fn is_reached(network: &Network, to: SocketAddr) -> bool {
    let connect = || TcpStream::connect_timeout(&to, Duration::from_millis(150));
    let connected = network.pair().tx.netns.run(connect);
    connected.inspect_err(|error| assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}")).is_ok()
}

#[root_test]
fn root_a_blocked_port_cannot_be_reached_and_another_can() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let (open, closed) = (listen(&network), listen(&network));
    let [open, closed] = [&open, &closed].map(|one| one.local_addr().expect("an address"));
    let reaches =
        |to| until("a connection", || if is_reached(&network, to) { Ok(()) } else { Err("none".into()) });
    let rules = format!("bad: tcp dst port {} -> block\n", closed.port());
    let guarded = guard(&network, &rules, &["--dry-run"]);
    guarded.running.wait_for("dry run: every packet passes");
    reaches(closed);
    let ended = guarded.running.interrupt().succeeded();
    assert!(ended.stderr.contains("bad      would be blocked"), "{}", ended.stderr);
    let account = ended.account().0;
    assert!(counts(&account)[0].1 > 0 && account["dry_run"] == true, "{account}");

    let guarded = guard(&network, &rules, &["-Q", "in"]);
    reaches(open);
    assert!(!is_reached(&network, closed));
    let [ports, host] = [format!("-p{},{}", open.port(), closed.port()), open.ip().to_string()];
    let mut nmap = Command::new("nmap");
    nmap.args(["-n", "-Pn", "-sT", "--max-retries", "1", "-oG", "-", &ports, &host]);
    let nmap = network.pair().tx.netns.run(|| nmap.output());
    if let Ok(nmap) = nmap.map_err(weir_skip::this_test) {
        let said = String::from_utf8_lossy(&nmap.stdout);
        for (at, state) in [(open, "open"), (closed, "filtered")] {
            assert!(said.contains(&format!("{}/{state}/tcp", at.port())), "{said}");
        }
    }
    let account = guarded.running.interrupt().succeeded().account().0;
    assert!(counts(&account)[0].1 > 0, "{account}");

    let rules = format!("bad: outbound and tcp src port {} -> block\n", closed.port());
    let guarded = guard(&network, &rules, &["-Q", "out"]);
    reaches(open);
    assert!(!is_reached(&network, closed), "no answer gets out");
    let account = guarded.running.interrupt().succeeded().account().0;
    assert!(counts(&account)[0].1 > 0 && account["received"].is_null(), "{account}");
}

#[root_test]
fn root_what_cannot_be_guarded_or_should_not_be_is_refused() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let rx = &network.pair().rx;
    let directory = directory();
    let file = path(&directory, "a.rules");
    fs::write(&file, "web: tcp port 80 -> pass\nrest: tcp -> block\n").expect("a file");
    let refused = |args: &[&str], login: &str| {
        let mut command = weir(&[&["guard", "--no-control", "--rules", &file], args].concat());
        let ended = Running::spawn(&network, command.env("SSH_CONNECTION", login)).wait();
        assert!(!ended.status.success(), "{}", ended.stderr);
        assert_eq!(programs(&network), 0);
        ended.stderr
    };
    let said = refused(&["-i", "rx1"], "");
    assert!(said.contains("no interface named `rx1`") && said.contains("did you mean `rx0`?"), "{said}");
    let (server, client) = (rx.ipv4.expect("an address"), network.pair().tx.ipv4.expect("an address"));
    let login = format!("{client} 50000 {server} 22");
    let said = refused(&["-i", "rx0"], &login);
    let rest = format!(
        "`rest` ({file}:2) would cut off this shell, a connection from {client}:50000 to {server}:22"
    );
    assert!(
        said.contains(&rest) && said.contains(&format!("host {client} and tcp port 22 -> pass")),
        "{said}"
    );
    let said = refused(&["-i", "rx0", "--confirm", "1ms"], "192.0.2.1 50000 192.0.2.2 22");
    assert!(said.contains("nobody confirmed the rules within"), "another login is not through here: {said}");

    let hook = Hook::attach(rx, Action::Pass).expect("a program");
    let attached = programs(&network);
    let mut command = weir(&["guard", "-i", "rx0", "--no-control", "--source", "xdp", "--rules", &file]);
    let ended = Running::spawn(&network, &mut command).wait();
    ended.failed(&["XDP program is attached to `rx0`", "use --source tc"]);
    let mut command = weir(&["guard", "-i", "rx0", "--no-control", "--force", "--rules", &file]);
    let running = Running::spawn(&network, command.env("SSH_CONNECTION", login));
    running.wait_for("; source tc: another XDP program is attached");
    assert_eq!(programs(&network), attached + 2);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None);
    until("no programs", || match programs(&network) == attached {
        true => Ok(()),
        false => Err(programs(&network).to_string()),
    });
    drop(hook);
}

#[root_test]
fn root_rules_are_replaced_under_traffic_and_go_on_counting() {
    let network = network();
    let directory = directory();
    let (file, socket) = (path(&directory, "a.rules"), path(&directory, "socket"));
    let write =
        |more: &str| fs::write(&file, format!("{more}lab: udp dst port 9 -> pass\n")).expect("a file");
    write("old: tcp port 23 -> block\n");
    let args = ["guard", "-i", "rx0", "--json", "--control", &socket, "--rules", &file, "--source", "xdp"];
    let running = start(&network, &args);
    let before = received(&network.pair().rx.netns);
    let ctl = |args: &[&str]| output(&network, &mut weir(&[&["ctl", "rules"], args].concat()));
    let succeeds = |args: &[&str]| {
        let output = ctl(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    const ALL: u64 = 20_000;
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let traffic = Traffic::new(60).expect("size").between(network.pair());
            let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
            (0..ALL / 1000).for_each(|_| generate(&mut generator, network.pair(), 1000));
        });
        let mut replaced = 0;
        while replaced < 2 || !sent.is_finished() && replaced < 20 {
            write(["new: tcp port 24 -> block\n", ""][replaced % 2]);
            succeeds(&["replace", "-t", &socket, &file]);
            replaced += 1;
        }
        sent.join().expect("no panic");
    });
    let refused = ctl(&["add", "-t", &socket, "block udp 192.0.2.1:1 > 192.0.2.2:2"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("try weir guard --exact N"), "{said}");
    // Those with a mistake change nothing.
    fs::write(&file, "lab: udp prot 9 -> block\n").expect("a file");
    let refused = ctl(&["replace", "-t", &socket, &file]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("a.rules:1:10: "), "{said}");
    running.signal(Signal::HUP);
    running.wait_for("the rules stay as they were");
    write("gone: udp dst port 9 -> pass\nnone: tcp port 25 -> block\n");
    running.signal(Signal::HUP);
    running.wait_for("rx0: 3 rules in force");
    send(&network, 7);
    write("");
    succeeds(&["replace", "-t", &socket, &file]);
    let shown: Value = serde_json::from_slice(&succeeds(&["show", "--json", "-t", &socket])).expect("JSON");
    assert_eq!(counts(&shown), named(&[("lab", ALL), ("none", 0)]));
    assert_eq!((&shown["replaced"]["packets"], &shown["rules"][0]["fate"]), (&7.into(), &"pass".into()));
    let account = running.interrupt().succeeded().account().0;
    assert_eq!(counts(&account), counts(&shown));
    assert_eq!(received(&network.pair().rx.netns) - before, ALL + 7, "none was lost meanwhile");
}

#[root_test]
fn root_rules_that_nobody_confirms_are_off_again() {
    let network = network();
    let directory = directory();
    let (file, socket) = (path(&directory, "a.rules"), path(&directory, "socket"));
    fs::write(&file, "all: udp -> block\n").expect("a file");
    let guard = |time, args: &[&str]| {
        start(
            &network,
            &[&["guard", "-i", "rx0", "--json", "--rules", &file, "--confirm", time], args].concat(),
        )
    };
    let ended = guard("50ms", &["--no-control"]).wait();
    assert_eq!((ended.status.code(), programs(&network)), (Some(4), 0), "{}", ended.stderr);
    assert_eq!(ended.account().0["stopped_by"], "error");
    let said = "nobody confirmed the rules within";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let running = guard("1h", &["--control", &socket]);
    running.wait_for("confirm within");
    let output = output(&network, &mut weir(&["ctl", "confirm", "-t", &socket]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    running.wait_for("confirmed: the rules stay in force");
    running.interrupt().succeeded();
    let running = guard("1h", &["--no-control"]);
    running.wait_for("confirm within");
    running.signal(Signal::USR1);
    running.wait_for("confirmed: the rules stay in force");
    running.interrupt().succeeded();
}

/// Comment, direction (1 is received, 2 sent), and length of each packet in a log, as tshark reads them.
fn logged(file: &str) -> Vec<String> {
    tshark(file.as_ref(), &["frame.comment", "frame.packet_flags_direction", "frame.len"])
}

/// The bytes and the times of the packets in a log.
fn packets(file: &str) -> Vec<(Vec<u8>, u64)> {
    let mut reader = weir::reader::Reader::open(file.as_ref()).expect("a file");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().expect("it is whole") {
        packets.push((packet.data.to_vec(), packet.timestamp));
    }
    packets
}

fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    u64::try_from(since.as_nanos()).expect("a clock")
}

root_tests! { blocked_packets_and_those_that_rules_log_are_in_the_log:
    root_blocked_packets_and_those_that_rules_log_are_in_the_log_xdp("xdp");
    root_blocked_packets_and_those_that_rules_log_are_in_the_log_tc("tc");
}

fn blocked_packets_and_those_that_rules_log_are_in_the_log(source: &str) {
    let network = network();
    let pair = network.pair();
    let directory = directory();
    let (rules, log) = (path(&directory, "a.rules"), path(&directory, "a.pcapng"));
    let text = "\
        all:  udp dst port 10                -> continue, log\n\
        lab:  inbound and udp dst port 9     -> block\n\
        scan: udp dst port 12                -> block, learn block for 1h\n\
        few:  udp dst port 13                -> block if over 1/h by dst\n\
        long: greater 500                    -> block\n";
    fs::write(&rules, text).expect("a file");
    let guard = |args: &[&str]| {
        let always = ["guard", "-i", "rx0", "--json", "--no-control", "--rules", &rules, "--log", &log];
        start(&network, &[&always[..], &["--source", source], args].concat())
    };
    let sent = |frames: &[Vec<u8>]| {
        let sender = FrameSender::new(&pair.rx).expect("a sender");
        // One that is blocked is an error of whoever sends it.
        frames.iter().for_each(|frame| drop(sender.send(frame)));
    };
    let frames: Vec<_> = [(10, 60), (10, 600), (11, 60), (11, 700), (12, 61), (12, 62), (13, 63), (13, 64)]
        .map(|(port, length)| frame(pair, port, length))
        .into();
    // All but the third, and the first that is within a limit; the second twice.
    let of_sent = |blocked: &str| {
        let lines = [
            ("all: logged", 60),
            ("all: logged", 600),
            (&format!("long: {blocked}"), 600),
            (&format!("long: {blocked}"), 700),
            (&format!("scan: {blocked}"), 61),
            (&format!("scan (learned): {blocked}"), 62),
            (&format!("few: {blocked}"), 64),
        ];
        lines.map(|(what, length)| format!("rule {what}\t0x00000002\t{length}"))
    };
    let expected: Vec<_> = [0, 1, 1, 3, 4, 5, 7].map(|number: usize| frames[number].clone()).into();
    let began = nanoseconds();
    let running = guard(&[]);
    sent(&frames);
    send(&network, 1000);
    // What the old rules have logged is there, too.
    running.signal(Signal::HUP);
    running.wait_for("rx0: 5 rules in force");
    send(&network, 500);
    let account = running.interrupt().succeeded().account().0;
    assert_eq!((&account["logged"], &account["log_lost"]), (&1507.into(), &0.into()), "{account}");
    let read = logged(&log);
    assert_eq!(read[..7], of_sent("blocked"));
    assert_eq!(read[7..], vec!["rule lab: blocked\t0x00000001\t60"; 1500]);
    let found = packets(&log);
    assert!(found.iter().map(|(bytes, _)| bytes).take(7).eq(&expected));
    let times: Vec<u64> = found.iter().map(|(_, time)| *time).collect();
    // Those of several CPUs are hardly in order.
    let during = began..=nanoseconds();
    assert!(times[..7].is_sorted() && times.iter().all(|time| during.contains(time)), "{times:?}");
    assert_eq!(fs::metadata(&log).expect("a file").permissions().mode() & 0o777, 0o600);

    let running = guard(&["--dry-run"]);
    sent(&frames);
    let account = running.interrupt().succeeded().account().0;
    assert_eq!((&account["logged"], &account["rules"][4]["packets"]), (&7.into(), &2.into()), "{account}");
    assert_eq!(logged(&log), of_sent("would be blocked"));
}

#[root_test]
fn root_rules_stay_in_force_when_the_log_fails() {
    let network = network();
    let directory = directory();
    let (rules, fifo) = (path(&directory, "a.rules"), path(&directory, "fifo"));
    fs::write(&rules, "all: udp -> block\n").expect("a file");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .expect("a FIFO");
    let reader = fs::File::options().read(true).write(true).open(&fifo).expect("a FIFO");
    let running =
        start(&network, &["guard", "-i", "rx0", "--json", "--no-control", "--rules", &rules, "--log", &fifo]);
    drop(reader);
    let before = received(&network.pair().rx.netns);
    send(&network, 100);
    running.wait_for("the log ends here, but the rules stay in force: ");
    send(&network, 100);
    let ended = running.interrupt().failed(&["the log ends here", "the log is not complete"]);
    let error = ended.account().0["error"].as_str().expect("a cause").to_owned();
    assert_eq!(ended.stderr.matches(&error).count(), 1, "it is told once: {}", ended.stderr);
    assert_eq!(received(&network.pair().rx.netns), before, "nothing got to the stack");
    let account = ended.account().0;
    assert_eq!((&account["logged"], &account["log_lost"]), (&0.into(), &200.into()), "{account}");
    assert_eq!(counts(&account), named(&[("all", 200), ("none", 0)]));
}

#[test]
fn a_log_that_cannot_be_is_refused() {
    let directory = directory();
    let file = path(&directory, "a.rules");
    fs::write(&file, "a: tcp -> block, log\n").expect("a file");
    let table: [(&[&str], &str); 2] = [
        (&["--log", "a.pcap"], "--log writes pcapng"),
        (&["--log", "-", "--json"], "--json and --log - both use standard output"),
    ];
    for (args, part) in table {
        let args = [&["guard", "-i", "lo", "--no-control", "--rules", &file], args].concat();
        let output = weir(&args).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(part) && output.status.code() == Some(2), "{part}: {said}");
    }
}
