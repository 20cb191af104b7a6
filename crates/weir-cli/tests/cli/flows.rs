//! `weir flows` on an interface. tshark, which reads what a capture beside it has written, is the judge.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{Generator, Network, Traffic, Veth, root_test, tcp_transfer};

use crate::control::ctl_succeeds;
use crate::flow_files::{finished_and_hidden, lines_of};
use crate::harness::{Ended, arrive, capture, directory, loopback_up, path, run, start, tshark, until};

/// Packets and bytes of each way, by protocol and both ends, that of the lower port first.
type Ways = BTreeMap<(u64, [(String, u64); 2]), [(u64, u64); 2]>;

fn add(ways: &mut Ways, protocol: u64, ends: [(String, u64); 2], both: [(u64, u64); 2]) {
    let [one, other] = ends;
    let (ends, both) =
        if one.1 <= other.1 { ([one, other], both) } else { ([other, one], [both[1], both[0]]) };
    let sums = ways.entry((protocol, ends)).or_default();
    for (sum, (packets, bytes)) in sums.iter_mut().zip(both) {
        (sum.0, sum.1) = (sum.0 + packets, sum.1 + bytes);
    }
}

/// What tshark finds in a file.
fn judged(file: &Path) -> Ways {
    let fields = [
        "ip.proto",
        "ip.src",
        "ip.dst",
        "tcp.srcport",
        "tcp.dstport",
        "udp.srcport",
        "udp.dstport",
        "ip.len",
    ];
    let mut ways = Ways::new();
    for line in tshark(file, &fields) {
        let [protocol, from, to, tcp_from, tcp_to, udp_from, udp_to, length] =
            line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let number = |text: &str| text.parse().expect("a number");
        if protocol.is_empty() {
            continue;
        }
        let (from_port, to_port) = if tcp_from.is_empty() { (udp_from, udp_to) } else { (tcp_from, tcp_to) };
        let ends = [(from.to_owned(), number(from_port)), (to.to_owned(), number(to_port))];
        add(&mut ways, number(protocol), ends, [(1, number(length)), (0, 0)]);
    }
    ways
}

/// The flows that weir has printed.
fn flows(ended: &Ended) -> Vec<Value> {
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    all.filter(|object| object["type"] == "flow").collect()
}

fn found(ended: &Ended) -> Ways {
    let mut ways = Ways::new();
    for flow in flows(ended) {
        let number = |value: &Value| value.as_u64().expect("a number");
        let end = |address: &str, port: &str| {
            (flow[address].as_str().expect("text").to_owned(), number(&flow[port]))
        };
        let way = |name: &str| (number(&flow[name]["packets"]), number(&flow[name]["bytes"]));
        add(
            &mut ways,
            number(&flow["proto"]),
            [end("src", "sport"), end("dst", "dport")],
            [way("src_to_dst"), way("dst_to_src")],
        );
    }
    ways
}

#[root_test]
fn root_flows_are_those_of_tshark_whoever_takes_the_packets() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let (pair, directory) = (network.pair(), directory());
    let file = path(&directory, "a.pcapng");
    let judge = capture(&network, &["-w", &file, "ip"]);
    let handlers = ["--handlers", "2", "--source", "tc"];
    let probes: Vec<_> = [&[][..], &handlers]
        .iter()
        .map(|more| start(&network, &[&["flows", "-i", "rx0", "--json", "ip"], *more].concat()))
        .collect();
    for bytes in [10, 300_000, 1_000_000] {
        tcp_transfer(pair, bytes).expect("a transfer");
    }
    let traffic = Traffic::new(100).and_then(|traffic| traffic.flows(50)).expect("frames").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    arrive(pair, || generator.send(500).expect("frames").accepted);
    let judge = judge.interrupt().succeeded();
    judge.captured_all(judge.stderr.lines().find_map(captured).expect("a number"));
    let expected = judged(file.as_ref());
    assert_eq!(expected.len(), 53, "{expected:?}");
    for probe in probes {
        let ended = probe.interrupt().succeeded();
        let account = ended.account();
        account.closes();
        assert_eq!(found(&ended), expected, "{}", ended.stderr);
        let of = |field: &str| account.0["flows"][field].as_u64().expect("a number");
        assert_eq!((of("packets"), of("packets")), (account.number("delivered"), of("exported_packets")));
        assert_eq!((of("ended"), of("open"), of("not_ip"), of("cut")), (flows(&ended).len() as u64, 0, 0, 0));
        let printed = &account.0["flows"]["printed"];
        assert_eq!((&printed["sent"], &printed["lost"]), (&account.0["flows"]["ended"], &Value::from(0)));
        // Connections say who began, and have ended.
        for flow in flows(&ended).iter().filter(|flow| flow["proto"] == 6) {
            assert_eq!(
                (&flow["reason"], &flow["src"]),
                (&Value::from("closed"), &address(&network)),
                "{flow}"
            );
            assert_eq!(
                flow["src_to_dst"]["tcp_flags"].as_str().map(|flags| flags.starts_with("FS")),
                Some(true)
            );
        }
    }
}

fn captured(line: &str) -> Option<u64> {
    line.split_once(" packets captured")?.0.parse().ok()
}

fn address(network: &Network) -> Value {
    network.pair().tx.ipv4.expect("an address").to_string().into()
}

#[root_test]
fn root_a_flow_that_is_over_is_printed_though_nothing_follows() {
    let network = Network::new(Veth::default()).expect("a network");
    let pair = network.pair();
    let probe = start(&network, &["flows", "-i", "rx0", "--json", "--idle-timeout", "100ms", "--flows", "3"]);
    let traffic = Traffic::new(60).and_then(|traffic| traffic.flows(5)).expect("frames").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    arrive(pair, || generator.send(5).expect("frames").accepted);
    probe.wait_for_lines(5);
    let shown = until("five flows", || {
        let text = probe.stdout();
        if text.lines().count() == 5 { Ok(text) } else { Err(text) }
    });
    let reasons = |reason: &str| shown.matches(&format!(r#""reason":"{reason}""#)).count();
    // How fast the frames have come decides how many had no room.
    assert!(reasons("no_room") <= 2 && reasons("no_room") + reasons("idle") == 5, "{shown}");
    let ended = probe.interrupt().succeeded();
    assert_eq!(ended.account().0["flows"]["ended"], 5);

    // Flows that are over before the table comes are in it.
    let once = start(&network, &["flows", "-i", "rx0", "--once", "--every", "2s", "--idle-timeout", "1ms"]);
    arrive(pair, || generator.send(10).expect("frames").accepted);
    let ended = once.wait().succeeded();
    let table = String::from_utf8_lossy(&ended.stdout).into_owned();
    let rows = table.lines().filter(|line| line.contains(" > 198.19.0.1:9 udp ")).count();
    assert!(table.starts_with("flows by bytes") && rows >= 5, "{table}");

    // If tables are asked for, they come one below the other into a pipe, too.
    let tables = start(&network, &["flows", "-i", "rx0", "--top", "2", "--every", "100ms"]);
    arrive(pair, || generator.send(10).expect("frames").accepted);
    tables.wait_for_lines(12);
    let ended = tables.interrupt().succeeded();
    let all = String::from_utf8_lossy(&ended.stdout).into_owned();
    let tables: Vec<_> = all.split("\n\n").collect();
    assert!(tables.len() > 2 && !all.contains('\x1b'), "{all}");
    for table in &tables {
        let head = table.lines().next().unwrap_or_default();
        assert!(head.starts_with("flows by bytes ") && head.contains(" now "), "{all}");
    }
    // Those of the last table are there.
    assert_eq!(tables.last().map(|table| table.trim_end().lines().count()), Some(4), "{all}");
}

#[root_test]
fn root_flows_say_what_was_lost_meanwhile() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let pair = network.pair();
    let args = ["flows", "-i", "rx0", "--json", "-B", "64KiB", "--chunk-size", "4KiB", "ip"];
    let probe = start(&network, &args);
    // Its flow ends before anything is lost.
    tcp_transfer(pair, 100).expect("a transfer");
    probe.wait_for_lines(1);
    let traffic = Traffic::new(60).expect("frames").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    probe.signal(Signal::STOP);
    arrive(pair, || generator.send(20_000).expect("frames").accepted);
    probe.signal(Signal::CONT);
    until("all to be taken or lost", || {
        let told = ctl_succeeds(&network, &["status", "-t", &probe.id().to_string()]);
        let status: Value = serde_json::from_str(&told).expect("JSON");
        let of = |field: &str| status[field].as_u64().expect("a number");
        let in_tables = status["flows"]["packets"].as_u64().expect("a number");
        let is_done = of("captured") == in_tables && of("captured") + of("lost") > 20_000;
        if is_done { Ok(()) } else { Err(told) }
    });
    arrive(pair, || generator.send(1).expect("frames").accepted);
    let ended = probe.interrupt().succeeded();
    let lost = ended.account().number("lost");
    assert!(lost > 1000, "{lost}");
    let told: Vec<_> =
        flows(&ended).iter().map(|flow| (flow["proto"].clone(), flow["lost"].clone())).collect();
    assert_eq!(told, [(Value::from(6), Value::from(0)), (Value::from(17), Value::from(lost))]);
}

#[root_test]
fn root_collectors_get_each_flow_and_losses_are_counted() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let (pair, directory) = (network.pair(), directory());
    loopback_up(&network);
    // nfdump knows no records of both directions.
    let mut nfcapd = Command::new("nfcapd");
    nfcapd.args(["-p", "2055", "-b", "127.0.0.1", "-l"]).arg(directory.path());
    let nfcapd = network.rx().spawn(nfcapd.stdout(Stdio::null()).stderr(Stdio::null()));
    let mut nfcapd = Killed(nfcapd.expect("nfcapd: `scripts/setup test` installs it"));
    // Its socket: bytes that it has not read, and datagrams that found no room.
    let socket = || {
        let sockets =
            network.rx().run(|| std::fs::read_to_string("/proc/thread-self/net/udp")).expect("sockets");
        let own = sockets.lines().find(|line| line.contains("0100007F:0807 "))?;
        let fields: Vec<_> = own.split_whitespace().collect();
        Some((fields[4].to_owned(), fields[12].to_owned()))
    };
    until("nfcapd to listen", || socket().ok_or_else(String::new));
    let to =
        ["--to", "netflow9://127.0.0.1", "--to", "ipfix://127.0.0.1:2055", "--to", "netflow5://127.0.0.1:9"];
    let args = [&["flows", "-i", "rx0", "--json", "--uniflow"], &to[..], &["ip"]].concat();
    let probe = start(&network, &args);
    let file = path(&directory, "both.pcapng");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let to = format!("file:{}", path(&elsewhere, "flows"));
    let both = ["--flows-to", "netflow9://127.0.0.1", "--flows-to", &to];
    let both = [&["capture", "-i", "rx0", "-w", &file, "--json"], &both[..], &["ip"]].concat();
    let both = start(&network, &both);
    tcp_transfer(pair, 100_000).expect("a transfer");
    let traffic = Traffic::new(100).and_then(|traffic| traffic.flows(300)).expect("frames").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    arrive(pair, || generator.send(900).expect("frames").accepted);
    let beside = both.interrupt().succeeded();
    let ended = probe.interrupt().succeeded();
    let expected = found(&ended);
    assert_eq!(judged(file.as_ref()), expected, "what is captured");
    let account = ended.account();
    let (beside, flows) = (&beside.account().0["flows"], &account.0["flows"]);
    for field in ["packets", "exported_packets", "bytes", "ended"] {
        assert_eq!(beside[field], flows[field], "{field}: {beside}");
    }
    let sent = [0, 1].map(|index| &beside["exports"][index]["sent"]);
    assert_eq!((sent, beside["printed"].is_null()), ([&flows["ended"]; 2], true));
    let [files, hidden] = finished_and_hidden(elsewhere.path());
    assert_eq!((Some(lines_of(&files)), hidden), (flows["ended"].as_u64(), Vec::new()), "{files:?}");
    let exports = account.0["flows"]["exports"].as_array().expect("collectors").clone();
    let flows = account.0["flows"]["ended"].as_u64().expect("a number");
    assert_eq!(flows, 301);
    for export in &exports {
        let counts = ["given", "sent", "queued", "lost"].map(|field| export[field].as_u64());
        assert_eq!(counts, [flows, flows, 0, 0].map(Some), "{export}");
        let of = |sum: &str, field: &str| export["exported"][sum][field].as_u64();
        // One for each direction; those of UDP have one.
        assert_eq!((of("sent", "records"), of("unsent", "records")), (Some(302), Some(0)), "{export}");
        assert_eq!(of("sent", "packets"), account.0["flows"]["exported_packets"].as_u64());
        assert_eq!(of("sent", "bytes"), account.0["flows"]["bytes"].as_u64());
    }
    // Nobody listens on the last one's port.
    assert!(exports[2]["refusals"].as_u64() > Some(0), "{exports:?}");
    assert!(ended.stderr.contains("notice: nobody listens at netflow5://127.0.0.1:9;"), "{}", ended.stderr);

    let empty = ("00000000:00000000".to_owned(), "0".to_owned());
    until("nfcapd to read all", || {
        let now = socket();
        if now.as_ref() == Some(&empty) { Ok(()) } else { Err(format!("{now:?}")) }
    });
    nfcapd.ends();
    let mut nfdump = Command::new("nfdump");
    nfdump.arg("-R").arg(directory.path()).args(["-q", "-N", "-o", "fmt:%pr|%sa|%sp|%da|%dp|%pkt|%byt"]);
    let output = nfdump.output().expect("nfdump");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut thrice = Ways::new();
    for line in text.lines() {
        let [protocol, from, from_port, to, to_port, packets, bytes] =
            line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line}"));
        let ends = [(from.to_owned(), number(from_port)), (to.to_owned(), number(to_port))];
        add(&mut thrice, number(protocol), ends, [(number(packets), number(bytes)), (0, 0)]);
    }
    // By NetFlow v9, from the probe and from the capture, and by IPFIX.
    let three = |both: [(u64, u64); 2]| both.map(|(packets, bytes)| (packets * 3, bytes * 3));
    let expected: Ways = expected.into_iter().map(|(ends, both)| (ends, three(both))).collect();
    assert_eq!(thrice, expected);
}

/// What comes over the next connection until it is closed, or until as many records of flows have come.
fn receive(listener: &TcpListener, records: usize) -> Vec<u8> {
    let mut connection = listener.accept().expect("a connection").0;
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while flow_records(&all) < records {
        match connection.read(&mut buffer).expect("bytes") {
            0 => break,
            length => all.extend_from_slice(&buffer[..length]),
        }
    }
    all
}

/// Records of flows over IPv4 with basic fields in messages, each with one set of them at the end or at the beginning.
fn flow_records(bytes: &[u8]) -> usize {
    let word = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let (mut at, mut records, mut length) = (0, 0, 0);
    while at + 4 <= bytes.len() && at + word(at + 2) <= bytes.len() {
        let (mut set, end) = (at + 16, at + word(at + 2));
        while set < end {
            match word(set) {
                // The first template is that of IPv4: pairs of a field's number and length, and of an enterprise.
                2 => {
                    let mut field = set + 8;
                    for _ in 0..word(set + 6) {
                        length += word(field + 2);
                        field += if word(field) < 0x8000 { 4 } else { 8 };
                    }
                }
                256 => records += (word(set + 2) - 4) / length,
                _ => {}
            }
            set += word(set + 2);
        }
        at = end;
    }
    records
}

/// What tshark reads in messages: the sequence numbers of the messages, the ports of all flows, and complaints.
fn messages(directory: &Path, bytes: &[u8]) -> (Vec<u32>, Vec<String>, String) {
    let file = directory.join("messages.ipfix");
    std::fs::write(&file, bytes).expect("room");
    let lines = tshark(&file, &["cflow.sequence", "cflow.srcport", "_ws.expert.message"]);
    let (mut sequences, mut ports, mut complaints) = (Vec::new(), Vec::new(), String::new());
    for line in lines {
        let [sequence, of_flows, complaint] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        sequences.push(sequence.parse().expect("a number"));
        ports.extend(of_flows.split(',').filter(|port| !port.is_empty()).map(str::to_owned));
        complaints += complaint;
    }
    (sequences, ports, complaints)
}

#[root_test]
fn root_flows_wait_for_a_collector_over_tcp_that_is_late_and_for_one_that_comes_back() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let (pair, directory) = (network.pair(), directory());
    loopback_up(&network);
    let traffic = Traffic::new(100).and_then(|traffic| traffic.flows(50)).expect("frames").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    let file = path(&directory, "all.ipfix");
    let to = ["--to", "ipfix+tcp://127.0.0.1", "--to", &format!("ipfix-file:{file}")];
    let args = [&["flows", "-i", "rx0", "--json", "--idle-timeout", "100ms"], &to[..], &["ip"]].concat();
    let probe = start(&network, &args);
    let collector = "ipfix+tcp://127.0.0.1:4739";
    probe.wait_for(&format!("notice: cannot send flows to {collector} yet: Connection refused"));
    arrive(pair, || generator.send(50).expect("frames").accepted);
    // Confined, and long at work: it connects all the same.
    let listener = network.rx().run(|| TcpListener::bind("127.0.0.1:4739")).expect("a port");
    let first = receive(&listener, 50);
    probe.wait_for(&format!("notice: connected to {collector}"));
    // The collector has closed the connection.
    probe.wait_for(&format!("notice: no connection to {collector}: the collector has closed it; flows wait"));
    arrive(pair, || generator.send(50).expect("frames").accepted);
    let second = receive(&listener, 50);
    drop(listener);
    let ended = probe.interrupt().succeeded();
    let account = ended.account();
    account.closes();
    let export = &account.0["flows"]["exports"][0];
    let of = |field: &str| export[field].as_u64();
    assert_eq!(["given", "sent", "queued", "lost"].map(of), [100, 100, 0, 0].map(Some), "{}", ended.stderr);
    assert_eq!((of("connections"), of("refusals") > Some(0)), (Some(2), true), "{export}");
    let mut ports = Vec::new();
    let all = std::fs::read(&file).expect("a file");
    for (bytes, expected) in [(first, 50), (second, 50), (all, 100)] {
        let (sequences, mut some, complaints) = messages(directory.path(), &bytes);
        assert_eq!((sequences[0], some.len(), complaints.as_str()), (0, expected, ""), "{sequences:?}");
        some.sort();
        ports.push(some);
    }
    // Each flow came twice, and is twice in the file.
    let twice: Vec<_> = ports[0].iter().flat_map(|port| [port, port]).collect();
    assert_eq!(ports[0], ports[1]);
    assert!(ports[2].iter().eq(twice), "{ports:?}");
}

/// Writes what comes over each TLS connection into a file, by its number, and closes the connection at each line of its input.
const TLS_COLLECTOR: &str = r#"
import socket, ssl, sys, threading
key, certificate, authority, out = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
context.load_verify_locations(authority)
context.verify_mode = ssl.CERT_REQUIRED
server = socket.create_server(("127.0.0.1", 4740))
def closes(connection):
    sys.stdin.readline()
    connection.shutdown(socket.SHUT_RDWR)
number = 0
while True:
    try:
        connection = context.wrap_socket(server.accept()[0], server_side=True)
    except OSError:
        continue
    threading.Thread(target=closes, args=(connection,), daemon=True).start()
    with open(out + str(number), "wb", 0) as file:
        while data := connection.recv(65536):
            file.write(data)
    connection.close()
    number += 1
"#;

#[root_test]
fn root_a_collector_over_tls_has_to_be_the_right_one_and_may_come_back() {
    let network = Network::new(Veth::default().ipv4()).expect("a network");
    let (pair, directory) = (network.pair(), directory());
    let at = |name: &str| path(&directory, name);
    loopback_up(&network);
    for who in ["collector", "probe"] {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-subj", "/CN=test", "-addext", "basicConstraints=CA:FALSE"]);
        openssl.args(["-addext", "subjectAltName=IP:127.0.0.1"]);
        openssl.args(["-keyout", &at(&format!("{who}.key")), "-out", &at(&format!("{who}.pem"))]);
        assert!(openssl.output().expect("openssl").status.success(), "{who}");
    }
    let mut python = Command::new("/usr/bin/python3");
    python.args([
        "-c",
        TLS_COLLECTOR,
        &at("collector.key"),
        &at("collector.pem"),
        &at("probe.pem"),
        &at("out"),
    ]);
    let collector = network.rx().spawn(python.stdin(Stdio::piped()).stdout(Stdio::null()));
    let collector = Killed(collector.expect("python3"));
    let listens = || network.rx().run(|| std::net::TcpStream::connect("127.0.0.1:4740")).map(drop);
    until("the collector to listen", || listens().map_err(|error| error.to_string()));

    let own = format!("cert={}&key={}", at("probe.pem"), at("probe.key"));
    let to = |options: &str| format!("ipfix+tls://127.0.0.1?{options}");
    let args = ["flows", "-i", "rx0", "--json", "--idle-timeout", "100ms", "ip", "--to"];
    let told = "cannot send flows to ipfix+tls://127.0.0.1:4740: ";
    for (options, why) in [
        (
            format!("ca={}&{own}", at("probe.pem")),
            "no trusted authority has signed its certificate; try ca=FILE",
        ),
        (format!("ca={}&name=other.test&{own}", at("collector.pem")), "its certificate is for another host"),
    ] {
        run(&network, &[&args[..], &[&to(&options)]].concat()).failed(&[told, why]);
    }
    let to = to(&format!("ca={}&{own}", at("collector.pem")));
    let probe = start(&network, &[&args[..], &[&to]].concat());
    let traffic = Traffic::new(100).and_then(|traffic| traffic.flows(50)).expect("frames").between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("a generator");
    for number in 0..2 {
        arrive(pair, || generator.send(50).expect("frames").accepted);
        let file = at(&format!("out{number}"));
        until("all flows", || match flow_records(&std::fs::read(&file).unwrap_or_default()) {
            50 => Ok(()),
            other => Err(other.to_string()),
        });
        if number == 0 {
            writeln!(collector.0.stdin.as_ref().expect("a pipe")).expect("it reads");
            probe.wait_for("the collector has closed it; flows wait");
        }
    }
    let ended = probe.interrupt().succeeded();
    let export = ended.account().0["flows"]["exports"][0].clone();
    let counts =
        ["given", "sent", "queued", "lost", "connections", "refusals"].map(|field| export[field].as_u64());
    assert_eq!(counts, [100, 100, 0, 0, 2, 0].map(Some), "{export}");
    for number in 0..2 {
        let bytes = std::fs::read(at(&format!("out{number}"))).expect("a file");
        let (sequences, ports, complaints) = messages(directory.path(), &bytes);
        assert_eq!((sequences[0], ports.len(), complaints.as_str()), (0, 50, ""), "{sequences:?}");
    }
}

/// nfcapd, which writes its file when it is told to end.
struct Killed(Child);

impl Killed {
    fn ends(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, Signal::TERM).expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // Of no effect on one that has ended.
        let _over = self.0.kill().and_then(|()| self.0.wait());
    }
}
