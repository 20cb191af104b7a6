//! Points in time for `--from` and `--to`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use crate::units;

/// A point in time on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Nanoseconds since the Unix epoch.
    At(u64),
    /// This long after the first packet, or after an absolute `--from`.
    AfterFirst(Duration),
    /// Local time on the day of the first packet.
    OfDay(Time),
}

impl When {
    /// Returns nanoseconds since the epoch, given the time of the first packet.
    pub(crate) fn absolute(self, first: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::AfterFirst(offset) => {
                first.saturating_add(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
            }
            Self::OfDay(time) => on_day_of(first, time, TimeZone::system()).unwrap_or(first),
        }
    }
}

/// Returns the start and end of the window, given the time of the first packet. A relative `to` counts from `from`, if
/// that is given and not relative, and otherwise from the first packet.
pub(crate) fn window(from: Option<When>, to: Option<When>, first: u64) -> (u64, u64) {
    let start = from.map_or(0, |when| when.absolute(first));
    let counts_from = match (from, to) {
        (Some(When::At(_) | When::OfDay(_)), Some(When::AfterFirst(_))) => start,
        _ => first,
    };
    (start, to.map_or(u64::MAX, |when| when.absolute(counts_from)))
}

fn on_day_of(first: u64, time: Time, zone: TimeZone) -> Option<u64> {
    let day = Timestamp::from_nanosecond(first.into()).ok()?.to_zoned(zone.clone()).date();
    let instant = day.to_datetime(time).to_zoned(zone).ok()?.timestamp();
    u64::try_from(instant.as_nanosecond()).ok()
}

/// Parses `+90s`, `1700000000.5`, `2026-11-21 13:05:00`, `2026-11-21T12:05:00Z`, `13:05:00`.
pub(crate) fn parse(text: &str) -> Result<When, String> {
    parse_in(text, &TimeZone::system())
}

fn parse_in(text: &str, zone: &TimeZone) -> Result<When, String> {
    const ALLOWED: &str = "allowed: `2026-11-21 13:05:00` (local), `2026-11-21T12:05:00Z`, 13:05:00 (on the file's day), 1700000000.5 (epoch), +90s (after the first packet)";
    let text = text.trim();
    if let Some(offset) = text.strip_prefix('+') {
        // Zero is valid here, although it is not a valid duration.
        if matches!(offset, "0" | "0s") {
            return Ok(When::AfterFirst(Duration::ZERO));
        }
        return units::duration(offset).map(When::AfterFirst);
    }
    let at = |instant: Timestamp| {
        let time = u64::try_from(instant.as_nanosecond());
        time.map(When::At).map_err(|_| "before 1970 or after 2554".to_owned())
    };
    if let Some(time) = epoch(text) {
        return Ok(When::At(time));
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return at(instant);
    }
    if let Some(time) = text.contains(':').then(|| text.parse::<Time>().ok()).flatten()
        && text.parse::<DateTime>().is_err()
    {
        return Ok(When::OfDay(time));
    }
    let local: DateTime = text.parse().map_err(|_| format!("not a time; {ALLOWED}"))?;
    let zoned = local.to_zoned(zone.clone()).map_err(|error| format!("{error}; {ALLOWED}"))?;
    at(zoned.timestamp())
}

/// Parses seconds since the epoch, exact to the nanosecond.
fn epoch(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A year alone is not a point in time, and eight digits are a date without dashes, unless there is a fraction.
    if fraction.is_none() && whole.len() < 9 {
        return None;
    }
    let fraction = fraction.unwrap_or("0");
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanoseconds = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_are_read() {
        let zone = TimeZone::posix("IST-5:30").expect("a zone");
        let at = 1_700_000_000_000_000_000;
        let table = [
            ("1700000000", When::At(at)),
            ("1700000000.5", When::At(at + 500_000_000)),
            ("1700000000.000000001", When::At(at + 1)),
            ("0.5", When::At(500_000_000)),
            ("12.000000001", When::At(12_000_000_001)),
            ("2023.25", When::At(2_023_250_000_000)),
            ("2023-11-15 03:43:20", When::At(at)),
            ("2023-11-15T03:43:20.25", When::At(at + 250_000_000)),
            ("2023-11-14T22:13:20Z", When::At(at)),
            ("2023-11-14 23:13:20+01:00", When::At(at)),
            ("2023-11-14", When::At(1_699_900_200_000_000_000)),
            ("+90s", When::AfterFirst(Duration::from_secs(90))),
            ("+0", When::AfterFirst(Duration::ZERO)),
            // The first and the last moment that there is.
            ("1970-01-01T00:00:00Z", When::At(0)),
            ("18446744073.709551615", When::At(u64::MAX)),
            ("2554-07-21T23:34:33.709551615Z", When::At(u64::MAX)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_in(text, &zone), Ok(expected), "{text}");
        }
        assert_eq!(When::AfterFirst(Duration::from_secs(1)).absolute(5), 1_000_000_005);
        assert_eq!(When::AfterFirst(Duration::from_secs(1)).absolute(u64::MAX - 5), u64::MAX);
    }

    #[test]
    fn a_time_is_on_the_day_of_the_first_packet() {
        let zone = TimeZone::posix("IST-5:30").expect("a zone");
        let (first, day) = (1_700_000_000_000_000_000, 1_699_986_600_000_000_000);
        for (text, seconds) in [("16:45:10", 60_310), ("00:00:00", 0), ("16:45", 60_300)] {
            let Ok(When::OfDay(time)) = parse_in(text, &zone) else { panic!("{text}") };
            assert_eq!(on_day_of(first, time, zone.clone()), Some(day + seconds * 1_000_000_000), "{text}");
        }
    }

    #[test]
    fn an_offset_counts_from_an_absolute_start() {
        let second = When::AfterFirst(Duration::from_secs(1));
        assert_eq!(window(Some(When::At(50)), Some(second), 7), (50, 1_000_000_050));
        assert_eq!(window(Some(second), Some(second), 7), (1_000_000_007, 1_000_000_007));
        assert_eq!(window(None, Some(second), 7), (0, 1_000_000_007));
        assert_eq!(window(Some(When::At(50)), None, 7), (50, u64::MAX));
    }

    #[test]
    fn moments_that_are_refused() {
        for text in [
            "",
            "yesterday",
            "2023",
            "2023-13-01",
            "1700000000.",
            ".5",
            "0.1234567890",
            "5.",
            "-5s",
            "1969-12-31T23:59:59.999999999Z",
            "18446744073.709551616",
            "18446744074.0",
            "2554-07-21T23:34:33.709551616Z",
        ] {
            assert!(parse_in(text, &TimeZone::UTC).is_err(), "{text}");
        }
        assert!(parse("+5").expect_err("no unit").contains("5s"));
    }
}
