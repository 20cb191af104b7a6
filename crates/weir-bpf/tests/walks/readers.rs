//! Those who walk through packets, each asked in its own way.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::AsFd as _;

use weir_bpf::stat::{AttachPoint, By, Count, Details, Key, KeyField, Programs, Xdp};
use weir_dissect::Dissector;
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::names::NoNames;
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_packet::{Ip, Layer, Walk, link, link_type};
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::testrun;
use weir_traffic::{Rewrite, Rewriter};

/// A way to read a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The eBPF programs (`walk.h`), by the keys of statistics.
    Kernel,
    /// Filters: what they say of the outermost packet.
    Filter,
    /// Filters with `inner(...)`.
    FilterInside,
    /// The facts of a printed line.
    Printed,
    /// What is rewritten.
    Rewritten,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) vlan: Option<u16>,
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: Option<IpAddr>,
    pub(crate) protocol: Option<u8>,
    pub(crate) ports: Option<[u16; 2]>,
}

impl Found {
    /// Returns what the walk finds of the outermost packet.
    pub(crate) fn outside(link: u16, frame: &[u8]) -> Self {
        let vlan = link::outermost_tag(link, frame).map(|tag| tag.id());
        let outer = link::outermost_ip(link, frame).and_then(|outer| outer.ip(frame));
        let found = outer.map(|(ip, packet)| Self::of(&ip, packet)).unwrap_or_default();
        Self { vlan, ..found }
    }

    /// Returns what the walk finds of the outermost packet, also behind a length of Ethernet.
    fn walked(link: u16, frame: &[u8]) -> Self {
        let mut found = Self::default();
        for layer in Walk::new(link, frame) {
            match layer {
                Layer::Tag(tag) => found.vlan = found.vlan.or_else(|| Some(tag.id())),
                Layer::Ip { at, ip } => return Self { vlan: found.vlan, ..Self::of(&ip, &frame[at..]) },
                // A pseudowire.
                Layer::Ethernet { at } if at > 0 && link == link_type::ETHERNET => break,
                _ => {}
            }
        }
        found
    }

    /// Returns what the walk finds inside the first tunnel, as filters see it: labels and sessions are tunnels, too.
    pub(crate) fn inside(frame: &[u8]) -> Self {
        let is_entry = |layer: &Layer| {
            matches!(layer, Layer::Tunnel { .. } | Layer::Labels { .. } | Layer::Session { .. })
        };
        let inside = Walk::new(link_type::ETHERNET, frame).skip_while(|layer| !is_entry(layer)).skip(1);
        let ip = inside.take_while(|layer| !is_entry(layer)).find_map(|layer| match layer {
            Layer::Ip { at, ip } => Some(Self::of(&ip, &frame[at..])),
            _ => None,
        });
        ip.unwrap_or_default()
    }

    /// Whether each field is as in one or the other.
    pub(crate) fn is_between(self, one: Self, other: Self) -> bool {
        fn is<T: PartialEq>(found: T, one: T, other: T) -> bool {
            found == one || found == other
        }
        is(self.vlan, one.vlan, other.vlan)
            && is(self.source, one.source, other.source)
            && is(self.destination, one.destination, other.destination)
            && is(self.protocol, one.protocol, other.protocol)
            && is(self.ports, one.ports, other.ports)
    }

    fn of(ip: &Ip, packet: &[u8]) -> Self {
        let [source, destination] = ip.ends(packet).map(Some);
        Self { vlan: None, source, destination, protocol: Some(ip.protocol), ports: ip.ports(packet) }
    }
}

/// Reads frames, one after the other.
pub(crate) type Reads = Box<dyn FnMut(u16, &[u8]) -> Found>;

impl Reader {
    pub(crate) const ALL: [Self; 5] =
        [Self::Kernel, Self::Filter, Self::FilterInside, Self::Printed, Self::Rewritten];

    /// Whether this process may ask it: programs take privileges that tests may run without; the environment says whether
    /// that is in order.
    pub(crate) fn is_permitted(self) -> bool {
        if self != Self::Kernel {
            return true;
        }
        let Err(error) = Map::new(MapKind::Array, 4, 8, 1) else { return true };
        weir_skip::this_test(error);
        false
    }

    /// Whether it is asked about this link type. Interfaces have the others not; for filters on them: weir-judge.
    pub(crate) fn reads(self, link: u16) -> bool {
        link == link_type::ETHERNET || matches!(self, Self::Printed | Self::Rewritten)
    }

    /// What it should find.
    pub(crate) fn expected(self, link: u16, frame: &[u8]) -> Found {
        match self {
            Self::FilterInside => Found::inside(frame),
            // What a filter says of tags: tests/weir.rs of weir-filter.
            Self::Filter => Found { vlan: None, ..Found::outside(link, frame) },
            Self::Printed => Found::walked(link, frame),
            Self::Kernel | Self::Rewritten => Found::outside(link, frame),
        }
    }

    pub(crate) fn start(self) -> Reads {
        match self {
            Self::Kernel => kernel(),
            Self::Filter => filter("", ""),
            Self::FilterInside => filter("inner(", ")"),
            Self::Printed => Box::new(printed),
            Self::Rewritten => Box::new(rewritten),
        }
    }
}

/// Runs the program of statistics, and looks which key has grown.
fn kernel() -> Reads {
    let by = By { fields: KeyField::ALL.to_vec(), most: 4000, ethernet: true };
    let details = Details { by: Some(by), ..Details::default() };
    let place =
        AttachPoint::Xdp(Xdp { fragments: false, from: None, chosen: None, tags_of: None, exclusive: false });
    let programs = Programs::load(&place, &[], &details).expect("it is loaded");
    let mut before: HashMap<Key, Count> = HashMap::new();
    Box::new(move |_, frame| {
        testrun::run(programs.received.as_ref().expect("a program").as_fd(), frame, 1).expect("it runs");
        let now: HashMap<Key, Count> = programs
            .counters
            .read()
            .expect("counters")
            .keys
            .iter()
            .map(|(key, ways)| (*key, ways[0]))
            .collect();
        let key = now.iter().find(|(key, count)| before.get(key) != Some(count)).map(|(key, _)| *key);
        before = now;
        let key = key.expect("a packet has a key");
        Found {
            vlan: key.vlan,
            source: key.source,
            destination: key.destination,
            protocol: key.protocol,
            ports: key.source_port.zip(key.destination_port).map(|(from, to)| [from, to]),
        }
    })
}

/// Asks for each value that a frame may have, inside of these words.
fn filter(before: &'static str, behind: &'static str) -> Reads {
    let asks = |text: String| -> Filter {
        let options = Options {
            dialect: Dialect::Weir,
            link_type: 1,
            snap_len: 65_535,
            metadata: Beside::Nothing,
            swapped: false,
            others: &[],
            netmask: None,
            names: &NoNames,
        };
        weir_filter::compile(&format!("{before}{text}{behind}"), &options).expect("valid")
    };
    let hosts: Vec<IpAddr> = [1, 2, 5, 6]
        .into_iter()
        .flat_map(|host| [format!("10.0.0.{host}"), format!("fd00::{host}")])
        .map(|text| text.parse().expect("an address"))
        .collect();
    let of_hosts = |way: &str| -> Vec<(IpAddr, Filter)> {
        hosts.iter().map(|host| (*host, asks(format!("{way} host {host}")))).collect()
    };
    let of_ports = |way: &str| -> Vec<(u16, Filter)> {
        let ports = [7, 9, 53, 54, 2152, 4789, 5555, 6081, 8472];
        ports.into_iter().map(|port| (port, asks(format!("{way} port {port}")))).collect()
    };
    let protocols: Vec<(u8, Filter)> =
        (0..=255).map(|number| (number, asks(format!("proto {number}")))).collect();
    let [sources, destinations] = ["src", "dst"].map(of_hosts);
    let [from, to] = ["src", "dst"].map(of_ports);
    Box::new(move |_, frame| {
        let length = u32::try_from(frame.len()).expect("it is short");
        let packet = Packet { data: frame, length, ..Packet::default() };
        let accepts = |filter: &Filter| Interpreter::new(&filter.graph, &filter.ast.sets).run(&packet) != 0;
        let host = |hosts: &[(IpAddr, Filter)]| {
            hosts.iter().find(|(_, filter)| accepts(filter)).map(|(host, _)| *host)
        };
        let port =
            |ports: &[(u16, Filter)]| ports.iter().find(|(_, filter)| accepts(filter)).map(|(port, _)| *port);
        Found {
            vlan: None,
            source: host(&sources),
            destination: host(&destinations),
            protocol: protocol(
                &protocols
                    .iter()
                    .filter(|(_, filter)| accepts(filter))
                    .map(|(number, _)| *number)
                    .collect::<Vec<_>>(),
            ),
            ports: port(&from).zip(port(&to)).map(|(from, to)| [from, to]),
        }
    })
}

/// Returns the protocol of what is behind extension headers, from all numbers to which a filter says yes.
fn protocol(numbers: &[u8]) -> Option<u8> {
    numbers.iter().find(|number| !weir_packet::is_extension(**number)).or_else(|| numbers.last()).copied()
}

fn printed(link: u16, frame: &[u8]) -> Found {
    let mut line = Vec::new();
    let length = u32::try_from(frame.len()).expect("it is short");
    let facts = Dissector::new(weir_dissect::Options::default()).packet(link, frame, length, &mut line);
    Found {
        vlan: facts.vlan,
        source: facts.source,
        destination: facts.destination,
        protocol: facts.ip_protocol,
        ports: facts.source_port.zip(facts.destination_port).map(|(from, to)| [from, to]),
    }
}

/// Sees what has become of each field of the outermost packet.
fn rewritten(link: u16, frame: &[u8]) -> Found {
    let rules = Rewrite {
        networks: ["10.0.0.0/8=11.0.0.0/8", "fd00::/16=fe00::/16"]
            .map(|map| map.parse().expect("a map"))
            .to_vec(),
        ports: vec!["0-9999=+10000".parse().expect("a map")],
        ..Rewrite::default()
    };
    let mut after = frame.to_vec();
    Rewriter::new(rules).apply(link, &mut after);
    let (before, after) = (Found::outside(link, frame), Found::outside(link, &after));
    Found {
        source: before.source.filter(|_| before.source != after.source),
        destination: before.destination.filter(|_| before.destination != after.destination),
        ports: before.ports.filter(|_| before.ports != after.ports),
        ..before
    }
}
