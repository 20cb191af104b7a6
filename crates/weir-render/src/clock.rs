//! Timestamps of printed packets, in tcpdump's formats.

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const SECOND: u64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// The format of timestamps, with the options of tcpdump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `13:05:01.123456`, local time.
    Clock,
    /// None (`-t`).
    None,
    /// Seconds since the Unix epoch (`-tt`).
    Epoch,
    /// Since the previous packet (`-ttt`).
    SincePrevious,
    /// Date and local time (`-tttt`).
    Date,
    /// Since the first packet (`-ttttt`).
    SinceFirst,
}

/// Prints timestamps.
#[derive(Debug)]
pub struct Clock {
    style: Style,
    nanoseconds: bool,
    zone: TimeZone,
    /// The minute since the epoch for which `offset` and `date` are valid. Time zones change on whole minutes.
    minute: Option<u64>,
    /// Seconds from UTC to local time.
    offset: i64,
    /// `2026-11-21 `, for [`Style::Date`].
    date: Vec<u8>,
    /// The second, since the epoch, that `second_text` shows: packets of one second are many.
    second: Option<u64>,
    /// `13:05:01`, after the date for [`Style::Date`].
    second_text: Vec<u8>,
    /// The time from which differences are counted.
    reference: Option<u64>,
}

impl Clock {
    /// `nanoseconds`: nine digits of a second instead of six. `zone`: where local time is.
    pub fn new(style: Style, nanoseconds: bool, zone: TimeZone) -> Self {
        Self {
            style,
            nanoseconds,
            zone,
            minute: None,
            offset: 0,
            date: Vec::new(),
            second: None,
            second_text: Vec::new(),
            reference: None,
        }
    }

    /// Appends a time, given in nanoseconds since the epoch, and a space.
    pub fn write(&mut self, timestamp: u64, line: &mut Vec<u8>) {
        match self.style {
            Style::None => return,
            Style::Clock | Style::Date => {
                if self.second != Some(timestamp / SECOND) {
                    self.enter_second(timestamp);
                }
                line.extend_from_slice(&self.second_text);
            }
            Style::Epoch => number(timestamp / SECOND, 1, line),
            Style::SincePrevious | Style::SinceFirst => {
                let reference = *self.reference.get_or_insert(timestamp);
                if self.style == Style::SincePrevious {
                    self.reference = Some(timestamp);
                }
                line.push(if timestamp < reference { b'-' } else { b' ' });
                let difference = timestamp.abs_diff(reference);
                of_day(difference / SECOND, line);
                self.fraction(difference, line);
                line.push(b' ');
                return;
            }
        }
        self.fraction(timestamp, line);
        line.push(b' ');
    }

    fn fraction(&self, time: u64, line: &mut Vec<u8>) {
        let mut text = *b".000000000";
        let mut rest = time % SECOND;
        for digit in text[1..].iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        match self.nanoseconds {
            true => line.extend_from_slice(&text),
            false => line.extend_from_slice(&text[..7]),
        }
    }

    /// Prints the date and the time of day of another second.
    fn enter_second(&mut self, timestamp: u64) {
        self.second = Some(timestamp / SECOND);
        self.local(timestamp);
        self.second_text.clear();
        if self.style == Style::Date {
            self.second_text.extend_from_slice(&self.date);
        }
        let seconds = i64::try_from(timestamp / SECOND).unwrap_or(0) + self.offset;
        of_day(u64::try_from(seconds.rem_euclid(DAY)).unwrap_or(0), &mut self.second_text);
    }

    /// Looks up the time zone's offset and the date, once per minute of packet time.
    fn local(&mut self, timestamp: u64) {
        let minute = timestamp / (60 * SECOND);
        if self.minute == Some(minute) {
            return;
        }
        self.minute = Some(minute);
        let seconds = i64::try_from(timestamp / SECOND).unwrap_or(0);
        // Times outside the calendar are shown as UTC on the day of the epoch.
        let Ok(instant) = Timestamp::from_second(seconds) else { return };
        self.offset = self.zone.to_offset(instant).seconds().into();
        self.date.clear();
        let local = instant.to_zoned(self.zone.clone());
        let _cannot_fail = write!(self.date, "{} ", local.date());
    }
}

/// Appends `hh:mm:ss`, with more hours than a day has if necessary.
fn of_day(seconds: u64, line: &mut Vec<u8>) {
    number(seconds / 3600, 2, line);
    line.push(b':');
    number(seconds / 60 % 60, 2, line);
    line.push(b':');
    number(seconds % 60, 2, line);
}

/// Appends a decimal number, with leading zeros up to `width` digits.
fn number(mut number: u64, width: usize, line: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    line.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(style: Style, nanoseconds: bool, zone: &str, times: &[u64]) -> Vec<String> {
        let mut clock = Clock::new(style, nanoseconds, TimeZone::posix(zone).expect("a zone"));
        let line = |time: &u64| {
            let mut line = Vec::new();
            clock.write(*time, &mut line);
            String::from_utf8(line).expect("ASCII")
        };
        times.iter().map(line).collect()
    }

    #[test]
    fn each_style() {
        // 2023-11-14 22:13:20 UTC.
        let first = 1_700_000_000_123_456_789;
        let times = [first, first + 61_000_001_000, first + 1_000];
        assert_eq!(
            lines(Style::Clock, false, "UTC0", &times),
            ["22:13:20.123456 ", "22:14:21.123457 ", "22:13:20.123457 "]
        );
        assert_eq!(lines(Style::Clock, true, "IST-5:30", &times)[0], "03:43:20.123456789 ");
        assert_eq!(lines(Style::Clock, false, "EST5EDT,M3.2.0,M11.1.0", &times)[0], "17:13:20.123456 ");
        assert_eq!(lines(Style::None, false, "UTC0", &times), ["", "", ""]);
        assert_eq!(lines(Style::Epoch, true, "IST-5:30", &times)[0], "1700000000.123456789 ");
        assert_eq!(lines(Style::Epoch, false, "UTC0", &[0, 999]), ["0.000000 ", "0.000000 "]);
        assert_eq!(
            lines(Style::SincePrevious, false, "UTC0", &times),
            [" 00:00:00.000000 ", " 00:01:01.000001 ", "-00:01:01.000000 "]
        );
        assert_eq!(
            lines(Style::SinceFirst, true, "UTC0", &times),
            [" 00:00:00.000000000 ", " 00:01:01.000001000 ", " 00:00:00.000001000 "]
        );
        assert_eq!(lines(Style::Date, false, "IST-5:30", &times)[0], "2023-11-15 03:43:20.123456 ");
    }

    #[test]
    fn times_at_the_edges() {
        for style in [Style::Clock, Style::Epoch, Style::Date, Style::SinceFirst] {
            let shown = lines(style, true, "EST5", &[u64::MAX, 0, u64::MAX - 1]);
            assert!(shown.iter().all(|line| line.ends_with(' ') && line.is_ascii()), "{shown:?}");
        }
        assert_eq!(lines(Style::Date, false, "EST5", &[0])[0], "1969-12-31 19:00:00.000000 ");
    }
}
