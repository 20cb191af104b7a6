//! The sizes of frames.

use std::str::FromStr;

use crate::random::Random;

/// The longest frame, in bytes: the longest packet of IPv4 in an Ethernet frame.
pub(crate) const LONGEST: u32 = 14 + 65_535;
/// The shortest Ethernet frame.
pub(crate) const SHORTEST: u32 = 60;
/// Sizes of a table that has several: so many that they do not go in step with flows in turn.
const ENOUGH: usize = 4096;

/// Sizes of frames: bytes from the Ethernet header on, without the frame check sequence. As text: `SIZE`, `FIRST-LAST` or
/// `imix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Fixed(u32),
    /// Each from the first to the last equally often, in random order.
    Range(u32, u32),
    /// Of twelve frames in a row seven have 60 bytes, four 590 and one 1514, in random order. Where headers and signature
    /// need more than 60, the shortest frames that have room replace these.
    Imix,
}

impl Sizes {
    /// Returns the least and the greatest size. `least`: that of a frame with nothing but headers and signature.
    pub(crate) fn limits(&self, least: u32) -> (u32, u32) {
        match *self {
            Self::Fixed(size) => (size, size),
            Self::Range(first, last) => (first, last),
            Self::Imix => (least.max(SHORTEST), 1514),
        }
    }

    /// Returns the sizes in turn.
    pub(crate) fn table(&self, least: u32, random: &mut Random) -> Vec<u32> {
        let mut round: Vec<u32> = match *self {
            Self::Fixed(size) => return vec![size],
            Self::Range(first, last) => (first..=last).collect(),
            Self::Imix => {
                let short = least.max(SHORTEST);
                [[short; 7].as_slice(), &[590; 4], &[1514]].concat()
            }
        };
        let mut table = Vec::new();
        while table.len() < ENOUGH {
            random.shuffle(&mut round);
            table.extend_from_slice(&round);
        }
        table
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed: bytes such as 60, a range such as 60-1514, or imix";
        let size = |text: &str| {
            let size = text.parse().ok().filter(|&size: &u32| size <= LONGEST);
            size.ok_or_else(|| format!("`{text}` is no size of up to {LONGEST} bytes; {ALLOWED}"))
        };
        if text.eq_ignore_ascii_case("imix") {
            return Ok(Self::Imix);
        }
        match text.split_once('-') {
            None => Ok(Self::Fixed(size(text)?)),
            Some((first, last)) => match (size(first)?, size(last)?) {
                (first, last) if first > last => {
                    Err(format!("the last size is less than the first; {ALLOWED}"))
                }
                (first, last) if first == last => Ok(Self::Fixed(first)),
                (first, last) => Ok(Self::Range(first, last)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_text() {
        for (text, sizes) in [
            ("60", Sizes::Fixed(60)),
            ("64-64", Sizes::Fixed(64)),
            ("60-1514", Sizes::Range(60, 1514)),
            ("IMIX", Sizes::Imix),
        ] {
            assert_eq!(text.parse(), Ok(sizes), "{text}");
        }
        for (text, why) in
            [("", "no size"), ("65550", "no size"), ("9-8", "less than the first"), ("60-", "no size")]
        {
            let error = text.parse::<Sizes>().expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{text}: {error}");
        }
    }

    #[test]
    fn tables_have_the_shares_that_were_asked_for() {
        let table = Sizes::Range(60, 1514).table(60, &mut Random::new(1));
        assert!(table.len() >= ENOUGH && table.len().is_multiple_of(1455));
        for round in table.chunks(1455) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(60..=1514));
            assert_ne!(round[..2], [60, 61], "in order");
        }
        let table = Sizes::Imix.table(80, &mut Random::new(1));
        for dozen in table.chunks(12) {
            let of = |size| dozen.iter().filter(|&&other| other == size).count();
            assert_eq!([of(80), of(590), of(1514)], [7, 4, 1]);
        }
        assert!(table.chunks(12).any(|dozen| dozen != &table[..12]), "always the same order");
    }
}
