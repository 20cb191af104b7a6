//! Babel, a routing protocol (RFC 8966), with authentication (RFC 8967, RFC 7298) and drafts of source-specific routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const MAGIC: u8 = 42;
const HEADER: usize = 4;

const PAD1: u8 = 0;
const HELLO: u8 = 4;
const IHU: u8 = 5;
const UPDATE: u8 = 8;
const SOURCE_UPDATE: u8 = 13;
/// Messages by type: without and with `-v`, and the shortest values.
const MESSAGES: [(&str, &str, usize); 20] = [
    ("pad1", "Pad 1", 0),
    ("padN", "Pad ", 0),
    ("ack-req", "Acknowledgment Request ", 6),
    ("ack", "Acknowledgment ", 2),
    ("hello", "Hello ", 6),
    ("ihu", "IHU ", 6),
    ("router-id", "Router Id", 10),
    ("nh", "Next Hop", 2),
    ("update", "Update", 10),
    ("route-request", "Route Request ", 2),
    ("seqno-request", "Seqno Request ", 14),
    ("tspc", "TS/PC ", 6),
    ("hmac", "HMAC ", 18),
    ("ss-update", "SS-Update", 10),
    ("ss-request", "SS-Request ", 3),
    ("ss-mh-request", "SS-MH-Request ", 14),
    ("mac", "MAC ", 0),
    ("pc", "PC", 4),
    ("challenge_request", "Challenge Request ", 0),
    ("challenge_reply", "Challenge Reply ", 0),
];

/// A message cannot be right: the rest is not read.
struct Invalid;

type Message<T> = Result<T, Invalid>;

/// A prefix, and the bytes after it.
type Prefix<'a> = (Option<(IpAddr, u8)>, Bytes<'a>);

/// What updates leave out of their prefixes: IPv4, IPv6.
#[derive(Default)]
struct Defaults([[u8; 16]; 2]);

impl Printer<'_> {
    pub(crate) fn babel(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "babel";
        self.facts.protocol = Some("babel");
        self.text("babel");
        let head = bytes.get(0, HEADER)?;
        if head[0] != MAGIC {
            self.text(" invalid header");
            return Ok(());
        }
        let version = head[1];
        put!(self, " {version}");
        if version != 2 {
            self.text(" unknown version");
            return Ok(());
        }
        let len = usize::from(bytes.u16(2)?);
        put!(self, " ({len})");
        if HEADER + len > bytes.len {
            self.text(" (invalid)");
            return Ok(());
        }
        let (body, trailer) = (bytes.from(HEADER).first(len), bytes.from(HEADER + len));
        if !self.babel_messages(body)? || trailer.len == 0 {
            return Ok(());
        }
        self.text(if self.options.verbose > 0 { "\n\t----" } else { " |" });
        self.babel_messages(trailer).map(drop)
    }

    /// Returns whether all of them can be right.
    fn babel_messages(&mut self, mut rest: Bytes<'_>) -> Result<bool, Cut> {
        let mut defaults = Defaults::default();
        while rest.len > 0 {
            let kind = rest.u8(0)?;
            let verbose = self.options.verbose > 0;
            if kind == PAD1 {
                self.text(if verbose { "\n\tPad 1" } else { " pad1" });
                rest = rest.from(1);
                continue;
            }
            if rest.len < 2 || rest.len < 2 + usize::from(rest.u8(1)?) {
                self.text(" (invalid)");
                return Ok(false);
            }
            let value = rest.from(2).first(rest.u8(1)?.into());
            value.get(0, value.len)?;
            rest = rest.from(2 + value.len);
            let message = MESSAGES.get(usize::from(kind));
            if !verbose {
                let name = message.map_or("unknown", |message| message.0);
                put!(self, " {name}");
                if kind == UPDATE {
                    if value.len < MESSAGES[usize::from(UPDATE)].2 {
                        self.text(" (invalid)");
                        return Ok(false);
                    }
                    self.babel_update_flags(value.u8(1)?);
                }
                continue;
            }
            let Some((_, name, shortest)) = message else {
                put!(self, "\n\tUnknown message type {kind}");
                continue;
            };
            put!(self, "\n\t{name}");
            if value.len < *shortest || self.babel_message(kind, value, &mut defaults)?.is_err() {
                self.text(" (invalid)");
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn babel_update_flags(&mut self, flags: u8) {
        for (bit, name) in [(0x80, "/prefix"), (0x40, "/id"), (0x3f, "/unknown")] {
            self.text(if flags & bit != 0 { name } else { "" });
        }
    }

    fn babel_message(
        &mut self,
        kind: u8,
        value: Bytes<'_>,
        defaults: &mut Defaults,
    ) -> Result<Message<()>, Cut> {
        match kind {
            1 => self.size(value.len + 2),
            2 => {
                put!(self, "{:04x} ", value.u16(2)?);
                self.centiseconds(value.u16(4)?);
            }
            3 => put!(self, "{:04x}", value.u16(0)?),
            HELLO => {
                let unicast = value.u16(0)? & 0x8000 != 0;
                put!(self, "{}seqno {} ", if unicast { "(Unicast) " } else { "" }, value.u16(2)?);
                match value.u16(4)? {
                    0 => self.text("unscheduled"),
                    interval => {
                        self.text("interval ");
                        self.centiseconds(interval);
                    }
                }
                self.babel_parts(kind, value.from(6))?;
            }
            IHU => {
                let Some((address, rest)) = address(value.u8(0)?, value.from(6))? else {
                    self.truncated();
                    return Ok(Ok(()));
                };
                match address {
                    Some(address) => self.address(address),
                    None => self.text("any"),
                }
                put!(self, " rxcost {} interval ", value.u16(2)?);
                self.centiseconds(value.u16(4)?);
                self.babel_parts(kind, rest)?;
            }
            6 => {
                self.text(" ");
                self.babel_id(value.get(2, 8)?);
            }
            7 => {
                let Some((address, _)) = address(value.u8(0)?, value.from(2))? else {
                    return Ok(Err(Invalid));
                };
                self.text(" ");
                match address {
                    Some(address) => self.address(address),
                    None => self.text("invalid AE 0"),
                }
            }
            UPDATE => return self.babel_update(value, defaults),
            9 => {
                let (encoding, len) = (value.u8(0)?, value.u8(1)?);
                let Ok((prefix, _)) = prefix(encoding, len, 0, &[0; 16], value.from(2))? else {
                    return Ok(Err(Invalid));
                };
                self.text("for ");
                self.babel_prefix(prefix, "any");
            }
            10 => {
                let (encoding, len) = (value.u8(0)?, value.u8(1)?);
                let Ok((prefix, _)) = prefix(encoding, len, 0, &[0; 16], value.from(14))? else {
                    return Ok(Err(Invalid));
                };
                put!(self, "({} hops) for ", value.u8(4)?);
                self.babel_prefix(prefix, "invalid AE 0");
                put!(self, " seqno {} id ", value.u16(2)?);
                self.babel_id(value.get(6, 8)?);
            }
            11 => put!(self, "timestamp {} packetcounter {}", value.u32(2)?, value.u16(0)?),
            12 => {
                put!(self, "key-id {} digest-{} ", value.u16(0)?, value.len - 2);
                value.from(2).data.iter().for_each(|byte| put!(self, "{byte:02X}"));
            }
            SOURCE_UPDATE => return self.babel_source_update(value),
            14 | 15 => return self.babel_source_request(kind, value),
            17 => put!(self, " value {} index len {}", value.u32(0)?, value.len - 4),
            16 | 18 | 19 => put!(self, "len {}", value.len),
            _ => {}
        }
        Ok(Ok(()))
    }

    fn babel_update(&mut self, value: Bytes<'_>, defaults: &mut Defaults) -> Result<Message<()>, Cut> {
        let (encoding, flags, len, omitted) = (value.u8(0)?, value.u8(1)?, value.u8(2)?, value.u8(3)?);
        let default = &mut defaults.0[usize::from(encoding != 1)];
        let Ok((prefix, rest)) = prefix(encoding, len, omitted.into(), default, value.from(10))? else {
            return Ok(Err(Invalid));
        };
        self.babel_update_flags(flags);
        self.text(" ");
        self.babel_prefix(prefix, "any");
        self.babel_route(value)?;
        if flags & 0x80 != 0 {
            match prefix {
                Some((IpAddr::V4(address), _)) => default[..4].copy_from_slice(&address.octets()),
                Some((IpAddr::V6(address), _)) => *default = address.octets(),
                None => {}
            }
        }
        self.babel_parts(UPDATE, rest)?;
        Ok(Ok(()))
    }

    /// Prints what updates say of a route.
    fn babel_route(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        put!(self, " metric {} seqno {} interval ", value.u16(8)?, value.u16(6)?);
        self.centiseconds(value.u16(4)?);
        Ok(())
    }

    fn babel_source_update(&mut self, value: Bytes<'_>) -> Result<Message<()>, Cut> {
        let (encoding, source_len, len, omitted) = (value.u8(0)?, value.u8(1)?, value.u8(2)?, value.u8(3)?);
        let both = two_prefixes(encoding, (len, omitted.into()), source_len, value.from(10))?;
        let Ok((to, from, rest)) = both else { return Ok(Err(Invalid)) };
        self.text(" ");
        self.babel_side(to, len);
        self.text(" from ");
        self.babel_side(from, source_len);
        self.babel_route(value)?;
        self.babel_parts(SOURCE_UPDATE, rest)?;
        Ok(Ok(()))
    }

    fn babel_source_request(&mut self, kind: u8, value: Bytes<'_>) -> Result<Message<()>, Cut> {
        let (encoding, len) = (value.u8(0)?, value.u8(1)?);
        let many = kind == 15;
        let (source_len, rest) =
            if many { (value.u8(5)?, value.from(14)) } else { (value.u8(2)?, value.from(3)) };
        if !many && encoding == 0 {
            self.text("for any");
            return Ok(Ok(()));
        }
        let Ok((to, from, _)) = two_prefixes(encoding, (len, 0), source_len, rest)? else {
            return Ok(Err(Invalid));
        };
        if many {
            put!(self, "({} hops) ", value.u8(4)?);
        }
        self.text("for (");
        self.babel_side(to, len);
        self.text(", ");
        self.babel_side(from, source_len);
        self.text(")");
        if many {
            put!(self, " seqno {} id ", value.u16(2)?);
            self.babel_id(value.get(6, 8)?);
        }
        Ok(Ok(()))
    }

    /// Prints the parts behind the fields of a message.
    fn babel_parts(&mut self, message: u8, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let kind = rest.u8(0)?;
            if kind == PAD1 {
                self.text(" sub-pad1");
                rest = rest.from(1);
                continue;
            }
            // One that must be understood.
            self.text(if kind & 0x80 != 0 { " (M)" } else { "" });
            if rest.len < 2 || rest.len < 2 + usize::from(rest.u8(1)?) {
                self.text(" (invalid)");
                return Ok(());
            }
            let value = rest.from(2).first(rest.u8(1)?.into());
            rest = rest.from(2 + value.len);
            match kind {
                1 => self.text(" sub-padn"),
                2 => self.babel_channels(message, value),
                3 => {
                    self.text(" sub-timestamp");
                    match message {
                        HELLO if value.len >= 4 => put!(self, " {}s", Microseconds(value.u32(0)?)),
                        IHU if value.len >= 8 => {
                            let (sent, received) = (value.u32(0)?, value.u32(4)?);
                            put!(self, " {}s|{}s", Microseconds(sent), Microseconds(received));
                        }
                        HELLO | IHU => {
                            self.text(" (invalid)");
                            return Ok(());
                        }
                        _ => self.text(" (bogus)"),
                    }
                }
                _ => put!(self, " sub-unknown-0x{kind:02x}"),
            }
        }
        Ok(())
    }

    /// Prints the channels that a route uses.
    fn babel_channels(&mut self, message: u8, value: Bytes<'_>) {
        self.text(" sub-diversity");
        if value.len == 0 {
            return self.text(" empty");
        }
        let mut before = " ";
        for &channel in value.data {
            self.text(before);
            match channel {
                0 => self.text("reserved"),
                255 => self.text("all"),
                _ => self.number(channel),
            }
            before = "-";
        }
        if message != UPDATE && message != SOURCE_UPDATE {
            self.text(" (bogus)");
        }
    }

    fn babel_prefix(&mut self, prefix: Option<(IpAddr, u8)>, none: &str) {
        match prefix {
            Some((address, len)) => {
                self.address(address);
                put!(self, "/{len}");
            }
            None => self.text(none),
        }
    }

    /// Prints one of the two prefixes of a source-specific route.
    fn babel_side(&mut self, prefix: Option<(IpAddr, u8)>, len: u8) {
        self.babel_prefix(prefix, "::");
        if prefix.is_none() {
            put!(self, "/{len}");
        }
    }

    /// Prints the number of a router.
    fn babel_id(&mut self, id: &[u8]) {
        for (position, &byte) in id.iter().enumerate() {
            self.text(if position > 0 { ":" } else { "" });
            self.hex_byte(byte);
        }
    }

    fn centiseconds(&mut self, time: u16) {
        match time {
            0 => self.text("0.0s (bogus)"),
            _ => put!(self, "{}.{:02}s", time / 100, time % 100),
        }
    }
}

struct Microseconds(u32);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Reads an address and returns what follows; `None`: none fits.
fn address(encoding: u8, bytes: Bytes<'_>) -> Result<Option<(Option<IpAddr>, Bytes<'_>)>, Cut> {
    let len = match encoding {
        0 => return Ok(Some((None, bytes))),
        1 => 4,
        2 => 16,
        3 => 8,
        _ => return Ok(None),
    };
    if bytes.len < len {
        return Ok(None);
    }
    let address = match encoding {
        1 => IpAddr::V4(bytes.ip4(0)?),
        2 => IpAddr::V6(bytes.ip6(0)?),
        _ => IpAddr::V6((0xfe80_u128 << 112 | u128::from(bytes.u64(0)?)).into()),
    };
    Ok(Some((Some(address), bytes.from(len))))
}

/// Reads a prefix of `len` bits; the first `omitted` bytes are those of `default`.
fn prefix<'a>(
    encoding: u8,
    len: u8,
    omitted: usize,
    default: &[u8; 16],
    bytes: Bytes<'a>,
) -> Result<Message<Prefix<'a>>, Cut> {
    let most = if encoding == 1 { 32 } else { 128 };
    let wanted = usize::from(len).div_ceil(8);
    let size = if encoding == 1 { 4 } else { 16 };
    if len > most || encoding > 3 || matches!(encoding, 1 | 2) && omitted > size {
        return Ok(Err(Invalid));
    }
    if encoding == 0 {
        return Ok(Ok((None, bytes)));
    }
    let link_local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    let known = if encoding == 3 { &link_local } else { &default[..omitted] };
    let mut address = [0; 16];
    let from = known.len();
    address[..from].copy_from_slice(known);
    let given = wanted.saturating_sub(from);
    if bytes.len < given {
        return Ok(Err(Invalid));
    }
    if given > 0 {
        address[from..wanted].copy_from_slice(bytes.get(0, given)?);
    }
    let [a, b, c, d, ..] = address;
    let address =
        if encoding == 1 { Ipv4Addr::new(a, b, c, d).into() } else { Ipv6Addr::from(address).into() };
    Ok(Ok((Some((address, len)), bytes.from(given))))
}

/// Reads a prefix, of which bytes can be left out, and one of sources.
#[expect(clippy::type_complexity, reason = "two prefixes and the rest")]
fn two_prefixes(
    encoding: u8,
    (len, omitted): (u8, usize),
    source_len: u8,
    bytes: Bytes<'_>,
) -> Result<Message<(Option<(IpAddr, u8)>, Option<(IpAddr, u8)>, Bytes<'_>)>, Cut> {
    let Ok((to, rest)) = prefix(encoding, len, omitted, &[0; 16], bytes)? else { return Ok(Err(Invalid)) };
    let Ok((from, rest)) = prefix(encoding, source_len, 0, &[0; 16], rest)? else { return Ok(Err(Invalid)) };
    Ok(Ok((to, from, rest)))
}
