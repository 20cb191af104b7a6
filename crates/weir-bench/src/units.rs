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
