//! Records as goflow2 reads them: every field that it knows, of all formats. `make test-decoders` builds it and runs this; it is not among the
//! tests that everybody runs.
#![forbid(unsafe_code)]

#[path = "../export/made.rs"]
#[allow(dead_code, reason = "tests of other decoders take the rest of this file")]
mod made;

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use weir_flows::Flow;
use weir_flows::export::Format;

use crate::made::{all, directions, until, with_all_fields};

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _over = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The fields that are compared.
const FIELDS: [&str; 19] = [
    "type",
    "src_addr",
    "dst_addr",
    "src_port",
    "dst_port",
    "proto",
    "in_if",
    "packets",
    "bytes",
    "tcp_flags",
    "ip_tos",
    "ip_ttl",
    "src_mac",
    "dst_mac",
    "vlan_id",
    "icmp_type",
    "icmp_code",
    "time_flow_start_ns",
    "time_flow_end_ns",
];

/// What the records of one direction of a flow have to be.
fn expected(flow: &Flow, at: usize, format: Format) -> Vec<Value> {
    let [from, to] = [at, 1 - at].map(|at| &flow.sides[at]);
    let is_v5 = format == Format::Netflow5;
    let interface =
        [70_000, 8].get(usize::from(flow.interface)).copied().unwrap_or_else(|| flow.interface.into());
    let mac = |mac: Option<[u8; 6]>| {
        let bytes = mac.filter(|_| !is_v5).unwrap_or_default();
        bytes.map(|byte| format!("{byte:02x}")).join(":")
    };
    // NetFlow v5 has type and code in place of the port.
    let icmp = flow.icmp.map_or([0; 2], |icmp| [icmp.kind, icmp.code]);
    let (icmp, port) = if is_v5 { ([0; 2], u16::from_be_bytes(icmp)) } else { (icmp, 0) };
    let exact = |time: u64| if format == Format::Ipfix { time } else { time / 1_000_000 * 1_000_000 };
    let (mut packets, mut bytes) = (from.packets, from.bytes);
    let parts = if is_v5 { packets.max(bytes).div_ceil(u32::MAX.into()) } else { 1 };
    let record = |left: u64| {
        let now = [packets.div_ceil(left), bytes.div_ceil(left)];
        (packets, bytes) = (packets - now[0], bytes - now[1]);
        json!({
            "type": match format { Format::Netflow5 => "NETFLOW_V5", Format::Netflow9 => "NETFLOW_V9", Format::Ipfix => "IPFIX" },
            "src_addr": from.end.address, "dst_addr": to.end.address,
            "src_port": from.end.port, "dst_port": to.end.port + port,
            "proto": match flow.protocol { 1 => "ICMP", 6 => "TCP", 17 => "UDP", _ => "IPv6-ICMP" },
            "in_if": if is_v5 { u16::try_from(interface).unwrap_or(0).into() } else { interface },
            "packets": now[0], "bytes": now[1], "tcp_flags": flow.tcp.map_or(0, |tcp| tcp.flags[at]), "ip_tos": from.tos,
            "ip_ttl": if is_v5 { 0 } else { from.ttls[0] }, "src_mac": mac(from.mac), "dst_mac": mac(to.mac),
            "vlan_id": flow.vlan.filter(|_| !is_v5).unwrap_or(0), "icmp_type": icmp[0], "icmp_code": icmp[1],
            "time_flow_start_ns": exact(flow.first), "time_flow_end_ns": exact(flow.last),
        })
    };
    (1..=parts).rev().map(record).collect()
}

#[test]
fn goflow2_reads_every_field_that_it_knows() {
    let program = std::env::var_os("GOFLOW2").expect("GOFLOW2: run `make test-decoders`");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("records");
    let free = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    let [port, status] = [(); 2].map(|()| free().expect("a free port").port());
    // One thread: two may read records before their templates.
    let listen = format!("netflow://127.0.0.1:{port}?count=1&workers=1&queue_size=1000");
    let mut collector = Command::new(program);
    collector.args(["-listen", &listen, "-format", "json", "-addr", &format!("127.0.0.1:{status}")]);
    collector.arg("-transport.file").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    let _collector = Killed(collector.spawn().expect("goflow2"));
    let own = format!("0100007F:{port:04X} ");
    until("goflow2 to listen", || {
        let sockets = fs::read_to_string("/proc/net/udp").expect("sockets");
        let is_up = sockets.contains(&own) && TcpStream::connect(("127.0.0.1", status)).is_ok();
        if is_up { Ok(()) } else { Err(sockets) }
    });

    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let flows = all();
    let mut wanted = BTreeSet::new();
    for (domain, format) in [(77, Format::Ipfix), (78, Format::Netflow9), (0, Format::Netflow5)] {
        for message in with_all_fields(format, domain, &flows) {
            sender.send_to(&message, (Ipv4Addr::LOCALHOST, port)).expect("a datagram");
        }
        for (flow, at) in directions(&flows, format) {
            wanted.extend(expected(flow, at, format).iter().map(Value::to_string));
        }
    }
    let compared = |line: &str| -> Option<String> {
        let record: Value = serde_json::from_str(line).ok()?;
        let fields = FIELDS.iter().map(|name| ((*name).to_owned(), record[*name].clone()));
        Some(Value::Object(fields.collect()).to_string())
    };
    let last = wanted.len();
    let found = until("all records", || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let found: BTreeSet<_> = text.lines().map_while(compared).collect();
        if found.len() >= last { Ok(found) } else { Err(format!("{} of {last}: {found:#?}", found.len())) }
    });
    let differ = |one: &BTreeSet<String>, other| one.difference(other).cloned().collect::<Vec<_>>();
    assert_eq!(differ(&wanted, &found), differ(&found, &wanted), "wanted and found");
}
