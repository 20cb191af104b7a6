//! NTP (RFC 5905), and the control messages of version 2 (RFC 9327).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of a message without authentication.
const HEADER: usize = 48;
/// Modes of messages that have no timestamps.
const CONTROL: u8 = 6;
const PRIVATE: u8 = 7;

const MODES: [&str; 8] = [
    "unspecified",
    "symmetric active",
    "symmetric passive",
    "Client",
    "Server",
    "Broadcast",
    "Control Message",
    "Reserved",
];

/// A point in time in units of 2^-32 seconds since 1900; zero if it is not known.
type Moment = u64;

impl Printer<'_> {
    pub(crate) fn ntp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ntp";
        self.facts.protocol = Some("ntp");
        let first = payload.u8(0)?;
        let (version, mode) = (first >> 3 & 7, first & 7);
        put!(self, "NTPv{version}, {}, length {}", MODES[usize::from(mode)], payload.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        let leap = ["", "+1s", "-1s", "clock unsynchronized"][usize::from(first >> 6)];
        put!(self, "\n\tLeap indicator: {leap} ({})", first & 0xc0);
        match mode {
            CONTROL => self.ntp_control(payload),
            PRIVATE => Ok(()),
            _ => self.ntp_times(payload),
        }
    }

    fn ntp_times(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < HEADER {
            self.text(" (invalid)");
            return Ok(());
        }
        let (stratum, poll, precision) = (bytes.u8(1)?, bytes.u8(2)?, bytes.u8(3)?);
        let kind = match stratum {
            0 => "unspecified",
            1 => "primary reference",
            2..=15 => "secondary reference",
            _ => "reserved",
        };
        let poll = i8::from_be_bytes([poll]);
        put!(self, ", Stratum {stratum} ({kind}), poll {poll}");
        match poll {
            0..32 => put!(self, " ({}s)", 1_u32 << poll),
            -31..0 => put!(self, " (1/{}s)", 1_u32 << -poll),
            _ => {}
        }
        put!(self, ", precision {}", i8::from_be_bytes([precision]));
        self.text("\n\tRoot Delay: ");
        self.ntp_seconds(bytes.u32(4)?);
        self.text(", Root dispersion: ");
        self.ntp_seconds(bytes.u32(8)?);
        self.text(", Reference-ID: ");
        match stratum {
            0 => self.text("(unspec)"),
            1 => self.harmless(bytes.get(12, 4)?),
            _ => put!(self, "0x{:08x}", bytes.u32(12)?),
        }
        let moment = |at: usize| Ok(u64::from(bytes.u32(at)?) << 32 | u64::from(bytes.u32(at + 4)?));
        let originator = moment(24)?;
        for (name, at) in [
            ("Reference Timestamp:  ", 16),
            ("Originator Timestamp: ", 24),
            ("Receive Timestamp:    ", 32),
            ("Transmit Timestamp:   ", 40),
        ] {
            put!(self, "\n\t  {name}");
            self.ntp_moment(moment(at)?);
        }
        for (name, at) in [("Receive Timestamp:  ", 32), ("Transmit Timestamp: ", 40)] {
            put!(self, "\n\t    Originator - {name}");
            self.ntp_difference(originator, moment(at)?);
        }
        let more = bytes.len - HEADER;
        if matches!(more, 4 | 20 | 24) {
            put!(self, "\n\tKey id: {}", bytes.u32(HEADER)?);
        }
        match more {
            0 | 4 => {}
            20 | 24 => {
                self.text("\n\tAuthentication: ");
                bytes.get(HEADER + 4, more - 4)?.iter().for_each(|&byte| self.hex_byte(byte));
            }
            _ => put!(self, "\n\t({more} more bytes after the header)"),
        }
        Ok(())
    }

    fn ntp_control(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        if bytes.len < 12 {
            self.text(" (invalid)");
            return Ok(());
        }
        let flags = bytes.u8(1)?;
        let word = |bit: u8, set, clear| if flags & bit != 0 { set } else { clear };
        let (kind, result) = (word(0x80, "Response", "Request"), word(0x40, "Error", "OK"));
        put!(self, ", {kind}, {result}, {}, OpCode={}", word(0x20, "More", "Last"), flags & 0x1f);
        put!(self, "\n\tSequence={}, Status=", bytes.u16(2)?);
        match bytes.u16(4)? {
            0 => self.text("0"),
            status => put!(self, "{status:#x}"),
        }
        let (association, offset, count) = (bytes.u16(6)?, bytes.u16(8)?, bytes.u16(10)?);
        put!(self, ", Assoc.={association}, Offset={offset}, Count={count}");
        if bytes.len > 12 {
            self.text("\n\tTO-BE-DONE: data not interpreted");
        }
        Ok(())
    }

    /// Prints a number with 16 bits after the point.
    fn ntp_seconds(&mut self, number: u32) {
        put!(self, "{}.{:06}", number >> 16, (u64::from(number & 0xffff) * 1_000_000) >> 16);
    }

    pub(crate) fn ntp_moment(&mut self, moment: Moment) {
        self.ntp_number(moment);
        let seconds = moment >> 32;
        if seconds != 0 {
            let (year, month, day) = date(seconds / 86_400);
            let second = seconds % 86_400;
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            put!(self, " ({year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z)");
        }
    }

    fn ntp_difference(&mut self, from: Moment, to: Moment) {
        if from == 0 {
            return self.ntp_moment(to);
        }
        self.text(if to > from { "+" } else { "-" });
        self.ntp_number(to.abs_diff(from));
    }

    fn ntp_number(&mut self, moment: Moment) {
        put!(self, "{}.{:09}", moment >> 32, ((moment & 0xffff_ffff) * 1_000_000_000) >> 32);
    }
}

/// Returns year, month and day of a day since 1900.
fn date(mut day: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1900;
    loop {
        let days = if leap(year) { 366 } else { 365 };
        if day < days {
            break;
        }
        day -= days;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}
