//! Syslog (RFC 3164, RFC 5424).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const FACILITIES: [&str; 24] = [
    "kernel", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "security", "console", "cron", "local0", "local1", "local2", "local3", "local4", "local5",
    "local6", "local7",
];
const SEVERITIES: [&str; 8] =
    ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];
/// Most digits of a priority.
const DIGITS: usize = 3;

impl Printer<'_> {
    pub(crate) fn syslog(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "syslog";
        self.facts.protocol = Some("syslog");
        let (mut priority, mut at) = (0_u16, 1);
        if bytes.u8(0)? != b'<' {
            self.text(" (invalid)");
            return Ok(());
        }
        loop {
            match bytes.u8(at)? {
                digit @ b'0'..=b'9' if at <= DIGITS => priority = priority * 10 + u16::from(digit - b'0'),
                b'>' => break,
                _ => {
                    self.text(" (invalid)");
                    return Ok(());
                }
            }
            at += 1;
        }
        let (facility, severity) = (priority >> 3, priority & 7);
        let known = FACILITIES.get(usize::from(facility));
        let name = SEVERITIES[usize::from(severity)];
        if self.options.verbose == 0 {
            match known {
                Some(facility) => put!(self, "SYSLOG {facility}.{name}, length: {}", bytes.len),
                None => put!(self, "SYSLOG unknown ({facility}).{name}, length: {}", bytes.len),
            }
            return Ok(());
        }
        put!(self, "SYSLOG, length: {}\n\tFacility ", bytes.len);
        match known {
            Some(name) => self.text(name),
            None => put!(self, "unknown ({facility})"),
        }
        put!(self, " ({facility}), Severity {name} ({severity})\n\tMsg: ");
        let message = bytes.from(at + 1);
        self.harmless(message.data);
        if !message.whole() {
            return Err(Cut);
        }
        if self.options.verbose > 1 {
            self.rows("\n\t", bytes.data);
        }
        Ok(())
    }
}
