//! Parser for ids: addresses, ports, numbers and names, read according to their qualifiers.

use super::address::{left_justified, lower_half, named_network};
use super::level::OperandStart;
use super::{IdKind, Parser, Qualifiers, is_pcap, unnamed};
use crate::Error;
use crate::ast::words;
use crate::ast::{Network, Primitive, Protocol};
use crate::lex::{Kind, Token};
use crate::spelling::shortened;

impl Parser<'_, '_> {
    /// Parses an id at the current token.
    pub(super) fn id(&mut self) -> Result<(), Error> {
        let (qualifiers, start) = self.id_begins(self.token)?;
        let token = self.take()?;
        let primitive = match token.kind {
            Kind::Name(name) => self.name(name, token, qualifiers)?,
            Kind::Dotted(text) => self.dotted(text, token, qualifiers)?,
            Kind::Ipv6(address) => self.ipv6(address, token, qualifiers)?,
            Kind::Mac(address) => Self::mac(address, token, qualifiers)?,
            Kind::ArcNet(address) => Self::arcnet(address, token, qualifiers)?,
            _ => self.members(qualifiers)?,
        };
        self.add_term(primitive, start, Some(qualifiers))
    }

    /// Parses an id that is a number, which has been consumed.
    pub(super) fn number_id(&mut self, number: u32, token: Token<'_>) -> Result<(), Error> {
        let (qualifiers, start) = self.id_begins(token)?;
        let primitive = self.plain_number(number, token, qualifiers)?;
        self.add_term(primitive, start, Some(qualifiers))
    }

    /// Establishes that `token` begins an id; returns its qualifiers and the start of the term.
    fn id_begins(&mut self, token: Token<'_>) -> Result<(Qualifiers, usize), Error> {
        if self.may_begin() == OperandStart::Term {
            return Err(self.no_id(token));
        }
        self.decide(OperandStart::Id)?;
        let Some(qualifiers) = self.inherited() else { return Err(self.no_id(token)) };
        Ok((qualifiers, self.top().begin().unwrap_or(token.start)))
    }

    /// Returns the error for an unexpected id, or one without qualifiers to inherit.
    fn no_id(&self, token: Token<'_>) -> Error {
        let text = shortened(self.source(token));
        let error = Error::new(format!("expected a term, not `{text}`"), token.span());
        error.help(match token.kind {
            Kind::Name(name) if self.known_service(name) => format!("`port {text}` is a port"),
            Kind::Name(name) if unnamed::number(name).is_some() => self.proto_term(name),
            Kind::Name(name) if foreign(name) => {
                "Wireshark display filters use a different syntax; write `tcp port 80`, `ip host 10.1.2.3`"
                    .to_owned()
            }
            Kind::Name(name) => match self.help_for(name) {
                Some(help) => help,
                None if self.known_protocol(name).is_some() => self.proto_term(name),
                None => format!("`host {text}` is a host, `port {text}` a port"),
            },
            Kind::Number(_) => format!("`port {text}` is a port, `proto {text}` a protocol"),
            Kind::Mac(_) => format!("`ether host {text}` is a MAC address"),
            _ => format!("`host {text}` is a host"),
        })
    }

    fn name(&mut self, name: &str, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let here = |message: String| Error::new(message, token.span());
        let Qualifiers { protocol, direction, kind } = qualifiers;
        match kind {
            IdKind::Net => {
                let number = self.options.names.network(name);
                let network = number.and_then(|number| named_network(number, is_pcap(self.options.dialect)));
                let (address, mask) = network.ok_or_else(|| here(format!("unknown network `{name}`")))?;
                // As libpcap, which ignores the mask, and the upper half of the network.
                if protocol == Some(Protocol::DecNet) {
                    return Self::decnet_host(direction, lower_half(address), token);
                }
                Self::host(vec![Network::V4(address, mask)], token, qualifiers)
            }
            IdKind::Default | IdKind::Host if protocol == Some(Protocol::Link) => {
                let address = self.options.names.ethernet(name);
                let address = address.ok_or_else(|| here(format!("no MAC address known for `{name}`")))?;
                Ok(Primitive::Mac { direction, addresses: vec![address] })
            }
            IdKind::Default | IdKind::Host if protocol == Some(Protocol::DecNet) => {
                Err(here(format!("DECnet has no host names such as `{name}`"))
                    .help("an address is an area and a node, such as `10.123`"))
            }
            IdKind::Default | IdKind::Host => {
                let networks = self.resolve(name, token, protocol)?;
                Self::host(networks, token, qualifiers)
            }
            IdKind::Port => self.port(name, token, qualifiers),
            IdKind::PortRange => self.port_range(name, token, qualifiers),
            IdKind::Proto | IdKind::ProtoChain => {
                let number = self.protocol_number(name, token, protocol)?;
                self.plain_number(number, token, qualifiers)
            }
            IdKind::Gateway if is_pcap(self.options.dialect) => {
                Err(here("libpcap does not support `gateway` when built with IPv6".to_owned())
                    .help(format!("write `ether host {name} and not host {name}` instead")))
            }
            IdKind::Gateway => {
                let mac = self.options.names.ethernet(name);
                let mac = mac.ok_or_else(|| here(format!("no MAC address known for `{name}`")))?;
                Self::addressed(protocol, token)?;
                let addresses = self.resolve(name, token, protocol)?;
                Ok(Primitive::Gateway { protocol, macs: vec![mac], addresses })
            }
        }
    }

    /// Returns the term for a number without dots.
    fn plain_number(
        &self,
        number: u32,
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        let here = |message: &str| Err(Error::new(message, token.span()));
        match kind {
            IdKind::Default | IdKind::Host | IdKind::Net if protocol == Some(Protocol::DecNet) => {
                Self::decnet_host(direction, lower_half(number), token)
            }
            IdKind::Default | IdKind::Host | IdKind::Net if protocol == Some(Protocol::Link) => {
                here("not a link-layer address")
            }
            IdKind::Net => {
                let (address, mask) = left_justified(number);
                Self::host(vec![Network::V4(address, mask)], token, qualifiers)
            }
            IdKind::Default | IdKind::Host => {
                Self::host(vec![Network::V4(number, u32::MAX)], token, qualifiers)
            }
            IdKind::Port | IdKind::PortRange => {
                Self::transport(protocol, direction, token)?;
                let port = Self::port_number(number, token)?;
                let (first, last, range) = (port, port, kind == IdKind::PortRange);
                Ok(Primitive::Port { protocol, direction, first, last, range })
            }
            IdKind::Gateway => here("`gateway` requires a name that has both a MAC and an IP address"),
            IdKind::Proto => match protocol {
                None
                | Some(Protocol::Link | Protocol::Ip | Protocol::Ip6 | Protocol::Iso | Protocol::Isis) => {
                    Ok(Primitive::Proto { protocol, number })
                }
                Some(_) => here("`proto` can follow `ether`, `ip`, `ip6`, `iso` or `isis`, or stand alone"),
            },
            IdKind::ProtoChain => match protocol {
                None | Some(Protocol::Ip | Protocol::Ip6) => Ok(Primitive::ProtoChain { protocol, number }),
                Some(_) => here("`protochain` can follow `ip` or `ip6`, or stand alone"),
            },
        }
    }

    /// Returns the term for a MAC address.
    fn mac(address: [u8; 6], token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        match (qualifiers.protocol, qualifiers.kind) {
            (Some(Protocol::Link), IdKind::Default | IdKind::Host) => {
                Ok(Primitive::Mac { direction: qualifiers.direction, addresses: vec![address] })
            }
            _ => Err(Error::new("a MAC address requires `ether`", token.span())
                .help("write `ether host`, `ether src` or `ether dst` before it")),
        }
    }

    /// Returns the term for an ARCNET address.
    fn arcnet(address: u8, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        match (qualifiers.protocol, qualifiers.kind) {
            (Some(Protocol::Link), IdKind::Default | IdKind::Host) => {
                Ok(Primitive::ArcNet { direction: qualifiers.direction, address })
            }
            _ => Err(Error::new("an ARCNET address requires `link`", token.span())),
        }
    }
}

/// Returns whether a name looks like a Wireshark field: `tcp.port`.
fn foreign(name: &str) -> bool {
    name.split_once('.').is_some_and(|(first, _)| words::protocol(first).is_some())
}
