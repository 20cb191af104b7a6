//! Numbers as people write them and read them.

use weir_render::quantities;
pub(crate) use weir_render::quantities::duration;
pub(crate) use weir_render::units::{bytes, elapsed, grouped, scaled};

/// Packets a second, with the unit.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match quantities::rate(text)? {
        (rate, false) if (1.0..=1e12).contains(&rate) => Ok(rate),
        _ => Err("allowed is a rate from 1pps to 1000Gpps, such as 500kpps or 148.8Mpps".to_owned()),
    }
}

/// A number that looks random, the same for the same number: the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators).
pub(crate) fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// What SplitMix64 adds to its state.
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Packets, of which there cannot be too many.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is no number of packets becomes 0"
)]
pub(crate) fn whole(packets: f64) -> u64 {
    packets as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_packets() {
        assert_eq!(rate("500kpps"), Ok(5e5));
        for text in ["5M", "0pps", "2000Gpps", "0.5pps", "5Mbps"] {
            assert!(rate(text).is_err_and(|error| error.contains("500kpps")), "{text}");
        }
    }
}
