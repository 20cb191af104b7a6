//! The data of SVCB and HTTPS records, in the notation of zone files (RFC 9460, section 2.1).

use std::fmt::Write as _;

use super::name::skip_name;
use crate::bytes::{Bytes, Cut};

/// Parameters by number (IANA, "DNS Service Parameter Keys").
const KEYS: [&str; 9] =
    ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath", "ohttp"];

/// Returns the data, which reaches from `at` to the end of `message`: `1 . alpn="h2,h3" ipv4hint=192.0.2.1`.
/// `target`: the name that stands behind the priority.
pub(crate) fn notation(message: Bytes<'_>, at: usize, target: String) -> Result<String, Cut> {
    let mut notation = format!("{} {target}", message.u16(at)?);
    let mut at = skip_name(message, at + 2)?;
    while at < message.len {
        let (key, len) = (message.u16(at)?, usize::from(message.u16(at + 2)?));
        message.get(at + 4, len)?;
        notation.push(' ');
        notation.push_str(&name(key));
        if len > 0 {
            notation.push('=');
            value(key, message.from(at + 4).first(len), &mut notation)?;
        }
        at += 4 + len;
    }
    Ok(notation)
}

fn name(key: u16) -> String {
    KEYS.get(usize::from(key)).map_or_else(|| format!("key{key}"), |name| (*name).to_owned())
}

fn value(key: u16, value: Bytes<'_>, notation: &mut String) -> Result<(), Cut> {
    let list = |size: usize| (0..value.len).step_by(size);
    let words: Vec<String> = match key {
        0 => list(2).map(|at| value.u16(at).map(name)).collect::<Result<_, _>>()?,
        3 => vec![value.u16(0)?.to_string()],
        4 => list(4).map(|at| Ok(value.ip4(at)?.to_string())).collect::<Result<_, _>>()?,
        5 => vec![base64(value.data)],
        6 => list(16).map(|at| Ok(value.ip6(at)?.to_string())).collect::<Result<_, _>>()?,
        1 => {
            let (mut words, mut at) = (Vec::new(), 0);
            while at < value.len {
                let word = value.get(at + 1, value.u8(at)?.into())?;
                words.push(quoted(word, true));
                at += 1 + word.len();
            }
            vec![format!("\"{}\"", words.join(","))]
        }
        _ => vec![format!("\"{}\"", quoted(value.data, false))],
    };
    notation.push_str(&words.join(","));
    Ok(())
}

/// Returns bytes as they stand between quotes. In a `list`, commas and backslashes of a word are escaped twice
/// (RFC 9460, appendix A.1).
fn quoted(bytes: &[u8], list: bool) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b',' if list => text.push_str(r"\\,"),
            b'\\' if list => text.push_str(r"\\\\"),
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(byte.into()),
            _ => {
                let _cannot_fail = write!(text, "\\{byte:03}");
            }
        }
    }
    text
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0, |bits: u32, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let digit = match digit <= three.len() {
                true => DIGITS[(bits >> (18 - 6 * digit) & 63) as usize],
                false => b'=',
            };
            text.push(digit.into());
        }
    }
    text
}
