//! Several filters in a function, which returns the number of the first that accepts the packet.

use super::code::Outcome;
use super::crowd::{Member, crowd};
use super::{Context, Error, Program};
use crate::graph::Graph;
use crate::set::Set;

/// What [`first`] returns if no filter accepts the packet.
pub const NONE: u32 = u32::MAX;

/// A filter that is asked for some packets.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The filter.
    pub graph: &'a Graph,
    /// Its sets.
    pub sets: &'a [Set],
    /// The bits of the function's memory of which one must be set for the filter to be asked: from bit `first` of its 64-bit words
    /// on, as many.
    pub bits: (u32, u32),
}

/// Generates a function that asks those `filters` whose bits are set, in order, and returns the first bit of the first that
/// accepts the packet, or [`NONE`]. The function has the arguments of [`counting`](super::counting()); the second is the address of
/// the bits.
///
/// Sets are numbered as if the filters' sets were concatenated.
///
/// # Errors
///
/// Fails if a filter or all together would be too long for the kernel, or if a filter has more verdicts than acceptance
/// and rejection.
///
/// # Panics
///
/// If a bit is beyond 2^17.
pub fn first(filters: &[Candidate<'_>], context: Context) -> Result<Program, Error> {
    let members = filters.iter().map(|&Candidate { graph, sets, bits: (first, count) }| {
        Member::new((graph, sets), Outcome::Answer(first), guards(first, count))
    });
    crowd(members.collect(), NONE, context)
}

/// Returns the halves of words in which bits are, with these bits.
fn guards(first: u32, count: u32) -> Vec<(i16, u32)> {
    let end = first + count;
    let of = |half: u32| {
        let (from, to) = (first.max(half * 32) - half * 32, end.min(half * 32 + 32) - half * 32);
        let bits = (u64::MAX >> (64 - (to - from))) << from;
        // Halves of a word are in the processor's order.
        let place = if cfg!(target_endian = "big") { half ^ 1 } else { half };
        (i16::try_from(place * 4).expect("few bits"), u32::try_from(bits).expect("32 bits"))
    };
    (first / 32..end.div_ceil(32)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_in_halves_of_words() {
        let swapped = i16::from(cfg!(target_endian = "big")) * 4;
        assert_eq!(guards(0, 1), [(swapped, 1)]);
        assert_eq!(guards(31, 1), [(swapped, 1 << 31)]);
        assert_eq!(guards(31, 2), [(swapped, 1 << 31), (4 - swapped, 1)]);
        assert_eq!(guards(64, 32), [(8 + swapped, u32::MAX)]);
        assert_eq!(guards(70, 3), [(8 + swapped, 0b111 << 6)]);
    }
}
