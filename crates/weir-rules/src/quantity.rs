//! Times and rates, as rules write them.

use std::time::Duration;

/// So many packets in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of packets.
    pub packets: u64,
    /// The period: a second, a minute or an hour.
    pub period: Duration,
}

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;

/// Units of a time, in nanoseconds.
const TIMES: [(&str, u64); 5] =
    [("ms", MILLISECOND), ("s", SECOND), ("m", 60 * SECOND), ("h", 3600 * SECOND), ("d", 86_400 * SECOND)];

/// What a rate is per, in nanoseconds.
const PERIODS: [(&str, u64); 3] = [("s", SECOND), ("min", 60 * SECOND), ("h", 3600 * SECOND)];

/// The longest time, as for options.
const LONGEST: u64 = 365 * 86_400 * SECOND;

/// The highest number in a rate: a second's worth of it, in nanoseconds, fits 64 bits.
const HIGHEST: u64 = 1_000_000_000;

/// Parses `30s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    const ALLOWED: &str = "allowed: a time such as 500ms, 30s, 5m or 1h";
    let (number, unit) = split(text);
    let number: u64 = number.parse().map_err(|_| ALLOWED.to_owned())?;
    let factor = factor(&TIMES, unit).ok_or_else(|| match unit {
        "" => format!("the unit is missing: write {number}s for seconds"),
        _ => ALLOWED.to_owned(),
    })?;
    match number.checked_mul(factor).filter(|&time| time <= LONGEST) {
        Some(0) => Err(ALLOWED.to_owned()),
        Some(time) => Ok(Duration::from_nanos(time)),
        None => Err("too long; allowed: up to 365d".to_owned()),
    }
}

/// Parses `100/s`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    const ALLOWED: &str = "allowed: a rate such as 100/s, 6000/min or 10/h";
    let (number, per) = split(text);
    let number: u64 = number.parse().map_err(|_| ALLOWED.to_owned())?;
    let period = per.strip_prefix('/').and_then(|unit| factor(&PERIODS, unit));
    let period = period.ok_or_else(|| match per {
        "" => format!("the period is missing: write {number}/s for a second"),
        _ => ALLOWED.to_owned(),
    })?;
    match number {
        1..=HIGHEST => Ok(Rate { packets: number, period: Duration::from_nanos(period) }),
        _ => Err("allowed: 1 to 1000000000 packets".to_owned()),
    }
}

/// Writes a time as it is read.
pub(crate) fn time_text(time: Duration) -> String {
    text(&TIMES, time)
}

/// Writes how long an exact rule is in force, as it is read: `for 30s`, `for 30s idle`.
pub(crate) fn lasting_text(time: Duration, idle: bool) -> String {
    format!("for {}{}", time_text(time), if idle { " idle" } else { "" })
}

/// Writes a rate as it is read.
pub(crate) fn rate_text(rate: Rate) -> String {
    let period = u64::try_from(rate.period.as_nanos()).unwrap_or(u64::MAX);
    let unit = PERIODS.iter().find(|(_, each)| *each == period).map_or("", |(unit, _)| unit);
    format!("{}/{unit}", rate.packets)
}

fn text(units: &[(&str, u64)], time: Duration) -> String {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let largest = units.iter().rev().find(|(_, factor)| time % factor == 0);
    largest.map_or_else(|| format!("{time}ns"), |(unit, factor)| format!("{}{unit}", time / factor))
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_written_as_they_are_read() {
        for text in ["500ms", "1500ms", "30s", "90s", "5m", "1h", "36h", "7d"] {
            assert_eq!(time(text).map(time_text).as_deref(), Ok(text));
        }
        for text in ["100/s", "6000/min", "10/h", "1000000000/s"] {
            assert_eq!(rate(text).map(rate_text).as_deref(), Ok(text));
        }
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(rate("6000/min"), Ok(Rate { packets: 6000, period: Duration::from_secs(60) }));
    }

    #[test]
    fn what_is_refused() {
        for text in ["", "s", "0s", "-1s", "1.5s", "1", "1sec", "366d", "99999999999999999999s"] {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["", "0/s", "1", "1/", "100/ms", "1000000001/s", "a/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
