//! Addresses and ports.

use super::{OverIp, Site};
use crate::ast::{Direction, Network, Protocol};
use crate::graph::{Operation, Relation, ValueId, Width};
use crate::lower::weir::formula::Formula;
use crate::lower::weir::place::{NO_LINK, Place};
use crate::lower::weir::stage::{Kind, Layer};
use crate::set::SetId;

/// Protocols with ports, in the order of testing.
const WITH_PORTS: [u32; 3] = [6, 17, 132];

/// Returns the kinds of network header in which to look for `networks`.
pub(super) fn asked(protocol: Option<Protocol>, networks: &[Network]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    if networks.iter().any(|network| matches!(network, Network::V4(..))) {
        kinds.extend(matches!(protocol, None | Some(Protocol::Ip)).then_some(Kind::Ip4));
        kinds.extend(matches!(protocol, None | Some(Protocol::Arp)).then_some(Kind::Arp));
    }
    kinds.extend(networks.iter().any(|network| matches!(network, Network::V6(..))).then_some(Kind::Ip6));
    kinds
}

/// Combines tests of source (`true`) and destination (`false`) according to the direction.
pub(super) fn directed(direction: Direction, mut ask: impl FnMut(bool) -> Formula) -> Formula {
    match direction {
        Direction::Source => ask(true),
        Direction::Destination => ask(false),
        Direction::And => Formula::all(vec![ask(true), ask(false)]),
        _ => Formula::any(vec![ask(true), ask(false)]),
    }
}

impl Site<'_> {
    /// Returns the places of source and destination in the network header, and a test to make first, if `protocol`
    /// applies to this header.
    fn addresses(&mut self, protocol: Option<Protocol>) -> Option<(Formula, Place, Place)> {
        let network = self.network();
        let wanted = |own: Protocol| protocol.is_none_or(|protocol| protocol == own);
        Some(match self.kind() {
            Kind::Ip4 if wanted(Protocol::Ip) => (Formula::Always, network.plus(12), network.plus(16)),
            Kind::Ip6 if wanted(Protocol::Ip6) => (Formula::Always, network.plus(8), network.plus(24)),
            Kind::Arp if wanted(Protocol::Arp) => (Formula::Always, network.plus(14), network.plus(24)),
            Kind::Other if wanted(Protocol::Rarp) => {
                (self.is_kind(0x8035), network.plus(14), network.plus(24))
            }
            _ => return None,
        })
    }

    pub(super) fn host(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        networks: &[Network],
    ) -> Formula {
        let six = self.kind() == Kind::Ip6;
        if !networks.iter().any(|network| matches!(network, Network::V6(..)) == six) {
            return Formula::Never;
        }
        let Some((guard, source, destination)) = self.addresses(protocol) else { return Formula::Never };
        let mut any = Vec::new();
        for network in networks.iter().filter(|network| matches!(network, Network::V6(..)) == six) {
            any.push(directed(direction, |of_source| {
                let place = if of_source { source } else { destination };
                self.within(place, network)
            }));
        }
        Formula::all(vec![guard, Formula::any(any)])
    }

    fn within(&mut self, place: Place, network: &Network) -> Formula {
        let (address, mask) = match network {
            Network::V4(address, mask) => (&[*address][..], &[*mask][..]),
            Network::V6(address, mask) => (&address[..], &mask[..]),
        };
        let words = (0u32..).step_by(4).zip(address.iter().zip(mask));
        Formula::all(
            words
                .filter(|(_, (_, mask))| **mask != 0)
                .map(|(offset, (&word, &mask))| {
                    let value = place.load(self.graph, offset, Width::Word);
                    Formula::masked(self.graph, value, mask, word)
                })
                .collect(),
        )
    }

    pub(super) fn host_in(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        ipv4: SetId,
        ipv6: SetId,
    ) -> Formula {
        let Some((guard, source, destination)) = self.addresses(protocol) else { return Formula::Never };
        let (set, words) = if self.kind() == Kind::Ip6 { (ipv6, 4) } else { (ipv4, 1) };
        let member = directed(direction, |of_source| {
            let place = if of_source { source } else { destination };
            let key: Vec<ValueId> =
                (0..words).map(|word| place.load(self.graph, 4 * word, Width::Word)).collect();
            Formula::member(set, &key)
        });
        Formula::all(vec![guard, member])
    }

    /// Returns the place that `ether[...]` and similar accessors count from, and a test to make first.
    pub(super) fn frame(&mut self) -> (Formula, Place) {
        let guard = if self.level.inside { self.has_link() } else { Formula::Always };
        (guard, self.level.frame(self.graph))
    }

    /// Applies `ask` to the link-layer addresses that `direction` selects.
    fn link_addresses(
        &mut self,
        direction: Direction,
        mut ask: impl FnMut(&mut Self, Place) -> Formula,
    ) -> Formula {
        if self.level.link.wlan.is_some() {
            return self.wlan_addresses(direction, ask);
        }
        let (guard, destination) = self.frame();
        let asked = directed(direction, |of_source| {
            ask(self, if of_source { destination.plus(6) } else { destination })
        });
        Formula::all(vec![guard, asked])
    }

    /// Tests whether the packet has a link header.
    pub(super) fn has_link(&mut self) -> Formula {
        if !self.level.is_noted() {
            return Formula::Always;
        }
        let link = self.level.link_header(self.graph).value(self.graph);
        Formula::equals(self.graph, link, NO_LINK).not()
    }

    pub(super) fn mac(&mut self, direction: Direction, addresses: &[[u8; 6]]) -> Formula {
        let any = addresses
            .iter()
            .map(|address| self.link_addresses(direction, |site, place| site.is_mac(place, *address)));
        Formula::any(any.collect())
    }

    fn is_mac(&mut self, place: Place, [a, b, c, d, e, f]: [u8; 6]) -> Formula {
        let low = place.load(self.graph, 2, Width::Word);
        let high = place.load(self.graph, 0, Width::Half);
        Formula::all(vec![
            Formula::equals(self.graph, low, u32::from_be_bytes([c, d, e, f])),
            Formula::equals(self.graph, high, u32::from_be_bytes([0, 0, a, b])),
        ])
    }

    pub(super) fn mac_in(&mut self, direction: Direction, set: SetId) -> Formula {
        self.link_addresses(direction, |site, place| {
            let key = [place.load(site.graph, 0, Width::Half), place.load(site.graph, 2, Width::Word)];
            Formula::member(set, &key)
        })
    }

    /// Tests for one of the MAC addresses as source or destination, and none of the IP addresses.
    pub(super) fn gateway(
        &mut self,
        protocol: Option<Protocol>,
        macs: &[[u8; 6]],
        addresses: &[Network],
    ) -> Formula {
        let mac = self.mac(Direction::Or, macs);
        let host = self.host(protocol, Direction::Or, addresses);
        Formula::all(vec![mac, host.not()])
    }

    /// Tests whether the packet has ports: one of the protocols, and not a later fragment.
    fn ported(&mut self, protocol: Option<Protocol>) -> Formula {
        let over = |number| OverIp { number, ip4: true, ip6: true };
        let protocol = match protocol.and_then(super::over_ip) {
            Some(protocol) => self.carries(protocol),
            None => Formula::any(WITH_PORTS.iter().map(|&number| self.carries(over(number))).collect()),
        };
        Formula::all(vec![protocol, self.has_transport()])
    }

    fn ports(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        mut ask: impl FnMut(&mut Self, ValueId) -> Formula,
    ) -> Formula {
        if !matches!(self.kind(), Kind::Ip4 | Kind::Ip6) {
            return Formula::Never;
        }
        let guard = self.ported(protocol);
        if guard.known() == Some(false) {
            return guard;
        }
        debug_assert!(self.stage.need(Layer::Transport, true).is_none(), "the transport header was found");
        let transport = self.level.transport(self.graph, self.stage);
        let ports = directed(direction, |of_source| {
            let port = transport.load(self.graph, if of_source { 0 } else { 2 }, Width::Half);
            ask(self, port)
        });
        Formula::all(vec![guard, ports])
    }

    pub(super) fn port(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        first: u16,
        last: u16,
    ) -> Formula {
        self.ports(protocol, direction, |site, port| {
            if first == last {
                return Formula::equals(site.graph, port, first.into());
            }
            let above = site.graph.constant(last.into());
            let above = Formula::compare(Relation::Greater, port, above);
            Formula::all(vec![Formula::at_least(site.graph, port, first.into()), above.not()])
        })
    }

    pub(super) fn port_in(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        set: SetId,
    ) -> Formula {
        self.ports(protocol, direction, |_, port| Formula::member(set, &[port]))
    }

    /// Tests for a tunnel over UDP to `port` whose first byte is `value` under `mask`, with this network identifier if
    /// given.
    pub(super) fn over_udp(&mut self, ports: &[u16], mask: u32, value: u32, network: Option<u32>) -> Formula {
        let to = |&port| self.port(Some(Protocol::Udp), Direction::Destination, port, port);
        let udp = Formula::any(ports.iter().map(to).collect());
        if udp.known().is_some() {
            return udp;
        }
        let header = self.level.transport(self.graph, self.stage).plus(8);
        let flags = header.load(self.graph, 0, Width::Byte);
        let mut all = vec![udp, Formula::masked(self.graph, flags, mask, value)];
        if let Some(network) = network {
            let word = header.load(self.graph, 4, Width::Word);
            let number = self.graph.with(Operation::ShiftRight, word, 8);
            all.push(Formula::equals(self.graph, number, network));
        }
        Formula::all(all)
    }

    pub(super) fn ip_broadcast(&mut self) -> Formula {
        // Networks of one or two addresses (RFC 3021) have no broadcast address, so only the all-ones address counts.
        let host = match self.options.netmask.map(|mask| !mask) {
            Some(0 | 1) => u32::MAX,
            Some(host) => host,
            None => return Formula::Never,
        };
        if self.kind() != Kind::Ip4 {
            return Formula::Never;
        }
        let destination = self.network().load(self.graph, 16, Width::Word);
        Formula::any(vec![
            Formula::masked(self.graph, destination, host, 0),
            Formula::masked(self.graph, destination, host, host),
        ])
    }

    pub(super) fn broadcast(&mut self) -> Formula {
        self.mac(Direction::Destination, &[[0xff; 6]])
    }

    pub(super) fn multicast(&mut self, protocol: Option<Protocol>) -> Formula {
        match protocol {
            Some(Protocol::Ip) if self.kind() == Kind::Ip4 => {
                let first = self.network().load(self.graph, 16, Width::Byte);
                Formula::masked(self.graph, first, 0xf0, 0xe0)
            }
            Some(Protocol::Ip6) if self.kind() == Kind::Ip6 => {
                let first = self.network().load(self.graph, 24, Width::Byte);
                Formula::equals(self.graph, first, 0xff)
            }
            Some(Protocol::Ip | Protocol::Ip6) => Formula::Never,
            _ => self.link_addresses(Direction::Destination, |site, place| {
                let first = place.load(site.graph, 0, Width::Byte);
                Formula::any_bit(site.graph, first, 1)
            }),
        }
    }
}
