//! Dotted numbers and port ranges.

use std::net::IpAddr;

use crate::ast::Network;
use crate::lex::words_of;

/// Parses one to four decimal numbers separated by dots, as libpcap reads them (leading zeros mean nothing); returns
/// the value and its number of bits: 10.1 is 0x0a01 and 16.
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

/// Parses a DECnet address, area and node. libpcap ignores a third number and all bits beyond the six and ten of these
/// two.
pub(super) fn decnet(text: &str, pcap: bool) -> Option<u16> {
    let mut parts = text.split('.').map(str::parse::<u32>);
    let (area, node) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let fits = area < 64 && node < 1024 && parts.next().is_none();
    (fits || pcap).then(|| u16::try_from((area & 63) << 10 | node & 1023).expect("it has sixteen bits"))
}

/// Returns the lower sixteen bits.
pub(super) fn lower_half(number: u32) -> u16 {
    u16::try_from(number & 0xffff).expect("sixteen bits are left")
}

/// Returns a network number (`net 10`), shifted to the most significant end, and the mask that its length implies.
pub(super) fn left_justified(mut number: u32) -> (u32, u32) {
    let mut mask = u32::MAX;
    while number != 0 && number >> 24 == 0 {
        (number, mask) = (number << 8, mask << 8);
    }
    (number, mask)
}

/// Returns the network for a number that the system has for a name. Trailing zeros are not part of the network
/// (networks(5)), but libpcap counts them in, and treats 0 as a failure.
pub(super) fn named_network(number: u32, pcap: bool) -> Option<(u32, u32)> {
    match number {
        0 if pcap => None,
        0 => Some((0, 0)),
        _ if pcap => Some(left_justified(number)),
        _ => Some(left_justified(number >> (number.trailing_zeros() / 8 * 8))),
    }
}

/// Parses `80-90`. As libpcap reads it, anything may follow.
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
