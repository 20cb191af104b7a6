//! Parser for hosts and networks.

use std::net::Ipv4Addr;

use super::address::{decnet, dotted, lower_half};
use super::{IdKind, Parser, Qualifiers, is_pcap};
use crate::Error;
use crate::ast::{Direction, Network, Primitive, Protocol};
use crate::lex::{Kind, Token};
use crate::set::prefix_mask;

impl Parser<'_, '_> {
    /// Resolves a host's addresses, of the family that the qualifier allows.
    pub(super) fn resolve(
        &self,
        name: &str,
        token: Token<'_>,
        protocol: Option<Protocol>,
    ) -> Result<Vec<Network>, Error> {
        let addresses = self.options.names.host(name);
        if addresses.is_empty() {
            let error = Error::new(format!("unknown host `{name}`"), token.span());
            return Err(match self.meant(name) {
                Some(word) => error.help(format!("did you mean `{word}`?")),
                None => error,
            });
        }
        let pcap = is_pcap(self.options.dialect);
        let fits = |network: &Network| match (network, protocol) {
            (Network::V4(..), Some(Protocol::Ip6)) | (Network::V6(..), Some(Protocol::Ip)) => false,
            (Network::V6(..), Some(Protocol::Arp | Protocol::Rarp)) => pcap,
            _ => true,
        };
        let networks: Vec<Network> = addresses.into_iter().map(Network::from).filter(fits).collect();
        if networks.is_empty() {
            return Err(Error::new(format!("`{name}` has no address of this family"), token.span()));
        }
        Ok(networks)
    }

    /// Parses a dotted number and an optional mask.
    pub(super) fn dotted(
        &mut self,
        text: &str,
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let mask = if self.taken("/")? {
            let behind = self.token;
            let bits = self.demand_number("a prefix length")?;
            if bits > 32 {
                return Err(Error::new("an IPv4 address has 32 bits", behind.span()));
            }
            prefix_mask(bits)
        } else if self.at_word("mask") {
            self.take()?;
            let Kind::Dotted(_) = self.token.kind else {
                return Err(self.expected("a dotted mask such as 255.255.0.0"));
            };
            let mask = self.take()?;
            self.ipv4(mask)?.0
        } else {
            return self.dotted_alone(text, token, qualifiers);
        };
        let whole = Token { end: self.behind, ..token };
        let network = self.ipv4(token)?.0;
        if network & !mask != 0 {
            let meant = Ipv4Addr::from(network & mask);
            let behind = &self.text[token.end..self.behind];
            return Err(Error::new("the address has bits set outside the mask", whole.span())
                .help(format!("the network is `{meant}{behind}`")));
        }
        match qualifiers.kind {
            // libpcap ignores the mask, and the upper half of the network.
            IdKind::Net if qualifiers.protocol == Some(Protocol::DecNet) && is_pcap(self.options.dialect) => {
                Self::decnet_host(qualifiers.direction, lower_half(network), whole)
            }
            IdKind::Net => Self::host(vec![Network::V4(network, mask)], whole, qualifiers),
            kind => Err(Self::no_mask(kind, whole)),
        }
    }

    /// Returns a dotted number as part of an IPv4 address, and the mask of the bits it covers.
    fn ipv4(&self, token: Token<'_>) -> Result<(u32, u32), Error> {
        let text = self.source(token);
        let unusual = || Error::new(format!("`{text}` is not a valid IPv4 address"), token.span());
        let (address, bits) = dotted(text).ok_or_else(unusual)?;
        Ok((address << (32 - bits), prefix_mask(bits)))
    }

    /// Returns the error for a mask on something other than a network.
    fn no_mask(kind: IdKind, token: Token<'_>) -> Error {
        let error = Error::new("only a network can have a mask", token.span());
        if matches!(kind, IdKind::Default | IdKind::Host) {
            error.help("write `net` before it")
        } else {
            error
        }
    }

    /// Returns the term for a dotted number without a mask.
    fn dotted_alone(&self, text: &str, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        let here = |message: &str| Err(Error::new(message, token.span()));
        match kind {
            IdKind::Default | IdKind::Host | IdKind::Net => {}
            IdKind::Port | IdKind::PortRange => return here("an address is not a port"),
            IdKind::Proto | IdKind::ProtoChain => return here("an address is not a protocol"),
            IdKind::Gateway => {
                return here("`gateway` requires a name that has both a MAC and an IP address");
            }
        }
        match protocol {
            Some(Protocol::DecNet) => match decnet(text, is_pcap(self.options.dialect)) {
                Some(address) => Self::decnet_host(direction, address, token),
                None => here("a DECnet address is an area up to 63 and a node up to 1023, such as `10.123`"),
            },
            Some(Protocol::Link) => here("not a link-layer address"),
            _ => {
                let (address, mask) = self.ipv4(token)?;
                Self::host(vec![Network::V4(address, mask)], token, qualifiers)
            }
        }
    }

    pub(super) fn decnet_host(
        direction: Direction,
        address: u16,
        token: Token<'_>,
    ) -> Result<Primitive, Error> {
        Self::wired(direction, token)?;
        Ok(Primitive::DecNetHost { direction, address })
    }

    pub(super) fn ipv6(
        &mut self,
        address: [u32; 4],
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let bits = if self.taken("/")? {
            let behind = self.token;
            let bits = self.demand_number("a prefix length")?;
            if bits > 128 {
                return Err(Error::new("an IPv6 address has 128 bits", behind.span()));
            }
            bits
        } else {
            128
        };
        let whole = Token { end: self.behind, ..token };
        let mask = std::array::from_fn(|word| {
            let before = 32 * u32::try_from(word).expect("there are four");
            prefix_mask(bits.saturating_sub(before))
        });
        if address.iter().zip(mask).any(|(word, mask): (&u32, u32)| word & !mask != 0) {
            return Err(Error::new("the address has bits set beyond the prefix", whole.span()));
        }
        match qualifiers.kind {
            IdKind::Default | IdKind::Host if bits != 128 => Err(Self::no_mask(qualifiers.kind, whole)),
            IdKind::Default | IdKind::Host | IdKind::Net => {
                Self::host(vec![Network::V6(address, mask)], whole, qualifiers)
            }
            IdKind::Gateway => Err(Error::new("`gateway` requires a name", whole.span())),
            IdKind::Port | IdKind::PortRange => Err(Error::new("an address is not a port", whole.span())),
            IdKind::Proto | IdKind::ProtoChain => {
                Err(Error::new("an address is not a protocol", whole.span()))
            }
        }
    }

    /// Returns the term for networks, if the qualifiers fit.
    pub(super) fn host(
        networks: Vec<Network>,
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        let has_v6 = networks.iter().any(|network| matches!(network, Network::V6(..)));
        let has_v4 = networks.iter().any(|network| matches!(network, Network::V4(..)));
        Self::addressed(protocol, token)?;
        if has_v4 && protocol == Some(Protocol::Ip6) {
            return Err(Error::new("`ip6` cannot be used with an IPv4 address", token.span()));
        }
        if has_v6 && !matches!(protocol, None | Some(Protocol::Ip6)) {
            return Err(Error::new("an IPv6 address can follow `ip6`, or stand alone", token.span()));
        }
        Self::wired(direction, token)?;
        Ok(Primitive::Host { protocol, direction, net: kind == IdKind::Net, networks })
    }

    /// Rejects protocols without IP addresses.
    pub(super) fn addressed(protocol: Option<Protocol>, token: Token<'_>) -> Result<(), Error> {
        match protocol {
            None | Some(Protocol::Ip | Protocol::Ip6 | Protocol::Arp | Protocol::Rarp) => Ok(()),
            Some(Protocol::Tcp | Protocol::Udp | Protocol::Sctp) => Err(Error::new(
                "hosts and networks can follow `ip`, `ip6`, `arp` or `rarp`, or stand alone",
                token.span(),
            )
            .help("join a protocol and a host with `and`; only `port` can follow directly")),
            Some(_) => Err(Error::new(
                "hosts and networks can follow `ip`, `ip6`, `arp` or `rarp`, or stand alone",
                token.span(),
            )),
        }
    }

    /// Rejects directions that only 802.11 addresses have.
    pub(super) fn wired(direction: Direction, token: Token<'_>) -> Result<(), Error> {
        match direction {
            Direction::Address(_) | Direction::Receiver | Direction::Transmitter => {
                Err(Error::new("only 802.11 MAC addresses can be used here", token.span()))
            }
            _ => Ok(()),
        }
    }
}
