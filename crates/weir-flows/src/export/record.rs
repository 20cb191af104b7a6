//! A flow, or one direction of it, as a record.

use std::net::IpAddr;

use super::element::{Element, Flows, Unit, VARIABLE, Value, Way};
use super::settings::Interface;
use crate::flow::{Flow, Side};

/// Seconds from 1900, where NTP begins, to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;
/// Of strings: what has a length of one byte.
pub(super) const LONGEST: usize = 254;

/// What one record tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    flow: &'a Flow,
    /// Source and destination are exchanged.
    turned: bool,
    /// Both directions are in this record.
    both: bool,
    interface: u32,
    /// When the exporter was started, in milliseconds since the Unix epoch.
    boot: u64,
}

impl<'a> View<'a> {
    /// Both directions in one record.
    pub(super) fn both(flow: &'a Flow, interfaces: &[Interface]) -> Self {
        let index = usize::from(flow.interface);
        let interface = interfaces.get(index).map_or_else(|| flow.interface.into(), |known| known.index);
        Self { flow, turned: false, both: true, interface, boot: 0 }
    }

    /// The directions that have packets, each in a record of its own.
    pub(super) fn each(flow: &'a Flow, interfaces: &[Interface]) -> [Option<Self>; 2] {
        let both = Self::both(flow, interfaces);
        [false, true].map(|turned| {
            let view = Self { turned, both: false, ..both };
            (view.packets() > 0).then_some(view)
        })
    }

    pub(super) fn since(self, boot: u64) -> Self {
        Self { boot, ..self }
    }

    pub(super) fn interface(&self) -> u32 {
        self.interface
    }

    pub(super) fn is_v6(&self) -> bool {
        self.flow.sides[0].end.address.is_ipv6()
    }

    /// Packets that it counts.
    pub(super) fn packets(&self) -> u64 {
        if self.both { self.flow.packets() } else { self.side(Way::Forth).packets }
    }

    /// Bytes that it counts.
    pub(super) fn bytes(&self) -> u64 {
        if self.both { self.flow.bytes() } else { self.side(Way::Forth).bytes }
    }

    fn at(&self, way: Way) -> usize {
        usize::from(self.turned != (way == Way::Back))
    }

    pub(super) fn side(&self, way: Way) -> &'a Side {
        &self.flow.sides[self.at(way)]
    }

    fn address(&self, way: Way, out: &mut Vec<u8>) {
        match self.side(way).end.address {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        }
    }

    fn text(&self, value: Value) -> &'a str {
        let Some(names) = &self.flow.names else { return "" };
        let is_said = match value {
            Value::Application => return names.protocol,
            Value::HttpHost => names.protocol == "http",
            Value::TlsServer => matches!(names.protocol, "tls" | "quic"),
            Value::DnsName => matches!(names.protocol, "dns" | "mdns"),
            _ => false,
        };
        let name = names.name.as_deref().filter(|_| is_said).unwrap_or_default();
        cut(name, LONGEST)
    }

    /// Returns a value that is a number.
    pub(super) fn number(&self, value: Value) -> u64 {
        let tcp = self.flow.tcp.as_ref();
        match value {
            Value::Port(way) => self.side(way).end.port.into(),
            Value::Packets(way) => self.side(way).packets,
            Value::Bytes(way) => self.side(way).bytes,
            Value::Shortest(way) => self.side(way).lengths[0].into(),
            Value::Longest(way) => self.side(way).lengths[1].into(),
            Value::LeastTtl(way) => self.side(way).ttls[0].into(),
            Value::MostTtl(way) => self.side(way).ttls[1].into(),
            Value::Tos(way) => self.side(way).tos.into(),
            Value::TcpFlags(way) => tcp.map_or(0, |tcp| tcp.flags[self.at(way)].into()),
            Value::TcpSequence(way) => {
                tcp.and_then(|tcp| tcp.initial_sequences[self.at(way)]).unwrap_or_default().into()
            }
            Value::Retransmissions(way) => tcp.map_or(0, |tcp| tcp.retransmissions[self.at(way)].into()),
            Value::First(unit) => self.time(self.flow.first, unit),
            Value::Last(unit) => self.time(self.flow.last, unit),
            Value::Version => {
                if self.is_v6() {
                    6
                } else {
                    4
                }
            }
            Value::Protocol => self.flow.protocol.into(),
            Value::EndReason => self.flow.reason.number().into(),
            Value::Icmp => self.flow.icmp.map_or(0, |icmp| u64::from(icmp.kind) << 8 | u64::from(icmp.code)),
            Value::Interface => self.interface.into(),
            Value::Vlan => self.flow.vlan.unwrap_or_default().into(),
            Value::Tunnel => self.flow.tunnel.unwrap_or_default().into(),
            // The source is who began, as far as one can tell.
            Value::BiflowDirection => 1,
            Value::Address(_) | Value::Mac(_) => 0,
            Value::Application | Value::HttpHost | Value::TlsServer | Value::DnsName => 0,
        }
    }

    fn time(&self, time: u64, unit: Unit) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        match unit {
            Unit::Milliseconds => time / 1_000_000,
            Unit::Uptime => (time / 1_000_000).saturating_sub(self.boot).min(u32::MAX.into()),
            Unit::Nanoseconds => {
                // Rounded up: who rounds down while reading gets the same nanosecond.
                let fraction = ((time % SECOND) << 32).div_ceil(SECOND);
                (time / SECOND).wrapping_add(NTP_EPOCH) << 32 | fraction
            }
        }
    }
}

/// Cuts a string where a character ends.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// One column of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) number: u16,
    pub(super) enterprise: u32,
    pub(super) length: u16,
    pub(super) value: Value,
}

/// What records of one template have.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) id: u16,
    pub(super) columns: Vec<Column>,
    /// Bytes of all values that have the same length always.
    fixed: usize,
    /// How many values say their own.
    variable: usize,
}

impl Layout {
    /// Records of IPFIX over one version of IP.
    pub(super) fn ipfix(id: u16, elements: &[&Element], is_v6: bool, uniflow: bool) -> Self {
        let columns = elements.iter().filter(|element| element.is_in(is_v6, uniflow)).map(|element| Column {
            number: element.number,
            enterprise: element.enterprise,
            length: element.length,
            value: element.value,
        });
        Self::new(id, columns.collect())
    }

    /// Records of NetFlow v9 over one version of IP.
    pub(super) fn netflow9(id: u16, elements: &[&Element], is_v6: bool) -> Self {
        let mut columns: Vec<Column> = Vec::new();
        for element in elements.iter().filter(|element| element.is_in(is_v6, true)) {
            let Some((number, length)) = element.netflow9 else { continue };
            let value = match element.value {
                Value::First(_) => Value::First(Unit::Uptime),
                Value::Last(_) => Value::Last(Unit::Uptime),
                value => value,
            };
            let column = Column { number, enterprise: 0, length, value };
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        Self::new(id, columns)
    }

    fn new(id: u16, columns: Vec<Column>) -> Self {
        let lengths = columns.iter().map(|column| column.length).filter(|length| *length != VARIABLE);
        let fixed = lengths.map(usize::from).sum();
        let variable = columns.iter().filter(|column| column.length == VARIABLE).count();
        Self { id, columns, fixed, variable }
    }

    /// Bytes of the longest record.
    pub(super) fn longest(&self) -> usize {
        self.fixed + self.variable * (1 + LONGEST)
    }

    /// Bytes of this record.
    pub(super) fn length(&self, view: &View<'_>) -> usize {
        if self.variable == 0 {
            return self.fixed;
        }
        let variable = self.columns.iter().filter(|column| column.length == VARIABLE);
        self.fixed + variable.map(|column| 1 + view.text(column.value).len()).sum::<usize>()
    }

    pub(super) fn write(&self, view: &View<'_>, out: &mut Vec<u8>) {
        for column in &self.columns {
            match column.value {
                Value::Address(way) => view.address(way, out),
                Value::Mac(way) => out.extend(view.side(way).mac.unwrap_or_default()),
                value if column.length == VARIABLE => put_text(view.text(value), out),
                value => put(view.number(value), column.length.into(), out),
            }
        }
    }
}

impl Element {
    fn is_in(&self, is_v6: bool, uniflow: bool) -> bool {
        match self.flows {
            Flows::All => true,
            Flows::V4 => !is_v6,
            Flows::V6 => is_v6,
            Flows::Biflows => !uniflow,
        }
    }
}

/// Writes a number in so many bytes.
pub(super) fn put(number: u64, length: usize, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    out.extend_from_slice(&bytes[bytes.len() - length..]);
}

/// Writes a string with its length.
pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    let text = cut(text, LONGEST);
    put(text.len() as u64, 1, out);
    out.extend_from_slice(text.as_bytes());
}
