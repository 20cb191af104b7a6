//! Lexer. It splits text where libpcap does: the longest match wins, and a keyword beats a name.

mod address;

use std::ops::Range;

use crate::ast::words;
use crate::{Dialect, Error};

pub(crate) use address::{mac, words_of};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    /// Kind and value.
    pub(crate) kind: Kind<'t>,
    /// Start, in bytes.
    pub(crate) start: usize,
    /// End, in bytes.
    pub(crate) end: usize,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'t> {
    /// End of the text.
    End,
    /// A keyword; `&&`, `||` and `!` are `and`, `or` and `not`.
    Word(&'static str),
    /// A name: a word that is not a keyword, or one escaped with `\`.
    Name(&'t str),
    /// A number, or a word that stands for one.
    Number(u32),
    /// Two to four numbers separated by dots.
    Dotted(&'t str),
    /// An IPv6 address.
    Ipv6([u32; 4]),
    /// A MAC address.
    Mac([u8; 6]),
    /// `$ab`.
    ArcNet(u8),
    /// Punctuation; `==` is `=`.
    Sign(&'static str),
    /// The text between `{` and `}` (dialect `weir`).
    Members(&'t str),
    /// The name after `@` (dialect `weir`).
    SetName(&'t str),
}

impl Token<'_> {
    /// Returns the token's byte range.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// Punctuation, longest first. `;`, `{` and `@` belong to the dialect `weir` and are handled separately.
const SIGNS: &[(&str, Kind<'static>)] = &[
    ("&&", Kind::Word("and")),
    ("||", Kind::Word("or")),
    ("!=", Kind::Sign("!=")),
    ("==", Kind::Sign("=")),
    ("<=", Kind::Sign("<=")),
    (">=", Kind::Sign(">=")),
    ("<<", Kind::Sign("<<")),
    (">>", Kind::Sign(">>")),
    ("!", Kind::Word("not")),
    ("+", Kind::Sign("+")),
    ("-", Kind::Sign("-")),
    ("*", Kind::Sign("*")),
    ("/", Kind::Sign("/")),
    ("%", Kind::Sign("%")),
    (":", Kind::Sign(":")),
    ("[", Kind::Sign("[")),
    ("]", Kind::Sign("]")),
    ("<", Kind::Sign("<")),
    (">", Kind::Sign(">")),
    ("(", Kind::Sign("(")),
    (")", Kind::Sign(")")),
    ("&", Kind::Sign("&")),
    ("|", Kind::Sign("|")),
    ("^", Kind::Sign("^")),
    ("=", Kind::Sign("=")),
];

/// Splits a text into tokens.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    dialect: Dialect,
}

impl<'t> Lexer<'t> {
    /// Creates a lexer at the start of `text`.
    pub(crate) fn new(text: &'t str, dialect: Dialect) -> Self {
        Self { text, at: 0, dialect }
    }

    /// Returns the next token; at the end, [`Kind::End`] every time.
    pub(crate) fn next(&mut self) -> Result<Token<'t>, Error> {
        self.at = skip(self.text, self.at, self.dialect)?;
        let start = self.at;
        let (kind, length) = self.token(&self.text[start..])?;
        self.at += length;
        Ok(Token { kind, start, end: self.at })
    }

    /// Returns the token at the start of `rest`, and its length.
    fn token(&self, rest: &'t str) -> Result<(Kind<'t>, usize), Error> {
        let Some(first) = rest.chars().next() else { return Ok((Kind::End, 0)) };
        let begin = self.at;
        if let Some(found) = address::with_colons(rest).map_err(|(message, length)| {
            Error::new(message, begin..begin + length)
                .help("a MAC address has six parts; an IPv6 address has eight, or fewer with `::`")
        })? {
            return Ok(found);
        }
        if first.is_ascii_alphanumeric() {
            return self.word(&rest[..word_length(rest)]);
        }
        if self.dialect == Dialect::Weir
            && let Some(found) = self.added(first, rest)?
        {
            return Ok(found);
        }
        match first {
            '$' => self.arcnet(rest),
            '\\' => self.escaped(rest),
            _ => {
                let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
                let unknown = || {
                    let message = format!("unexpected `{}`", first.escape_debug());
                    Error::new(message, begin..begin + first.len_utf8())
                };
                sign.map(|(sign, kind)| (*kind, sign.len())).ok_or_else(unknown)
            }
        }
    }

    /// Reads a run of letters, digits, `-`, `_` and `.`.
    fn word(&self, word: &'t str) -> Result<(Kind<'t>, usize), Error> {
        let here = self.at..self.at + word.len();
        let kind = if let Some(address) = mac(word) {
            Kind::Mac(address)
        } else if let Some(number) = number(word) {
            Kind::Number(number.map_err(|message| Error::new(message, here))?)
        } else if address::is_dotted(word) {
            Kind::Dotted(word)
        } else if let Some(number) = words::number(word) {
            Kind::Number(number)
        } else if let Some(word) = words::reserved(word, self.dialect) {
            Kind::Word(word)
        } else {
            Kind::Name(word)
        };
        Ok((kind, word.len()))
    }

    /// Reads `$ab`: one or two digits.
    fn arcnet(&self, rest: &'t str) -> Result<(Kind<'t>, usize), Error> {
        let digits = rest.bytes().skip(1).take(2).take_while(u8::is_ascii_hexdigit).count();
        match u8::from_str_radix(&rest[1..=digits], 16) {
            Ok(address) => Ok((Kind::ArcNet(address), 1 + digits)),
            Err(_) => Err(Error::new(
                "expected an ARCNET address of one or two hex digits after `$`",
                self.at..self.at + 1,
            )),
        }
    }

    /// Reads `\name`, a name whatever it looks like.
    fn escaped(&self, rest: &'t str) -> Result<(Kind<'t>, usize), Error> {
        let ends = |letter: char| match letter {
            ' ' | '!' | '(' | ')' | '\n' | '\t' | '\r' => true,
            ';' | ',' | '{' | '}' => self.dialect == Dialect::Weir,
            _ => false,
        };
        let name = &rest[1..];
        let name = &name[..name.find(ends).unwrap_or(name.len())];
        if name.is_empty() {
            return Err(Error::new("expected a name after `\\`", self.at..self.at + 1));
        }
        Ok((Kind::Name(name), 1 + name.len()))
    }

    /// Reads tokens that only the dialect `weir` has.
    fn added(&self, first: char, rest: &'t str) -> Result<Option<(Kind<'t>, usize)>, Error> {
        Ok(match first {
            ';' => Some((Kind::Sign(";"), 1)),
            '@' => {
                let ends = |letter: char| letter.is_ascii_whitespace() || "(){};,!&|#".contains(letter);
                let name = &rest[1..];
                let name = &name[..name.find(ends).unwrap_or(name.len())];
                if name.is_empty() {
                    return Err(Error::new("expected the name of a set after `@`", self.at..self.at + 1));
                }
                Some((Kind::SetName(name), 1 + name.len()))
            }
            '{' => {
                let mut at = self.at + 1;
                loop {
                    at = skip(self.text, at, self.dialect)?;
                    match self.text[at..].chars().next() {
                        Some('}') => break,
                        Some(letter) => at += letter.len_utf8(),
                        None => {
                            return Err(Error::new("unclosed set", self.at..self.at + 1)
                                .help("add `}` after the last member"));
                        }
                    }
                }
                Some((Kind::Members(&self.text[self.at + 1..at]), at + 1 - self.at))
            }
            _ => None,
        })
    }
}

/// Returns where the next token begins, after blanks and, in the dialect `weir`, comments.
pub(crate) fn skip(text: &str, mut at: usize, dialect: Dialect) -> Result<usize, Error> {
    loop {
        let rest = &text[at..];
        at += rest.bytes().take_while(|byte| b" \t\r\n".contains(byte)).count();
        let rest = &text[at..];
        if dialect == Dialect::Pcap {
            return Ok(at);
        }
        if rest.starts_with('#') {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let length = comment
                .find("*/")
                .ok_or_else(|| Error::new("unclosed comment", at..at + 2).help("end it with `*/`"))?;
            at += length + 4;
        } else {
            return Ok(at);
        }
    }
}

/// Returns the length of the word at the start of `rest`: letters, digits, `-`, `_` and `.`, not ending in `-` or `_`.
fn word_length(rest: &str) -> usize {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let run = rest.bytes().take_while(|&byte| inside(byte)).count();
    rest[..run].trim_end_matches(['-', '_']).len()
}

/// Parses a number in C notation; returns `None` if the word is not one.
pub(crate) fn number(word: &str) -> Option<Result<u32, String>> {
    let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if word.starts_with('0') => (word, 8),
        None => (word, 10),
    };
    let is_digit = |byte: u8| if radix == 16 { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    if digits.is_empty() || !digits.bytes().all(is_digit) {
        return None;
    }
    if radix == 8 && digits.bytes().any(|byte| byte > b'7') {
        return Some(Err(format!(
            "`{word}` begins with 0 and is therefore octal, but contains a digit above 7"
        )));
    }
    Some(u32::from_str_radix(digits, radix).map_err(|_| format!("`{word}` does not fit in 32 bits")))
}

#[cfg(test)]
mod tests;
