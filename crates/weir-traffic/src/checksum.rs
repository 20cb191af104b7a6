//! The Internet checksum (RFC 1071), and those that are the rest of a division.

/// Returns the one's complement sum of the words of `pieces`, of which only the last may have an odd length; 0xffff if they
/// include their own checksum.
pub(crate) fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for piece in pieces {
        let (words, rest) = piece.as_chunks::<2>();
        sum += words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum::<u64>();
        sum += rest.first().map_or(0, |&byte| u64::from(byte) << 8);
    }
    fold(sum)
}

/// Returns a sum of words as a one's complement sum: carries are added again.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("folded")
}

/// The polynomial of SCTP (RFC 9260, appendix A), the bit for the highest power last.
pub(crate) const OF_SCTP: u32 = 0x82f6_3b78;
/// That of Ethernet (IEEE 802.3) and IEEE 802.11.
pub(crate) const OF_FRAMES: u32 = 0xedb8_8320;

/// Returns the checksum of 32 bits; its bytes come with the lowest first.
pub(crate) fn crc(polynomial: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ (polynomial & (sum & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_leave_what_the_catalogue_has() {
        // The check values of CRC-32/ISCSI (RFC 3720) and CRC-32/ISO-HDLC.
        assert_eq!(crc(OF_SCTP, b"123456789"), 0xe306_9283);
        assert_eq!(crc(OF_FRAMES, b"123456789"), 0xcbf4_3926);
    }
}
