//! DHCP and BOOTP (RFC 2131, RFC 951), with their options (RFC 2132).

use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::ops::Range;

use crate::bytes::{Bytes, Cut, text, until_zero};
use crate::dns::lone_name;
use crate::placed::Placed;
use crate::reading::Reading;

const REPLY: u8 = 2;
/// Longest hardware address.
const HARDWARE: usize = 16;
/// Where the fields `sname` and `file` begin, and their lengths.
const SNAME: (usize, usize) = (44, 64);
const FILE: (usize, usize) = (108, 128);
/// Where the cookie is in front of the options.
const COOKIE: (usize, u32) = (236, 0x6382_5363);
/// Most addresses of a list that are read.
pub(crate) const LISTED: usize = 32;

/// From 1 (IANA, "DHCP Message Type 53 Values").
const TYPES: [&str; 18] = [
    "DISCOVER",
    "OFFER",
    "REQUEST",
    "DECLINE",
    "ACK",
    "NAK",
    "RELEASE",
    "INFORM",
    "FORCERENEW",
    "LEASEQUERY",
    "LEASEUNASSIGNED",
    "LEASEUNKNOWN",
    "LEASEACTIVE",
    "BULKLEASEQUERY",
    "LEASEQUERYDONE",
    "ACTIVELEASEQUERY",
    "LEASEQUERYSTATUS",
    "TLS",
];

/// Numbers of options.
mod option {
    pub(super) const PAD: u8 = 0;
    pub(super) const SUBNET_MASK: u8 = 1;
    pub(super) const ROUTERS: u8 = 3;
    pub(super) const NAME_SERVERS: u8 = 6;
    pub(super) const HOST_NAME: u8 = 12;
    pub(super) const DOMAIN: u8 = 15;
    pub(super) const REQUESTED: u8 = 50;
    pub(super) const LEASE: u8 = 51;
    pub(super) const OVERLOAD: u8 = 52;
    pub(super) const TYPE: u8 = 53;
    pub(super) const SERVER: u8 = 54;
    pub(super) const VENDOR_CLASS: u8 = 60;
    pub(super) const FQDN: u8 = 81;
    pub(super) const END: u8 = 255;

    /// Returns whether an option is read.
    pub(super) fn is_read(code: u8) -> bool {
        matches!(
            code,
            SUBNET_MASK | ROUTERS | NAME_SERVERS | HOST_NAME | DOMAIN | REQUESTED
                ..=SERVER | VENDOR_CLASS | FQDN
        )
    }
}

/// A DHCP or BOOTP message, as far as it is in the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dhcp {
    /// Message type: `DISCOVER`, `OFFER`, ..., or `TYPE` and the number. BOOTP has none.
    pub kind: Option<Placed<Cow<'static, str>>>,
    /// Number that a reply has in common with its request.
    pub id: u32,
    /// Whether it comes from a server.
    pub response: bool,
    /// Hardware address of the client.
    pub client_mac: Option<Placed<Vec<u8>>>,
    /// The address that the client has. `None` if it is 0.0.0.0, as with the next three.
    pub client_address: Option<Placed<Ipv4Addr>>,
    /// The address that the client gets.
    pub your_address: Option<Placed<Ipv4Addr>>,
    /// The server that the client boots from.
    pub next_server: Option<Placed<Ipv4Addr>>,
    /// The relay agent.
    pub relay: Option<Placed<Ipv4Addr>>,
    /// The address that the client asks for.
    pub requested_address: Option<Placed<Ipv4Addr>>,
    /// The server that is meant, or that replies.
    pub server_id: Option<Placed<Ipv4Addr>>,
    /// Lease time in seconds.
    pub lease_seconds: Option<Placed<u32>>,
    /// Name of the client.
    pub host_name: Option<Placed<String>>,
    /// Fully qualified domain name of the client (RFC 4702), without the last dot if it is in the notation of DNS.
    pub fqdn: Option<Placed<String>>,
    /// Vendor class: what kind of client it is.
    pub vendor_class: Option<Placed<String>>,
    /// Subnet mask.
    pub subnet_mask: Option<Placed<Ipv4Addr>>,
    /// The first 32 routers.
    pub routers: Vec<Placed<Ipv4Addr>>,
    /// The first 32 name servers.
    pub name_servers: Vec<Placed<Ipv4Addr>>,
    /// Domain of the client.
    pub domain: Option<Placed<String>>,
}

impl Dhcp {
    /// Reads a message.
    pub(crate) fn read(message: Bytes<'_>) -> Reading<Self> {
        match Self::read_header(message) {
            Ok(Some(dhcp)) if message.whole() => Reading::Whole(dhcp),
            Ok(Some(dhcp)) => Reading::Part(Some(dhcp)),
            _ => Reading::Nothing,
        }
    }

    fn read_header(message: Bytes<'_>) -> Result<Option<Self>, Cut> {
        let (operation, hardware) = (message.u8(0)?, usize::from(message.u8(2)?));
        if !matches!(operation, 1 | REPLY) || hardware > HARDWARE || message.len < COOKIE.0 {
            return Ok(None);
        }
        let address = |at| {
            let value = message.ip4(at).ok().filter(|address| !address.is_unspecified())?;
            Some(Placed { value, at: message.at + at..message.at + at + 4 })
        };
        let mac = message.get(28, hardware).ok().filter(|mac| !mac.is_empty());
        let mut dhcp = Self {
            id: message.u32(4)?,
            response: operation == REPLY,
            client_mac: mac
                .map(|mac| Placed { value: mac.to_vec(), at: message.at + 28..message.at + 28 + mac.len() }),
            client_address: address(12),
            your_address: address(16),
            next_server: address(20),
            relay: address(24),
            ..Self::default()
        };
        if message.u32(COOKIE.0) == Ok(COOKIE.1) {
            for option in &options(message) {
                // Nonsense in one of them does not matter to the others.
                let _nonsense = dhcp.option(option);
            }
        }
        Ok(Some(dhcp))
    }

    fn option(&mut self, option: &Value) -> Result<(), Cut> {
        match option.code {
            option::SUBNET_MASK => self.subnet_mask = Some(option.address(0)?),
            option::ROUTERS => self.routers = option.addresses(),
            option::NAME_SERVERS => self.name_servers = option.addresses(),
            option::HOST_NAME => self.host_name = option.text(0),
            option::DOMAIN => self.domain = option.text(0),
            option::REQUESTED => self.requested_address = Some(option.address(0)?),
            option::LEASE => {
                self.lease_seconds = Some(Placed { value: option.bytes().u32(0)?, at: option.place(0, 4) });
            }
            option::TYPE => {
                let number = option.bytes().u8(0)?;
                let known = TYPES.get(usize::from(number).wrapping_sub(1)).copied();
                let value = known.map_or_else(|| format!("TYPE{number}").into(), Cow::Borrowed);
                self.kind = Some(Placed { value, at: option.place(0, 1) });
            }
            option::SERVER => self.server_id = Some(option.address(0)?),
            option::VENDOR_CLASS => self.vendor_class = option.text(0),
            option::FQDN => {
                // Flag E: the notation of DNS.
                self.fqdn = match option.bytes().u8(0)? & 4 {
                    0 => option.text(3),
                    _ => {
                        let name = option.bytes().from(3).data;
                        lone_name(name).map(|value| Placed { value, at: option.place(3, name.len()) })
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// An option, the pieces of which are put together (RFC 3396).
struct Value {
    code: u8,
    value: Vec<u8>,
    /// Where they are.
    pieces: Vec<Range<usize>>,
}

impl Value {
    fn bytes(&self) -> Bytes<'_> {
        Bytes::new(&self.value, self.value.len())
    }

    /// Returns where `len` bytes of the value are: those of the piece that has the first of them.
    fn place(&self, mut from: usize, len: usize) -> Range<usize> {
        let mut at = 0..0;
        for piece in &self.pieces {
            at = (piece.start + from).min(piece.end)..(piece.start + from + len).min(piece.end);
            if from < piece.len() {
                break;
            }
            from -= piece.len();
        }
        at
    }

    /// Returns the text from there on, without the zeros that fill it.
    fn text(&self, from: usize) -> Option<Placed<String>> {
        let bytes = until_zero(self.value.get(from..)?);
        let placed = Placed { value: text(bytes), at: self.place(from, bytes.len()) };
        Some(placed).filter(|placed| !placed.is_empty())
    }

    fn address(&self, at: usize) -> Result<Placed<Ipv4Addr>, Cut> {
        Ok(Placed { value: self.bytes().ip4(at)?, at: self.place(at, 4) })
    }

    fn addresses(&self) -> Vec<Placed<Ipv4Addr>> {
        (0..LISTED).map_while(|number| self.address(4 * number).ok()).collect()
    }
}

/// Returns the options that are read, also those in the fields that have other contents otherwise.
fn options(message: Bytes<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    // What comes before the end of the packet, or before nonsense, is right.
    let _rest = add_options(&mut all, message.from(COOKIE.0 + 4));
    let overload = all.iter().find(|option| option.code == option::OVERLOAD);
    let overload = overload.and_then(|option| option.value.first().copied()).unwrap_or_default();
    for (bit, (at, len)) in [(1, FILE), (2, SNAME)] {
        if overload & bit != 0 {
            let _rest = add_options(&mut all, message.from(at).first(len));
        }
    }
    all
}

fn add_options(all: &mut Vec<Value>, field: Bytes<'_>) -> Result<(), Cut> {
    let mut at = 0;
    while at < field.len {
        let code = field.u8(at)?;
        at += 1;
        match code {
            option::PAD => continue,
            option::END => break,
            _ => {}
        }
        let len = usize::from(field.u8(at)?);
        let value = field.get(at + 1, len)?;
        let piece = field.at + at + 1..field.at + at + 1 + len;
        at += 1 + len;
        match all.iter_mut().find(|other| other.code == code) {
            _ if !option::is_read(code) => {}
            Some(other) => {
                other.value.extend_from_slice(value);
                other.pieces.push(piece);
            }
            None => all.push(Value { code, value: value.to_vec(), pieces: vec![piece] }),
        }
    }
    Ok(())
}
