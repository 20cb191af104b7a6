//! Hex and text dumps, in tcpdump's layout.

use crate::Printer;
use crate::base::text::{hex_byte, put};

/// Bytes per line.
const WIDTH: usize = 16;

/// The format of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// Offset and hex digits (`-x`).
    Hex,
    /// Offset, hex digits and text (`-X`).
    HexAscii,
    /// Text only (`-A`).
    Ascii,
}

impl Dump {
    /// Appends the dump: a line feed before each line, none at the end; nothing if there is nothing to dump.
    pub fn write(self, data: &[u8], line: &mut Vec<u8>) {
        self.indented("\n\t", data, line);
    }

    /// Appends the dump with `indent` before each line, except of text only.
    pub(crate) fn indented(self, indent: &str, data: &[u8], line: &mut Vec<u8>) {
        if self == Self::Ascii && !data.is_empty() {
            return ascii(data, line);
        }
        for (number, row) in data.chunks(WIDTH).enumerate() {
            line.extend_from_slice(indent.as_bytes());
            line.extend_from_slice(b"0x");
            let offset = number * WIDTH;
            let [.., a, b, c] = offset.to_be_bytes();
            if a > 0 {
                hex_byte(line, a);
            }
            hex_byte(line, b);
            hex_byte(line, c);
            line.extend_from_slice(b": ");
            let digits = line.len();
            for pair in row.chunks(2) {
                line.push(b' ');
                pair.iter().for_each(|&byte| hex_byte(line, byte));
            }
            if self == Self::HexAscii {
                line.resize(digits + WIDTH / 2 * 5, b' ');
                line.extend_from_slice(b"  ");
                line.extend(row.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'.' }));
            }
        }
    }
}

/// Appends text, with a dot in place of each unprintable byte.
fn ascii(data: &[u8], line: &mut Vec<u8>) {
    line.push(b'\n');
    for (at, &byte) in data.iter().enumerate() {
        match byte {
            b'\r' if matches!(data.get(at + 1), None | Some(b'\n')) => {}
            b'\t' | b'\n' | b' ' => line.push(byte),
            byte if byte.is_ascii_graphic() => line.push(byte),
            _ => line.push(b'.'),
        }
    }
}

impl Printer<'_> {
    /// Dumps bytes of a payload in hex, with `indent` before each row.
    pub(crate) fn rows(&mut self, indent: &str, data: &[u8]) {
        for (number, row) in data.chunks(WIDTH).enumerate() {
            put!(self, "{indent}0x{:04x}: ", number * WIDTH);
            for pair in row.chunks(2) {
                self.text(" ");
                pair.iter().for_each(|&byte| self.hex_byte(byte));
            }
        }
    }

    /// Dumps bytes of an unknown protocol, unless the caller dumps every packet anyway.
    pub(crate) fn unknown(&mut self, data: &[u8]) {
        if !self.options.quick {
            self.dumped(data);
        }
    }

    /// Dumps bytes, also if less is printed of each protocol.
    pub(crate) fn dumped(&mut self, data: &[u8]) {
        if !self.options.no_dump {
            Dump::HexAscii.write(data, self.line);
        }
    }
}
