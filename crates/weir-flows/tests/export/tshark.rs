//! Messages as Debian's tshark reads them: every value of every record.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use weir_flows::export::{Account, Encoder, Fields, Format, Interface, Missed, Sampling, Settings};
use weir_flows::{Flow, Side};

use crate::made::{DAY, NOW, SECOND, all, http, messages};
use crate::pcap::pcap;

const IPFIX: u16 = 4739;
const UNIFLOW: u16 = 4740;
const V9: u16 = 9995;
const V5: u16 = 9996;
/// Tell of the exporter, not of flows.
const OPTIONS: [u16; 2] = [4742, 9998];
/// Miss a message. Of v5, tshark does not look at the sequence numbers.
const GAPS: [u16; 2] = [4741, 9997];

/// The values of a record, by tshark's name.
type Told = BTreeMap<String, Vec<String>>;

/// What tshark says of the messages to one port.
#[derive(Default)]
struct Read {
    records: Vec<Told>,
    /// Names of what it complains about.
    complaints: Vec<String>,
}

/// Returns what tshark reads, by port; `None`, with a message, if it is not installed.
fn read(datagrams: &[(u16, &[u8])]) -> Option<BTreeMap<u16, Read>> {
    let ports: BTreeSet<u16> = datagrams.iter().map(|(port, _)| *port).collect();
    read_file(&pcap(datagrams), &ports)
}

/// Reads a file of packets to these ports, or of messages, which get the port 0.
fn read_file(file: &[u8], ports: &BTreeSet<u16>) -> Option<BTreeMap<u16, Read>> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("messages");
    fs::write(&path, file).expect("room for a file");
    let mut command = Command::new("tshark");
    command.env("TZ", "UTC").args(["-n", "-T", "json", "--no-duplicate-keys", "-r"]).arg(&path);
    for port in ports {
        command.arg("-d").arg(format!("udp.port=={port},cflow"));
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            weir_skip::this_test(format_args!("tshark: {error}"));
            return None;
        }
    };
    let packets: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut all: BTreeMap<u16, Read> = BTreeMap::new();
    for packet in packets.as_array().expect("a list of packets") {
        let layers = &packet["_source"]["layers"];
        let port = layers["udp"]["udp.dstport"].as_str().map_or(0, |port| port.parse().expect("a port"));
        let read = all.entry(port).or_default();
        let message = &layers["cflow"];
        complaints(message, &mut read.complaints);
        let header = |name: &str| message[name].as_str().map(str::to_owned);
        let uptime = header("cflow.sysuptime").map(|uptime| nanoseconds(&uptime) / 1_000_000);
        let seconds = message["cflow.timestamp_tree"]["cflow.unix_secs"].as_str();
        let boot = uptime
            .zip(seconds)
            .map(|(uptime, seconds)| seconds.parse::<u64>().expect("seconds") * 1000 - uptime);
        for set in numbered(message) {
            // Those of v5 are in no set.
            if set.contains_key("cflow.srcaddr") {
                read.records.push(told(set, boot));
            }
            let records = in_order(set.iter().filter(|(key, _)| key.starts_with("Flow ")));
            read.records.extend(records.iter().map(|record| told(record, boot)));
        }
    }
    Some(all)
}

/// Sets of IPFIX and v9, records of v5, in their order.
fn numbered(message: &Value) -> Vec<&serde_json::Map<String, Value>> {
    let parts = message.as_object().expect("a message").iter();
    let is_part = |key: &str| {
        ["Set ", "FlowSet ", "pdu "].iter().any(|kind| key.starts_with(kind)) && !key.contains("Template")
    };
    in_order(parts.filter(|(key, _)| is_part(key)))
}

/// Sorts by the number in the key: `Set 10 [id=256]`.
fn in_order<'a>(
    parts: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<&'a serde_json::Map<String, Value>> {
    let number = |key: &str| {
        let digits = key.split(' ').nth(1).and_then(|word| word.split('/').next());
        digits.and_then(|digits| digits.parse::<u32>().ok()).unwrap_or_else(|| panic!("{key}"))
    };
    let sorted: BTreeMap<_, _> =
        parts.filter_map(|(key, part)| Some((number(key), part.as_object()?))).collect();
    sorted.into_values().collect()
}

fn complaints(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if key.starts_with("_ws.") {
                    found.push(format!("{key}: {member}"));
                }
                complaints(member, found);
            }
        }
        Value::Array(members) => members.iter().for_each(|member| complaints(member, found)),
        _ => {}
    }
}

/// Times of NetFlow become milliseconds since the Unix epoch, as a collector has them; `boot`: when the exporter was started.
fn told(record: &serde_json::Map<String, Value>, boot: Option<u64>) -> Told {
    let mut told = Told::new();
    for (key, value) in record {
        let values: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |all| all.iter().collect());
        for value in values {
            match value {
                Value::String(text)
                    if key != "cflow.timedelta" && key != "cflow.padding" && !text.is_empty() =>
                {
                    told.entry(key.clone()).or_default().push(text.clone());
                }
                Value::Object(times) if key == "cflow.timedelta_tree" => {
                    for (key, time) in times {
                        let time = time.as_str().expect("a string");
                        let time = match boot {
                            Some(boot) => (boot + nanoseconds(time) / 1_000_000).to_string(),
                            None => time.to_owned(),
                        };
                        told.entry(key.clone()).or_default().push(time);
                    }
                }
                _ => {}
            }
        }
    }
    told
}

/// Reads `seconds.fraction`.
fn nanoseconds(text: &str) -> u64 {
    let (seconds, fraction) = text.split_once('.').expect("a fraction");
    let [seconds, fraction] = [seconds, fraction].map(|part| part.parse::<u64>().expect("a number"));
    assert!(text.ends_with(&format!(".{fraction:09}")), "nine digits");
    seconds * SECOND + fraction
}

/// What is expected of a flow.
struct Expected {
    told: Told,
}

impl Expected {
    fn put(&mut self, name: &str, values: &[impl ToString]) {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        self.told.insert(format!("cflow.{name}"), values);
    }

    /// What all formats tell. `sides`: source and destination; `counted`: those whose counts are in the record.
    fn of(flow: &Flow, sides: [&Side; 2], counted: &[&Side]) -> Self {
        let mut expected = Self { told: Told::new() };
        let version = if flow.sides[0].end.address.is_ipv6() { "v6" } else { "" };
        for (name, side) in ["src", "dst"].into_iter().zip(sides) {
            expected.put(&format!("{name}addr{version}"), &[side.end.address]);
            expected.put(&format!("{name}port"), &[side.end.port]);
        }
        expected.put("protocol", &[flow.protocol]);
        let each =
            |value: &dyn Fn(&Side) -> String| counted.iter().map(|side| value(side)).collect::<Vec<_>>();
        expected.put("packets", &each(&|side| side.packets.to_string()));
        expected.put("octets", &each(&|side| side.bytes.to_string()));
        expected.put("tos", &each(&|side| format!("{:#04x}", side.tos)));
        expected.put("inputint", &[interface(flow)]);
        expected
    }

    /// What has fields of its own in templates.
    fn more(&mut self, flow: &Flow, sides: [&Side; 2], counted: &[&Side], retransmissions: &[u32]) {
        let each =
            |value: &dyn Fn(&Side) -> String| counted.iter().map(|side| value(side)).collect::<Vec<_>>();
        self.put("ip_version", &[if sides[0].end.address.is_ipv6() { 6 } else { 4 }]);
        self.put("length_min", &each(&|side| side.lengths[0].to_string()));
        self.put("length_max", &each(&|side| side.lengths[1].to_string()));
        self.put("ttl_min", &each(&|side| side.ttls[0].to_string()));
        self.put("ttl_max", &each(&|side| side.ttls[1].to_string()));
        self.put("vlanid", &[flow.vlan.unwrap_or_default()]);
        for (name, side) in ["srcmac", "dstmac"].into_iter().zip(sides) {
            let mac = side.mac.expect("it has one").map(|byte| format!("{byte:02x}")).join(":");
            self.put(name, &[mac]);
        }
        self.put("pie.ntop.tunnel_id", &[flow.tunnel.unwrap_or_default()]);
        for (name, count) in ["in", "out"].into_iter().zip(retransmissions) {
            self.put(&format!("pie.ntop.retransmitted_{name}_pkts"), &[count]);
        }
    }
}

fn interface(flow: &Flow) -> u32 {
    // As the settings say; the last one is not known there.
    [70_000, 8].get(usize::from(flow.interface)).copied().unwrap_or_else(|| flow.interface.into())
}

fn icmp(flow: &Flow) -> String {
    flow.icmp.map_or_else(|| "0x0000".to_owned(), |icmp| format!("0x{:02x}{:02x}", icmp.kind, icmp.code))
}

/// One day, in one minute.
fn date(time: u64) -> String {
    let second = time / SECOND - 1_699_999_980;
    assert!(second < 60);
    format!("Nov 14, 2023 22:13:{second:02}.{:09} UTC", time % SECOND)
}

/// `at`: which sides' counts are in the record, the source's first.
fn ipfix(flow: &Flow, at: &[usize]) -> Told {
    let sides = [&flow.sides[at[0]], &flow.sides[1 - at[0]]];
    let counted: Vec<&Side> = at.iter().map(|at| &flow.sides[*at]).collect();
    let mut expected = Expected::of(flow, sides, &counted);
    let tcp = |value: &dyn Fn(weir_flows::Tcp, usize) -> u32| {
        at.iter().map(|at| flow.tcp.map_or(0, |tcp| value(tcp, *at))).collect::<Vec<u32>>()
    };
    expected.more(flow, sides, &counted, &tcp(&|tcp, at| tcp.retransmissions[at]));
    let flags = tcp(&|tcp, at| tcp.flags[at].into());
    expected.put("tcpflags", &flags.iter().map(|flags| format!("{flags:#04x}")).collect::<Vec<_>>());
    expected.put("tcp_seq_num", &tcp(&|tcp, at| tcp.initial_sequences[at].unwrap_or_default()));
    expected.put("flow_end_reason", &[flow.reason.number()]);
    if at.len() == 2 {
        expected.put("biflow_direction", &[1]);
    }
    let whole = |time: u64| time / 1_000_000 * 1_000_000;
    expected.put("abstimestart", &[whole(flow.first), flow.first].map(date));
    expected.put("abstimeend", &[whole(flow.last), flow.last].map(date));
    if flow.sides[0].end.address.is_ipv6() {
        let [kind, code] = flow.icmp.map_or([0; 2], |icmp| [icmp.kind, icmp.code]);
        expected.put("icmp_ipv6_type", &[kind]);
        expected.put("icmp_ipv6_code", &[code]);
    } else {
        expected.put("icmp_type_code_ipv4", &[icmp(flow)]);
    }
    if let Some(names) = &flow.names {
        let field = match names.protocol {
            "http" => "http_request_host",
            "tls" => "pie.ntop.ssl_server_name",
            _ => "pie.ntop.dns_query",
        };
        expected.put("appl_name", &[names.protocol]);
        expected.put(field, &[names.name.as_deref().expect("it has one")]);
    }
    expected.told
}

/// One direction.
fn v9(flow: &Flow, at: usize) -> Told {
    let sides = [&flow.sides[at], &flow.sides[1 - at]];
    let mut expected = Expected::of(flow, sides, &sides[..1]);
    expected.more(flow, sides, &sides[..1], &[flow.tcp.map_or(0, |tcp| tcp.retransmissions[at])]);
    expected.put("tcpflags", &[format!("{:#04x}", flow.tcp.map_or(0, |tcp| tcp.flags[at]))]);
    expected.put("timestart", &[flow.first / 1_000_000]);
    expected.put("timeend", &[flow.last / 1_000_000]);
    expected.put("icmp_type_code_ipv4", &[icmp(flow)]);
    expected.told
}

/// Those of one direction, in as many records as it takes.
fn v5(flow: &Flow, at: usize) -> Vec<Told> {
    let sides = [&flow.sides[at], &flow.sides[1 - at]];
    let mut expected = Expected::of(flow, sides, &sides[..1]);
    expected.put("tcpflags", &[format!("{:#04x}", flow.tcp.map_or(0, |tcp| tcp.flags[at]))]);
    expected.put("timestart", &[flow.first / 1_000_000]);
    expected.put("timeend", &[flow.last / 1_000_000]);
    expected.put("nexthop", &["0.0.0.0"]);
    for zero in ["outputint", "srcas", "dstas", "srcmask", "dstmask"] {
        expected.put(zero, &[0]);
    }
    // 16 bits are there.
    expected.put("inputint", &[u16::try_from(interface(flow)).unwrap_or(0)]);
    if let Some(icmp) = flow.icmp {
        expected.put("dstport", &[u16::from(icmp.kind) << 8 | u16::from(icmp.code)]);
    }
    let (mut packets, mut bytes) = (sides[0].packets, sides[0].bytes);
    let parts = packets.max(bytes).div_ceil(u32::MAX.into());
    let part = |left: u64| {
        let now = [packets.div_ceil(left), bytes.div_ceil(left)];
        (packets, bytes) = (packets - now[0], bytes - now[1]);
        expected.put("packets", &now[..1]);
        expected.put("octets", &now[1..]);
        expected.told.clone()
    };
    (1..=parts).rev().map(part).collect()
}

/// The sides of a flow that have sent something.
fn sides(flow: &Flow) -> impl Iterator<Item = usize> {
    (0..2).filter(|at| flow.sides[*at].packets > 0)
}

/// Flows of all kinds at times that are months apart, and some that come years late.
fn of_months() -> Vec<(Flow, u64)> {
    let at = |days: u64, now: u64| {
        all().into_iter().map(move |flow| {
            let later = |time: u64| time + days * DAY;
            (Flow { first: later(flow.first), last: later(flow.last), ..flow }, NOW + now * DAY)
        })
    };
    // 49.7 days after the first ones, the clock of 32 bits begins anew.
    [at(0, 0), at(49, 49), at(50, 50), at(200, 200), at(40, 200), at(0, 4000)].into_iter().flatten().collect()
}

#[test]
fn tshark_reads_every_value_of_every_record() {
    let settings = Settings {
        fields: Fields::all(),
        domain: 77,
        message: 1400,
        repeat: Some(Duration::from_secs(100)),
        interfaces: [70_000, 8].map(|index| Interface { index, ..Interface::default() }).to_vec(),
        ..Settings::default()
    };
    // The same minute, but messages are sent one after the other.
    let close: Vec<_> = (0..8_u64)
        .flat_map(|index| all().into_iter().map(move |flow| (flow, NOW + 40 * index * SECOND)))
        .collect();
    let months = of_months();
    let uniflow = Settings { uniflow: true, ..settings.clone() };
    let all = [
        (IPFIX, messages(Format::Ipfix, &settings, &close)),
        (UNIFLOW, messages(Format::Ipfix, &uniflow, &close)),
        (V9, messages(Format::Netflow9, &settings, &months)),
        (V5, messages(Format::Netflow5, &settings, &months)),
    ];
    assert!(all.iter().all(|(_, messages)| messages.len() > 4));
    let mut datagrams: Vec<(u16, &[u8])> = Vec::new();
    for (port, messages) in &all {
        datagrams.extend(messages.iter().map(|message| (*port, message.as_slice())));
    }
    // What tshark says if a message is missing shows that it looks.
    for (port, of) in GAPS.into_iter().zip([0, 2]) {
        datagrams.extend([0, 1, 3].map(|index| (port, all[of].1[index].as_slice())));
    }
    let options = [Format::Ipfix, Format::Netflow9].map(options);
    for (port, messages) in OPTIONS.into_iter().zip(&options) {
        datagrams.extend(messages.iter().map(|message| (port, message.as_slice())));
    }
    let Some(mut read) = read(&datagrams) else { return };

    let mut check = |port: u16, expected: Vec<Told>| {
        let Read { records, complaints } = read.remove(&port).expect("messages to this port");
        assert_eq!(complaints, [""; 0], "{port}");
        // Interfaces are told in records of their own.
        let records: Vec<_> = records.into_iter().filter(|told| told.len() > 5).collect();
        for (index, (found, expected)) in records.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{port}: record {index}");
        }
        assert_eq!(records.len(), expected.len(), "{port}");
    };
    let flows = || close.iter().map(|(flow, _)| flow);
    check(IPFIX, flows().map(|flow| ipfix(flow, &[0, 1])).collect());
    check(UNIFLOW, flows().flat_map(|flow| sides(flow).map(|at| ipfix(flow, &[at]))).collect());
    let flows = || months.iter().map(|(flow, _)| flow);
    check(V9, flows().flat_map(|flow| sides(flow).map(|at| v9(flow, at))).collect());
    let is_v4 = |flow: &&Flow| flow.sides[0].end.address.is_ipv4();
    check(V5, flows().filter(is_v4).flat_map(|flow| sides(flow).flat_map(|at| v5(flow, at))).collect());
    for port in GAPS {
        let complaints = &read[&port].complaints;
        assert!(complaints.iter().any(|complaint| complaint.contains("sequence")), "{port}: {complaints:?}");
    }
    for (port, is_ipfix) in OPTIONS.into_iter().zip([true, false]) {
        let Read { records, complaints } = &read[&port];
        assert_eq!(complaints, &[""; 0], "{port}");
        let [interface, sampling, .., account] = &records[..] else { panic!("{records:?}") };
        let octets = options[usize::from(!is_ipfix)][0].len();
        assert_eq!([interface, sampling, account].map(Clone::clone), told_of_the_exporter(is_ipfix, octets));
    }
}

/// Two messages of a flow, of which the second is said to be lost, and one of the account.
fn options(format: Format) -> Vec<Vec<u8>> {
    let settings = Settings {
        domain: 77,
        sampling: Some(Sampling::OneIn(NonZeroU32::new(100).expect("not 0"))),
        interfaces: vec![Interface {
            index: 3,
            name: "eth0".to_owned(),
            description: "the office".to_owned(),
        }],
        ..Settings::default()
    };
    let mut encoder = Encoder::new(format, &settings).expect("right");
    let mut messages = Vec::new();
    let mut send = |message: &[u8]| {
        messages.push(message.to_vec());
        messages.len() != 2
    };
    for _ in 0..2 {
        encoder.add(&http(), NOW, &mut send);
        encoder.flush(NOW, &mut send);
    }
    let missed = Missed { flows: 1, packets: 3, bytes: 1000 };
    let account = Account { flows: 1 << 40, packets: 1 << 41, ignored_packets: 6, lost_packets: 7, missed };
    encoder.account(&account, NOW, &mut send);
    encoder.flush(NOW, &mut send);
    messages
}

/// The records about an interface, about sampling, and the account. `octets`: bytes of what was sent.
fn told_of_the_exporter(is_ipfix: bool, octets: usize) -> [Told; 3] {
    let told = |values: &[(&str, String)]| {
        values.iter().map(|(name, value)| (format!("cflow.{name}"), vec![value.clone()])).collect::<Told>()
    };
    let number = |value: usize| value.to_string();
    let interface = [("if_name", "eth0".to_owned()), ("if_descr", "the office".to_owned())];
    let sent = [("octetsexp", number(octets)), ("packetsexp", number(1))];
    if !is_ipfix {
        let system = ("scope_system", "00:00:00:4d".to_owned());
        return [
            told(&[("scope_interface", number(3)), interface[0].clone(), interface[1].clone()]),
            told(&[system.clone(), ("sampling_interval", number(100)), ("sampling_algorithm", number(1))]),
            told(&[system, sent[0].clone(), sent[1].clone(), ("flowsexp", number(2))]),
        ];
    }
    let domain = ("od_id", number(77));
    [
        told(&[("inputint", number(3)), interface[0].clone(), interface[1].clone()]),
        told(&[
            domain.clone(),
            ("selector_algorithm", number(1)),
            ("sampling_packet_interval", number(1)),
            ("sampling_packet_space", number(99)),
        ]),
        told(&[
            domain,
            sent[0].clone(),
            sent[1].clone(),
            ("flowsexp", number(1)),
            ("flows", (1_u64 << 40).to_string()),
            ("permanent_packets", (1_u64 << 41).to_string()),
            ("ignore_packets", number(6)),
            ("drop_total_packets", number(7)),
            ("notsent_flows", number(2)),
            ("notsent_packets", (http().packets() + 3).to_string()),
            ("notsent_octets", (http().bytes() + 1000).to_string()),
        ]),
    ]
}

#[test]
fn messages_of_ipfix_are_a_file() {
    let settings = Settings { fields: Fields::all(), repeat: None, ..Settings::default() };
    let flows: Vec<_> = (0..4).flat_map(|_| all()).map(|flow| (flow, NOW)).collect();
    let messages = messages(Format::Ipfix, &settings, &flows);
    assert!(messages.len() > 3);
    let Some(read) = read_file(&messages.concat(), &BTreeSet::new()) else { return };
    let Read { records, complaints } = &read[&0];
    assert_eq!(complaints, &[""; 0]);
    let octets = |told: &Told| {
        told["cflow.octets"].iter().map(|octets| octets.parse::<u64>().expect("a number")).sum::<u64>()
    };
    let expected: Vec<_> = flows.iter().map(|(flow, _)| flow.bytes()).collect();
    assert_eq!(records.iter().map(octets).collect::<Vec<_>>(), expected);
}
