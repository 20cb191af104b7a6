//! ZMTP 1.0, the protocol of ZeroMQ (rfc.zeromq.org/spec/13).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::hex::Dump;
use crate::base::text::put;

/// Says that eight bytes of length follow.
const LONG: u8 = 0xff;
/// Most bytes of a body that `-v` dumps.
const SHOWN: usize = 128;
/// From the highest bit.
const FLAGS: [&str; 8] = ["MBZ", "MBZ", "MBZ", "MBZ", "MBZ", "MBZ", "MBZ", "MORE"];

impl Printer<'_> {
    pub(crate) fn zmtp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "zmtp1";
        self.facts.protocol = Some("zmtp");
        self.text(": ZMTP/1.0");
        let mut rest = bytes;
        while !rest.data.is_empty() {
            rest = self.zmtp_frame(rest)?;
        }
        Ok(())
    }

    /// Prints a frame; returns what follows it.
    fn zmtp_frame<'b>(&mut self, bytes: Bytes<'b>) -> Result<Bytes<'b>, Cut> {
        self.text("\n\t frame flags+body ");
        let (len, header) = match bytes.u8(0)? {
            LONG => {
                self.text("(64-bit) length");
                (bytes.u64(1)?, 9)
            }
            len => {
                self.text(" (8-bit) length");
                (len.into(), 1)
            }
        };
        put!(self, " {len}");
        let body = bytes.from(header);
        if len == 0 {
            return Ok(body);
        }
        let flags = body.u8(0)?;
        let captured = body.data.len();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > captured {
            put!(self, " ({captured} captured)");
        }
        put!(self, ", flags 0x{flags:02x}");
        let verbose = self.options.verbose;
        if verbose > 0 {
            self.zmtp_flags(flags);
            let most = if verbose == 1 { SHOWN } else { usize::MAX };
            let shown = (captured.min(len) - 1).min(most);
            if shown > 0 {
                put!(self, ", first {shown} byte(s) of body:");
                Dump::HexAscii.indented("\n\t ", body.get(1, shown)?, self.line);
            }
        }
        body.get(0, len)?;
        Ok(body.from(len))
    }

    fn zmtp_flags(&mut self, flags: u8) {
        let mut before = " (";
        for (place, name) in FLAGS.into_iter().enumerate() {
            self.text(before);
            self.text(if flags & 0x80 >> place != 0 { name } else { "-" });
            before = "|";
        }
        self.text(")");
    }
}
