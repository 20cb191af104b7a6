//! Telnet commands and options (RFC 854, RFC 855). The text between them is not printed.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const IAC: u8 = 255;
const SUBNEGOTIATION: u8 = 250;
const END: u8 = 240;
const AUTHENTICATION: u8 = 37;
const ENCRYPT: u8 = 38;
/// Names of the commands from 236 on (RFC 854, RFC 1184).
const COMMANDS: [&str; 20] = [
    "EOF", "SUSP", "ABORT", "EOR", "SE", "NOP", "DMARK", "BRK", "IP", "AO", "AYT", "EC", "EL", "GA", "SB",
    "WILL", "WONT", "DO", "DONT", "IAC",
];
/// Names of the options (IANA).
const OPTIONS: [&str; 40] = [
    "BINARY",
    "ECHO",
    "RCP",
    "SUPPRESS GO AHEAD",
    "NAME",
    "STATUS",
    "TIMING MARK",
    "RCTE",
    "NAOL",
    "NAOP",
    "NAOCRD",
    "NAOHTS",
    "NAOHTD",
    "NAOFFD",
    "NAOVTS",
    "NAOVTD",
    "NAOLFD",
    "EXTEND ASCII",
    "LOGOUT",
    "BYTE MACRO",
    "DATA ENTRY TERMINAL",
    "SUPDUP",
    "SUPDUP OUTPUT",
    "SEND LOCATION",
    "TERMINAL TYPE",
    "END OF RECORD",
    "TACACS UID",
    "OUTPUT MARKING",
    "TTYLOC",
    "3270 REGIME",
    "X.3 PAD",
    "NAWS",
    "TSPEED",
    "LFLOW",
    "LINEMODE",
    "XDISPLOC",
    "OLD-ENVIRON",
    "AUTHENTICATION",
    "ENCRYPT",
    "NEW-ENVIRON",
];

impl Printer<'_> {
    /// Prints the commands at the start of the payload; text ends them.
    pub(crate) fn telnet(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "telnet";
        self.facts.protocol = Some("telnet");
        let mut rest = payload.data;
        let mut first = true;
        // A command that is not complete in its segment is not printed.
        while let Some(len) = command_len(rest) {
            self.text(if first { " [telnet " } else { ", " });
            first = false;
            self.telnet_command(&rest[1..len])?;
            rest = &rest[len..];
        }
        if !first {
            self.text("]");
        }
        Ok(())
    }

    fn telnet_command(&mut self, command: &[u8]) -> Result<(), Cut> {
        let word = command[0].checked_sub(236).and_then(|at| COMMANDS.get(usize::from(at)));
        match word {
            Some(word) if command[0] == IAC => put!(self, "IAC {word}"),
            Some(word) => self.text(word),
            None => put!(self, "{:#x}", command[0]),
        }
        let Some(&option) = command.get(1) else { return Ok(()) };
        match OPTIONS.get(usize::from(option)) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " {option:#x}"),
        }
        if command[0] != SUBNEGOTIATION {
            return Ok(());
        }
        let mut values = &command[2..];
        if let [first, rest @ ..] = values
            && let Some(word) = meanings(option).get(usize::from(*first))
        {
            put!(self, " {word}");
            values = rest;
        }
        let end = values.iter().position(|&byte| byte == IAC).unwrap_or(values.len());
        for &value in &values[..end] {
            match value {
                0 => self.text(" 0"),
                _ => put!(self, " {value:#x}"),
            }
        }
        self.text(" SE");
        if values.get(end + 1) == Some(&END) { Ok(()) } else { Err(Cut) }
    }
}

/// Returns the meanings of the first value of an option, from 0 on (RFC 2941, RFC 2946 and others).
fn meanings(option: u8) -> &'static [&'static str] {
    match option {
        AUTHENTICATION => &["IS", "SEND", "REPLY", "NAME"],
        ENCRYPT => &[
            "IS",
            "SUPPORT",
            "REPLY",
            "START",
            "END",
            "REQUEST-START",
            "REQUEST-END",
            "ENC-KEYID",
            "DEC-KEYID",
        ],
        _ => &["IS", "SEND", "INFO"],
    }
}

/// Returns the length of the command at the start, or `None` if there is none, or only a part of one.
fn command_len(data: &[u8]) -> Option<usize> {
    let [IAC, command, rest @ ..] = data else { return None };
    match *command {
        SUBNEGOTIATION => {
            let end = rest.iter().skip(1).position(|&byte| byte == IAC)?;
            Some((end + 5).min(data.len()))
        }
        251..=254 => (!rest.is_empty()).then_some(3),
        236..=255 => Some(2),
        _ => None,
    }
}
