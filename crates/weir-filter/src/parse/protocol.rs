//! Parser for protocol names.

use super::{Parser, unnamed};
use crate::Error;
use crate::ast::Protocol;
use crate::lex::Token;

/// Named ISO protocol numbers (ISO 9577).
const ISO: &[(&str, u32)] = &[("clnp", 0x81), ("esis", 0x82), ("isis", 0x83)];

/// Named EtherTypes and, below 256, LLC SAPs.
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
    /// Returns the number of an IP protocol that has no keyword.
    pub(super) fn known_protocol(&self, name: &str) -> Option<u8> {
        self.options.names.protocol(name).or_else(|| unnamed::number(name))
    }

    /// Suggests the term for a known IP protocol: by its number, if the system does not know the name.
    pub(super) fn proto_term(&self, name: &str) -> String {
        match (self.options.names.protocol(name), unnamed::number(name)) {
            (None, Some(number)) => format!("did you mean `proto {number}`?"),
            _ => format!("did you mean `proto {name}`?"),
        }
    }

    /// Returns the number of a protocol.
    pub(super) fn protocol_number(
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
}
