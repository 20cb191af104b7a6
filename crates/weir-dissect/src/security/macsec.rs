//! MACsec (IEEE 802.1AE).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const VERSION: u8 = 0x80;
/// A channel is identified.
const CHANNEL: u8 = 0x20;
/// Either means that the frame is not as its sender knows it.
const CHANGED: u8 = 0x0c;
const FLAGS: [(u8, &str); 5] = [(8, "E"), (4, "C"), (0x40, "S"), (0x10, "B"), (CHANNEL, "I")];
/// Length of the header without a channel.
const HEADER: usize = 6;
/// Length of the check value at the end.
const CHECK: usize = 16;

impl Printer<'_> {
    /// Prints the header; returns the EtherType and payload of a frame that is only authenticated. `ends`: the Ethernet
    /// addresses.
    pub(crate) fn macsec<'b>(
        &mut self,
        bytes: Bytes<'b>,
        ends: Option<([u8; 6], [u8; 6])>,
    ) -> Result<Option<(u16, Bytes<'b>)>, Cut> {
        self.protocol = "macsec";
        self.facts.protocol = Some("macsec");
        bytes.get(0, HEADER)?;
        let (tci, given, number) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u32(2)?);
        let channel = tci & CHANNEL != 0;
        let header = HEADER + if channel { 8 } else { 0 };
        bytes.get(0, header)?;
        if tci & VERSION != 0 || given > 0x3f {
            self.text(" (invalid)");
            return Ok(None);
        }
        let changed = tci & CHANGED != 0;
        if changed
            && !self.options.link
            && let Some((source, destination)) = ends
        {
            self.ends(source, destination);
            self.text(" 802.1AE MACsec, ");
        }
        if changed || self.options.link {
            put!(self, "an {}, pn {number}, flags ", tci & 3);
            FLAGS.iter().filter(|(bit, _)| tci & bit != 0).for_each(|(_, letter)| self.text(letter));
            self.text(if tci & !3 == 0 { "none" } else { "" });
            if given != 0 {
                put!(self, ", sl {given}");
            }
            if channel {
                put!(self, ", sci {:016x}", bytes.u64(HEADER)?);
            }
            self.text(", ");
        }
        let rest = bytes.from(header);
        self.header(header);
        if changed {
            self.unknown(rest.data);
            return Ok(None);
        }
        // As in tcpdump, what is missing of the frame is missing before the check value.
        let data = rest.data.len().checked_sub(CHECK).ok_or(Cut)?;
        let mut rest = Bytes { data: &rest.data[..data], len: rest.len - CHECK, ..rest };
        let given = usize::from(given);
        if given > rest.data.len() {
            return Err(Cut);
        }
        if given > 0 {
            rest = rest.sized(given);
        }
        self.protocol = "ether";
        let ethertype = rest.u16(0)?;
        self.header(2);
        Ok(Some((ethertype, rest.from(2))))
    }
}
