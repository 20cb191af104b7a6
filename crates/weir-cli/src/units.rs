//! Parses sizes, durations and counts, with error messages that say what is allowed, and prints local time.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
pub(crate) use weir_render::quantities::{duration, rate};
use weir_render::quantities::{lookup, scale, split};
pub(crate) use weir_render::units::{brief, bytes, elapsed, grouped, packets, scaled};

/// Units of a size in bytes. A single letter is binary, as in every capture tool; `KB` is decimal, as in the standard.
const SIZE_UNITS: [(&str, u64); 13] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// Parses a size in bytes, the default unit.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const ALLOWED: &str = "allowed: a size above 0, such as 65536, 256K, 4MiB or 1GB";
    let (number, unit) = split(text).map_err(|what| format!("{what}; {ALLOWED}"))?;
    let factor = if unit.is_empty() { Some(1) } else { lookup(&SIZE_UNITS, unit) };
    let factor = factor.ok_or_else(|| {
        format!("unknown unit `{unit}`; allowed: B, K or KiB, M or MiB, G or GiB (powers of 1024), KB, MB, GB (powers of 1000)")
    })?;
    scale(number, factor).map_err(|what| format!("{what}; {ALLOWED}"))
}

/// Parses a size with a mandatory unit, for options where other tools have units of their own.
pub(crate) fn size_with_unit(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if text.trim().ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "the unit is missing (tcpdump assumes KiB, dumpcap MiB); write {0}KiB or {0}MiB",
            text.trim()
        ));
    }
    Ok(bytes)
}

/// Parses the size of a file with a mandatory unit, because other tools have units of their own.
pub(crate) fn file_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if text.trim().ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "the unit is missing (tcpdump assumes MB, dumpcap KB); write {0}MB or {0}KB",
            text.trim()
        ));
    }
    Ok(bytes)
}

/// Parses a size that fits 32 bits.
pub(crate) fn size_u32(text: &str) -> Result<u32, String> {
    let bytes = size(text)?;
    u32::try_from(bytes).map_err(|_| "too large; allowed: less than 4GiB".to_owned())
}

/// Parses the size of a chunk.
pub(crate) fn chunk_size(text: &str) -> Result<u32, String> {
    let bytes = size(text)?;
    let bytes = u32::try_from(bytes).ok().filter(|bytes| (4 << 10..=1 << 30).contains(bytes));
    bytes.ok_or_else(|| "allowed: 4KiB to 1GiB".to_owned())
}

/// Parses a snap length in bytes; 0 means the maximum, as in tcpdump.
pub(crate) fn snap_len(text: &str) -> Result<u32, String> {
    const LARGEST: u32 = 262_144;
    if text.trim() == "0" {
        return Ok(LARGEST);
    }
    match size(text) {
        Ok(bytes) => u32::try_from(bytes).ok().filter(|&bytes| bytes <= LARGEST),
        Err(_) => None,
    }
    .ok_or_else(|| format!("allowed: 1 to {LARGEST} bytes; 0 means {LARGEST}"))
}

/// Parses a number of packets or chunks, above 0.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match text.trim().parse::<u64>() {
        Ok(0) | Err(_) => Err("must be a whole number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// Parses a number of files, above 0.
pub(crate) fn files(text: &str) -> Result<u32, String> {
    let files = text.trim().parse().ok().filter(|&files: &u32| files > 0);
    files.ok_or_else(|| "must be a whole number of at least 1".to_owned())
}

/// Parses a number of chunks. Whether they fit into memory is checked by the engine.
pub(crate) fn chunks(text: &str) -> Result<u32, String> {
    let chunks = text.trim().parse().ok().filter(|&chunks: &u32| chunks >= 2);
    chunks.ok_or_else(|| "must be a whole number of at least 2".to_owned())
}

/// Parses a duration; a number without a unit is in seconds, as with `-G` of tcpdump.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        true => duration(&format!("{text}s")),
        false => duration(text),
    }
}

/// Parses a factor: `2.5x`, `0.5`.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    const ALLOWED: &str = "allowed: a factor above 0, such as 2x, 2.5x or 0.1x";
    let (number, unit) = split(text).map_err(|what| format!("{what}; {ALLOWED}"))?;
    if !unit.is_empty() && !unit.eq_ignore_ascii_case("x") {
        return Err(format!("unknown unit `{unit}`; {ALLOWED}"));
    }
    let factor = number.times(1);
    if factor > 0.0 { Ok(factor) } else { Err(format!("zero; {ALLOWED}")) }
}

/// Formats a date and local time, with nanoseconds.
pub(crate) fn local_time(timestamp: u64) -> String {
    match Timestamp::from_nanosecond(timestamp.into()) {
        Ok(instant) => instant.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S.%9f").to_string(),
        Err(_) => timestamp.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_read() {
        let table = [
            ("1", 1),
            ("65536", 65_536),
            ("512B", 512),
            ("4K", 4_096),
            ("4k", 4_096),
            ("4KiB", 4_096),
            ("4KB", 4_000),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("64MB", 64_000_000),
            ("64 MiB", 64 << 20),
            (" 1G ", 1 << 30),
            ("1GB", 1_000_000_000),
            ("1.5GiB", 3 << 29),
            ("0.5K", 512),
            ("2T", 2 << 40),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, expected) in table {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn sizes_that_are_refused_say_what_is_allowed() {
        let table = [
            ("", "not a number"),
            ("K", "not a number"),
            (".5K", "not a number"),
            ("1.K", "not a number"),
            ("1.2.3K", "not a number"),
            ("0", "zero"),
            ("0.0001B", "whole number"),
            ("0.0001K", "zero"),
            ("-1", "negative"),
            ("-64MiB", "negative"),
            ("64QB", "unknown unit `QB`"),
            ("64Mbit", "unknown unit"),
            ("18446744073709551616", "too large"),
            ("99999999999T", "too large"),
            ("1.0000000001K", "nine decimals"),
        ];
        for (text, expected) in table {
            let error = size(text).expect_err(text);
            assert!(error.contains(expected) && error.contains("allowed"), "{text}: {error}");
        }
    }

    #[test]
    fn pool_sizes_need_a_unit() {
        assert_eq!(size_with_unit("64MiB"), Ok(64 << 20));
        assert_eq!(size_with_unit("1048576B"), Ok(1 << 20));
        let error = size_with_unit("64").expect_err("no unit");
        assert!(error.contains("64KiB") && error.contains("64MiB"), "{error}");
        assert!(size_with_unit("0").expect_err("zero").contains("zero"));
    }

    #[test]
    fn file_sizes_need_a_unit() {
        assert_eq!(file_size("100MB"), Ok(100_000_000));
        let error = file_size("100").expect_err("no unit");
        assert!(error.contains("100MB") && error.contains("tcpdump"), "{error}");
    }

    #[test]
    fn snap_lengths() {
        assert_eq!(snap_len("0"), Ok(262_144));
        assert_eq!(snap_len("96"), Ok(96));
        assert_eq!(snap_len("64K"), Ok(65_536));
        assert_eq!(snap_len("256KiB"), Ok(262_144));
        for text in ["262145", "1G", "-1", "x", ""] {
            assert!(snap_len(text).expect_err(text).contains("1 to 262144"), "{text}");
        }
    }

    #[test]
    fn counts() {
        assert_eq!(count("1"), Ok(1));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        for text in ["0", "-1", "1.5", "1K", "", "18446744073709551616"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert_eq!(chunks("64"), Ok(64));
        for text in ["0", "1", "-2", "4294967296"] {
            assert!(chunks(text).expect_err(text).contains("at least 2"), "{text}");
        }
        assert_eq!(chunk_size("4K"), Ok(4096));
        for text in ["4095", "1025MiB", "8GiB"] {
            assert!(chunk_size(text).expect_err(text).contains("4KiB to 1GiB"), "{text}");
        }
        assert_eq!(size_u32("1MiB"), Ok(1 << 20));
        assert!(size_u32("4GiB").is_err());
    }

    #[test]
    fn durations_that_are_read() {
        let table = [
            ("10s", Duration::from_secs(10)),
            ("500ms", Duration::from_millis(500)),
            ("250us", Duration::from_micros(250)),
            ("2m", Duration::from_secs(120)),
            ("1.5m", Duration::from_secs(90)),
            ("1h", Duration::from_secs(3600)),
            ("365d", Duration::from_secs(365 * 86_400)),
        ];
        for (text, expected) in table {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_number_alone_is_in_seconds_where_tcpdump_says_so() {
        assert_eq!(seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(seconds("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "0", "-5", "1.5", "99999999999999999999"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_that_are_refused() {
        let table = [
            ("10", "write 10s"),
            ("0s", "zero"),
            ("-5s", "negative"),
            ("5 parsecs", "unknown unit"),
            ("366d", "365d"),
            ("9999999999999h", "too large"),
            ("", "not a number"),
        ];
        for (text, expected) in table {
            let error = duration(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn rates_and_speeds() {
        let table = [
            ("500kpps", (500_000.0, false)),
            ("1pps", (1.0, false)),
            ("2.5pps", (2.5, false)),
            ("1.9pps", (1.9, false)),
            ("0.5pps", (0.5, false)),
            ("0.0025kpps", (2.5, false)),
            ("0.5bps", (0.5, true)),
            ("2Gbps", (2e9, true)),
            ("2.5 gbit/s", (2.5e9, true)),
            ("100Mbps", (1e8, true)),
        ];
        for (text, expected) in table {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("500", "write 500pps"),
            ("0pps", "zero"),
            ("0.0kpps", "zero"),
            ("-1pps", "negative"),
            ("5mps", "unknown unit"),
        ] {
            let error = rate(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (text, expected) in [("2.5x", 2.5), ("0.5", 0.5), ("1X", 1.0)] {
            assert_eq!(speed(text), Ok(expected), "{text}");
        }
        for text in ["0", "x", "-1x", "2y", ""] {
            assert!(speed(text).expect_err(text).contains("2.5x"), "{text}");
        }
    }
}
