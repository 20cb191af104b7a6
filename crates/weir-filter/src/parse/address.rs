//! Numbers with dots, and what stands for a range of ports.

use std::net::IpAddr;

use crate::ast::Network;
use crate::lex::words_of;

/// One to four decimal numbers with dots between, as libpcap reads them (a 0 in front means nothing), and how many bits
/// that are: 10.1 is 0x0a01 and 16.
pub(super) fn dotted(text: &str) -> Option<(u32, u32)> {
    let mut address = 0;
    let mut bits = 0;
    for part in text.split('.') {
        let decimal = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let digits = part.trim_start_matches('0');
        let byte: u8 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        if !decimal || bits == 32 {
            return None;
        }
        (address, bits) = (address << 8 | u32::from(byte), bits + 8);
    }
    Some((address, bits))
}

/// A DECnet address, area and node. libpcap takes no notice of what is beyond their six and ten bits, nor of a third number.
pub(super) fn decnet(text: &str, pcap: bool) -> Option<u16> {
    let mut parts = text.split('.').map(str::parse::<u32>);
    let (area, node) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let fits = area < 64 && node < 1024 && parts.next().is_none();
    (fits || pcap).then(|| u16::try_from((area & 63) << 10 | node & 1023).expect("it has sixteen bits"))
}

/// The lower sixteen bits.
pub(super) fn lower_half(number: u32) -> u16 {
    u16::try_from(number & 0xffff).expect("sixteen bits are left")
}

/// A network number as written, moved up to where a network begins, with the mask that its length implies: `net 10`.
pub(super) fn left_justified(mut number: u32) -> (u32, u32) {
    let mut mask = u32::MAX;
    while number != 0 && number >> 24 == 0 {
        (number, mask) = (number << 8, mask << 8);
    }
    (number, mask)
}

/// The network of a number that the system has for a name. Zeros at its end are no part of it (networks(5)), but libpcap
/// takes them for one, and 0 for a failure.
pub(super) fn named_network(number: u32, pcap: bool) -> Option<(u32, u32)> {
    match number {
        0 if pcap => None,
        0 => Some((0, 0)),
        _ if pcap => Some(left_justified(number)),
        _ => Some(left_justified(number >> (number.trailing_zeros() / 8 * 8))),
    }
}

/// The numbers in `80-90`. As libpcap reads them, whatever follows is of no matter.
pub(super) fn port_numbers(text: &str, pcap: bool) -> Option<(u32, u32)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (first, rest) = text.split_at(digits(text));
    let rest = rest.strip_prefix('-')?;
    let (last, rest) = rest.split_at(digits(rest));
    let number = |digits: &str| (!digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX));
    if rest.is_empty() || pcap { number(first).zip(number(last)) } else { None }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address.to_bits(), u32::MAX),
            IpAddr::V6(address) => Self::V6(words_of(address), [u32::MAX; 4]),
        }
    }
}
