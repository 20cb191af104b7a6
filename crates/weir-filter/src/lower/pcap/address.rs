//! Addresses of hosts, networks and link layers, broadcast and multicast.

use super::condition::Condition;
use super::kind::{ARP, DECNET, IP, IP6, RARP};
use super::layers::From;
use super::layers::Link;
use super::{Lowered, Lowering};
use crate::ast::{Direction, Network, Protocol};
use crate::graph::{Relation, Width};

const BROADCAST: [u8; 6] = [0xff; 6];

impl Lowering<'_> {
    /// Combines `test` of the source (`true`) and of the destination (`false`) according to the direction.
    pub(super) fn ends(
        &mut self,
        direction: Direction,
        mut test: impl FnMut(&mut Self, bool) -> Lowered,
    ) -> Lowered {
        Ok(match direction {
            Direction::Source => test(self, true)?,
            Direction::Destination => test(self, false)?,
            Direction::And => test(self, true)?.and(test(self, false)?),
            Direction::Default | Direction::Or => test(self, true)?.or(test(self, false)?),
            Direction::Address(_) | Direction::Receiver | Direction::Transmitter => {
                return Err("only 802.11 MAC addresses have these names".to_owned());
            }
        })
    }

    /// Lowers `host` and `net`: any of `networks`.
    pub(super) fn host(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        networks: &[Network],
    ) -> Lowered {
        let mut parts = Vec::new();
        for network in networks {
            match *network {
                // A name may have addresses of both families.
                Network::V4(..) if protocol == Some(Protocol::Ip6) && networks.len() > 1 => {}
                Network::V6(..) if protocol == Some(Protocol::Ip) && networks.len() > 1 => {}
                Network::V4(address, mask) => parts.push(self.ipv4(protocol, direction, address, mask)?),
                Network::V6(address, mask) => parts.push(self.ipv6(protocol, direction, address, mask)?),
            }
        }
        if parts.is_empty() {
            return Err("the host has no address of this family".to_owned());
        }
        Ok(Condition::Any(parts))
    }

    fn ipv4(&mut self, protocol: Option<Protocol>, direction: Direction, address: u32, mask: u32) -> Lowered {
        // The protocols to look at, each with the offsets of source and destination.
        let headers: &[_] = match protocol {
            None if self.layers.labels > 0 => &[(IP, 12, 16)],
            None => &[(IP, 12, 16), (ARP, 14, 24), (RARP, 14, 24)],
            Some(Protocol::Ip) => &[(IP, 12, 16)],
            Some(Protocol::Arp) => &[(ARP, 14, 24)],
            Some(Protocol::Rarp) => &[(RARP, 14, 24)],
            Some(_) => return Err("headers of this protocol contain no IPv4 address".to_owned()),
        };
        let mut parts = Vec::new();
        for &(kind, source, destination) in headers {
            let carries = self.carries(kind)?;
            let ends = self.ends(direction, |this, is_source| {
                Ok(this.word(if is_source { source } else { destination }, mask, address))
            })?;
            parts.push(carries.and(ends));
        }
        Ok(Condition::Any(parts))
    }

    fn ipv6(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        address: [u32; 4],
        mask: [u32; 4],
    ) -> Lowered {
        if !matches!(protocol, None | Some(Protocol::Ip6)) {
            return Err("headers of this protocol contain no IPv6 address".to_owned());
        }
        let carries = self.carries(IP6)?;
        let ends = self.ends(direction, |this, is_source| {
            let mut parts = Vec::new();
            let place = if is_source { 8 } else { 24 };
            for (offset, (word, mask)) in (place..).step_by(4).zip(address.into_iter().zip(mask)) {
                parts.push(this.word(offset, mask, word));
            }
            Ok(Condition::All(parts))
        })?;
        Ok(carries.and(ends))
    }

    /// Tests a word of the network header under a mask.
    fn word(&mut self, offset: u32, mask: u32, number: u32) -> Condition {
        self.masked((From::Network, offset, Width::Word), mask, number)
    }

    /// Lowers `decnet host`: data packets with a long or short header, after one byte of padding or none. The header is
    /// little-endian.
    pub(super) fn decnet_host(&mut self, direction: Direction, address: u16) -> Lowered {
        self.ends(direction, |this, is_source| {
            let (short, long) = if is_source { (3, 15) } else { (1, 7) };
            let address = u32::from(address.swap_bytes());
            let mut with = |width, mask, flags, place| {
                let header = this.masked((From::Network, 2, width), mask, flags);
                header.and(this.field(From::Network, place, Width::Half, address))
            };
            let forms = vec![
                with(Width::Byte, 0x07, 0x02, 2 + short),
                with(Width::Half, 0xff07, 0x8102, 3 + short),
                with(Width::Byte, 0x07, 0x06, 2 + long),
                with(Width::Half, 0xff07, 0x8106, 3 + long),
            ];
            Ok(this.carries(DECNET)?.and(Condition::Any(forms)))
        })
    }

    /// Lowers `ether host`: any of these MAC addresses.
    pub(super) fn mac(&mut self, direction: Direction, addresses: &[[u8; 6]]) -> Lowered {
        addresses
            .iter()
            .map(|&address| self.mac_address(direction, address))
            .collect::<Result<_, _>>()
            .map(Condition::Any)
    }

    fn mac_address(&mut self, direction: Direction, address: [u8; 6]) -> Lowered {
        let link = self.layers.link;
        let (source, destination) = match link {
            _ if link.is_wlan() => return self.wlan_address(address, direction),
            Link::Ethernet | Link::NetAnalyzer => (6, 0),
            Link::Fddi => (7, 1),
            Link::TokenRing => (8, 2),
            Link::IpOverFibreChannel => (10, 2),
            _ => return Err(self.cannot("MAC addresses")),
        };
        let condition = self.ends(direction, |this, is_source| {
            Ok(this.bytes(From::Link, if is_source { source } else { destination }, &address))
        })?;
        Ok(if link.is_ethernet() { self.in_frame(condition) } else { condition })
    }

    /// Tests an ARCNET address.
    pub(super) fn arcnet(&mut self, direction: Direction, address: u8) -> Lowered {
        if self.layers.link != Link::ArcNet {
            return Err(self.cannot("ARCNET addresses"));
        }
        self.ends(direction, |this, is_source| {
            Ok(this.bytes(From::Link, if is_source { 0 } else { 1 }, &[address]))
        })
    }

    /// Lowers `gateway`: the MAC address of a host, but none of its IPv4 addresses.
    pub(super) fn gateway(
        &mut self,
        protocol: Option<Protocol>,
        macs: &[[u8; 6]],
        addresses: &[Network],
    ) -> Lowered {
        if !matches!(protocol, None | Some(Protocol::Ip | Protocol::Arp | Protocol::Rarp)) {
            return Err("`gateway` can only be used with `ip`, `arp` and `rarp`".to_owned());
        }
        let passes = self.mac(Direction::Or, macs)?;
        let mut ends = Vec::new();
        for network in addresses {
            if let Network::V4(address, mask) = *network {
                ends.push(self.ipv4(protocol, Direction::Or, address, mask)?);
            }
        }
        if ends.is_empty() {
            return Err("the gateway has no IPv4 address".to_owned());
        }
        Ok(passes.and(Condition::Any(ends).negated()))
    }

    /// Lowers `broadcast`.
    pub(super) fn broadcast(&mut self, protocol: Option<Protocol>) -> Lowered {
        match protocol {
            None | Some(Protocol::Link) if self.layers.link == Link::ArcNet => {
                self.arcnet(Direction::Destination, 0)
            }
            None | Some(Protocol::Link) => self.mac_address(Direction::Destination, BROADCAST),
            Some(Protocol::Ip) => {
                let Some(netmask) = self.options.netmask else {
                    return Err("`ip broadcast` requires the network mask, which is unknown".to_owned());
                };
                // A /32 mask is libpcap's PCAP_NETMASK_UNKNOWN.
                if netmask == u32::MAX {
                    return Err(
                        "`ip broadcast` requires a network, but the interface's has a single address (/32)"
                            .to_owned(),
                    );
                }
                let carries = self.carries(IP)?;
                let zeros = self.word(16, !netmask, 0);
                Ok(carries.and(zeros.or(self.word(16, !netmask, !netmask))))
            }
            Some(_) => Err("`broadcast` can only be used with the link layer and `ip`".to_owned()),
        }
    }

    /// Lowers `multicast`.
    pub(super) fn multicast(&mut self, protocol: Option<Protocol>) -> Lowered {
        match protocol {
            None | Some(Protocol::Link) => self.mac_multicast(),
            Some(Protocol::Ip) => {
                let carries = self.carries(IP)?;
                let first = self.load(From::Network, 16, Width::Byte);
                Ok(carries.and(self.compare(Relation::AtLeast, first, 224)))
            }
            Some(Protocol::Ip6) => {
                Ok(self.carries(IP6)?.and(self.field(From::Network, 24, Width::Byte, 255)))
            }
            Some(_) => Err("`multicast` can only be used with the link layer, `ip` and `ip6`".to_owned()),
        }
    }

    fn mac_multicast(&mut self) -> Lowered {
        let place = match self.layers.link {
            link if link.is_wlan() => {
                return Ok(self.wlan_end(false, |this, place| this.bits(From::Link, place, 1)));
            }
            Link::ArcNet => return self.arcnet(Direction::Destination, 0),
            Link::Ethernet | Link::NetAnalyzer => {
                let condition = self.bits(From::Link, 0, 1);
                return Ok(self.in_frame(condition));
            }
            Link::Fddi => 1,
            Link::TokenRing | Link::IpOverFibreChannel => 2,
            _ => return Err(self.cannot("`multicast`")),
        };
        Ok(self.bits(From::Link, place, 1))
    }
}
