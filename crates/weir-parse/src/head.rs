//! Heads of messages that are lines of text: a first line, fields, and an empty line (RFC 9112, RFC 3261).

use crate::bytes::{Bytes, Cut, text};
use crate::placed::Placed;

/// Longest head that is read, in bytes.
const LONGEST: usize = 16 * 1024;

/// Part of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it begins.
    at: usize,
}

impl Part<'_> {
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
    fn trim(self) -> Self {
        let from = self.bytes.len() - self.bytes.trim_ascii_start().len();
        Self { bytes: self.bytes.trim_ascii(), at: self.at + from }
    }

    /// Returns it as text.
    pub(crate) fn text(self) -> Placed<String> {
        Placed { value: text(self.bytes), at: self.at..self.at + self.bytes.len() }
    }
}

/// The lines of a head that are there as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Head<'a> {
    rest: Part<'a>,
    /// The empty line was there, or the head is too long to be read on.
    ended: bool,
}

impl<'a> Head<'a> {
    pub(crate) fn new(bytes: Bytes<'a>) -> Self {
        let len = bytes.data.len().min(LONGEST);
        let ended = bytes.data.len() > LONGEST;
        Self { rest: Part { bytes: &bytes.data[..len], at: bytes.at }, ended }
    }

    /// Returns the next line; `Err`: it goes on beyond what is there.
    pub(crate) fn line(&mut self) -> Result<Part<'a>, Cut> {
        let (line, rest) = self.rest.split_at_first(b'\n').ok_or(Cut)?;
        self.rest = rest;
        Ok(Part { bytes: line.bytes.strip_suffix(b"\r").unwrap_or(line.bytes), ..line })
    }

    /// Returns the next field, its name and its value; `None`: there are no more. A line without a colon is left out.
    pub(crate) fn field(&mut self) -> Option<(&'a [u8], Part<'a>)> {
        loop {
            let line = self.line().ok()?;
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

/// Returns the number of a status: three digits.
pub(crate) fn status(word: &[u8]) -> Option<u16> {
    let digits = word.len() == 3 && word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

/// Returns whether a word can be the method of a request.
pub(crate) fn is_method(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'-'))
}
