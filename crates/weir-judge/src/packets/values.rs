//! Addresses and numbers, among them those that the expressions of the corpus test.

use crate::choices::Choices;

/// MAC addresses.
pub(super) fn mac(choices: &mut Choices<'_>) -> [u8; 6] {
    let other = [choices.pick(&[2, 5, 8]), choices.byte(), 0, 0, 0, 1];
    choices.pick(&[
        [0x00, 0x11, 0x22, 0x33, 0x44, 0x55],
        [0x00, 0x11, 0x22, 0x33, 0x44, 0x66],
        [0xff; 6],
        [0x01, 0x00, 0x5e, 0, 0, 5],
        [0x33, 0x33, 0, 0, 0, 1],
        [0x01, 0x80, 0xc2, 0, 0, 0],
        other,
    ])
}

/// IPv4 addresses.
pub(super) fn ipv4(choices: &mut Choices<'_>) -> [u8; 4] {
    let other = [choices.byte(), choices.byte(), 7, 9];
    choices.pick(&[
        [10, 1, 2, 3],
        [10, 1, 2, 4],
        [10, 1, 2, 5],
        [10, 1, 2, 255],
        [10, 9, 8, 7],
        [192, 168, 7, 8],
        [172, 16, 0, 9],
        [224, 0, 0, 5],
        [255, 255, 255, 255],
        [198, 51, 100, 1],
        other,
    ])
}

/// IPv6 addresses.
pub(super) fn ipv6(choices: &mut Choices<'_>) -> [u8; 16] {
    let mut address = [0; 16];
    let (prefix, last): (&[u8], u8) = choices.pick(&[
        (&[0x20, 0x01, 0x0d, 0xb8], 1),
        (&[0x20, 0x01, 0x0d, 0xb8], 2),
        (&[0xfe, 0x80], 1),
        (&[0xff, 0x02], 1),
        (&[0x20, 0x01, 0x0d, 0xb8, 0x80], 1),
        (&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 1], 1),
        (&[], 1),
        (&[0x26, 0x07], 0x99),
    ]);
    address[..prefix.len()].copy_from_slice(prefix);
    address[15] = last;
    address
}

/// Ports.
pub(super) fn port(choices: &mut Choices<'_>) -> u16 {
    let other = choices.half();
    choices.pick(&[
        80, 443, 53, 22, 8080, 25, 67, 68, 1000, 1500, 2000, 2905, 36412, 100, 200, 0, 65535, 33434, 6000,
        8050, 15000, other,
    ])
}

/// VLAN tag control information: ID, priority and drop eligibility.
pub(super) fn tci(choices: &mut Choices<'_>) -> u16 {
    let number = choices.pick(&[5, 7, 100, 0, 4095, 1]);
    choices.pick(&[0, 0, 0x6000, 0x1000]) | number
}

/// Network identifiers of VXLAN and Geneve.
pub(super) fn vni(choices: &mut Choices<'_>) -> [u8; 3] {
    let number: u32 = choices.pick(&[100, 5000, 0xb, 0, 0xff_ffff]);
    let [_, bytes @ ..] = number.to_be_bytes();
    bytes
}

/// A payload of a few bytes, some of which the expressions test.
pub(super) fn payload(choices: &mut Choices<'_>) -> Vec<u8> {
    let length = choices.pick(&[12, 0, 1, 4, 40, 100, 600, 1400]);
    match choices.below(5) {
        0 => b"GET / HTTP/1.1\r\n".iter().copied().cycle().take(length).collect(),
        1 => b"HTTP/1.1 200 OK\r\n".iter().copied().cycle().take(length).collect(),
        2 => vec![0; length],
        _ => choices.bytes(length),
    }
}
