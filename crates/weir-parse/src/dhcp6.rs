//! DHCPv6 (RFC 8415).

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

use crate::bytes::{Bytes, Cut};
use crate::dhcp::LISTED;
use crate::dns::lone_name;
use crate::placed::Placed;
use crate::reading::Reading;

/// Messages between relays, which carry another one.
const RELAYED: RangeInclusive<u8> = 12..=13;
/// Those that carry one of DHCPv4: flags are in place of the number (RFC 7341).
const VERSION_4: RangeInclusive<u8> = 20..=21;
/// Most relays on the way of a message.
const RELAYS: usize = 32;

const CLIENT: u16 = 1;
const ASSOCIATION: u16 = 3;
const TEMPORARY: u16 = 4;
const ADDRESS: u16 = 5;
const RELAY_MESSAGE: u16 = 9;
const NAME_SERVERS: u16 = 23;
const PREFIXES: u16 = 25;
const PREFIX: u16 = 26;
const FQDN: u16 = 39;

/// From 1 (IANA, "DHCPv6 Message Types").
const TYPES: [&str; 23] = [
    "SOLICIT",
    "ADVERTISE",
    "REQUEST",
    "CONFIRM",
    "RENEW",
    "REBIND",
    "REPLY",
    "RELEASE",
    "DECLINE",
    "RECONFIGURE",
    "INFORMATION-REQUEST",
    "RELAY-FORW",
    "RELAY-REPL",
    "LEASEQUERY",
    "LEASEQUERY-REPLY",
    "LEASEQUERY-DONE",
    "LEASEQUERY-DATA",
    "RECONFIGURE-REQUEST",
    "RECONFIGURE-REPLY",
    "DHCPV4-QUERY",
    "DHCPV4-RESPONSE",
    "ACTIVELEASEQUERY",
    "STARTTLS",
];

/// A DHCPv6 message, as far as it is in the packet. Of one in messages of relays, it is what the client or the server says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dhcp6 {
    /// Message type: `SOLICIT`, `REPLY`, ..., or `TYPE` and the number.
    pub kind: Cow<'static, str>,
    /// Number that a reply has in common with its request. A relay's message without another one has none.
    pub id: Option<u32>,
    /// Unique identifier of the client (DUID).
    pub client_duid: Option<Placed<Vec<u8>>>,
    /// The first 32 addresses that are asked for or given.
    pub addresses: Vec<Placed<Ipv6Addr>>,
    /// The first 32 prefixes that are asked for or given.
    pub prefixes: Vec<Placed<Prefix>>,
    /// Fully qualified domain name of the client (RFC 4704), without the last dot.
    pub fqdn: Option<Placed<String>>,
    /// The first 32 name servers.
    pub name_servers: Vec<Placed<Ipv6Addr>>,
}

/// The part that the addresses of a network have in common: `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "an address, and how many of its bits")]
pub struct Prefix {
    pub address: Ipv6Addr,
    pub len: u8,
}

impl fmt::Display for Prefix {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.address, self.len)
    }
}

impl Dhcp6 {
    /// Reads a message.
    pub(crate) fn read(message: Bytes<'_>) -> Reading<Self> {
        match Self::read_innermost(message) {
            Ok(Some(dhcp)) if message.whole() => Reading::Whole(dhcp),
            Ok(Some(dhcp)) => Reading::Part(Some(dhcp)),
            _ => Reading::Nothing,
        }
    }

    fn read_innermost(mut message: Bytes<'_>) -> Result<Option<Self>, Cut> {
        let mut kind = message.u8(0)?;
        for _ in 0..RELAYS {
            if !RELAYED.contains(&kind) {
                break;
            }
            let mut options = Options(message.from(34));
            let Some((_, inner)) = options.find(|(code, _)| *code == RELAY_MESSAGE) else { break };
            let Ok(inside) = inner.u8(0) else { break };
            (message, kind) = (inner, inside);
        }
        if kind == 0 {
            return Ok(None);
        }
        let known = TYPES.get(usize::from(kind - 1)).copied();
        let kind_name = known.map_or_else(|| format!("TYPE{kind}").into(), Cow::Borrowed);
        let mut dhcp = Self { kind: kind_name, ..Self::default() };
        if !RELAYED.contains(&kind) {
            let number = message.u24(1)?;
            dhcp.id = Some(number).filter(|_| !VERSION_4.contains(&kind));
            for (code, value) in Options(message.from(4)) {
                // Nonsense in one of them does not matter to the others.
                let _nonsense = dhcp.option(code, value);
            }
        }
        Ok(Some(dhcp))
    }

    fn option(&mut self, code: u16, value: Bytes<'_>) -> Result<(), Cut> {
        match code {
            CLIENT if self.client_duid.is_none() => {
                let duid = value.get(0, value.len)?.to_vec();
                self.client_duid = Some(placed(value, 0, value.len, duid));
            }
            ASSOCIATION | TEMPORARY => {
                for (code, value) in Options(value.from(if code == ASSOCIATION { 12 } else { 4 })) {
                    if code == ADDRESS && self.addresses.len() < LISTED {
                        self.addresses.push(placed(value, 0, 16, value.ip6(0)?));
                    }
                }
            }
            PREFIXES => {
                for (code, value) in Options(value.from(12)) {
                    if code == PREFIX && self.prefixes.len() < LISTED {
                        let prefix = Prefix { len: value.u8(8)?, address: value.ip6(9)? };
                        self.prefixes.push(placed(value, 8, 17, prefix));
                    }
                }
            }
            FQDN if self.fqdn.is_none() => {
                let name = value.get(1, value.len.saturating_sub(1))?;
                self.fqdn = lone_name(name).map(|text| placed(value, 1, name.len(), text));
            }
            NAME_SERVERS => {
                for at in (0..value.len).step_by(16).take(LISTED - self.name_servers.len()) {
                    self.name_servers.push(placed(value, at, 16, value.ip6(at)?));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Says where a value is: `len` bytes at `from`.
fn placed<T>(bytes: Bytes<'_>, from: usize, len: usize, value: T) -> Placed<T> {
    Placed { value, at: bytes.at + from..bytes.at + from + len }
}

/// The options in front of the end of a message, or of nonsense. The last one may be cut.
struct Options<'a>(Bytes<'a>);

impl<'a> Iterator for Options<'a> {
    type Item = (u16, Bytes<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let Self(rest) = *self;
        let (code, len) = (rest.u16(0).ok()?, usize::from(rest.u16(2).ok()?));
        *self = Self(rest.from(4 + len));
        (4 + len <= rest.len).then(|| (code, rest.from(4).first(len)))
    }
}
