//! Heads of messages that are lines of text: a first line, fields, and an empty line (RFC 9112, RFC 3261).

use std::borrow::Cow;

use crate::bytes::{Bytes, Cut, text};
use crate::placed::Placed;

/// Longest head that is read, in bytes.
const LONGEST: usize = 16 * 1024;
/// Longest method that is looked for, in bytes; and most bytes of empty lines in front of it.
const METHOD: usize = 32;
/// What the target of a SIP request begins with (RFC 3261, section 8.1.1.1; RFC 5031), and one of HTTP does not.
const SCHEMES: [&[u8]; 4] = [b"sip:", b"sips:", b"tel:", b"urn:"];

/// A protocol whose messages have such heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    Sip,
    /// Perhaps one of the two: more of the first line will tell.
    Open,
}

impl Kind {
    /// Returns which message a payload begins with.
    pub(crate) fn of(data: &[u8]) -> Option<Self> {
        let empty = data.iter().take(METHOD).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let kind = Self::of_words(&data[empty..])?;
        // Empty lines are ignored only in front of messages of SIP (RFC 3261, section 7.5).
        Some(kind).filter(|kind| empty == 0 || *kind != Self::Http)
    }

    fn of_words(data: &[u8]) -> Option<Self> {
        for (version, kind) in [(&b"HTTP/1."[..], Self::Http), (b"SIP/2.0 ", Self::Sip)] {
            match begin(data, version) {
                Begin::Whole => return Some(kind),
                Begin::Early => return Some(Self::Open),
                Begin::Other => {}
            }
        }
        let end = data.iter().take(METHOD).take_while(|&&byte| in_method(byte)).count();
        let Some(target) = data.get(end..).filter(|rest| end > 0 && !rest.is_empty()) else {
            return (end > 0 && end < METHOD).then_some(Self::Open);
        };
        let target = target.strip_prefix(b" ")?;
        let schemes = SCHEMES.map(|scheme| begin(target, scheme));
        Some(match () {
            () if target.is_empty() || schemes.contains(&Begin::Early) => Self::Open,
            () if schemes.contains(&Begin::Whole) => Self::Sip,
            () => Self::Http,
        })
    }
}

/// How some bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// With a word.
    Whole,
    /// With the beginning of the word, and there are no more.
    Early,
    Other,
}

/// Compares the beginning of `data` with a word, whatever the case.
fn begin(data: &[u8], word: &[u8]) -> Begin {
    let len = data.len().min(word.len());
    match data[..len].eq_ignore_ascii_case(&word[..len]) {
        true if len == word.len() => Begin::Whole,
        true if len > 0 => Begin::Early,
        _ => Begin::Other,
    }
}

/// Part of a line, or of several that are one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it begins.
    at: usize,
}

impl Span<'_> {
    /// Returns what is in front of the byte at `at`, and what is behind it.
    pub(crate) fn split(self, at: usize) -> (Self, Self) {
        let behind = self.bytes.get(at + 1..).unwrap_or_default();
        (Self { bytes: &self.bytes[..at], ..self }, Self { bytes: behind, at: self.at + at + 1 })
    }

    /// Splits at the first of these bytes.
    pub(crate) fn split_at_first(self, byte: u8) -> Option<(Self, Self)> {
        self.bytes.iter().position(|&other| other == byte).map(|at| self.split(at))
    }

    /// Splits at the last of these bytes.
    pub(crate) fn split_at_last(self, byte: u8) -> Option<(Self, Self)> {
        self.bytes.iter().rposition(|&other| other == byte).map(|at| self.split(at))
    }

    /// Leaves out what space is around it.
    pub(crate) fn trim(self) -> Self {
        let from = self.bytes.len() - self.bytes.trim_ascii_start().len();
        Self { bytes: self.bytes.trim_ascii(), at: self.at + from }
    }

    /// Returns it as text, with a space in place of each end of a line.
    pub(crate) fn text(self) -> Placed<String> {
        let bytes = match self.bytes.contains(&b'\n') {
            true => {
                let lines = self.bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
                Cow::Owned(lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(&b' '))
            }
            false => Cow::Borrowed(self.bytes),
        };
        Placed { value: text(&bytes), at: self.at..self.at + self.bytes.len() }
    }
}

/// The lines of a head that are there as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Head<'a> {
    rest: Span<'a>,
    /// The empty line was there, or the head is too long to be read on.
    ended: bool,
    /// A line that begins with a space goes on with the field before it (RFC 3261, section 7.3.1).
    folded: bool,
}

impl<'a> Head<'a> {
    pub(crate) fn new(bytes: Bytes<'a>) -> Self {
        let len = bytes.data.len().min(LONGEST);
        let ended = bytes.data.len() > LONGEST;
        Self { rest: Span { bytes: &bytes.data[..len], at: bytes.at }, ended, folded: false }
    }

    /// The same with fields that may go on in the next line.
    pub(crate) fn folded(bytes: Bytes<'a>) -> Self {
        Self { folded: true, ..Self::new(bytes) }
    }

    /// Returns the next line; `Err`: it goes on beyond what is there.
    pub(crate) fn line(&mut self) -> Result<Span<'a>, Cut> {
        let (line, rest) = self.rest.split_at_first(b'\n').ok_or(Cut)?;
        self.rest = rest;
        Ok(Span { bytes: line.bytes.strip_suffix(b"\r").unwrap_or(line.bytes), ..line })
    }

    /// Returns the next line, with those that it goes on in; `Err`: it goes on beyond what is there, or may do so.
    fn whole_line(&mut self) -> Result<Span<'a>, Cut> {
        let from = self.rest;
        let first = self.line()?;
        if !self.folded || first.bytes.is_empty() {
            return Ok(first);
        }
        let mut all = first;
        while matches!(self.rest.bytes.first().ok_or(Cut)?, b' ' | b'\t') {
            let more = self.line()?;
            all = Span { bytes: &from.bytes[..more.at - from.at + more.bytes.len()], ..from };
        }
        Ok(all)
    }

    /// Returns the next field, its name and its value; `None`: there are no more. A line without a colon is left out.
    pub(crate) fn field(&mut self) -> Option<(&'a [u8], Span<'a>)> {
        loop {
            let line = self.whole_line().ok()?;
            if line.bytes.is_empty() {
                self.ended = true;
                return None;
            }
            if let Some((name, value)) = line.split_at_first(b':') {
                return Some((name.bytes, value.trim()));
            }
        }
    }

    /// Returns whether nothing more will be known of it, after the last field.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

/// Returns the method of a request, its target and its version.
pub(crate) fn request(line: Span<'_>) -> Option<[Span<'_>; 3]> {
    let (method, rest) = line.split_at_first(b' ')?;
    let (target, version) = rest.split_at_last(b' ')?;
    let is_method = !method.bytes.is_empty() && method.bytes.iter().all(|&byte| in_method(byte));
    Some([method, target, version]).filter(|_| is_method && !target.bytes.is_empty())
}

/// Returns the version of a response, its status of three digits, and the reason, if there is one.
pub(crate) fn response(line: Span<'_>) -> Option<(Span<'_>, u16, Option<Span<'_>>)> {
    let (version, rest) = line.split_at_first(b' ')?;
    let (word, reason) = match rest.split_at_first(b' ') {
        Some((word, reason)) => (word.bytes, Some(reason)),
        None => (rest.bytes, None),
    };
    let digits = word.len() == 3 && word.iter().all(u8::is_ascii_digit);
    let status = std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()?;
    Some((version, status, reason.filter(|reason| !reason.bytes.is_empty())))
}

fn in_method(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'-')
}
