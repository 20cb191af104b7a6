//! Parser for link-layer terms: broadcast, 802.11, LLC.

use super::Parser;
use crate::Error;
use crate::ast::words::{Names, SUPERVISORY, UNNUMBERED};
use crate::ast::{LlcKind, Primitive, Protocol};
use crate::lex::{Kind, Token};

/// Type and subtype bits in the first byte of 802.11's frame control (IEEE 802.11, 9.2.4.1.3).
const TYPE: u32 = 0x0c;
const SUBTYPE: u32 = 0xf0;

const TYPES: Names = &[("data", 0x08), ("mgt", 0x00), ("management", 0x00), ("ctl", 0x04), ("control", 0x04)];

/// Subtypes of each type.
const SUBTYPES: [(u32, Names); 3] = [(0x00, MANAGEMENT), (0x04, CONTROL), (0x08, DATA)];

const MANAGEMENT: Names = &[
    ("assocreq", 0x00),
    ("assoc-req", 0x00),
    ("assocresp", 0x10),
    ("assoc-resp", 0x10),
    ("reassocreq", 0x20),
    ("reassoc-req", 0x20),
    ("reassocresp", 0x30),
    ("reassoc-resp", 0x30),
    ("probereq", 0x40),
    ("probe-req", 0x40),
    ("proberesp", 0x50),
    ("probe-resp", 0x50),
    ("beacon", 0x80),
    ("atim", 0x90),
    ("disassoc", 0xa0),
    ("disassociation", 0xa0),
    ("auth", 0xb0),
    ("authentication", 0xb0),
    ("deauth", 0xc0),
    ("deauthentication", 0xc0),
];

const CONTROL: Names = &[
    ("bar", 0x80),
    ("ba", 0x90),
    ("ps-poll", 0xa0),
    ("rts", 0xb0),
    ("cts", 0xc0),
    ("ack", 0xd0),
    ("cf-end", 0xe0),
    ("cf-end-ack", 0xf0),
];

const DATA: Names = &[
    ("data", 0x00),
    ("data-cf-ack", 0x10),
    ("data-cf-poll", 0x20),
    ("data-cf-ack-poll", 0x30),
    ("null", 0x40),
    ("cf-ack", 0x50),
    ("cf-poll", 0x60),
    ("cf-ack-poll", 0x70),
    ("qos-data", 0x80),
    ("qos-data-cf-ack", 0x90),
    ("qos-data-cf-poll", 0xa0),
    ("qos-data-cf-ack-poll", 0xb0),
    ("qos", 0xc0),
    ("qos-cf-poll", 0xe0),
    ("qos-cf-ack-poll", 0xf0),
];

const DIRECTIONS: Names = &[("nods", 0), ("tods", 1), ("fromds", 2), ("dstods", 3)];

/// Returns the value of a name, ignoring case.
fn value(names: Names, name: &str) -> Option<u32> {
    names.iter().find(|entry| entry.0.eq_ignore_ascii_case(name)).map(|entry| entry.1)
}

impl Parser<'_, '_> {
    /// Parses `broadcast`, `multicast`, `type`, `subtype` or `dir` after `protocol`.
    pub(super) fn link_term(&mut self, protocol: Option<Protocol>) -> Result<Primitive, Error> {
        let token = self.take()?;
        match token.kind {
            Kind::Word("broadcast") => match protocol {
                None | Some(Protocol::Link | Protocol::Ip) => Ok(Primitive::Broadcast(protocol)),
                Some(_) => {
                    Err(Error::new("`broadcast` can follow `ether` or `ip`, or stand alone", token.span()))
                }
            },
            Kind::Word("multicast") => match protocol {
                None | Some(Protocol::Link | Protocol::Ip | Protocol::Ip6) => {
                    Ok(Primitive::Multicast(protocol))
                }
                Some(_) => Err(Error::new(
                    "`multicast` can follow `ether`, `ip` or `ip6`, or stand alone",
                    token.span(),
                )),
            },
            Kind::Word("type") => {
                let kind = self.named_value("type", TYPES, TYPE)?;
                if !self.at_word("subtype") {
                    return Ok(Primitive::WlanType { value: kind, mask: TYPE });
                }
                self.take()?;
                let names = SUBTYPES.iter().find(|entry| entry.0 == kind).map(|entry| entry.1);
                let subtype = self.named_value("subtype", names.unwrap_or_default(), SUBTYPE)?;
                Ok(Primitive::WlanType { value: kind | subtype, mask: TYPE | SUBTYPE })
            }
            Kind::Word("subtype") => {
                let Kind::Name(name) = self.token.kind else {
                    return Err(self.expected("an 802.11 subtype"));
                };
                let found = SUBTYPES.iter().find_map(|(kind, names)| Some(kind | value(names, name)?));
                let names = SUBTYPES.iter().flat_map(|entry| entry.1).map(|entry| entry.0);
                let found = found.ok_or_else(|| self.unknown("subtype", names))?;
                self.take()?;
                Ok(Primitive::WlanType { value: found, mask: TYPE | SUBTYPE })
            }
            _ => Ok(Primitive::WlanDirection(self.named_value("direction", DIRECTIONS, u32::MAX)?)),
        }
    }

    /// Parses a number within `mask`, or a name for one.
    fn named_value(&mut self, what: &str, names: Names, mask: u32) -> Result<u32, Error> {
        let token: Token<'_> = self.token;
        let found = match token.kind {
            Kind::Number(number) if number & !mask == 0 => number,
            Kind::Number(number) => {
                let message =
                    format!("{number:#04x} is not an 802.11 {what}: only the bits {mask:#04x} may be set");
                return Err(Error::new(message, token.span()));
            }
            Kind::Name(name) => {
                value(names, name).ok_or_else(|| self.unknown(what, names.iter().map(|entry| entry.0)))?
            }
            _ => return Err(self.expected(&format!("an 802.11 {what}"))),
        };
        self.take()?;
        Ok(found)
    }

    /// Returns the error for an unknown name at the current token.
    fn unknown(&self, what: &str, words: impl Iterator<Item = &'static str>) -> Error {
        let name = self.source(self.token);
        let error = Error::new(format!("unknown {what} `{name}`"), self.token.span());
        match crate::spelling::nearest(name, words) {
            Some(word) => error.help(format!("did you mean `{word}`?")),
            None => error,
        }
    }

    /// Parses `llc` and an optional frame type.
    pub(super) fn llc(&mut self) -> Result<Primitive, Error> {
        self.take()?;
        let name = match self.token.kind {
            Kind::Name(name) => name,
            // A keyword elsewhere, and therefore not lexed as a name.
            Kind::Word("rnr") => "rnr",
            _ => return Ok(Primitive::Llc(LlcKind::Any)),
        };
        let byte = |value: u32| u8::try_from(value).expect("functions fit a byte");
        let plain = [("i", LlcKind::Information), ("s", LlcKind::Supervisory), ("u", LlcKind::Unnumbered)];
        let plain = plain.into_iter().find(|entry| entry.0.eq_ignore_ascii_case(name)).map(|entry| entry.1);
        let supervisory = value(SUPERVISORY, name).map(|value| LlcKind::SupervisoryKind(byte(value)));
        let unnumbered = value(UNNUMBERED, name).map(|value| LlcKind::UnnumberedKind(byte(value)));
        let kind = plain.or(supervisory).or(unnumbered).ok_or_else(|| {
            let names = SUPERVISORY.iter().chain(UNNUMBERED).map(|entry| entry.0);
            self.unknown("LLC type", names.chain(["and", "or"]))
        })?;
        self.take()?;
        Ok(Primitive::Llc(kind))
    }
}
