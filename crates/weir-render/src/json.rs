//! JSON that is safe to print on a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::harmless::is_order;

/// Writes one line of JSON.
pub fn line(mut output: impl Write, value: &impl Serialize) -> io::Result<()> {
    to_writer(&mut output, value)?;
    output.write_all(b"\n")?;
    output.flush()
}

/// Writes JSON that is safe to print on a terminal: control characters in strings are escaped, which does not change
/// their meaning.
pub fn to_writer(output: impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(output, Harmless))?)
}

struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_order) {
            let (plain, order) = rest.split_at(at);
            let mut letters = order.chars();
            writer.write_all(plain.as_bytes())?;
            // None of them has more than four digits.
            letters.next().map_or(Ok(()), |letter| write!(writer, "\\u{:04x}", u32::from(letter)))?;
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_would_be_an_order_to_the_terminal_is_escaped_and_says_the_same() {
        let text = "é\x1b[2J\u{9b}1m\x7f\u{202e}fdp\u{2028}";
        let mut written = Vec::new();
        super::to_writer(&mut written, &text).expect("room");
        assert_eq!(serde_json::from_slice::<String>(&written).expect("JSON"), text);
        let shown = r#""é\u001b[2J\u009b1m\u007f\u202efdp\u2028""#;
        assert_eq!(String::from_utf8(written).expect("text"), shown);
    }
}
