//! A flow as messages of Kafka: a key, and JSON, or what goflow2 2 writes with `-format=bin`: a `FlowMessage` of protobuf for each direction,
//! with its length in front.

use std::io;
use std::net::IpAddr;

use weir::flows::Flow;
use weir::flows::export::Sampling;
use weir_export::wire::Messages;
use weir_render::flows::object;
use weir_render::json;

use super::kafka::Form;

/// Makes messages.
#[derive(Debug)]
pub(super) struct Encoder {
    form: Form,
    /// Which exporter it is.
    domain: u32,
    /// One packet of so many is counted.
    sampling: u64,
    /// Messages of protobuf that were made.
    number: u32,
    /// Of the messages that are being made.
    values: [Vec<u8>; 2],
}

impl Encoder {
    pub(super) fn new(form: Form, domain: u32, sampling: Option<Sampling>) -> Self {
        let sampling = match sampling {
            None => 1,
            Some(Sampling::OneIn(n) | Sampling::FlowsOneIn(n)) => n.get().into(),
            Some(Sampling::Probability(p)) => rounded(1.0 / p),
        };
        Self { form, domain, sampling, number: 0, values: Default::default() }
    }

    /// Adds the messages of a flow. `interface`: the name of its interface; `now`: in nanoseconds since the Unix epoch.
    pub(super) fn add(
        &mut self,
        flow: &Flow,
        interface: &str,
        now: u64,
        messages: &mut Messages,
    ) -> io::Result<()> {
        let key = key(flow);
        self.values.iter_mut().for_each(Vec::clear);
        let number = match self.form {
            Form::Json => {
                json::to_writer(&mut self.values[0], &object(flow, interface))?;
                1
            }
            Form::Protobuf => {
                let mut number = 0;
                for way in 0..2 {
                    // A flow without packets has a message, too.
                    if flow.sides[way].packets > 0 || (way == 1 && number == 0) {
                        self.number = self.number.wrapping_add(1);
                        let body = self.way(flow, way, now);
                        varint(body.len() as u64, &mut self.values[number]);
                        self.values[number].extend(body);
                        number += 1;
                    }
                }
                number
            }
        };
        let values = self.values.each_ref().map(Vec::as_slice);
        messages.add(key.as_bytes(), &values[..number]);
        Ok(())
    }

    /// Returns one direction of a flow: the field numbers are those of goflow2's `flow.proto`.
    fn way(&self, flow: &Flow, way: usize, now: u64) -> Vec<u8> {
        /// `FlowType`: IPFIX, whose meanings the fields have.
        const IPFIX: u64 = 4;
        let [from, to] = [flow.sides[way], flow.sides[1 - way]];
        let ether_type = if from.end.address.is_ipv4() { 0x0800 } else { 0x86dd };
        let vlan = flow.vlan.unwrap_or_default().into();
        let mac = |mac: Option<[u8; 6]>| {
            mac.map_or(0, |mac| mac.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
        };
        let icmp =
            |part: fn(&weir::flows::Icmp) -> u8| flow.icmp.as_ref().map_or(0, |icmp| part(icmp).into());
        let mut body = Vec::with_capacity(160);
        for (field, value) in [
            (1, IPFIX),
            (3, self.sampling),
            (4, self.number.into()),
            (9, from.bytes),
            (10, from.packets),
            (18, u64::from(flow.interface) + 1),
            (20, flow.protocol.into()),
            (21, from.end.port.into()),
            (22, to.end.port.into()),
            (23, from.tos.into()),
            (25, from.ttls[0].into()),
            (26, flow.tcp.map_or(0, |tcp| tcp.flags[way].into())),
            (27, mac(from.mac)),
            (28, mac(to.mac)),
            (29, vlan),
            (30, ether_type),
            (31, icmp(|icmp| icmp.kind)),
            (32, icmp(|icmp| icmp.code)),
            (33, vlan),
            (70, self.domain.into()),
            (110, now),
            (111, flow.first),
            (112, flow.last),
        ] {
            // 0 is what a field is that is not there.
            if value > 0 {
                varint(field << 3, &mut body);
                varint(value, &mut body);
            }
        }
        for (field, address) in [(6, from.end.address), (7, to.end.address)] {
            varint(field << 3 | 2, &mut body);
            match address {
                IpAddr::V4(address) => put(&address.octets(), &mut body),
                IpAddr::V6(address) => put(&address.octets(), &mut body),
            }
        }
        body
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn put(bytes: &[u8], to: &mut Vec<u8>) {
    varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

/// Returns the name of a flow that both of its directions have: flows of one connection are in one partition, in order.
fn key(flow: &Flow) -> String {
    flow.community_id().unwrap_or_else(|| {
        let mut ends = flow.sides.map(|side| side.end.address);
        ends.sort_unstable();
        format!("{} {} {}", flow.protocol, ends[0], ends[1])
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use weir::flows::{EndReason, Endpoint, Icmp, Side, Tcp};
    use weir_export::wire::messages;

    use super::*;

    /// The fields that are used, with goflow2's names and numbers, and what has several messages.
    const SCHEMA: &str = r#"syntax = "proto3";
        message All { repeated Flow flow = 1; }
        message Flow {
          enum Type { UNKNOWN = 0; SFLOW_5 = 1; NETFLOW_V5 = 2; NETFLOW_V9 = 3; IPFIX = 4; }
          Type type = 1;
          uint64 sampling_rate = 3; uint32 sequence_num = 4; bytes src_addr = 6; bytes dst_addr = 7;
          uint64 bytes = 9; uint64 packets = 10; uint32 in_if = 18; uint32 proto = 20; uint32 src_port = 21;
          uint32 dst_port = 22; uint32 ip_tos = 23; uint32 ip_ttl = 25; uint32 tcp_flags = 26; uint64 src_mac = 27;
          uint64 dst_mac = 28; uint32 vlan_id = 29; uint32 etype = 30; uint32 icmp_type = 31; uint32 icmp_code = 32;
          uint32 src_vlan = 33; uint32 observation_domain_id = 70; uint64 time_received_ns = 110;
          uint64 time_flow_start_ns = 111; uint64 time_flow_end_ns = 112;
        }"#;

    fn flow() -> Flow {
        let side = |address: &str, port, packets: u64, mac| Side {
            end: Endpoint { address: address.parse().expect("an address"), port },
            mac,
            packets,
            bytes: packets * 100,
            lengths: [100, 100],
            ttls: [63, 64],
            tos: 0xb8,
        };
        Flow {
            interface: 2,
            sides: [
                side("192.0.2.7", 50_000, 3, Some([2, 0, 0, 0, 0, 1])),
                side("198.51.100.8", 443, 300, Some([2, 0, 0, 0, 0, 2])),
            ],
            protocol: 6,
            vlan: Some(7),
            tunnel: None,
            first: 1_700_000_000_000_000_001,
            last: 1_700_000_000_000_000_002,
            lost: 0,
            reason: EndReason::Idle,
            icmp: None,
            tcp: Some(Tcp {
                flags: [2, 18],
                initial_sequences: [None, None],
                retransmissions: [0, 0],
                zero_windows: [0, 0],
                handshake: [None, None],
            }),
            names: None,
        }
    }

    fn encoded(form: Form, sampling: Option<Sampling>, flow: &Flow) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut encoder, mut all) = (Encoder::new(form, 5, sampling), Messages::default());
        encoder.add(flow, "eth0", 9, &mut all).expect("a flow");
        let bytes = all.into_bytes();
        let (found, flows) = messages(&bytes).expect("whole");
        assert_eq!(flows, 1);
        found.iter().map(|one| (one.key.to_vec(), one.value.to_vec())).collect()
    }

    /// Returns what protoc makes of messages with their lengths in front.
    fn decoded(messages: &[(Vec<u8>, Vec<u8>)]) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("flow.proto"), SCHEMA).expect("room");
        let mut protoc = Command::new("protoc");
        protoc.arg("--decode=All").arg("--proto_path").arg(directory.path()).arg("flow.proto");
        let mut running = protoc
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("protoc: `scripts/setup test`");
        let mut input = running.stdin.take().expect("a pipe");
        for (_, value) in messages {
            input.write_all(&[0x0a]).and_then(|()| input.write_all(value)).expect("it reads");
        }
        drop(input);
        let output = running.wait_with_output().expect("it ends");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn protobuf_has_a_message_for_each_direction() {
        let found = encoded(Form::Protobuf, None, &flow());
        assert_eq!(found[0].0, flow().community_id().expect("one").as_bytes());
        assert_eq!((found.len(), &found[0].0), (2, &found[1].0));
        let common = |rest: &str| rest.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = r#"
            flow {
              type: IPFIX sampling_rate: 1 sequence_num: 1 src_addr: "\300\000\002\007" dst_addr: "\3063d\010"
              bytes: 300 packets: 3 in_if: 3 proto: 6 src_port: 50000 dst_port: 443 ip_tos: 184 ip_ttl: 63 tcp_flags: 2
              src_mac: 2199023255553 dst_mac: 2199023255554 vlan_id: 7 etype: 2048 src_vlan: 7 observation_domain_id: 5
              time_received_ns: 9 time_flow_start_ns: 1700000000000000001 time_flow_end_ns: 1700000000000000002
            }
            flow {
              type: IPFIX sampling_rate: 1 sequence_num: 2 src_addr: "\3063d\010" dst_addr: "\300\000\002\007"
              bytes: 30000 packets: 300 in_if: 3 proto: 6 src_port: 443 dst_port: 50000 ip_tos: 184 ip_ttl: 63 tcp_flags: 18
              src_mac: 2199023255554 dst_mac: 2199023255553 vlan_id: 7 etype: 2048 src_vlan: 7 observation_domain_id: 5
              time_received_ns: 9 time_flow_start_ns: 1700000000000000001 time_flow_end_ns: 1700000000000000002
            }"#;
        assert_eq!(common(&decoded(&found)), common(expected));

        // One direction of ICMPv6, of a sample.
        let mut other = flow();
        (other.protocol, other.tcp, other.icmp) = (58, None, Some(Icmp { kind: 3, code: 1 }));
        for (side, address) in other.sides.iter_mut().zip(["2001:db8::1", "2001:db8::2"]) {
            side.end = Endpoint { address: address.parse().expect("an address"), port: 0 };
        }
        other.sides[1].packets = 0;
        let found = encoded(Form::Protobuf, Some(Sampling::Probability(0.01)), &other);
        let said = common(&decoded(&found));
        assert_eq!(found.len(), 1);
        assert!(
            said.contains("etype: 34525 icmp_type: 3 icmp_code: 1") && said.contains("sampling_rate: 100 "),
            "{said}"
        );
        assert!(
            said.contains(r#"dst_addr: " \001\r\270\000\000\000\000\000\000\000\000\000\000\000\002""#),
            "{said}"
        );
    }

    #[test]
    fn json_is_what_is_printed() {
        let mut flow = flow();
        let found = encoded(Form::Json, None, &flow);
        let printed = serde_json::to_vec(&object(&flow, "eth0")).expect("JSON");
        assert_eq!(found, [(flow.community_id().expect("one").into_bytes(), printed)]);
        // Whose type is not known has a key all the same.
        flow.protocol = 1;
        assert_eq!(encoded(Form::Json, None, &flow)[0].0, b"1 192.0.2.7 198.51.100.8");
    }
}
