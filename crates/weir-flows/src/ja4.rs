//! JA4: a fingerprint of the program that has sent a hello of TLS
//! (<https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md>).

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use weir_parse::Offer;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;

/// Returns the fingerprint, as in `t13d1516h2_8daaf6152771_e5627efa2ab1`. `carrier`: its first letter, `t` for TCP, `q` for QUIC.
pub(crate) fn ja4(carrier: char, offer: &Offer) -> String {
    let server = if offer.names_server() { 'd' } else { 'i' };
    let most = |list: &[u16]| list.len().min(99);
    let mut ciphers = offer.ciphers.clone();
    ciphers.sort_unstable();
    let told = |extension: &u16| !matches!(*extension, SERVER_NAME | ALPN);
    let mut extensions: Vec<u16> = offer.extensions.iter().copied().filter(told).collect();
    extensions.sort_unstable();
    format!(
        "{carrier}{}{server}{:02}{:02}{}_{}_{}",
        version(offer.version),
        most(&offer.ciphers),
        most(&offer.extensions),
        protocol(&offer.protocol),
        hash(&ciphers, &[]),
        hash(&extensions, &offer.signature_algorithms),
    )
}

fn version(number: u16) -> &'static str {
    match number {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        _ => "00",
    }
}

/// Returns the first and the last character of an application protocol, or of its bytes in hexadecimal.
fn protocol(name: &[u8]) -> String {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return "00".to_owned() };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return String::from_iter([*first, *last].map(char::from));
    }
    format!("{:x}{:x}", first >> 4, last & 15)
}

/// Returns twelve digits for a list, and for another one behind it, if that has something.
fn hash(list: &[u16], behind: &[u16]) -> String {
    if list.is_empty() {
        return "0".repeat(12);
    }
    let mut text = String::with_capacity(5 * (list.len() + behind.len()));
    for (numbers, mut separator) in [(list, ""), (behind, "_")] {
        for number in numbers {
            let _infallible = write!(text, "{separator}{number:04x}");
            separator = ",";
        }
    }
    Sha256::digest(text.as_bytes())[..6].iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the specification.
    #[test]
    fn lists_have_the_published_hashes() {
        let ciphers = [
            0x002f, 0x0035, 0x009c, 0x009d, 0x1301, 0x1302, 0x1303, 0xc013, 0xc014, 0xc02b, 0xc02c, 0xc02f,
            0xc030, 0xcca8, 0xcca9,
        ];
        assert_eq!(hash(&ciphers, &[]), "8daaf6152771");
        let extensions = [5, 10, 11, 13, 0x12, 0x15, 0x17, 0x1b, 0x23, 0x2b, 0x2d, 0x33, 0x4469, 0xff01];
        let algorithms = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
        assert_eq!(hash(&extensions, &algorithms), "e5627efa2ab1");
        assert_eq!(hash(&extensions, &[]), "6d807ffa2a79");
        assert_eq!(hash(&[], &algorithms), "000000000000");
    }

    /// Examples of the specification.
    #[test]
    fn a_protocol_is_two_characters() {
        for (name, characters) in [
            (&b"h2"[..], "h2"),
            (b"http/1.1", "h1"),
            (b"", "00"),
            (b"x", "xx"),
            (b"\xab", "ab"),
            (b"\xab\xcd", "ad"),
            (b"\x30\xab", "3b"),
            (b"\x30\x31\xab\xcd", "3d"),
            (b"\x30\xab\xcd\x31", "01"),
        ] {
            assert_eq!(protocol(name), characters, "{name:?}");
        }
    }
}
