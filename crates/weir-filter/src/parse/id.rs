//! Ids: an address, a port, a number or a name, and what its qualifiers make of it.

use std::net::Ipv4Addr;

use super::address::{decnet, dotted, left_justified, named_network};
use super::level::Place;
use super::{IdKind, Parser, Qualifiers, is_pcap};
use crate::Error;
use crate::ast::{Direction, Network, Primitive, Protocol};
use crate::lex::{Kind, Token};
use crate::names::Service;
use crate::set::prefix_mask;
use crate::spelling::shortened;

/// Protocol numbers over ISO that have a name (ISO 9577).
const ISO: &[(&str, u32)] = &[("clnp", 0x81), ("esis", 0x82), ("isis", 0x83)];

/// EtherTypes, and below 256 SAPs of LLC, that have a name.
const LINK: &[(&str, u32)] = &[
    ("aarp", 0x80f3),
    ("arp", 0x0806),
    ("atalk", 0x809b),
    ("decnet", 0x6003),
    ("ip", 0x0800),
    ("ip6", 0x86dd),
    ("ipx", 0xe0),
    ("iso", 0xfe),
    ("lat", 0x6004),
    ("loopback", 0x9000),
    ("mopdl", 0x6001),
    ("moprc", 0x6002),
    ("netbeui", 0xf0),
    ("rarp", 0x8035),
    ("sca", 0x6007),
    ("stp", 0x42),
];

impl Parser<'_, '_> {
    /// An id, which the token begins.
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

    /// An id that is a number, which was taken already.
    pub(super) fn number_id(&mut self, number: u32, token: Token<'_>) -> Result<(), Error> {
        let (qualifiers, start) = self.id_begins(token)?;
        let primitive = self.plain_number(number, token, qualifiers)?;
        self.add_term(primitive, start, Some(qualifiers))
    }

    /// Settles that `token` begins an id. Answers its qualifiers and where the term begins.
    fn id_begins(&mut self, token: Token<'_>) -> Result<(Qualifiers, usize), Error> {
        if self.place() == Place::Term {
            return Err(self.no_id(token));
        }
        self.decide(Place::Id)?;
        let Some(qualifiers) = self.inherited() else { return Err(self.no_id(token)) };
        Ok((qualifiers, self.top().begin().unwrap_or(token.start)))
    }

    /// The error that an id stands where none may, or where none was before it.
    fn no_id(&self, token: Token<'_>) -> Error {
        let text = shortened(self.source(token));
        let error = Error::new(format!("expected a term, not `{text}`"), token.span());
        match token.kind {
            Kind::Name(name) => match self.meant(name) {
                Some(word) => error.help(format!("did you mean `{word}`?")),
                None => error.help(format!("`host {text}` is a host, `port {text}` a port")),
            },
            Kind::Number(_) => error.help(format!("`port {text}` is a port, `proto {text}` a protocol")),
            Kind::Mac(_) => error.help(format!("`ether host {text}` is a MAC address")),
            _ => error.help(format!("`host {text}` is a host")),
        }
    }

    fn name(&mut self, name: &str, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let here = |message: String| Error::new(message, token.span());
        let Qualifiers { protocol, direction, kind } = qualifiers;
        match kind {
            IdKind::Net => {
                let number = self.options.names.network(name);
                let network = number.and_then(|number| named_network(number, is_pcap(self.options.dialect)));
                let (address, mask) = network.ok_or_else(|| here(format!("unknown network `{name}`")))?;
                Self::host(vec![Network::V4(address, mask)], token, qualifiers)
            }
            IdKind::Default | IdKind::Host if protocol == Some(Protocol::Link) => {
                let address = self.options.names.ethernet(name);
                let address = address.ok_or_else(|| here(format!("no MAC address is known of `{name}`")))?;
                Ok(Primitive::Mac { direction, addresses: vec![address] })
            }
            IdKind::Default | IdKind::Host if protocol == Some(Protocol::DecNet) => {
                Err(here(format!("DECnet knows no names, so not `{name}`"))
                    .help("an address is an area and a node: `10.123`"))
            }
            IdKind::Default | IdKind::Host => {
                let networks = self.resolve(name, token, protocol)?;
                Self::host(networks, token, qualifiers)
            }
            IdKind::Port => {
                Self::transport(protocol, direction, token)?;
                let (port, over) = self.port(name, token, protocol)?;
                let (first, last) = (port, port);
                Ok(Primitive::Port { protocol: over, direction, first, last, range: false })
            }
            IdKind::PortRange => self.port_range(name, token, qualifiers),
            IdKind::Proto | IdKind::ProtoChain => {
                let number = self.protocol_number(name, token, protocol)?;
                self.plain_number(number, token, qualifiers)
            }
            IdKind::Gateway if is_pcap(self.options.dialect) => {
                Err(here("libpcap knows no `gateway` where it knows IPv6".to_owned())
                    .help(format!("`ether host {name} and not host {name}` is the same")))
            }
            IdKind::Gateway => {
                let mac = self.options.names.ethernet(name);
                let mac = mac.ok_or_else(|| here(format!("no MAC address is known of `{name}`")))?;
                let addresses = self.resolve(name, token, protocol)?;
                Ok(Primitive::Gateway { protocol, macs: vec![mac], addresses })
            }
        }
    }

    /// Addresses of a host, of the family that the qualifier allows.
    fn resolve(
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
            return Err(Error::new(format!("`{name}` has no address of that family"), token.span()));
        }
        Ok(networks)
    }

    /// The port that a service has, and the protocol if it has it over one alone.
    fn port(
        &self,
        name: &str,
        token: Token<'_>,
        protocol: Option<Protocol>,
    ) -> Result<(u16, Option<Protocol>), Error> {
        if let Ok(port) = name.parse() {
            return Ok((port, protocol));
        }
        let Service { tcp, udp, sctp } = self.options.names.service(name);
        let here = |message: String| Err(Error::new(message, token.span()));
        if !is_pcap(self.options.dialect) {
            let own = match protocol {
                Some(Protocol::Tcp) => tcp,
                Some(Protocol::Udp) => udp,
                Some(Protocol::Sctp) => sctp,
                _ => None,
            };
            if let Some(port) = own {
                return Ok((port, protocol));
            }
        }
        let sctp = if is_pcap(self.options.dialect) { None } else { sctp };
        let (port, over) = match (tcp, udp, sctp) {
            (Some(tcp), Some(udp), _) if tcp == udp => return Ok((tcp, protocol)),
            (Some(tcp), ..) => (tcp, Protocol::Tcp),
            (None, Some(udp), _) => (udp, Protocol::Udp),
            (None, None, Some(sctp)) => (sctp, Protocol::Sctp),
            (None, None, None) if name.contains('-') => {
                let error = Error::new(format!("unknown port `{name}`"), token.span());
                return Err(error.help(format!("ports from one to another are `portrange {name}`")));
            }
            (None, None, None) => return here(format!("unknown port `{name}`")),
        };
        match protocol {
            Some(other) if other != over => here(format!("`{name}` is a service over another protocol")),
            _ => Ok((port, Some(over))),
        }
    }

    /// `80-90`, `http-https`.
    fn port_range(&self, name: &str, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, .. } = qualifiers;
        Self::transport(protocol, direction, token)?;
        let pcap = is_pcap(self.options.dialect);
        let numbers = super::address::port_numbers(name, pcap);
        let (first, last, over) = if let Some((first, last)) = numbers {
            let port = |number: u32| Self::port_number(number, token);
            (port(first)?, port(last)?, protocol)
        } else {
            let unknown = || Error::new(format!("unknown port in the range `{name}`"), token.span());
            // A name may have a `-` of its own: libpcap takes the first for the sign, we take whatever makes sense.
            let signs = name.match_indices('-').take(if pcap { 1 } else { 8 });
            let found = signs.map(|(sign, _)| {
                let end = |name: &str| self.port(name, token, protocol);
                Ok((end(&name[..sign])?, end(&name[sign + 1..])?))
            });
            let mut failed = None;
            let found =
                found.filter_map(|found: Result<_, Error>| found.map_err(|error| failed = Some(error)).ok());
            let Some(((first, over), (last, other))) = { found }.next() else {
                return Err(failed.filter(|error| error.message.contains("another")).unwrap_or_else(unknown));
            };
            (first, last, if over == other { over } else { protocol })
        };
        let (first, last) = (first.min(last), first.max(last));
        Ok(Primitive::Port { protocol: over, direction, first, last, range: true })
    }

    /// A port in numbers.
    fn port_number(number: u32, token: Token<'_>) -> Result<u16, Error> {
        let message = || format!("port {number} is beyond the last, 65535");
        u16::try_from(number).map_err(|_| Error::new(message(), token.span()))
    }

    /// Refuses ports of what has none, and where none are.
    pub(super) fn transport(
        protocol: Option<Protocol>,
        direction: Direction,
        token: Token<'_>,
    ) -> Result<(), Error> {
        match protocol {
            None | Some(Protocol::Tcp | Protocol::Udp | Protocol::Sctp) => Self::wired(direction, token),
            Some(_) => Err(Error::new("only `tcp`, `udp` and `sctp` have ports", token.span())),
        }
    }

    /// The number of a protocol.
    fn protocol_number(
        &self,
        name: &str,
        token: Token<'_>,
        protocol: Option<Protocol>,
    ) -> Result<u32, Error> {
        let of = |table: &[(&str, u32)]| table.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
        let (number, known) = match protocol {
            None | Some(Protocol::Ip | Protocol::Ip6) => {
                (self.options.names.protocol(name).map(u32::from), None)
            }
            Some(Protocol::Link) => (of(LINK), Some(LINK)),
            Some(Protocol::Iso) => (of(ISO), Some(ISO)),
            Some(_) => (None, None),
        };
        number.ok_or_else(|| {
            let error = Error::new(format!("unknown protocol `{name}`"), token.span());
            let words = known.unwrap_or_default().iter().map(|entry| entry.0);
            match crate::spelling::nearest(name, words) {
                Some(word) => error.help(format!("did you mean `\\{word}`?")),
                None => error,
            }
        })
    }

    /// A dotted number, and a mask if one follows.
    fn dotted(&mut self, text: &str, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let mask = if self.taken("/")? {
            let behind = self.token;
            let bits = self.demand_number("the number of bits that count")?;
            if bits > 32 {
                return Err(Error::new("an IPv4 address has 32 bits", behind.span()));
            }
            prefix_mask(bits)
        } else if self.at_word("mask") {
            self.take()?;
            let Kind::Dotted(_) = self.token.kind else {
                return Err(self.expected("a mask with dots, as 255.255.0.0"));
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
            return Err(Error::new("bits of the address are set where the mask has none", whole.span())
                .help(format!("the network is `{meant}{behind}`")));
        }
        match qualifiers.kind {
            IdKind::Net => Self::host(vec![Network::V4(network, mask)], whole, qualifiers),
            kind => Err(Self::no_mask(kind, whole)),
        }
    }

    /// What a dotted number says of an IPv4 address, and the mask of the bits that it says.
    fn ipv4(&self, token: Token<'_>) -> Result<(u32, u32), Error> {
        let text = self.source(token);
        let unusual = || Error::new(format!("`{text}` is no IPv4 address"), token.span());
        let (address, bits) = dotted(text).ok_or_else(unusual)?;
        Ok((address << (32 - bits), prefix_mask(bits)))
    }

    /// The error that something other than a network has a mask.
    fn no_mask(kind: IdKind, token: Token<'_>) -> Error {
        let error = Error::new("only networks have a mask", token.span());
        if matches!(kind, IdKind::Default | IdKind::Host) {
            error.help("write `net` before it")
        } else {
            error
        }
    }

    /// A dotted number without a mask.
    fn dotted_alone(&self, text: &str, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        let here = |message: &str| Err(Error::new(message, token.span()));
        match kind {
            IdKind::Default | IdKind::Host | IdKind::Net => {}
            IdKind::Port | IdKind::PortRange => return here("an address is no port"),
            IdKind::Proto | IdKind::ProtoChain => return here("an address is no protocol"),
            IdKind::Gateway => return here("`gateway` needs a name, which has both kinds of addresses"),
        }
        match protocol {
            Some(Protocol::DecNet) => match decnet(text, is_pcap(self.options.dialect)) {
                Some(address) => Self::decnet_host(direction, address, token),
                None => here("a DECnet address is an area up to 63 and a node up to 1023: `10.123`"),
            },
            Some(Protocol::Link) => here("this is no link-layer address"),
            _ => {
                let (address, mask) = self.ipv4(token)?;
                Self::host(vec![Network::V4(address, mask)], token, qualifiers)
            }
        }
    }

    fn decnet_host(direction: Direction, address: u16, token: Token<'_>) -> Result<Primitive, Error> {
        Self::wired(direction, token)?;
        Ok(Primitive::DecNetHost { direction, address })
    }

    fn ipv6(
        &mut self,
        address: [u32; 4],
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let bits = if self.taken("/")? {
            let behind = self.token;
            let bits = self.demand_number("the number of bits that count")?;
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
            return Err(Error::new("bits of the address are set behind the prefix", whole.span()));
        }
        match qualifiers.kind {
            IdKind::Default | IdKind::Host if bits != 128 => Err(Self::no_mask(qualifiers.kind, whole)),
            IdKind::Default | IdKind::Host | IdKind::Net => {
                Self::host(vec![Network::V6(address, mask)], whole, qualifiers)
            }
            IdKind::Gateway => Err(Error::new("`gateway` needs a name", whole.span())),
            IdKind::Port | IdKind::PortRange => Err(Error::new("an address is no port", whole.span())),
            IdKind::Proto | IdKind::ProtoChain => Err(Error::new("an address is no protocol", whole.span())),
        }
    }

    /// A number without dots.
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
                let low = u16::try_from(number & 0xffff).expect("sixteen bits are left");
                Self::decnet_host(direction, low, token)
            }
            IdKind::Default | IdKind::Host | IdKind::Net if protocol == Some(Protocol::Link) => {
                here("this is no link-layer address")
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
            IdKind::Gateway => here("`gateway` needs a name, which has both kinds of addresses"),
            IdKind::Proto => match protocol {
                None
                | Some(Protocol::Link | Protocol::Ip | Protocol::Ip6 | Protocol::Iso | Protocol::Isis) => {
                    Ok(Primitive::Proto { protocol, number })
                }
                Some(_) => here("`proto` goes with `ether`, `ip`, `ip6`, `iso` and `isis`, or alone"),
            },
            IdKind::ProtoChain => match protocol {
                None | Some(Protocol::Ip | Protocol::Ip6) => Ok(Primitive::ProtoChain { protocol, number }),
                Some(_) => here("`protochain` goes with `ip` and `ip6`, or alone"),
            },
        }
    }

    /// A MAC address.
    fn mac(address: [u8; 6], token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        match (qualifiers.protocol, qualifiers.kind) {
            (Some(Protocol::Link), IdKind::Default | IdKind::Host) => {
                Ok(Primitive::Mac { direction: qualifiers.direction, addresses: vec![address] })
            }
            _ => Err(Error::new("a MAC address goes with `ether`", token.span())
                .help("write `ether host`, `ether src` or `ether dst` before it")),
        }
    }

    /// An address of ARCNET.
    fn arcnet(address: u8, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        match (qualifiers.protocol, qualifiers.kind) {
            (Some(Protocol::Link), IdKind::Default | IdKind::Host) => {
                Ok(Primitive::ArcNet { direction: qualifiers.direction, address })
            }
            _ => Err(Error::new("an ARCNET address goes with `link`", token.span())),
        }
    }

    /// Networks, if the qualifiers go with them.
    fn host(networks: Vec<Network>, token: Token<'_>, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        let has_v6 = networks.iter().any(|network| matches!(network, Network::V6(..)));
        let has_v4 = networks.iter().any(|network| matches!(network, Network::V4(..)));
        Self::addressed(protocol, token)?;
        if has_v4 && protocol == Some(Protocol::Ip6) {
            return Err(Error::new("`ip6` with an address of IPv4", token.span()));
        }
        if has_v6 && !matches!(protocol, None | Some(Protocol::Ip6)) {
            return Err(Error::new("an address of IPv6 goes with `ip6`, or alone", token.span()));
        }
        Self::wired(direction, token)?;
        Ok(Primitive::Host { protocol, direction, net: kind == IdKind::Net, networks })
    }

    /// Refuses protocols that have no IP addresses.
    pub(super) fn addressed(protocol: Option<Protocol>, token: Token<'_>) -> Result<(), Error> {
        match protocol {
            None | Some(Protocol::Ip | Protocol::Ip6 | Protocol::Arp | Protocol::Rarp) => Ok(()),
            Some(Protocol::Tcp | Protocol::Udp | Protocol::Sctp) => Err(Error::new(
                "hosts and networks go with `ip`, `ip6`, `arp` and `rarp`, or alone",
                token.span(),
            )
            .help("a protocol and a host are connected by `and`; `port` goes with it directly")),
            Some(_) => Err(Error::new(
                "hosts and networks go with `ip`, `ip6`, `arp` and `rarp`, or alone",
                token.span(),
            )),
        }
    }

    /// Refuses directions that only addresses of 802.11 have.
    pub(super) fn wired(direction: Direction, token: Token<'_>) -> Result<(), Error> {
        match direction {
            Direction::Address(_) | Direction::Receiver | Direction::Transmitter => {
                Err(Error::new("only MAC addresses of 802.11 have this place", token.span()))
            }
            _ => Ok(()),
        }
    }
}
