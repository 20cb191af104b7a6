//! The signature of a frame.

use crate::checksum::sum;

/// Bytes of a signature: as many as a UDP packet over IPv4 can carry in the shortest Ethernet frame.
pub const SIGNATURE_LENGTH: usize = 18;

const MAGIC: [u8; 2] = *b"wr";
/// Where a signature may begin: headers of tunnels come before.
const SEARCHED: usize = 256;
const LOW_48: u64 = (1 << 48) - 1;

/// What a frame of test traffic says about itself, at the beginning of its payload:
///
/// | offset | length | contents, in network byte order |
/// |---|---|---|
/// | 0 | 2 | `wr` |
/// | 2 | 2 | stream |
/// | 4 | 6 | sequence |
/// | 10 | 6 | time |
/// | 16 | 2 | complements the other eight words: the sum of Internet checksums (RFC 1071) over all nine is 0 |
///
/// A checksum over a packet is therefore the same whatever its signature says, if it begins at an even offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Tells frames of several generators apart.
    pub stream: u16,
    /// Number of the frame in its stream, from 0: 48 bits.
    pub sequence: u64,
    /// When it was sent: nanoseconds of `CLOCK_REALTIME`, the low 48 bits (78 hours).
    pub time: u64,
}

/// A signature in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it begins.
    pub offset: usize,
    /// What it says.
    pub signature: Signature,
}

impl Signature {
    /// Returns the bytes. Of sequence and time, the low 48 bits count.
    pub fn to_bytes(self) -> [u8; SIGNATURE_LENGTH] {
        let mut bytes = [0; SIGNATURE_LENGTH];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..4].copy_from_slice(&self.stream.to_be_bytes());
        bytes[4..10].copy_from_slice(&self.sequence.to_be_bytes()[2..]);
        bytes[10..16].copy_from_slice(&self.time.to_be_bytes()[2..]);
        let complement = !sum(&[&bytes[..16]]);
        bytes[16..].copy_from_slice(&complement.to_be_bytes());
        bytes
    }

    /// Reads a signature from the beginning of `bytes`. `None`: they are none, or were changed on their way.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SIGNATURE_LENGTH] = bytes.first_chunk()?;
        if !bytes.starts_with(&MAGIC) || sum(&[bytes]) != u16::MAX {
            return None;
        }
        let low_48 = |at: usize| {
            let eight: &[u8; 8] = bytes[at - 2..].first_chunk().expect("16 bytes and more");
            u64::from_be_bytes(*eight) & LOW_48
        };
        Some(Self { stream: u16::from_be_bytes([bytes[2], bytes[3]]), sequence: low_48(4), time: low_48(10) })
    }

    /// Finds the signature in a frame of any protocols. `expected` is looked at first: where that of the frame before
    /// was found.
    pub fn find(frame: &[u8], expected: usize) -> Option<Found> {
        let at = |offset: usize| {
            let signature = Self::from_bytes(frame.get(offset..)?)?;
            Some(Found { offset, signature })
        };
        at(expected).or_else(|| (0..SEARCHED).step_by(2).find_map(at))
    }

    /// Returns the nanoseconds from sending to `now` (`CLOCK_REALTIME`), modulo 2^48: clocks that disagree may make it
    /// negative.
    pub fn age(self, now: u64) -> i64 {
        let age = now.wrapping_sub(self.time) & LOW_48;
        (age << 16).cast_signed() >> 16
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_signature_says_what_was_written(stream: u16, sequence in 0..=LOW_48, time in 0..=LOW_48) {
            let signature = Signature { stream, sequence, time };
            let bytes = signature.to_bytes();
            prop_assert_eq!(sum(&[&bytes]), u16::MAX);
            prop_assert_eq!(Signature::from_bytes(&bytes), Some(signature));
        }

        #[test]
        fn one_changed_byte_is_noticed(stream: u16, sequence in 0..=LOW_48, at in 0..SIGNATURE_LENGTH, change in 1..=255_u8) {
            let mut bytes = Signature { stream, sequence, time: 1 }.to_bytes();
            bytes[at] ^= change;
            prop_assert_eq!(Signature::from_bytes(&bytes), None);
        }
    }

    #[test]
    fn a_signature_is_found_at_even_offsets() {
        let signature = Signature { stream: 7, sequence: 1 << 40, time: 5 };
        let mut frame = vec![0xff; 92];
        frame.extend(signature.to_bytes());
        for expected in [0, 42, 92, 93, usize::MAX] {
            assert_eq!(
                Signature::find(&frame, expected),
                Some(Found { offset: 92, signature }),
                "{expected}"
            );
        }
        assert_eq!(Signature::find(&frame[..109], 92), None);
        frame.insert(0, 0);
        assert_eq!(Signature::find(&frame, 0), None);
    }

    #[test]
    fn ages_survive_the_wrap_and_disagreeing_clocks() {
        let sent_at = |time: u64| Signature { stream: 0, sequence: 0, time: time & LOW_48 };
        assert_eq!(sent_at((1 << 48) - 10).age((1 << 48) + 5), 15);
        assert_eq!(sent_at(1 << 50).age((1 << 50) + 1_000), 1_000);
        assert_eq!(sent_at(5_000).age(4_000), -1_000);
    }
}
