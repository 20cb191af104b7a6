//! What follows the signature in a frame.

use std::str::FromStr;

use crate::random::Random;

/// The number of a frame at the end of its payload: the low 32 bits and their complement.
pub(crate) const TAIL: usize = 8;

/// What a payload has behind its signature. As text: `zeros` or `pattern`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing but zeros.
    Zeros,
    /// A pattern without a period. In the last eight bytes, if there are as many, the low half of the sequence and its
    /// complement. So a frame that is changed, shifted or cut anywhere is noticed, and one that ends as another. Sizes
    /// must all be the same.
    Pattern,
}

impl Payload {
    /// Returns this many bytes, but for the number at their end. Their sum, like the number's, does not change a
    /// checksum: every other half of a block complements the one before.
    pub(crate) fn bytes(self, length: usize) -> Vec<u8> {
        let blocks = match self {
            Self::Zeros => 0,
            Self::Pattern => length.saturating_sub(TAIL) / 8,
        };
        let mut random = Random::new(0);
        let mut block = |_| {
            let [a, b, c, d, ..] = random.next().to_be_bytes();
            [a, b, c, d, !a, !b, !c, !d]
        };
        let mut bytes: Vec<u8> = (0..blocks).flat_map(&mut block).collect();
        bytes.resize(length, 0);
        bytes
    }
}

/// Returns the end of a frame whose payload is a pattern.
pub(crate) fn tail(sequence: u64) -> [u8; TAIL] {
    let [.., a, b, c, d] = sequence.to_be_bytes();
    [a, b, c, d, !a, !b, !c, !d]
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "zeros" => Ok(Self::Zeros),
            "pattern" => Ok(Self::Pattern),
            _ => Err(format!("`{text}` is no payload; allowed: zeros or pattern")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::sum;

    #[test]
    fn a_pattern_leaves_checksums_alone() {
        for length in 0..100 {
            let bytes = Payload::Pattern.bytes(length);
            assert_eq!(bytes.len(), length);
            for offset in [0, 1] {
                let all = [&[0; 1][..offset], &bytes, &tail(0x1234_5678_9abc_def0)].concat();
                assert!([0, u16::MAX].contains(&sum(&[&all])), "{length} bytes at {offset}");
            }
            assert_eq!(bytes.iter().any(|&byte| byte != 0), length >= 16, "{length}");
        }
    }

    #[test]
    fn a_pattern_has_no_period() {
        let bytes = Payload::Pattern.bytes(1500);
        for shift in 1..700 {
            assert_ne!(bytes[..700], bytes[shift..][..700], "{shift}");
        }
    }

    #[test]
    fn payloads_as_text() {
        assert_eq!("zeros".parse(), Ok(Payload::Zeros));
        assert_eq!("pattern".parse(), Ok(Payload::Pattern));
        assert!("ones".parse::<Payload>().expect_err("unknown").contains("allowed: zeros or pattern"));
    }
}
