//! What a stream looks like: lines of text, hexadecimal numbers, or its bytes alone.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;

use super::args::StreamFormat;
use super::reassembly::Piece;
use crate::{style, units};

/// Longest line that is held back until its end is there.
const LONGEST: usize = 64 << 10;
/// What lines of the two ways begin with.
const MARKS: [&str; 2] = ["> ", "< "];

/// Prints pieces of two ways.
pub(super) struct Printer<W: Write> {
    format: StreamFormat,
    out: BufWriter<W>,
    /// The way of the last piece.
    way: usize,
    /// The beginning of a line that has no end yet.
    line: Vec<u8>,
    /// A part of this line is printed already.
    begun: bool,
    /// Bytes of each way so far.
    offsets: [u64; 2],
}

impl<W: Write> Printer<W> {
    pub(super) fn new(format: StreamFormat, out: W) -> Self {
        Self { format, out: BufWriter::new(out), way: 0, line: Vec::new(), begun: false, offsets: [0; 2] }
    }

    /// Begins with a connection: says who talks.
    pub(super) fn begin(&mut self, [one, other]: &[SocketAddr; 2]) -> io::Result<()> {
        if self.format == StreamFormat::Raw {
            return Ok(());
        }
        self.end_line()?;
        self.offsets = [0; 2];
        writeln!(self.out, "{one} > {other}")
    }

    pub(super) fn piece(&mut self, way: usize, piece: &Piece) -> io::Result<()> {
        if self.format == StreamFormat::Raw {
            return match piece {
                Piece::Bytes(bytes) => self.out.write_all(bytes),
                Piece::Missing(_) => Ok(()),
            };
        }
        if std::mem::replace(&mut self.way, way) != way {
            let other = std::mem::replace(&mut self.way, 1 - way);
            self.end_line()?;
            self.way = other;
        }
        match piece {
            Piece::Missing(count) => {
                self.end_line()?;
                self.offsets[way] += count;
                let plural = if *count == 1 { "byte" } else { "bytes" };
                writeln!(self.out, "{}[{} {plural} missing]", MARKS[way], units::grouped(*count))
            }
            Piece::Bytes(bytes) if self.format == StreamFormat::Hex => self.hex(way, bytes),
            Piece::Bytes(bytes) => self.text(bytes),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()
    }

    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.line.pop();
                if self.line.ends_with(b"\r") {
                    self.line.pop();
                }
                self.put()?;
                self.begun = false;
                writeln!(self.out)?;
            } else if self.line.len() > LONGEST {
                // What is not whole yet waits for its end.
                let whole = self.line.len() - unfinished(&self.line);
                let rest = self.line.split_off(whole);
                self.put()?;
                self.line = rest;
            }
        }
        Ok(())
    }

    /// Prints what there is of a line.
    fn put(&mut self) -> io::Result<()> {
        let mark = if std::mem::replace(&mut self.begun, true) { "" } else { MARKS[self.way] };
        let text = visible(&self.line);
        self.line.clear();
        // An empty line has no spaces at its end.
        let mark = if text.is_empty() { mark.trim_end() } else { mark };
        write!(self.out, "{mark}{text}")
    }

    /// Ends a line that others follow before its own end.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.put()?;
        }
        if std::mem::take(&mut self.begun) { writeln!(self.out) } else { Ok(()) }
    }

    fn hex(&mut self, way: usize, bytes: &[u8]) -> io::Result<()> {
        for row in bytes.chunks(16) {
            let mut numbers = String::new();
            for byte in row {
                let _infallible = write!(numbers, " {byte:02x}");
            }
            let text =
                row.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' });
            let text: String = text.collect();
            writeln!(self.out, "{}{:08x} {numbers:<48}  {text}", MARKS[way], self.offsets[way])?;
            self.offsets[way] += row.len() as u64;
        }
        Ok(())
    }
}

/// Returns the number of bytes at the end that a line feed or the rest of a character may follow.
fn unfinished(line: &[u8]) -> usize {
    if line.ends_with(b"\r") {
        return 1;
    }
    let last = line.utf8_chunks().last();
    last.map_or(0, |chunk| if chunk.invalid().len() < 4 { chunk.invalid().len() } else { 0 })
}

/// Returns text in which nothing controls the terminal; bytes that are not text show as `\xff`.
fn visible(line: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in line.utf8_chunks() {
        for (number, part) in chunk.valid().split('\t').enumerate() {
            shown.push_str(if number > 0 { "\t" } else { "" });
            shown.push_str(&style::visible(part));
        }
        for byte in chunk.invalid() {
            let _infallible = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: StreamFormat, pieces: &[(usize, &[u8])]) -> String {
        let mut printer = Printer::new(format, Vec::new());
        for (way, bytes) in pieces {
            let piece = if *bytes == b"?" { Piece::Missing(1448) } else { Piece::Bytes(bytes.to_vec()) };
            printer.piece(*way, &piece).expect("memory");
        }
        printer.finish().expect("memory");
        String::from_utf8(printer.out.into_inner().expect("memory")).expect("text")
    }

    #[test]
    fn both_ways_are_marked_line_by_line() {
        let pieces: [(usize, &[u8]); 8] = [
            (0, b"GET / HTTP/1.1\r\nHo"),
            (0, b"st: a\r\n\r\n"),
            (1, b"HTTP/1.1 200 OK\n"),
            (1, b"?"),
            (1, b"half"),
            (0, b"x"),
            (1, b"\tend"),
            (1, b"?"),
        ];
        let expected = "> GET / HTTP/1.1\n> Host: a\n>\n< HTTP/1.1 200 OK\n< [1,448 bytes missing]\n< half\n> x\n\
                        < \tend\n< [1,448 bytes missing]\n";
        assert_eq!(printed(StreamFormat::Text, &pieces), expected);
    }

    #[test]
    fn nothing_gets_to_the_terminal_as_a_command() {
        let text =
            printed(StreamFormat::Text, &[(0, b"\x1b[31m\x07\r.\xc3"), (0, b"\xa4\xff\x9b2J\xe2\x80\xae\n")]);
        assert_eq!(text, "> \\u{1b}[31m\\u{7}\\r.\u{e4}\\xff\\x9b2J\\u{202e}\n");
        let long = [b"\xe2\x82\xac".repeat(50_000), b"\r\n".to_vec()].concat();
        let parts: Vec<(usize, &[u8])> = long.chunks(1000).map(|part| (0, part)).collect();
        assert_eq!(printed(StreamFormat::Text, &parts), format!("> {}\n", "\u{20ac}".repeat(50_000)));
    }

    #[test]
    fn numbers_and_bytes() {
        let pieces: [(usize, &[u8]); 4] = [(0, b"0123456789abcdefgh"), (1, b"\x00"), (0, b"?"), (0, b"i")];
        let row = |mark, offset, numbers, text| format!("{mark} {offset}  {numbers:<47}  {text}\n");
        let rows = [
            row('>', "00000000", "30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66", "0123456789abcdef"),
            row('>', "00000010", "67 68", "gh"),
            row('<', "00000000", "00", "."),
            "> [1,448 bytes missing]\n".to_owned(),
            row('>', "000005ba", "69", "i"),
        ];
        assert_eq!(printed(StreamFormat::Hex, &pieces), rows.concat());
        assert_eq!(printed(StreamFormat::Raw, &pieces), "0123456789abcdefgh\0i");
    }
}
