//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

/// Returns the one's complement sum of 16-bit words; 0xffff if the bytes include their own correct checksum.
pub(crate) fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for piece in pieces {
        for pair in piece.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(0)
}

/// Returns the correct checksum of a segment whose checksum field is at `at`, an even offset.
pub(crate) fn right(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8], at: usize) -> u16 {
    let length = u32::try_from(segment.len()).unwrap_or(u32::MAX).to_be_bytes();
    let tail = [0, protocol];
    let (head, rest) = segment.split_at(at.min(segment.len()));
    let rest = rest.get(2..).unwrap_or_default();
    let total = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            sum(&[&source.octets(), &destination.octets(), &length, &tail, head, rest])
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            sum(&[&source.octets(), &destination.octets(), &length, &tail, head, rest])
        }
        _ => 0,
    };
    !total
}
