//! What others have counted of one direction of a flow, in place of its packets.

use std::net::IpAddr;

use weir_packet::Endpoint;
use weir_packet::protocol::TCP;

use crate::seen::{IS_V6, Key, UNTAGGED, order};
use crate::settings::Settings;

/// Packets of one direction of a flow, counted and not seen; see [`Table::add_counted`](crate::Table::add_counted). They have no
/// tunnel and are no fragments.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// The index of their interface.
    pub interface: u16,
    /// Who has sent them.
    pub source: Endpoint,
    /// Who gets them.
    pub destination: Endpoint,
    /// Protocol of IP.
    pub protocol: u8,
    /// VLAN ID of the outermost tag.
    pub vlan: Option<u16>,
    /// How many, at least one.
    pub packets: u64,
    /// Bytes of the IP packets.
    pub bytes: u64,
    /// Time of the first one, in nanoseconds since the Unix epoch.
    pub first: u64,
    /// Time of the last one.
    pub last: u64,
    /// Bytes of the shortest and the longest IP packet.
    pub lengths: [u16; 2],
    /// Least and greatest TTL.
    pub ttls: [u8; 2],
    /// All bits of the TOS together.
    pub tos: u8,
    /// All flags of TCP, none of which opens or closes a connection.
    pub flags: u8,
    /// TCP: behind the last byte that was sent.
    pub next: Option<u32>,
    /// TCP: segments sent again.
    pub retransmissions: u32,
    /// TCP: segments that announce no room.
    pub zero_windows: u32,
}

impl Counted {
    /// Returns the key of the flow, and which end of it has sent the packets.
    pub(crate) fn key(&self, settings: &Settings) -> (Key, usize) {
        let bytes = |end: Endpoint| {
            let mut bytes = [0; 16];
            match end.address {
                IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
                IpAddr::V6(address) => bytes = address.octets(),
            }
            bytes
        };
        let mut key = Key {
            addresses: [bytes(self.source), bytes(self.destination)],
            ports: [self.source.port, self.destination.port],
            tunnel: 0,
            vlan: self.vlan.unwrap_or(UNTAGGED),
            interface: if settings.across_interfaces { 0 } else { self.interface },
            protocol: self.protocol,
            kind: if self.source.address.is_ipv6() { IS_V6 } else { 0 },
        };
        let from = order(&mut key);
        (key, from)
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{EndReason, Flow, Table};

    const SECOND: u64 = 1_000_000_000;

    fn counted(from: u16, first: u64, last: u64) -> Counted {
        let end = |port| Endpoint { address: IpAddr::from([10, 0, 0, 1]), port };
        Counted {
            interface: 3,
            source: end(from),
            destination: end(90 - from),
            protocol: TCP,
            vlan: Some(7),
            packets: 5,
            bytes: 500,
            first,
            last,
            lengths: [40, 300],
            ttls: [9, 64],
            tos: 1 << 3,
            flags: 16,
            next: Some(100),
            retransmissions: 2,
            zero_windows: 70_000,
        }
    }

    #[test]
    fn what_was_counted_is_in_the_flow_of_both_ways_until_that_is_over() {
        let settings =
            Settings { idle: Duration::from_secs(15), ..Settings { flows: 4, ..Settings::default() } };
        let mut table = Table::new(&settings).expect("enough memory");
        let mut ended: Vec<Flow> = Vec::new();
        let mut add = |table: &mut Table, counted| table.add_counted(&counted, &mut |flow| ended.push(flow));
        add(&mut table, counted(10, SECOND, 2 * SECOND));
        add(&mut table, counted(80, 2 * SECOND, 3 * SECOND));
        add(&mut table, counted(10, 3 * SECOND, 4 * SECOND));
        assert_eq!((table.counts().flows, table.counts().in_table), (1, 15));
        // After the silence it is another one.
        add(&mut table, counted(80, 19 * SECOND, 20 * SECOND));
        table.end_all(&mut |flow| ended.push(flow));
        assert!(table.counts().adds_up() && table.counts().bytes == 2000, "{:?}", table.counts());
        let [both, last] = &ended[..] else { panic!("{ended:?}") };
        assert_eq!((both.reason, both.first, both.last), (EndReason::Idle, SECOND, 4 * SECOND));
        assert_eq!(
            both.sides.map(|side| (side.end.port, side.packets, side.bytes)),
            [(10, 10, 1000), (80, 5, 500)]
        );
        assert_eq!((both.interface, both.vlan, both.sides[0].lengths), (3, Some(7), [40, 300]));
        let tcp = both.tcp.expect("it is TCP");
        assert_eq!((tcp.retransmissions, tcp.zero_windows, tcp.flags), ([4, 2], [u16::MAX; 2], [16; 2]));
        assert_eq!((last.packets(), last.sides[0].end.port, last.reason), (5, 80, EndReason::Forced));
    }

    #[test]
    fn it_finds_room_as_packets_do() {
        let mut table = Table::new(&Settings { flows: 1, ..Settings::default() }).expect("enough memory");
        let mut reasons = Vec::new();
        for port in [1, 2] {
            table.add_counted(&counted(port, SECOND, SECOND), &mut |flow| reasons.push(flow.reason));
        }
        assert_eq!(reasons, [EndReason::NoRoom]);
        assert_eq!((table.counts().exported, table.counts().in_table), (5, 5));
    }
}
