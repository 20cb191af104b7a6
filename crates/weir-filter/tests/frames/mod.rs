//! Packets made of headers, of which only what is asked about differs.

use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::names::NoNames;
use weir_filter::{Beside, Dialect, Filter, Options, compile};

/// For packets of a file, in a network of 256 addresses.
pub(crate) fn options(dialect: Dialect, link_type: u16) -> Options<'static> {
    Options {
        dialect,
        link_type,
        snap_len: 262_144,
        metadata: Beside::Nothing,
        swapped: false,
        others: &[],
        netmask: Some(0xffff_ff00),
        names: &NoNames,
    }
}

/// The filter, whose graph keeps the rules of graphs.
#[track_caller]
pub(crate) fn compiled(text: &str, options: &Options<'_>) -> Filter {
    let filter = compile(text, options).unwrap_or_else(|error| panic!("{text}: {error}"));
    filter.lowered.check(&filter.ast.sets).unwrap_or_else(|error| panic!("{text}: {error}"));
    filter
}

/// Whether the whole packet is wanted, before the passes and behind them.
#[track_caller]
pub(crate) fn accepts(filter: &Filter, data: &[u8]) -> bool {
    let length = u32::try_from(data.len()).expect("packets are short");
    let packet = Packet { data, length, ..Packet::default() };
    let answer = Interpreter::new(&filter.lowered, &filter.ast.sets).run(&packet) != 0;
    let optimised = Interpreter::new(&filter.graph, &filter.ast.sets).run(&packet) != 0;
    assert_eq!(optimised, answer, "`{}` of {data:02x?}, behind the passes", filter.text);
    answer
}

/// Ethernet between two stations, with 802.1Q tags of these numbers.
pub(crate) fn ethernet(tags: &[u16], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a];
    for tag in tags {
        frame.extend(0x8100u16.to_be_bytes());
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(data);
    frame
}

/// IPv4 with an option of four bytes, so that its header is not of the usual length.
pub(crate) fn ip4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    fragment: u16,
    data: &[u8],
) -> Vec<u8> {
    let mut packet = vec![0x46, 0, 0, 0, 0, 1];
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend([1; 4]);
    packet.extend(data);
    packet
}

/// IPv6 between two hosts of 2001:db8::/64.
pub(crate) fn ip6(source: u16, destination: u16, next: u8, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    for host in [source, destination] {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend(host.to_be_bytes());
    }
    packet.extend(data);
    packet
}

/// The first segment of a connection.
pub(crate) fn tcp(source: u16, destination: u16) -> Vec<u8> {
    let mut segment = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
    segment
}

/// A datagram.
pub(crate) fn udp(source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + data.len()).expect("datagrams are short");
    let fields = [source, destination, length, 0].map(u16::to_be_bytes).concat();
    [&fields[..], data].concat()
}
