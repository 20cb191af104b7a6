//! Durations and counts as people write them.

use std::time::Duration;

pub(crate) use weir_render::units::{bytes, elapsed, grouped, scaled};

/// A duration with its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const ALLOWED: &str = "allowed is a time above 0 such as 500ms, 10s, 1.5m or 1h, up to 365d";
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(ALLOWED.to_owned()),
    };
    let seconds = number.parse::<f64>().map_err(|_| ALLOWED)? * seconds;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| ALLOWED)?;
    let allowed = Duration::from_nanos(1)..=Duration::from_secs(365 * 86_400);
    if allowed.contains(&duration) { Ok(duration) } else { Err(ALLOWED.to_owned()) }
}

/// Packets a second, with the unit.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("pps").map(|number| match number.as_bytes().last() {
        Some(b'k') => (&number[..number.len() - 1], 1e3),
        Some(b'M') => (&number[..number.len() - 1], 1e6),
        Some(b'G') => (&number[..number.len() - 1], 1e9),
        _ => (number, 1.0),
    });
    let rate = number.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    let rate = rate.filter(|rate| (1.0..=1e12).contains(rate));
    rate.ok_or_else(|| "allowed is a rate such as 500kpps, 148.8Mpps or 1Gpps".to_owned())
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
    fn durations() {
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for text in ["", "10", "0s", "-5s", "5 parsecs", "366d", "1.2.3s", ".s"] {
            assert!(duration(text).is_err_and(|error| error.contains("500ms")), "{text}");
        }
    }

    #[test]
    fn rates() {
        for (text, expected) in [("148.8Mpps", 148.8e6), ("500kpps", 5e5), ("7pps", 7.0), ("1Gpps", 1e9)] {
            assert!(rate(text).is_ok_and(|rate| (rate / expected - 1.0).abs() < 1e-9), "{text}");
        }
        for text in
            ["", "pps", "Mpps", "5", "5M", "-5pps", "NaNpps", "infpps", "1.2.3pps", "0pps", "2000Gpps"]
        {
            assert!(rate(text).is_err_and(|error| error.contains("500kpps")), "{text}");
        }
    }
}
