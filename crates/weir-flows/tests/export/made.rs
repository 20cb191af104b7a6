//! Flows for tests, and messages of them.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use weir_flows::export::{Encoder, Fields, Format, Interface, Settings};
use weir_flows::{EndReason, Flow, Icmp, Names, Side, Tcp};
use weir_packet::Endpoint;

/// In nanoseconds since the Unix epoch: not a whole millisecond.
pub(crate) const NOW: u64 = 1_700_000_000_123_456_789;
pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const DAY: u64 = 86_400 * SECOND;

fn side(address: &str, port: u16, packets: u64, bytes: u64) -> Side {
    let address: IpAddr = address.parse().expect("an address");
    let last = match address {
        IpAddr::V4(address) => address.octets()[3] % 16,
        IpAddr::V6(address) => address.octets()[15] % 16,
    };
    Side {
        end: Endpoint { address, port },
        mac: Some([2, 0, 0, 0, 0, last]),
        packets,
        bytes,
        lengths: [40 + u16::from(last), 1400 + u16::from(last)],
        ttls: [50 + last, 60 + last],
        tos: 4 * last,
    }
}

fn names(protocol: &'static str, name: &str) -> Option<Box<Names>> {
    Some(Box::new(Names { protocol, name: (!name.is_empty()).then(|| name.to_owned()), ja4: None }))
}

/// A connection with counts beyond 32 bits.
pub(crate) fn large() -> Flow {
    Flow {
        interface: 1,
        sides: [
            side("192.0.2.1", 40_000, 5_000_000_000, 700_000_000_000),
            side("192.0.2.2", 443, 3_000_000_000, 0x1_0000_0001),
        ],
        protocol: 6,
        vlan: Some(77),
        tunnel: Some(0xfedc_ba98),
        first: NOW - 3 * SECOND,
        last: NOW - SECOND + 1,
        lost: 0,
        reason: EndReason::Closed,
        icmp: None,
        tcp: Some(Tcp {
            flags: [0x1b, 0xd3],
            initial_sequences: [Some(0xffff_fffe), None],
            retransmissions: [70_000, 3],
            zero_windows: [1, 2],
            handshake: [Some(1000), None],
        }),
        names: names("tls", "www.example.org"),
    }
}

/// Over IPv6, with nothing that comes back.
pub(crate) fn one_way() -> Flow {
    Flow {
        interface: 0,
        sides: [
            side("2001:db8::1", 5353, 2, 200),
            Side { packets: 0, bytes: 0, ..side("ff02::fb", 5353, 0, 0) },
        ],
        protocol: 17,
        vlan: None,
        tunnel: None,
        first: NOW - 2 * SECOND,
        last: NOW - 2 * SECOND,
        lost: 0,
        reason: EndReason::Idle,
        icmp: None,
        tcp: None,
        names: names("mdns", "printer.local"),
    }
}

/// Messages of ICMPv6, and of ICMP.
pub(crate) fn echo(is_v6: bool) -> Flow {
    let [from, to] = if is_v6 { ["2001:db8::7", "2001:db8::8"] } else { ["198.51.100.7", "198.51.100.8"] };
    Flow {
        interface: 9,
        sides: [side(from, 0, 3, 252), side(to, 0, 3, 252)],
        protocol: if is_v6 { 58 } else { 1 },
        icmp: Some(Icmp { kind: if is_v6 { 128 } else { 8 }, code: 1 }),
        reason: EndReason::Active,
        names: None,
        ..one_way()
    }
}

pub(crate) fn http() -> Flow {
    Flow {
        vlan: None,
        sides: [side("192.0.2.9", 41_000, 6, 700), side("192.0.2.10", 80, 5, 9000)],
        reason: EndReason::NoRoom,
        names: names("http", "shop.example"),
        ..large()
    }
}

/// One of each kind, in this order.
pub(crate) fn all() -> Vec<Flow> {
    vec![large(), one_way(), echo(false), echo(true), http()]
}

/// Returns all messages, the last one included.
pub(crate) fn messages(format: Format, settings: &Settings, flows: &[(Flow, u64)]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(format, settings).expect("the settings are right");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut send = |message: &[u8]| {
        messages.push(message.to_vec());
        true
    };
    for (flow, now) in flows {
        encoder.add(flow, *now, &mut send);
    }
    encoder.flush(flows.last().map_or(NOW, |(_, now)| *now), &mut send);
    let sent = encoder.exported().sent;
    assert_eq!(sent.messages, messages.len() as u64);
    assert_eq!(sent.octets, messages.iter().map(|message| message.len() as u64).sum::<u64>());
    messages
}

/// Messages with every field of flows, each direction apart.
pub(crate) fn with_all_fields(format: Format, domain: u32, flows: &[Flow]) -> Vec<Vec<u8>> {
    let settings = Settings {
        fields: Fields::all(),
        uniflow: true,
        domain,
        message: 1400,
        interfaces: [70_000, 8].map(|index| Interface { index, ..Interface::default() }).to_vec(),
        ..Settings::default()
    };
    let flows: Vec<_> = flows.iter().map(|flow| (flow.clone(), NOW)).collect();
    messages(format, &settings, &flows)
}

/// The directions of flows that such records tell of; NetFlow v5 has IPv4 only.
pub(crate) fn directions(flows: &[Flow], format: Format) -> impl Iterator<Item = (&Flow, usize)> {
    let told =
        flows.iter().filter(move |flow| format != Format::Netflow5 || flow.sides[0].end.address.is_ipv4());
    told.flat_map(|flow| (0..2).filter(|at| flow.sides[*at].packets > 0).map(move |at| (flow, at)))
}

/// Longest that a decoder may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what `look` finds; else that says what there is instead.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(start.elapsed() < PATIENCE, "waited for {what}; there is: {seen}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}
