//! `weir flows` of files.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::Value;
use weir::writer::Format;

use crate::support::{EPOCH, Place, frames, pcap, stderr, stdout, succeeds, weir, write};

/// What has the longest timeouts.
const FOR_EVER: [&str; 4] = ["--idle-timeout", "1000h", "--active-timeout", "1000h"];

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn each_packet_of_a_file_is_in_a_flow_or_in_a_count() {
    let place = Place::new();
    let file = place.path("all.pcap");
    let packets = pcap(&file) as u64;
    for inner in [&[][..], &["--inner"]] {
        let args = [&["flows", "--json", "-q"], &FOR_EVER[..], inner, &["-r"]].concat();
        let all = objects(&succeeds(&args, &[&file]));
        let (account, flows) = all.split_last().expect("an account");
        let of = |field: &str| account["flows"][field].as_u64().expect("a number");
        let sum: u64 = flows.iter().map(|flow| flow["packets"].as_u64().expect("a number")).sum();
        assert_eq!((of("packets"), of("exported_packets"), of("open")), (packets, sum, 0));
        assert_eq!(of("packets"), sum + of("not_ip") + of("cut"), "{account}");
        assert_eq!(of("ended"), flows.len() as u64);
        for flow in flows {
            let ways = ["src_to_dst", "dst_to_src"].map(|way| &flow[way]);
            for field in ["packets", "bytes"] {
                let sum: u64 = ways.iter().map(|way| way[field].as_u64().expect("a number")).sum();
                assert_eq!(flow[field], sum, "{flow}");
            }
        }
        let named = |name: &str| flows.iter().any(|flow| flow["application"] == name);
        assert!(["dns", "mdns", "http", "dhcp"].iter().all(|name| named(name)));
    }
    let table =
        succeeds(&[&["flows", "--rank", "packets", "--top", "3"], &FOR_EVER[..], &["-r"]].concat(), &[&file]);
    assert!(table.starts_with("flows by packets ") && table.lines().count() == 5, "{table}");
    let beside = place.path("flows.ipfix");
    let to = format!("ipfix-file:{}", beside.display());
    // A table if one is asked for, also beside an export; tcpdump's -n changes nothing.
    for (asked, heads) in [(&["--top", "3"][..], 1), (&["--rank", "bytes", "-n"], 1), (&["-nn"], 0)] {
        let args = [&["flows", "--to", &to], asked, &FOR_EVER[..], &["-r"]].concat();
        assert_eq!(succeeds(&args, &[&file]).matches("flows by bytes").count(), heads, "{asked:?}");
    }
    let lines = succeeds(&[&["flows", "--lines"], &FOR_EVER[..], &["-r"]].concat(), &[&file]);
    assert!(
        lines.lines().count() > 30 && lines.lines().all(|line| line.starts_with("2023-11-15 03:43:2")),
        "{lines}"
    );
}

#[test]
fn a_filter_chooses_packets_and_two_files_are_one_input() {
    let place = Place::new();
    let [whole, half, rest] = ["a.pcapng", "b.pcapng", "c.pcapng"].map(|name| place.path(name));
    let frames = frames();
    let packets: Vec<_> =
        (0..).zip(&frames).map(|(n, data)| (0, EPOCH + n * 1_000_000, data.as_slice(), 0)).collect();
    let (odd, even): (Vec<_>, Vec<_>) = packets.iter().partition(|packet| packet.1 % 2_000_000 > 0);
    for (file, packets) in [(&whole, &packets), (&half, &odd), (&rest, &even)] {
        write(file, Format::Pcapng, &[("eth9", 1)], packets);
    }
    let lines = |args: &[&str], files: &[&Path]| {
        let args = [&["flows", "--lines", "-q"], &FOR_EVER[..], args].concat();
        let files = files.iter().flat_map(|file| [Path::new("-r"), file]).collect::<Vec<_>>();
        let mut lines: Vec<_> = succeeds(&args, &files).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&[], &[&half, &rest]), lines(&[], &[&whole]));
    let dns = lines(&["udp", "port", "53"], &[&whole]);
    let expected: Vec<_> = lines(&[], &[&whole])
        .into_iter()
        .filter(|line| line.contains(":53 ") && line.contains(" udp "))
        .collect();
    assert!(!dns.is_empty());
    assert_eq!(dns, expected);
    let json = succeeds(&["flows", "--json", "-q", "-r"], &[&whole]);
    assert_eq!(objects(&json)[0]["interface"], "eth9");
}

#[test]
fn flows_say_what_a_file_has_lost_meanwhile() {
    let place = Place::new();
    let file = place.path("lossy.pcapng");
    let frames = frames();
    let time = |index: u64| EPOCH + index * 1_000_000;
    let lost = |index: u64| if index % 3 == 1 { index } else { 0 };
    // Each twice, so that flows take some time.
    let twice = (0..).zip(frames.iter().chain(&frames));
    let packets: Vec<_> = twice.map(|(index, data)| (0, time(index), data.as_slice(), lost(index))).collect();
    write(&file, Format::Pcapng, &[("eth9", 1)], &packets);
    let args = [&["flows", "--json", "-q"], &FOR_EVER[..], &["-r"]].concat();
    let all = objects(&succeeds(&args, &[&file]));
    let flows: Vec<_> = all.iter().filter(|object| object["type"] == "flow").collect();
    let index = |flow: &Value, field: &str| {
        let time: jiff::Timestamp = flow[field].as_str().expect("text").parse().expect("a time");
        (u64::try_from(time.as_nanosecond()).expect("late") - EPOCH) / 1_000_000
    };
    for flow in &flows {
        // Before each packet behind the first.
        let expected: u64 = (index(flow, "first") + 1..=index(flow, "last")).map(lost).sum();
        assert_eq!(flow["lost"], expected, "{flow}");
    }
    assert!(flows.len() > 30 && flows.iter().all(|flow| flow["lost"].as_u64() > Some(0)), "{flows:?}");
}

#[test]
fn what_cannot_be_read_or_kept_is_told() {
    let place = Place::new();
    let file = place.path("cut.pcap");
    pcap(&file);
    let bytes = fs::read(&file).expect("a file");
    fs::write(&file, &bytes[..bytes.len() - 5]).expect("a file");
    let output = weir(&["flows", "-r"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    // What was there is shown all the same.
    assert!(stdout(&output).starts_with("flows by bytes"), "{}", stdout(&output));
    assert!(stderr(&output).contains("cut.pcap"), "{}", stderr(&output));
    for (wrong, told) in [
        (&["--flows", "0"][..], "allowed: 1 to 100000000"),
        (&["--flows", "1G"], "allowed: 1 to 100000000"),
        (&["-i", "lo"], "cannot be used with"),
        (&["--lines", "--json"], "cannot be used with"),
        (&["--json", "--top", "3"], "cannot be used with"),
        (&["--lines", "--rank", "packets"], "cannot be used with"),
    ] {
        let output = weir(&[&["flows"], wrong, &["-r"]].concat(), &[&file]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}

#[test]
fn flows_of_a_file_are_written_to_a_file_that_tshark_reads() {
    let place = Place::new();
    let (file, written) = (place.path("all.pcap"), place.path("flows.ipfix"));
    pcap(&file);
    let to = format!("ipfix-file:{}", written.display());
    let args = [&["flows", "--json", "-q", "--fields", "all", "--to", &to], &FOR_EVER[..], &["-r"]].concat();
    // The second run replaces what the first has written.
    for _ in 0..2 {
        let all = objects(&succeeds(&args, &[&file]));
        let (account, flows) = all.split_last().expect("an account");
        let export = &account["flows"]["exports"][0];
        let counts = ["given", "sent", "lost"].map(|field| export[field].as_u64());
        assert_eq!(counts, [flows.len() as u64, flows.len() as u64, 0].map(Some), "{export}");
        let length = fs::metadata(&written).expect("a file").len();
        assert_eq!(
            (export["exported"]["sent"]["octets"].as_u64(), &export["connections"]),
            (Some(length), &Value::Null)
        );
        let fields = ["cflow.sequence", "cflow.protocol", "_ws.expert.message"];
        let tshark = fields.iter().flat_map(|field| ["-e", field]);
        let tshark = ["-n", "-T", "fields"].into_iter().chain(tshark).chain(["-r"]);
        let output = Command::new("tshark").args(tshark).arg(&written).output().expect("tshark");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows: Vec<Vec<_>> = text.lines().map(|line| line.split('\t').collect()).collect();
        let records = rows.iter().flat_map(|row| row[1].split(',')).filter(|protocol| !protocol.is_empty());
        assert_eq!((rows[0][0], records.count()), ("0", flows.len()), "{text}");
        assert!(rows.iter().all(|row| row[2].is_empty()), "{text}");
    }
    let to = format!("ipfix-file:{}", file.display());
    let output = weir(&["flows", "--to", &to, "-r"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it is the file that is read"), "{}", stderr(&output));
    assert!(fs::metadata(&file).is_ok_and(|file| file.len() > 0));
}

#[test]
fn flows_of_a_file_are_exported_and_the_account_closes() {
    let place = Place::new();
    let file = place.path("all.pcap");
    pcap(&file);
    let collector = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let to = format!("ipfix://{}", collector.local_addr().expect("an address"));
    let args = [&["flows", "--json", "-q", "--fields", "all", "--to", &to], &FOR_EVER[..], &["-r"]].concat();
    let all = objects(&succeeds(&args, &[&file]));
    let (account, flows) = all.split_last().expect("an account");
    let export = &account["flows"]["exports"][0];
    let of = |field: &str| export[field].as_u64().expect("a number");
    assert_eq!((of("given"), of("sent")), (flows.len() as u64, flows.len() as u64));
    let sent = &export["exported"]["sent"];
    let of = |field: &str| sent[field].as_u64().expect("a number");
    assert_eq!(
        (of("records"), &sent["packets"]),
        (flows.len() as u64, &account["flows"]["exported_packets"])
    );
    // What was sent has arrived: this is the loopback.
    let mut datagram = [0; 2000];
    let mut octets = 0;
    for message in 0..of("messages") {
        let length = collector.recv(&mut datagram).expect("a datagram");
        assert!(length <= 1400 && datagram[..2] == [0, 10], "{message}");
        octets += length as u64;
    }
    assert_eq!(octets, of("octets"));

    // Over TCP the same, in longer messages.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().expect("a connection").0.read_to_end(&mut all).expect("all of it");
        all
    });
    let over_tcp = format!("ipfix+tcp://{address}");
    let args = [&["flows", "--json", "-q", "--to", &over_tcp], &FOR_EVER[..], &["-r"]].concat();
    let all = objects(&succeeds(&args, &[&file]));
    let export = &all.last().expect("an account")["flows"]["exports"][0];
    let fields = ["given", "sent", "lost", "connections", "refusals"];
    let expected = [flows.len() as u64, flows.len() as u64, 0, 1, 0];
    assert_eq!(fields.map(|field| export[field].as_u64()), expected.map(Some), "{export}");
    let bytes = reader.join().expect("it reads");
    assert_eq!(export["exported"]["sent"]["octets"], bytes.len());
    // Templates, flows, and the account.
    let (mut rest, mut messages) = (&bytes[..], 0);
    while let [0, 10, high, low, ..] = rest {
        rest = &rest[usize::from(u16::from_be_bytes([*high, *low]))..];
        messages += 1;
    }
    assert_eq!((rest.len(), messages), (0, 3));
    let output = weir(&["flows", "--to", &over_tcp, "-r"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains(&format!("cannot send flows to {over_tcp}: Connection refused")), "{said}");
    assert!(said.contains("check that the collector runs, and listens on TCP port"), "{said}");

    for (wrong, told) in [
        (&["--to", "syslog://a"][..], "allowed: ipfix://HOST:PORT"),
        (&["--to", "kafka://a"], "allowed: kafka://HOST:PORT"),
        (&["--fields", "basic"], "--to <DESTINATION>"),
        (&["--to", &to, "--fields", "sourceIPv5Address"], "no such field; try sourceIPv4Address"),
    ] {
        let output = weir(&[&["flows"], wrong, &["-r"]].concat(), &[&file]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    let output = weir(&["flows", "--to", "ipfix://no.such.host.invalid", "-r"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot send flows to ipfix://no.such.host.invalid:4739:"),
        "{}",
        stderr(&output)
    );
}

/// All files of a directory and its folders.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

#[test]
fn flows_of_a_file_are_written_to_files_with_and_without_confinement() {
    let place = Place::new();
    let file = place.path("all.pcap");
    pcap(&file);
    for (number, more) in [&[][..], &["--no-confine"]].into_iter().enumerate() {
        let directory = place.path(&format!("new/{number}"));
        let to = format!("file:{}?every=24h&sensor=tap", directory.display());
        let packed = format!("{to}&compress=zstd");
        let args = [&["flows", "--json", "-q", "--to", &to, "--to", &packed], &FOR_EVER[..], more, &["-r"]];
        let text = succeeds(&args.concat(), &[&file]);
        let all = objects(&text);
        let (account, flows) = all.split_last().expect("an account");
        for export in account["flows"]["exports"].as_array().expect("two") {
            let of = |field: &str| export[field].as_u64().expect("a number");
            let counts = ["given", "sent", "queued", "lost"].map(of);
            assert_eq!(counts, [flows.len() as u64, flows.len() as u64, 0, 0], "{export}");
            // Two if it is midnight meanwhile.
            assert!([1, 2].contains(&export["files"]["finished"].as_u64().expect("a number")), "{export}");
        }
        let mut files = files_in(&directory);
        files.sort();
        let mut texts = [String::new(), String::new()];
        for path in files {
            let folder = path.strip_prefix(&directory).expect("it is in there").parent().expect("a folder");
            let folder = folder.to_str().expect("UTF-8");
            assert!(folder.starts_with("sensor=tap/day=20") && folder.contains("/hour="), "{folder}");
            let bytes = fs::read(&path).expect("a file");
            let is_packed = path.extension().is_some_and(|end| end == "zst");
            let lines = if is_packed { zstd::decode_all(&*bytes).expect("it is whole") } else { bytes };
            texts[usize::from(is_packed)] += &String::from_utf8_lossy(&lines);
        }
        let expected = text.rsplit_once("{\"type\":\"account\"").expect("an account").0;
        assert_eq!(texts, [expected; 2]);
    }
    // No flow, no file; and what is no directory, or no option, is told.
    let none = format!("file:{}", place.path("none").display());
    succeeds(&["flows", "-q", "--to", &none, "-r"], &[&file, Path::new("host 203.0.113.99")]);
    assert!(files_in(&place.path("none")).is_empty());
    let wrong = format!("file:{}", file.display());
    let output = weir(&["flows", "--to", &wrong, "-r"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write files to "), "{}", stderr(&output));
    for (option, told) in [("format=csv", "allowed: format=json"), ("every=25h", "allowed: 1s to 24h")] {
        let output = weir(&["flows", "--to", &format!("{none}?{option}"), "-r"], &[&file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}

/// What DuckDB finds, a row with a line for each.
fn duckdb(query: &str) -> Vec<Value> {
    let output = Command::new("duckdb").args(["-jsonlines", "-c", query]).output();
    let output = output.expect("duckdb: `scripts/setup test` installs it");
    assert!(output.status.success(), "{}", stderr(&output));
    objects(&stdout(&output))
}

#[test]
fn duckdb_finds_the_flows_of_json_in_files_of_parquet() {
    let place = Place::new();
    let file = place.path("all.pcap");
    pcap(&file);
    let directory = place.path("flows");
    let to = format!("file:{}?format=parquet&sensor=tap", directory.display());
    let args = [&["flows", "--json", "-q", "--inner", "--to", &to], &FOR_EVER[..], &["-r"]].concat();
    let all = objects(&succeeds(&args, &[&file]));
    let (account, flows) = all.split_last().expect("an account");
    // Names and meanings are the same, so the same question has the same answer; and with sums of columns the account closes.
    let list = place.path("flows.jsonl");
    let line = |flow: &Value| {
        let mut flow = flow.clone();
        // None has it, because no hello of TLS is whole.
        flow.as_object_mut().expect("an object").entry("ja4").or_insert(Value::Null);
        format!("{flow}\n")
    };
    fs::write(&list, flows.iter().map(line).collect::<String>()).expect("room");
    let ask = |from: &str, dot: &str, time: &str| {
        let ways = ["src_to_dst", "dst_to_src"].map(|way| {
            [
                "packets",
                "bytes",
                "shortest",
                "longest",
                "ttl_min",
                "ttl_max",
                "tos",
                "tcp_flags",
                "retransmissions",
                "zero_windows",
            ]
            .map(|name| format!("{way}{dot}{name} AS {way}_{name}"))
            .join(", ")
        });
        duckdb(&format!(
            "SET TimeZone = 'UTC'; SELECT {time}, interface, reason, proto, vlan, tunnel, src, dst, sport, dport, src_mac, dst_mac, packets, bytes, lost, {}, {}, \
             icmp_type, icmp_code, server_seconds, client_seconds, application, name, ja4, community_id FROM {from} ORDER BY ALL",
            ways[0], ways[1]
        ))
    };
    let parquet = format!("'{}/**/*.parquet'", directory.display());
    let json =
        format!("(SELECT * FROM read_json('{}', sample_size = -1, union_by_name = true))", list.display());
    let found = ask(&parquet, "_", "first::VARCHAR AS first, last::VARCHAR AS last");
    let expected =
        ask(&json, ".", "first::TIMESTAMPTZ::VARCHAR AS first, last::TIMESTAMPTZ::VARCHAR AS last");
    assert_eq!(found.len(), flows.len());
    assert_eq!(found, expected);
    let sums = duckdb(&format!(
        "SELECT count(*)::BIGINT AS flows, sum(packets)::BIGINT AS packets, sum(src_to_dst_bytes + dst_to_src_bytes)::BIGINT AS bytes, \
         any_value(sensor) AS sensor, bool_and(first_ns // 1000 = epoch_us(first)) AS same, count(DISTINCT day) IN (1, 2) AS days FROM {parquet}"
    ));
    let account = &account["flows"];
    let expected = serde_json::json!({
        "flows": account["ended"], "packets": account["exported_packets"], "bytes": account["bytes"], "sensor": "tap", "same": true, "days": true
    });
    assert_eq!(sums, [expected]);
}
