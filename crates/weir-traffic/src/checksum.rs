//! The Internet checksum (RFC 1071).

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
