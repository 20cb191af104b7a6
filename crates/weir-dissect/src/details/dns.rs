//! DNS messages for programs: the question and the answers, in the notation of zone files (RFC 1035, section 5.1).

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::application::dns::{self, HEADER, NAME, POINTERS, SHOWN, skip_name, type_name};
use crate::base::bytes::{Bytes, Cut, text};
use crate::details::service;

const RESPONSE: u16 = 0x8000;

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
    pub query: Option<String>,
    /// Record type in the first question: `A`, `AAAA`, ..., or `TYPE` and the number.
    pub query_type: Option<Cow<'static, str>>,
    /// The first 32 records of the answer section.
    pub answers: Vec<DnsRecord>,
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
    pub(crate) fn read(message: Bytes<'_>) -> Option<Self> {
        let header: [u8; HEADER] = message.get(0, HEADER).ok()?.try_into().ok()?;
        let [id, flags, questions, answers] =
            [0, 2, 4, 6].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        let response = flags & RESPONSE != 0;
        let mut dns = Self { id, response, ..Self::default() };
        dns.rcode = response.then(|| {
            let result = dns::result(flags, message);
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
                self.query = Some(name(message, at)?);
                self.query_type = Some(type_of(kind));
            }
            at = end + 4;
        }
        for _ in 0..usize::from(answers).min(SHOWN) {
            let end = skip_name(message, at)?;
            let (kind, ttl) = (message.u16(end)?, message.u32(end + 4)?);
            let data = end + 10;
            let next = data + usize::from(message.u16(end + 8)?);
            message.get(data, next - data)?;
            self.answers.push(DnsRecord {
                name: name(message, at)?,
                kind: type_of(kind),
                ttl,
                data: notation(kind, message.first(next), data).ok().flatten(),
            });
            at = next;
        }
        Ok(())
    }
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

/// Returns a name with dots between its labels; `.` for the root. A loop is as good as a name that is not there.
fn name(message: Bytes<'_>, mut at: usize) -> Result<String, Cut> {
    let mut name = String::new();
    let (mut pointers, mut total) = (0, 0);
    loop {
        match message.u8(at)? {
            0 if name.is_empty() => return Ok(".".to_owned()),
            0 => return Ok(name),
            len @ 1..0x40 => {
                let label = message.get(at + 1, len.into())?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(&escaped(label, '.'));
                at += 1 + label.len();
                total += 1 + label.len();
            }
            0xc0.. => {
                at = usize::from(message.u16(at)? & 0x3fff);
                pointers += 1;
            }
            _ => return Err(Cut),
        }
        if total > NAME || pointers > POINTERS {
            return Err(Cut);
        }
    }
}

/// Returns text with a backslash before each `special` character and before each backslash.
fn escaped(bytes: &[u8], special: char) -> String {
    let text = text(bytes);
    if !text.contains([special, '\\']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 4);
    for letter in text.chars() {
        if letter == special || letter == '\\' {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
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
