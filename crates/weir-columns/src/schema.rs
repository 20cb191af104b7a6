//! What the columns are: names and meanings of JSON objects, a `.` in these as `_`.

use parquet::data_type::ByteArray;
use weir::flows::{Flow, Tcp};

use super::Columns;
use super::column::{Column, Kind, each, number, some, some_number};

/// Those of [`Columns::Basic`].
const BASIC: &[&str] = &[
    "first",
    "last",
    "interface",
    "reason",
    "proto",
    "src",
    "dst",
    "sport",
    "dport",
    "packets",
    "bytes",
    "lost",
    "src_to_dst_packets",
    "src_to_dst_bytes",
    "src_to_dst_tos",
    "src_to_dst_tcp_flags",
    "src_to_dst_retransmissions",
    "dst_to_src_packets",
    "dst_to_src_bytes",
    "dst_to_src_tos",
    "dst_to_src_tcp_flags",
    "dst_to_src_retransmissions",
    "server_seconds",
    "application",
    "name",
];

/// A number that may be too large for a signed one of the same size.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn microseconds(time: u64) -> i64 {
    signed(time / 1000)
}

fn has_ports(flow: &Flow) -> bool {
    flow.sides.iter().any(|side| side.end.port > 0)
}

fn seconds(flow: &Flow, index: usize) -> Option<f64> {
    flow.tcp.and_then(|tcp| tcp.handshake[index]).map(|time| f64::from(time) / 1e6)
}

/// Names of the columns of one way, whose side has this index.
struct Way {
    index: usize,
    packets: &'static str,
    bytes: &'static str,
    shortest: &'static str,
    longest: &'static str,
    ttl_min: &'static str,
    ttl_max: &'static str,
    tos: &'static str,
    tcp_flags: &'static str,
    retransmissions: &'static str,
    zero_windows: &'static str,
}

const WAYS: [Way; 2] = [
    Way {
        index: 0,
        packets: "src_to_dst_packets",
        bytes: "src_to_dst_bytes",
        shortest: "src_to_dst_shortest",
        longest: "src_to_dst_longest",
        ttl_min: "src_to_dst_ttl_min",
        ttl_max: "src_to_dst_ttl_max",
        tos: "src_to_dst_tos",
        tcp_flags: "src_to_dst_tcp_flags",
        retransmissions: "src_to_dst_retransmissions",
        zero_windows: "src_to_dst_zero_windows",
    },
    Way {
        index: 1,
        packets: "dst_to_src_packets",
        bytes: "dst_to_src_bytes",
        shortest: "dst_to_src_shortest",
        longest: "dst_to_src_longest",
        ttl_min: "dst_to_src_ttl_min",
        ttl_max: "dst_to_src_ttl_max",
        tos: "dst_to_src_tos",
        tcp_flags: "dst_to_src_tcp_flags",
        retransmissions: "dst_to_src_retransmissions",
        zero_windows: "dst_to_src_zero_windows",
    },
];

fn way(way: &Way) -> Vec<Box<dyn Column>> {
    let side = way.index;
    let of_tcp = |name, take: fn(&Tcp, usize) -> i64| {
        some(name, move |flow, _| flow.tcp.as_ref().map(|tcp| take(tcp, side)))
    };
    vec![
        each(way.packets, move |flow, _| signed(flow.sides[side].packets)),
        each(way.bytes, move |flow, _| signed(flow.sides[side].bytes)),
        each(way.shortest, move |flow, _| i32::from(flow.sides[side].lengths[0])),
        each(way.longest, move |flow, _| i32::from(flow.sides[side].lengths[1])),
        each(way.ttl_min, move |flow, _| i32::from(flow.sides[side].ttls[0])),
        each(way.ttl_max, move |flow, _| i32::from(flow.sides[side].ttls[1])),
        each(way.tos, move |flow, _| i32::from(flow.sides[side].tos)),
        some(way.tcp_flags, move |flow, texts| flow.tcp.map(|tcp| texts.flags(tcp.flags[side]))),
        of_tcp(way.retransmissions, |tcp, side| tcp.retransmissions[side].into()),
        of_tcp(way.zero_windows, |tcp, side| tcp.zero_windows[side].into()),
    ]
}

/// Returns the columns, in their order.
pub(super) fn columns(which: Columns) -> Vec<Box<dyn Column>> {
    // Clients have a port of their own for each flow, servers have few.
    let port = |name, kind, side: usize| {
        some_number(name, kind, move |flow| has_ports(flow).then(|| i32::from(flow.sides[side].end.port)))
    };
    let address =
        |name, side: usize| each(name, move |flow, texts| texts.address(flow.sides[side].end.address));
    let mac =
        |name, side: usize| some(name, move |flow, texts| flow.sides[side].mac.map(|bytes| texts.mac(bytes)));
    let mut columns = vec![
        number("first", Kind::Stamp, |flow| microseconds(flow.first)),
        number("last", Kind::Stamp, |flow| microseconds(flow.last)),
        number("first_ns", Kind::Various, |flow| signed(flow.first)),
        number("last_ns", Kind::Various, |flow| signed(flow.last)),
        each("interface", |flow, texts| texts.interface(flow.interface)),
        each("reason", |flow, texts| texts.word(flow.reason.word())),
        each("proto", |flow, _| i32::from(flow.protocol)),
        some("vlan", |flow, _| flow.vlan.map(i32::from)),
        some("tunnel", |flow, _| flow.tunnel.map(i64::from)),
        address("src", 0),
        address("dst", 1),
        port("sport", Kind::Various, 0),
        port("dport", Kind::Alike, 1),
        mac("src_mac", 0),
        mac("dst_mac", 1),
        each("packets", |flow, _| signed(flow.packets())),
        each("bytes", |flow, _| signed(flow.bytes())),
        each("lost", |flow, _| signed(flow.lost)),
    ];
    columns.extend(WAYS.iter().flat_map(way));
    columns.extend([
        some("icmp_type", |flow, _| flow.icmp.map(|icmp| i32::from(icmp.kind))),
        some("icmp_code", |flow, _| flow.icmp.map(|icmp| i32::from(icmp.code))),
        some("server_seconds", |flow, _| seconds(flow, 0)),
        some("client_seconds", |flow, _| seconds(flow, 1)),
        some("application", |flow, texts| flow.names.as_ref().map(|names| texts.word(names.protocol))),
        some("name", |flow, texts| {
            flow.names.as_ref().and_then(|names| names.name.as_deref()).map(|name| texts.name(name))
        }),
        some("ja4", |flow, texts| {
            flow.names.as_ref().and_then(|names| names.ja4.as_deref()).map(|print| texts.name(print))
        }),
        some("community_id", |flow, _| flow.community_id().map(|id| ByteArray::from(id.into_bytes()))),
    ]);
    if which == Columns::Basic {
        columns.retain(|column| BASIC.contains(&column.name()));
    }
    columns
}
