//! Records as nfacctd (pmacct) reads them: every field that it knows, of all formats.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use weir_flows::Flow;
use weir_flows::export::{Format, Settings};

use crate::made::{NOW, SECOND, all, directions, http, messages, until, with_all_fields};

/// nfacctd, and the processes that it starts.
struct Collector(Child);

impl Collector {
    /// `None`, with a message, if it is not installed.
    fn start(directory: &Path, port: u16) -> Option<Self> {
        let keys = "src_host, dst_host, src_port, dst_port, proto, tos, tcpflags, in_iface, vlan, src_mac, dst_mac, \
                    timestamp_start, timestamp_end, export_proto_version, export_proto_sysid";
        let directory = directory.display();
        let configuration = format!(
            "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {port}\nplugins: print\naggregate: {keys}\nprint_output: json\n\
             print_output_file: {directory}/records\nprint_output_file_append: true\nprint_refresh_time: 1\n\
             timestamps_since_epoch: true\n"
        );
        let path = format!("{directory}/configuration");
        fs::write(&path, configuration).expect("room");
        let mut nfacctd = Command::new("nfacctd");
        nfacctd.args(["-f", &path]).stdout(Stdio::null()).stderr(Stdio::null());
        match nfacctd.spawn() {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                weir_skip::this_test(format_args!("nfacctd: {error}"));
                None
            }
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // It ends when the others have ended, and takes them with it.
        let _over = Command::new("pkill").args(["-KILL", "-P", &self.0.id().to_string()]).status();
        for _ in 0..100 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _over = self.0.kill();
        let _over = self.0.wait();
    }
}

/// What one direction of a flow has to be, apart from its times, packets and bytes.
fn expected(flow: &Flow, at: usize, format: Format, domain: u32) -> Value {
    let [from, to] = [at, 1 - at].map(|at| &flow.sides[at]);
    let is_v5 = format == Format::Netflow5;
    let icmp = flow.icmp.filter(|_| is_v5).map_or(0, |icmp| u16::from(icmp.kind) << 8 | u16::from(icmp.code));
    let interface: u32 =
        [70_000, 8].get(usize::from(flow.interface)).copied().unwrap_or_else(|| flow.interface.into());
    let mac = |mac: Option<[u8; 6]>| {
        let bytes = mac.filter(|_| !is_v5).unwrap_or_default();
        bytes.map(|byte| format!("{byte:02x}")).join(":")
    };
    let protocol = match flow.protocol {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        58 => "ipv6-icmp",
        other => panic!("{other}"),
    };
    json!({
        "ip_src": from.end.address, "ip_dst": to.end.address, "port_src": from.end.port, "port_dst": to.end.port + icmp,
        "ip_proto": protocol, "tos": from.tos,
        "tcp_flags": flow.tcp.map_or(0, |tcp| tcp.flags[at]).to_string(),
        "iface_in": if is_v5 { u16::try_from(interface).unwrap_or(0).into() } else { interface },
        "vlan": flow.vlan.filter(|_| !is_v5).unwrap_or(0), "mac_src": mac(from.mac), "mac_dst": mac(to.mac),
        "export_proto_version": match format { Format::Netflow5 => 5, Format::Netflow9 => 9, Format::Ipfix => 10 },
        "export_proto_sysid": domain,
    })
}

/// Nanoseconds since the Unix epoch, as far as microseconds.
fn time(text: &Value) -> u64 {
    let (seconds, fraction) = text.as_str().and_then(|text| text.split_once('.')).expect("a fraction");
    let [seconds, fraction] = [seconds, fraction].map(|part| part.parse::<u64>().expect("a number"));
    seconds * SECOND + fraction * 1000
}

#[test]
fn nfacctd_reads_every_field_that_it_knows() {
    let directory = tempfile::tempdir().expect("a directory");
    let any = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let port = any.local_addr().expect("an address").port();
    drop(any);
    let Some(_collector) = Collector::start(directory.path(), port) else { return };
    let records = || {
        let text = fs::read_to_string(directory.path().join("records")).unwrap_or_default();
        text.lines().map_while(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
    };
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let send = |message: &[u8]| sender.send_to(message, (Ipv4Addr::LOCALHOST, port));
    // It forgets what comes before all its processes are there, so one flow is sent until it is told; it is none of the others.
    let mut early = http();
    early.sides[0].end.port = 1;
    let early = messages(Format::Netflow5, &Settings::default(), &[(early, NOW)]);
    until("nfacctd to read", || {
        // Nobody may listen yet.
        let _sent = send(&early[0]);
        if records().is_empty() { Err("nothing".to_owned()) } else { Ok(()) }
    });

    let flows = all();
    let mut wanted: BTreeMap<String, (&Flow, Format, [u64; 2])> = BTreeMap::new();
    for (domain, format) in [(77, Format::Ipfix), (78, Format::Netflow9), (0, Format::Netflow5)] {
        for message in with_all_fields(format, domain, &flows) {
            send(&message).expect("a datagram");
        }
        for (flow, at) in directions(&flows, format) {
            let side = &flow.sides[at];
            let told = expected(flow, at, format, domain).to_string();
            wanted.insert(told, (flow, format, [side.packets, side.bytes]));
        }
    }
    assert_eq!(wanted.len(), 9 + 9 + 6);

    // It writes once a second, and sums up what has the same key: a flow that takes several records of NetFlow v5.
    let is_early = |record: &Value| [&record["port_src"], &record["port_dst"]].iter().any(|port| **port == 1);
    let count = |record: &Value, name: &str| record[name].as_u64().expect("a number");
    let all: u64 = wanted.values().map(|(_, _, [packets, _])| packets).sum();
    let records = until("all packets", || {
        let records: Vec<_> = records().into_iter().filter(|record| !is_early(record)).collect();
        let packets: u64 = records.iter().map(|record| count(record, "packets")).sum();
        if packets >= all { Ok(records) } else { Err(format!("{packets} of {all}: {records:#?}")) }
    });
    let mut found: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for mut record in records {
        let counts = ["packets", "bytes"].map(|name| count(&record, name));
        let fields = record.as_object_mut().expect("an object");
        let times =
            ["timestamp_start", "timestamp_end"].map(|name| time(&fields.remove(name).expect("a time")));
        ["packets", "bytes", "event_type"].iter().for_each(|name| drop(fields.remove(*name)));
        let told = record.to_string();
        let Some((flow, format, _)) = wanted.get(&told) else {
            panic!("nobody has sent {told}; wanted: {:#?}", wanted.keys())
        };
        for (time, exact) in times.into_iter().zip([flow.first, flow.last]) {
            match format {
                Format::Ipfix => assert_eq!(time / 1_000_000, exact / 1_000_000, "{told}"),
                // It has whole seconds.
                Format::Netflow9 | Format::Netflow5 => assert!(time.abs_diff(exact) < SECOND, "{told}"),
            }
        }
        let sums = found.entry(told).or_default();
        *sums = [sums[0] + counts[0], sums[1] + counts[1]];
    }
    let wanted: BTreeMap<_, _> = wanted.into_iter().map(|(told, (_, _, counts))| (told, counts)).collect();
    assert_eq!(found, wanted);
}
