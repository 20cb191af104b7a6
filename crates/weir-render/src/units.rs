//! Numbers as people read them.

use std::time::Duration;

pub use weir::parts::{grouped, packets};

/// Formats three significant digits with a decimal prefix: `12.4 M`, `950 `. The unit follows directly.
pub fn scaled(value: f64) -> String {
    prefixed(value, 1000.0, &["", "k", "M", "G", "T", "P"])
}

/// Formats bytes with a binary prefix: `3.17 GiB`.
pub fn bytes(value: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = value as f64;
    prefixed(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// Formats a duration in the most readable unit: `850 ms`, `12.3 s`, `1 h 02 min`.
pub fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats a short time with three digits: `850 ns`, `3.10 us`, `42.0 ms`; from a second on, as [`elapsed`].
pub fn brief(duration: Duration) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let nanoseconds = duration.as_nanos() as f64;
    match duration.as_secs() {
        0 => format!("{}s", prefixed(nanoseconds, 1000.0, &["n", "u", "m"])),
        _ => elapsed(duration),
    }
}

fn prefixed(mut value: f64, step: f64, prefixes: &[&str]) -> String {
    let mut prefixes = prefixes.iter();
    let mut prefix = prefixes.next().copied().unwrap_or_default();
    let unscaled = value;
    // From 999.5, three digits would round up to four.
    while value >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        value /= step;
        prefix = next;
    }
    if unscaled < 999.5 && value.fract() == 0.0 || value >= 99.95 {
        format!("{value:.0} {prefix}")
    } else if value >= 9.995 {
        format!("{value:.1} {prefix}")
    } else {
        format!("{value:.2} {prefix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times() {
        let table = [(0, "0 ns"), (850, "850 ns"), (3_100, "3.10 us"), (42_000_000, "42.0 ms")];
        for (nanoseconds, expected) in table {
            assert_eq!(brief(Duration::from_nanos(nanoseconds)), expected);
        }
        assert_eq!(brief(Duration::from_millis(1500)), "1.5 s");
    }

    #[test]
    fn numbers_as_people_read_them() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        for (number, expected) in [
            (0.0, "0 "),
            (7.0, "7 "),
            (7.25, "7.25 "),
            (999.0, "999 "),
            (999.7, "1.00 k"),
            (12_400_000.0, "12.4 M"),
            (999_960.0, "1.00 M"),
            (1.5e9, "1.50 G"),
        ] {
            assert_eq!(scaled(number), expected);
        }
        for (number, expected) in
            [(0, "0 B"), (1023, "1.00 KiB"), (1 << 20, "1.00 MiB"), (50 << 20, "50.0 MiB")]
        {
            assert_eq!(bytes(number), expected);
        }
        for (duration, expected) in [
            (Duration::from_millis(850), "850 ms"),
            (Duration::from_millis(12_340), "12.3 s"),
            (Duration::from_secs(62), "1 min 02 s"),
            (Duration::from_secs(3_780), "1 h 03 min"),
        ] {
            assert_eq!(elapsed(duration), expected);
        }
    }
}
