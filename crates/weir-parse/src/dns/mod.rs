//! DNS messages for programs: the question and the answers, in the notation of zone files (RFC 1035, section 5.1).

mod name;
mod service;

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::bytes::{Bytes, Cut, text};
use crate::placed::Placed;
use crate::reading::Reading;

pub(crate) use self::name::lone_name;
pub use self::name::{NAME, skip_name};
use self::name::{escaped, name};

/// Length of the header of a message.
pub const HEADER: usize = 12;
/// Most answers that are listed.
const LISTED: usize = 32;

const RESPONSE: u16 = 0x8000;
const OPT: u16 = 41;

/// Returns the name of a result (IANA, "DNS RCODEs").
fn result_name(result: u16) -> Option<&'static str> {
    const LOW: [&str; 12] = [
        "NOERROR",
        "FORMERR",
        "SERVFAIL",
        "NXDOMAIN",
        "NOTIMP",
        "REFUSED",
        "YXDOMAIN",
        "YXRRSET",
        "NXRRSET",
        "NOTAUTH",
        "NOTZONE",
        "DSOTYPENI",
    ];
    const EXTENDED: [&str; 8] =
        ["BADVERS", "BADKEY", "BADTIME", "BADMODE", "BADNAME", "BADALG", "BADTRUNC", "BADCOOKIE"];
    match result {
        16.. => EXTENDED.get(usize::from(result - 16)).copied(),
        _ => LOW.get(usize::from(result)).copied(),
    }
}

/// A DNS or mDNS message, as far as it is in the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dns {
    /// Number that a response has in common with its query.
    pub id: u16,
    /// Whether it is a response.
    pub response: bool,
    /// Result of a response, with the bits that EDNS carries: `NOERROR`, `NXDOMAIN`, `BADCOOKIE`, ..., or `RCODE` and the
    /// number.
    pub rcode: Option<Cow<'static, str>>,
    /// Name in the first question, without the last dot.
    pub query: Option<Placed<String>>,
    /// Record type in the first question: `A`, `AAAA`, ..., or `TYPE` and the number.
    pub query_type: Option<Cow<'static, str>>,
    /// The first 32 records of the answer section.
    pub answers: Vec<Placed<DnsRecord>>,
}

/// A resource record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DnsRecord {
    /// Its name, without the last dot.
    pub name: String,
    /// Record type: `A`, `AAAA`, ..., or `TYPE` and the number.
    pub kind: Cow<'static, str>,
    /// Time to live in seconds.
    pub ttl: u32,
    /// The data, if its notation is known. Names have no last dot.
    pub data: Option<String>,
}

impl Dns {
    /// Reads a message.
    pub fn read(message: Bytes<'_>) -> Reading<Self> {
        Self::read_header(message).map_or(Reading::Nothing, |dns| Reading::of(dns, message.whole()))
    }

    /// Reads a message behind its length, as it is sent over TCP (RFC 1035, section 4.2.2).
    pub(crate) fn read_in_stream(bytes: Bytes<'_>) -> Reading<Self> {
        let Some(len) = Self::length_in_stream(bytes) else {
            return if bytes.len == 1 { Reading::Part(None) } else { Reading::Nothing };
        };
        let message = bytes.from(2).sized(len - 2);
        match is_plausible(message) {
            Ok(false) => Reading::Nothing,
            _ if len > bytes.len => Reading::Part(None),
            _ => Self::read(message),
        }
    }

    /// Returns the length of a message with the field that tells it.
    pub(crate) fn length_in_stream(bytes: Bytes<'_>) -> Option<usize> {
        bytes.u16(0).ok().map(usize::from).filter(|len| *len >= HEADER).map(|len| 2 + len)
    }

    fn read_header(message: Bytes<'_>) -> Option<Self> {
        let header: [u8; HEADER] = message.get(0, HEADER).ok()?.try_into().ok()?;
        let [id, flags, questions, answers] =
            [0, 2, 4, 6].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        let response = flags & RESPONSE != 0;
        let mut dns = Self { id, response, ..Self::default() };
        dns.rcode = response.then(|| {
            let result = result(flags, message);
            result_name(result).map_or_else(|| format!("RCODE{result}").into(), Cow::Borrowed)
        });
        // What comes before the end of the packet, or before nonsense, is right.
        let _rest = dns.sections(message, questions, answers);
        Some(dns)
    }

    fn sections(&mut self, message: Bytes<'_>, questions: u16, answers: u16) -> Result<(), Cut> {
        let mut at = HEADER;
        for number in 0..questions {
            let end = skip_name(message, at)?;
            if number == 0 {
                let kind = message.u16(end)?;
                let value = name(message, at)?;
                self.query = Some(Placed { value, at: message.at + at..message.at + end });
                self.query_type = Some(type_of(kind));
            }
            at = end + 4;
        }
        for _ in 0..usize::from(answers).min(LISTED) {
            let end = skip_name(message, at)?;
            let (kind, ttl) = (message.u16(end)?, message.u32(end + 4)?);
            let data = end + 10;
            let next = data + usize::from(message.u16(end + 8)?);
            message.get(data, next - data)?;
            let value = DnsRecord {
                name: name(message, at)?,
                kind: type_of(kind),
                ttl,
                data: notation(kind, message.first(next), data).ok().flatten(),
            };
            self.answers.push(Placed { value, at: message.at + at..message.at + next });
            at = next;
        }
        Ok(())
    }
}

/// Returns whether this can be a message: a capture may have begun in the middle of one. Its opcode must be known,
/// the reserved bit zero (RFC 1035, section 4.1.1; RFC 2535), and it must have room for the records that it announces.
fn is_plausible(message: Bytes<'_>) -> Result<bool, Cut> {
    const ZERO: u16 = 0x40;
    const QUESTION: usize = 5;
    const RECORD: usize = 11;
    let flags = message.u16(2)?;
    let [questions, answers, authorities, additional] = counts(message)?.map(usize::from);
    let least = HEADER + questions * QUESTION + (answers + authorities + additional) * RECORD;
    Ok(flags & ZERO == 0 && flags >> 11 & 15 <= 6 && least <= message.len)
}

/// Returns the data of a record, which reach from `at` to the end of `message`; `None` if the type has another notation.
fn notation(kind: u16, message: Bytes<'_>, at: usize) -> Result<Option<String>, Cut> {
    let name = |at| name(message, at);
    Ok(Some(match kind {
        1 => message.ip4(at)?.to_string(),
        28 => message.ip6(at)?.to_string(),
        2 | 5 | 12 | 39 => name(at)?,
        6 => {
            let second = skip_name(message, at)?;
            let end = skip_name(message, second)?;
            let mut soa = format!("{} {}", name(at)?, name(second)?);
            for field in 0..5 {
                let _cannot_fail = write!(soa, " {}", message.u32(end + 4 * field)?);
            }
            soa
        }
        15 => format!("{} {}", message.u16(at)?, name(at + 2)?),
        16 => strings(message, at)?,
        43 => {
            let (tag, algorithm, digest) = (message.u16(at)?, message.u8(at + 2)?, message.u8(at + 3)?);
            format!("{tag} {algorithm} {digest} {}", hex(message, at + 4)?)
        }
        44 => format!("{} {} {}", message.u8(at)?, message.u8(at + 1)?, hex(message, at + 2)?),
        52 => {
            let [usage, selector, kind] = [message.u8(at)?, message.u8(at + 1)?, message.u8(at + 2)?];
            format!("{usage} {selector} {kind} {}", hex(message, at + 3)?)
        }
        64 | 65 => service::notation(message, at, name(at + 2)?)?,
        257 => {
            let tag = message.get(at + 2, message.u8(at + 1)?.into())?;
            let value = message.from(at + 2 + tag.len());
            format!("{} {} \"{}\"", message.u8(at)?, text(tag), escaped(value.get(0, value.len)?, '"'))
        }
        33 => {
            let [priority, weight, port] = [message.u16(at)?, message.u16(at + 2)?, message.u16(at + 4)?];
            format!("{priority} {weight} {port} {}", name(at + 6)?)
        }
        _ => return Ok(None),
    }))
}

/// Returns the bytes from `at` on in hexadecimal.
fn hex(message: Bytes<'_>, at: usize) -> Result<String, Cut> {
    let rest = message.from(at);
    Ok(rest.get(0, rest.len)?.iter().map(|byte| format!("{byte:02X}")).collect())
}

/// Returns strings in quotes: `"a=1" "b=2"`.
fn strings(message: Bytes<'_>, mut at: usize) -> Result<String, Cut> {
    let mut all = String::new();
    while at < message.len {
        let len = usize::from(message.u8(at)?);
        let space = if all.is_empty() { "" } else { " " };
        let string = escaped(message.get(at + 1, len)?, '"');
        let _cannot_fail = write!(all, "{space}\"{string}\"");
        at += 1 + len;
    }
    Ok(all)
}

/// Returns the name of a record type.
fn type_of(kind: u16) -> Cow<'static, str> {
    // Lines have these as numbers, as tcpdump does.
    let newer = match kind {
        52 => Some("TLSA"),
        64 => Some("SVCB"),
        65 => Some("HTTPS"),
        257 => Some("CAA"),
        _ => type_name(kind),
    };
    newer.map_or_else(|| format!("TYPE{kind}").into(), Cow::Borrowed)
}

/// Returns tcpdump's name of a record type.
pub fn type_name(kind: u16) -> Option<&'static str> {
    const LOW: [&str; 43] = [
        "A", "NS", "MD", "MF", "CNAME", "SOA", "MB", "MG", "MR", "NULL", "WKS", "PTR", "HINFO", "MINFO",
        "MX", "TXT", "RP", "AFSDB", "X25", "ISDN", "RT", "NSAP", "NSAP_PTR", "SIG", "KEY", "PX", "GPOS",
        "AAAA", "LOC", "NXT", "EID", "NIMLOC", "SRV", "ATMA", "NAPTR", "KX", "CERT", "A6", "DNAME", "SINK",
        "OPT", "APL", "DS",
    ];
    match kind {
        44 => Some("SSHFP"),
        45 => Some("IPSECKEY"),
        46 => Some("RRSIG"),
        47 => Some("NSEC"),
        48 => Some("DNSKEY"),
        99 => Some("SPF"),
        249 => Some("TKEY"),
        250 => Some("TSIG"),
        251 => Some("IXFR"),
        252 => Some("AXFR"),
        253 => Some("MAILB"),
        254 => Some("MAILA"),
        255 => Some("ANY"),
        256 => Some("URI"),
        _ => kind.checked_sub(1).and_then(|at| LOW.get(usize::from(at))).copied(),
    }
}

/// Returns the numbers of questions, answers, authorities and additional records.
pub fn counts(bytes: Bytes<'_>) -> Result<[u16; 4], Cut> {
    Ok([bytes.u16(4)?, bytes.u16(6)?, bytes.u16(8)?, bytes.u16(10)?])
}

/// Returns the result of a response: the bits of its flags, and above them those of the first OPT record behind the
/// answers, if there is one (RFC 6891, section 6.1.3).
pub fn result(flags: u16, bytes: Bytes<'_>) -> u16 {
    u16::from(extended_result(bytes).unwrap_or(0)) << 4 | flags & 15
}

fn extended_result(bytes: Bytes<'_>) -> Result<u8, Cut> {
    let [questions, answers, authorities, additional] = counts(bytes)?;
    let mut at = HEADER;
    for _ in 0..questions {
        at = skip_name(bytes, at)? + 4;
    }
    let before = u32::from(answers) + u32::from(authorities);
    for number in 0..before + u32::from(additional) {
        let end = skip_name(bytes, at)?;
        if number >= before && bytes.u16(end)? == OPT {
            return bytes.u8(end + 4);
        }
        at = end + 10 + usize::from(bytes.u16(end + 8)?);
    }
    Ok(0)
}
