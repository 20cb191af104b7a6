//! Protocols whose messages are lines of text: HTTP (RFC 9110), SIP (RFC 3261), RTSP (RFC 2326), SMTP (RFC 5321), FTP
//! (RFC 959), WHOIS (RFC 3912) and the banner of SSH (RFC 4253).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Segment;
use crate::base::text::put;

/// A protocol of lines.
#[derive(Debug)]
pub(crate) struct Textual {
    name: &'static str,
    protocol: &'static str,
    /// Words that begin a request. Without any, every payload is a message; else it must begin with one of them, or
    /// have a status code of three digits as its second word.
    methods: &'static [&'static [u8]],
}

pub(crate) static FTP: Textual = Textual { name: "FTP", protocol: "ftp", methods: &[] };
pub(crate) static SMTP: Textual = Textual { name: "SMTP", protocol: "smtp", methods: &[] };
pub(crate) static WHOIS: Textual = Textual { name: "WHOIS", protocol: "whois", methods: &[] };
pub(crate) static HTTP: Textual = Textual {
    name: "HTTP",
    protocol: "http",
    // The methods that tcpdump knows; others, such as PATCH, get no line.
    methods: &[
        b"BASELINE-CONTROL",
        b"BCOPY",
        b"BDELETE",
        b"BMOVE",
        b"BPROPFIND",
        b"BPROPPATCH",
        b"CCM_POST",
        b"CHECKIN",
        b"CHECKOUT",
        b"CONNECT",
        b"COPY",
        b"DELETE",
        b"GET",
        b"HEAD",
        b"LABEL",
        b"LOCK",
        b"MERGE",
        b"MKACTIVITY",
        b"MKCOL",
        b"MKWORKSPACE",
        b"MOVE",
        b"NOTIFY",
        b"OPTIONS",
        b"POLL",
        b"POST",
        b"PROPFIND",
        b"PROPPATCH",
        b"PUT",
        b"REPORT",
        b"RPC_CONNECT",
        b"SEARCH",
        b"SUBSCRIBE",
        b"TRACE",
        b"UNCHECKOUT",
        b"UNLOCK",
        b"UNSUBSCRIBE",
        b"UPDATE",
        b"VERSION-CONTROL",
    ],
};
pub(crate) static SIP: Textual = Textual {
    name: "SIP",
    protocol: "sip",
    methods: &[
        b"ACK",
        b"BYE",
        b"CANCEL",
        b"DO",
        b"INFO",
        b"INVITE",
        b"MESSAGE",
        b"NOTIFY",
        b"OPTIONS",
        b"PRACK",
        b"PUBLISH",
        b"QAUTH",
        b"REFER",
        b"REGISTER",
        b"SPRACK",
        b"SUBSCRIBE",
        b"UPDATE",
    ],
};
pub(crate) static RTSP: Textual = Textual {
    name: "RTSP",
    protocol: "rtsp",
    methods: &[
        b"ANNOUNCE",
        b"DESCRIBE",
        b"GET_PARAMETER",
        b"OPTIONS",
        b"PAUSE",
        b"PLAY",
        b"RECORD",
        b"REDIRECT",
        b"SETUP",
        b"SET_PARAMETER",
        b"TEARDOWN",
    ],
};

impl Textual {
    fn is_message(&self, data: &[u8]) -> bool {
        let end = data.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(data.len());
        let (word, rest) = data.split_at(end);
        self.methods.is_empty()
            || self.methods.iter().any(|method| method.eq_ignore_ascii_case(word))
            || !word.is_empty() && begins_with_status(rest)
    }
}

/// Returns whether a number of three digits follows the spaces.
fn begins_with_status(rest: &[u8]) -> bool {
    let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
    let rest = &rest[spaces..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    spaces > 0 && digits == 3 && !rest.get(3).is_some_and(u8::is_ascii_graphic)
}

/// The next line of a message.
enum Line<'a> {
    /// A line, and what follows it.
    Whole(&'a [u8], &'a [u8]),
    /// The message ends before the line does.
    Cut(&'a [u8]),
    /// Not a line of text.
    Other,
}

fn next_line(data: &[u8]) -> Line<'_> {
    let odd = |byte: &u8| !matches!(byte, b'\t' | b' '..=b'~');
    match data.iter().position(odd) {
        None => Line::Cut(data),
        Some(end) => match &data[end..] {
            [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => Line::Whole(&data[..end], rest),
            _ => Line::Other,
        },
    }
}

impl Printer<'_> {
    /// Prints the first line of a message, or all of them if verbose.
    pub(crate) fn textual(&mut self, textual: &'static Textual, segment: Segment<'_>) -> Result<(), Cut> {
        self.protocol = textual.protocol;
        self.facts.protocol = Some(textual.protocol);
        if segment.is_tcp() {
            self.text(": ");
        }
        self.text(textual.name);
        let mut data = segment.payload.data;
        if !textual.is_message(data) {
            return Ok(());
        }
        let verbose = self.options.verbose > 0;
        if verbose {
            put!(self, ", length: {}", segment.payload.len);
        }
        while !data.is_empty() {
            let (line, rest) = match next_line(data) {
                Line::Whole(line, rest) => (line, Some(rest)),
                Line::Cut(line) => (line, None),
                Line::Other => return Ok(()),
            };
            self.text(if verbose { "\n\t" } else { ": " });
            self.line.extend_from_slice(line);
            data = rest.ok_or(Cut)?;
            if !verbose {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Prints the banner of SSH, if there is one; the rest is encrypted.
    pub(crate) fn ssh(&mut self, payload: Bytes<'_>) {
        self.protocol = "ssh";
        self.facts.protocol = Some("ssh");
        if let Line::Whole(line, _) = next_line(payload.data)
            && line.starts_with(b"SSH-")
        {
            self.text(": SSH: ");
            self.line.extend_from_slice(line);
        }
    }
}
