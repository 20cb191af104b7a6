//! Flows as objects and lines.
//!
//! Scripts rely on field names: they may be added to, not changed. Fields that a flow does not have are omitted.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use weir::flows::{EndReason, Endpoint, Flow, Side, Tcp};

use crate::units::{bytes, packets};
use crate::{rfc3339, visible};

/// A flow.
#[derive(Debug, Serialize)]
struct Object<'a> {
    /// Always `flow`.
    r#type: &'static str,
    /// The interface of its first packet.
    interface: &'a str,
    /// Time of the first and the last packet: RFC 3339, UTC, with nanoseconds; omitted if there are no timestamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    seconds: f64,
    /// Why it has ended.
    reason: EndReason,
    proto: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    vlan: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<u32>,
    /// Who began.
    src: IpAddr,
    dst: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    sport: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dport: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_mac: Option<String>,
    /// Both ways.
    packets: u64,
    bytes: u64,
    bits_per_second: u64,
    /// Packets of any flow that were lost meanwhile.
    lost: u64,
    src_to_dst: Way,
    dst_to_src: Way,
    #[serde(skip_serializing_if = "Option::is_none")]
    icmp_type: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icmp_code: Option<u8>,
    /// From SYN to SYN and ACK: as far away is who answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_seconds: Option<f64>,
    /// From SYN and ACK to ACK: as far away is who began.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_seconds: Option<f64>,
    /// `dns`, `tls`, `quic`, `http`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<&'static str>,
    /// Of a server, or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// The fingerprint of TLS's client.
    #[serde(skip_serializing_if = "Option::is_none")]
    ja4: Option<&'a str>,
    /// Version 1, seed 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    community_id: Option<String>,
}

/// What one side has sent.
#[derive(Debug, Serialize)]
struct Way {
    packets: u64,
    bytes: u64,
    /// Lengths of packets.
    shortest: u16,
    longest: u16,
    ttl_min: u8,
    ttl_max: u8,
    /// All bits of type of service or traffic class.
    tos: u8,
    /// All flags, in tcpdump's letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_flags: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_sequence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmissions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zero_windows: Option<u16>,
}

impl Way {
    fn new(side: &Side, tcp: Option<&Tcp>, index: usize) -> Self {
        Self {
            packets: side.packets,
            bytes: side.bytes,
            shortest: side.lengths[0],
            longest: side.lengths[1],
            ttl_min: side.ttls[0],
            ttl_max: side.ttls[1],
            tos: side.tos,
            tcp_flags: tcp.map(|tcp| flags(tcp.flags[index])),
            initial_sequence: tcp.and_then(|tcp| tcp.initial_sequences[index]),
            retransmissions: tcp.map(|tcp| tcp.retransmissions[index]),
            zero_windows: tcp.map(|tcp| tcp.zero_windows[index]),
        }
    }
}

/// Returns a flow as an object. `interface`: the name of its interface.
pub fn object<'a>(flow: &'a Flow, interface: &'a str) -> impl Serialize + use<'a> {
    let tcp = flow.tcp.as_ref();
    let [from, to] = &flow.sides;
    let port = |side: &Side| has_ports(flow).then_some(side.end.port);
    let seconds = |index: usize| tcp.and_then(|tcp| tcp.handshake[index]).map(|time| f64::from(time) / 1e6);
    let names = flow.names.as_deref();
    Object {
        r#type: "flow",
        interface,
        first: rfc3339(flow.first),
        last: rfc3339(flow.last),
        seconds: seconds_of(flow),
        reason: flow.reason,
        proto: flow.protocol,
        vlan: flow.vlan,
        tunnel: flow.tunnel,
        src: from.end.address,
        dst: to.end.address,
        sport: port(from),
        dport: port(to),
        src_mac: from.mac.map(mac),
        dst_mac: to.mac.map(mac),
        packets: flow.packets(),
        bytes: flow.bytes(),
        bits_per_second: flow.rate(),
        lost: flow.lost,
        src_to_dst: Way::new(from, tcp, 0),
        dst_to_src: Way::new(to, tcp, 1),
        icmp_type: flow.icmp.map(|icmp| icmp.kind),
        icmp_code: flow.icmp.map(|icmp| icmp.code),
        server_seconds: seconds(0),
        client_seconds: seconds(1),
        application: names.map(|names| names.protocol),
        name: names.and_then(|names| names.name.as_deref()),
        ja4: names.and_then(|names| names.ja4.as_deref()),
        community_id: flow.community_id(),
    }
}

/// Appends a flow as a line: its time, what it is, what was sent, and why it has ended. `time`: that of its first packet, `protocol`: the
/// name of its protocol.
pub fn line(flow: &Flow, time: &str, protocol: &str, text: &mut String) {
    let sides = flow.sides.map(|side| format!("{} {}", packets(side.packets), bytes(side.bytes)));
    let letters = flow.tcp.map(|tcp| format!(" {}/{}", flags(tcp.flags[0]), flags(tcp.flags[1])));
    let _infallible = writeln!(
        text,
        "{time} {:.3} s  {}  > {}  < {}{}  {}",
        seconds_of(flow),
        label(flow, protocol),
        sides[0],
        sides[1],
        letters.unwrap_or_default(),
        flow.reason.word().replace('_', " "),
    );
}

/// Returns what a flow is, for people: `10.0.0.1:4321 > 10.0.0.2:443 tcp tls example.org`. `protocol`: the name of its protocol.
pub fn label(flow: &Flow, protocol: &str) -> String {
    let [from, to] = flow.sides.map(|side| end(side.end, has_ports(flow)));
    format!("{from} > {to} {}{}", what(flow, protocol), application(flow))
}

/// The same in at most so many characters: the name is cut first, then addresses are shortened in the middle. Ports, and what else tells flows
/// apart, stay as long as there is any room.
pub fn label_within(flow: &Flow, protocol: &str, most: usize) -> String {
    let text = label(flow, protocol);
    if text.chars().count() <= most {
        return text;
    }
    let what = what(flow, protocol);
    let ends = flow.sides.map(|side| end(side.end, has_ports(flow)));
    let room = most.saturating_sub(" > ".len() + 1 + what.len());
    // Half of the room for each, and what the other end does not need.
    let first = ends[0].len().min((room / 2).max(room.saturating_sub(ends[1].len())));
    let [from, to] = [shortened(&ends[0], first), shortened(&ends[1], room - first)];
    let ends = format!("{from} > {to} {what}");
    let left = most.saturating_sub(ends.chars().count());
    // A letter or two would say nothing.
    let application = if left > 4 { cut(&application(flow), left) } else { String::new() };
    cut(&format!("{ends}{application}"), most)
}

/// Cuts the end off what is longer than `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(2)).collect();
    // No space before the dots.
    format!("{}..", start.trim_end())
}

/// Returns an address and port, which are ASCII, in at most so many characters: without the middle, and with the port.
fn shortened(end: &str, most: usize) -> String {
    if end.len() <= most {
        return end.to_owned();
    }
    let room = most.saturating_sub("..".len());
    let port = end.rfind("]:").map_or(0, |at| end.len() - at);
    // The beginning says which network it is, the end which host.
    let back = (room.saturating_sub(port) / 2 + port).min(room);
    format!("{}..{}", &end[..room - back], &end[end.len() - back..])
}

/// The protocol, and what tells flows apart besides their ends.
fn what(flow: &Flow, protocol: &str) -> String {
    let mut text = protocol.to_owned();
    if let Some(icmp) = flow.icmp {
        let _infallible = write!(text, " {}/{}", icmp.kind, icmp.code);
    }
    if let Some(vlan) = flow.vlan {
        let _infallible = write!(text, " vlan {vlan}");
    }
    if let Some(tunnel) = flow.tunnel {
        let _infallible = write!(text, " tunnel {tunnel}");
    }
    text
}

/// What its application said, behind a space.
fn application(flow: &Flow) -> String {
    let Some(names) = &flow.names else { return String::new() };
    let name = names.name.as_ref().map(|name| format!(" {}", visible(name)));
    format!(" {}{}", names.protocol, name.unwrap_or_default())
}

fn has_ports(flow: &Flow) -> bool {
    flow.sides.iter().any(|side| side.end.port > 0)
}

fn end(end: Endpoint, has_ports: bool) -> String {
    match has_ports {
        true => SocketAddr::new(end.address, end.port).to_string(),
        false => end.address.to_string(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds with a fraction are printed")]
fn seconds_of(flow: &Flow) -> f64 {
    (flow.last - flow.first) as f64 / 1e9
}

/// Returns a MAC address as text.
pub fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// Returns flags of TCP in tcpdump's letters and order.
pub fn flags(bits: u8) -> String {
    "FSRP.UEW".chars().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, letter)| letter).collect()
}

#[cfg(test)]
mod tests {
    use weir::flows::Names;

    use super::*;

    fn flow() -> Flow {
        let side = |last: u8, port| Side {
            end: Endpoint { address: [10, 0, 0, last].into(), port },
            mac: Some([2, 0, 0, 0, 0, last]),
            packets: 2000,
            bytes: 4096,
            lengths: [40, 1500],
            ttls: [63, 64],
            tos: 8,
        };
        Flow {
            interface: 0,
            sides: [side(1, 4000), side(2, 443)],
            protocol: 6,
            vlan: Some(7),
            tunnel: None,
            first: 1_700_000_000_000_000_000,
            last: 1_700_000_002_500_000_000,
            lost: 9,
            reason: EndReason::NoRoom,
            icmp: None,
            tcp: Some(Tcp {
                flags: [0x1b, 0x12],
                initial_sequences: [Some(5), None],
                retransmissions: [1, 0],
                zero_windows: [0, 2],
                handshake: [Some(1500), None],
            }),
            names: Some(Box::new(Names {
                protocol: "tls",
                name: Some("a\u{1b}[2Jb".to_owned()),
                ja4: Some("t13d0203h2_000000000000_000000000000".to_owned()),
            })),
        }
    }

    #[test]
    fn a_flow_is_a_line_without_orders_to_the_terminal() {
        let mut text = String::new();
        line(&flow(), "22:13:20", "tcp", &mut text);
        let expected = "22:13:20 2.500 s  10.0.0.1:4000 > 10.0.0.2:443 tcp vlan 7 tls a\\u{1b}[2Jb  > 2,000 packets 4.00 KiB  < \
                        2,000 packets 4.00 KiB FSP./S.  no room\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_flow_fits_into_few_characters() {
        let mut long = flow();
        let address = |last: u16| std::net::Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, last).into();
        for (side, last) in long.sides.iter_mut().zip([0x1111, 0x2222]) {
            side.end.address = address(last);
        }
        let mut mixed = flow();
        mixed.sides[1].end.address = address(0x2222);
        for flow in [flow(), long.clone(), mixed.clone()] {
            let whole = label(&flow, "tcp");
            for most in 0..120 {
                let text = label_within(&flow, "tcp", most);
                assert!(text.chars().count() <= most.max(2), "{most}: {text}");
                assert!(text == whole || most < whole.chars().count(), "{most}: {text}");
            }
        }
        let table = [
            (flow(), 45, "10.0.0.1:4000 > 10.0.0.2:443 tcp vlan 7 tls.."),
            (flow(), 39, "10.0.0.1:4000 > 10.0.0.2:443 tcp vlan 7"),
            (long, 45, "[200..111]:4000 > [2001..2222]:443 tcp vlan 7"),
            (mixed, 45, "10.0.0.1:4000 > [2001:..:2222]:443 tcp vlan 7"),
        ];
        for (flow, most, expected) in table {
            assert_eq!(label_within(&flow, "tcp", most), expected);
        }
    }

    #[test]
    fn a_flow_is_an_object_with_sums_and_both_ways() {
        let mut text = Vec::new();
        crate::json::line(&mut text, &object(&flow(), "eth0")).expect("room");
        let found: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let expected = serde_json::json!({
            "type": "flow", "interface": "eth0", "first": "2023-11-14T22:13:20.000000000Z",
            "last": "2023-11-14T22:13:22.500000000Z", "seconds": 2.5, "reason": "no_room", "proto": 6, "vlan": 7,
            "src": "10.0.0.1", "dst": "10.0.0.2", "sport": 4000, "dport": 443, "src_mac": "02:00:00:00:00:01",
            "dst_mac": "02:00:00:00:00:02", "packets": 4000, "bytes": 8192, "bits_per_second": 26214, "lost": 9,
            "src_to_dst": {
                "packets": 2000, "bytes": 4096, "shortest": 40, "longest": 1500, "ttl_min": 63, "ttl_max": 64, "tos": 8,
                "tcp_flags": "FSP.", "initial_sequence": 5, "retransmissions": 1, "zero_windows": 0
            },
            "dst_to_src": {
                "packets": 2000, "bytes": 4096, "shortest": 40, "longest": 1500, "ttl_min": 63, "ttl_max": 64, "tos": 8,
                "tcp_flags": "S.", "retransmissions": 0, "zero_windows": 2
            },
            "server_seconds": 0.0015, "application": "tls", "name": "a\u{1b}[2Jb",
            "ja4": "t13d0203h2_000000000000_000000000000", "community_id": "1:PBvmEsR/obkYa+kd98hZbHFF8Ik="
        });
        assert_eq!(found, expected);
    }
}
