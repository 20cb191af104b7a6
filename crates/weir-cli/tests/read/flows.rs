//! `weir flows` of files.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
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
    let lines = |args: &[&str], files: &[&std::path::Path]| {
        let args = [&["flows", "--lines", "-q"], &FOR_EVER[..], args].concat();
        let files = files.iter().flat_map(|file| [std::path::Path::new("-r"), file]).collect::<Vec<_>>();
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
        (&["--to", "kafka://a"][..], "allowed: ipfix://HOST:PORT"),
        (&["--fields", "basic"], "--to <COLLECTOR>"),
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
