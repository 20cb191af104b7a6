//! RESP, the protocol of Redis and its relatives (redis.io/docs/reference/protocol-spec).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};

/// Most values of one line.
const SHOWN: usize = 128;

impl Printer<'_> {
    pub(crate) fn resp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "resp";
        self.facts.protocol = Some("resp");
        self.text(": RESP");
        let mut rest = bytes;
        let mut shown = 0;
        // Values that arrays announced and that have not come yet.
        let mut due = 1_i64;
        while rest.len > 0 {
            shown += 1;
            if shown > SHOWN {
                self.text(" ...");
                return Ok(());
            }
            let count;
            (count, rest) = self.resp_value(rest)?;
            due = (due - 1).max(0).saturating_add(count);
        }
        if due > 0 { Err(Cut) } else { Ok(()) }
    }

    /// Prints a value, or steps over the head of an array; returns the number of values that follow, and the rest.
    fn resp_value<'b>(&mut self, bytes: Bytes<'b>) -> Result<(i64, Bytes<'b>), Cut> {
        match bytes.u8(0)? {
            b'+' | b'-' | b':' => {
                let (line, rest) = resp_line(bytes.from(1))?;
                self.resp_quoted(line);
                Ok((0, rest))
            }
            b'$' => {
                let (len, rest) = self.resp_number(bytes.from(1))?;
                let Ok(len) = usize::try_from(len) else {
                    self.text(" null");
                    return Ok((0, rest));
                };
                let value = rest.get(0, len)?;
                match len {
                    0 => self.text(" empty"),
                    _ => self.resp_quoted(value),
                }
                let (_, rest) = resp_line(rest.from(len))?;
                Ok((0, rest))
            }
            b'*' => {
                let (count, rest) = self.resp_number(bytes.from(1))?;
                match count {
                    0 => self.text(" empty"),
                    ..0 => self.text(" null"),
                    _ => {}
                }
                Ok((count.max(0), rest))
            }
            _ => {
                let (line, rest) = resp_line(bytes)?;
                match line {
                    [] => Err(Cut),
                    _ => {
                        self.resp_quoted(line);
                        Ok((0, rest))
                    }
                }
            }
        }
    }

    fn resp_number<'b>(&mut self, bytes: Bytes<'b>) -> Result<(i64, Bytes<'b>), Cut> {
        let (line, rest) = resp_line(bytes)?;
        match std::str::from_utf8(line).ok().and_then(|line| line.parse().ok()) {
            Some(number) => Ok((number, rest)),
            None => {
                self.text(" invalid");
                Err(Cut)
            }
        }
    }

    fn resp_quoted(&mut self, text: &[u8]) {
        self.text(" \"");
        self.harmless(text);
        self.text("\"");
    }
}

/// Returns the line at the start, and what follows its end.
fn resp_line(bytes: Bytes<'_>) -> Result<(&[u8], Bytes<'_>), Cut> {
    let end = bytes.data.windows(2).position(|pair| pair == b"\r\n").ok_or(Cut)?;
    Ok((&bytes.data[..end], bytes.from(end + 2)))
}
