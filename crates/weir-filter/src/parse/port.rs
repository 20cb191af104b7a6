//! Parser for ports and service names.

use super::address::port_numbers;
use super::{Parser, Qualifiers, is_pcap};
use crate::Error;
use crate::ast::{Direction, Primitive, Protocol};
use crate::lex::Token;
use crate::names::Service;
use crate::spelling;

/// Maximum number of hyphens to try as the sign of a service range: service names may contain `-`.
const SIGNS: usize = 8;

/// The port of a service, and its protocol if it has that port for only one.
type Known = (u16, Option<Protocol>);

impl Parser<'_, '_> {
    /// Returns the term for `port http`.
    pub(super) fn port(
        &self,
        name: &str,
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, .. } = qualifiers;
        Self::transport(protocol, direction, token)?;
        let unknown = || {
            let error = Error::new(format!("unknown port `{name}`"), token.span());
            let range = name.contains('-').then(|| format!("for a range, write `portrange {name}`"));
            Error { help: range.or_else(|| self.meant_service(name)), ..error }
        };
        let (port, over) = self.service(name, protocol).ok_or_else(unknown)?;
        let protocol = Self::agreed(protocol, over, token)?;
        Ok(Primitive::Port { protocol, direction, first: port, last: port, range: false })
    }

    /// Returns the term for `portrange 80-90` or `portrange http-https`.
    pub(super) fn port_range(
        &self,
        name: &str,
        token: Token<'_>,
        qualifiers: Qualifiers,
    ) -> Result<Primitive, Error> {
        let Qualifiers { protocol, direction, .. } = qualifiers;
        Self::transport(protocol, direction, token)?;
        let pcap = is_pcap(self.options.dialect);
        let (first, last, over) = match port_numbers(name, pcap) {
            Some((first, last)) => (Self::port_number(first, token)?, Self::port_number(last, token)?, None),
            None => {
                let ends = |(sign, _)| {
                    let (first, over) = self.service(&name[..sign], protocol)?;
                    let (last, other) = self.service(&name[sign + 1..], protocol)?;
                    Some((first, last, over.filter(|_| over == other)))
                };
                // libpcap splits at the first `-`, weir at the first one that makes sense.
                let mut signs = name.match_indices('-').take(if pcap { 1 } else { SIGNS });
                let unknown = || Error::new(format!("unknown port in the range `{name}`"), token.span());
                signs.find_map(ends).ok_or_else(unknown)?
            }
        };
        let protocol = Self::agreed(protocol, over, token)?;
        Ok(Primitive::Port {
            protocol,
            direction,
            first: first.min(last),
            last: first.max(last),
            range: true,
        })
    }

    /// Returns the port that `name` stands for: a number or a service.
    fn service(&self, name: &str, protocol: Option<Protocol>) -> Option<Known> {
        if let Ok(port) = name.parse() {
            return Some((port, None));
        }
        let Service { tcp, udp, sctp } = self.options.names.service(name);
        let pcap = is_pcap(self.options.dialect);
        // A service may have a different port for each protocol. Whatever the qualifier, libpcap prefers TCP's, and
        // never uses SCTP's.
        let asked = match protocol {
            Some(Protocol::Tcp) => tcp,
            Some(Protocol::Udp) => udp,
            Some(Protocol::Sctp) => sctp,
            _ => None,
        };
        match (tcp, udp, sctp) {
            _ if asked.is_some() && !pcap => asked.map(|port| (port, protocol)),
            (Some(tcp), Some(udp), _) if tcp == udp => Some((tcp, None)),
            (Some(tcp), ..) => Some((tcp, Some(Protocol::Tcp))),
            (None, Some(udp), _) => Some((udp, Some(Protocol::Udp))),
            (None, None, sctp) => sctp.filter(|_| !pcap).map(|port| (port, Some(Protocol::Sctp))),
        }
    }

    /// Returns the service that `name` was probably meant to be.
    fn meant_service(&self, name: &str) -> Option<String> {
        if self.known_protocol(name).is_some() {
            return Some(self.proto_term(name));
        }
        let services = self.options.names.services();
        let nearest = spelling::nearest(name, services.iter().map(String::as_str))?;
        Some(format!("did you mean `{nearest}`?"))
    }

    /// Returns whether `name` is a service.
    pub(super) fn known_service(&self, name: &str) -> bool {
        self.service(name, None).is_some()
    }

    /// Returns the common protocol of a qualifier and a service, if they agree.
    fn agreed(
        asked: Option<Protocol>,
        over: Option<Protocol>,
        token: Token<'_>,
    ) -> Result<Option<Protocol>, Error> {
        match (asked, over) {
            (Some(asked), Some(over)) if asked != over => {
                let name = match over {
                    Protocol::Tcp => "tcp",
                    Protocol::Udp => "udp",
                    _ => "sctp",
                };
                Err(Error::new(format!("this service exists only for `{name}`"), token.span()))
            }
            (asked, over) => Ok(asked.or(over)),
        }
    }

    /// Checks a numeric port.
    pub(super) fn port_number(number: u32, token: Token<'_>) -> Result<u16, Error> {
        let message = || format!("port {number} exceeds the maximum, 65535");
        u16::try_from(number).map_err(|_| Error::new(message(), token.span()))
    }

    /// Rejects ports of protocols that have none, and directions that do not apply to ports.
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
}
