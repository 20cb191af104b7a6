//! Bidirectional forwarding detection (RFC 5880, RFC 5881, RFC 5883, RFC 7130).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::Segment;
use crate::base::text::put;

const ECHO: u16 = 3785;
const MULTIHOP: u16 = 4784;
const LAG: u16 = 6784;

/// Length of a message without authentication.
const MESSAGE: usize = 24;
/// The flag of a message with authentication.
const AUTHENTICATED: u8 = 0x04;

const FLAGS: [(u8, &str); 6] = [
    (0x20, "Poll"),
    (0x10, "Final"),
    (0x08, "Control Plane Independent"),
    (AUTHENTICATED, "Authentication Present"),
    (0x02, "Demand"),
    (0x01, "Multipoint"),
];
/// Those of version 0, a draft.
const DRAFT_FLAGS: [(u8, &str); 8] = [
    (0x80, "I Hear You"),
    (0x40, "Demand"),
    (0x20, "Poll"),
    (0x10, "Final"),
    (0x08, "Control Plane Independent"),
    (AUTHENTICATED, "Authentication Present"),
    (0x02, "Reserved"),
    (0x01, "Reserved"),
];
const STATES: [&str; 4] = ["AdminDown", "Down", "Init", "Up"];
const DIAGNOSTICS: [&str; 9] = [
    "No Diagnostic",
    "Control Detection Time Expired",
    "Echo Function Failed",
    "Neighbor Signaled Session Down",
    "Forwarding Plane Reset",
    "Path Down",
    "Concatenated Path Down",
    "Administratively Down",
    "Reverse Concatenated Path Down",
];
/// From 1.
const AUTHENTICATIONS: [&str; 5] =
    ["Simple Password", "Keyed MD5", "Meticulous Keyed MD5", "Keyed SHA1", "Meticulous Keyed SHA1"];

impl Printer<'_> {
    pub(crate) fn bfd(&mut self, segment: Segment<'_>) -> Result<(), Cut> {
        self.protocol = "bfd";
        self.facts.protocol = Some("bfd");
        let bytes = segment.payload;
        let verbose = self.options.verbose > 0;
        if segment.destination == ECHO {
            put!(self, "BFD, Echo, length: {}", bytes.len);
            if verbose {
                self.rows("\n\t", bytes.data);
            }
            return Ok(());
        }
        bytes.get(0, MESSAGE)?;
        let (version, flags) = (bytes.u8(0)? >> 5, bytes.u8(1)?);
        let name = match segment.destination {
            MULTIHOP => "Multihop",
            LAG => "Lag",
            _ => "Control",
        };
        if version > 1 {
            put!(self, "BFDv{version}, {name}, length: {}", bytes.len);
            if verbose {
                self.rows("\n\t", bytes.data);
            }
            return Ok(());
        }
        match verbose {
            true => put!(self, "BFDv{version}, length: {}\n\t{name}", bytes.len),
            false => put!(self, "BFDv{version}, {name}"),
        }
        if version == 1 {
            put!(self, ", State {}", STATES[usize::from(flags >> 6)]);
        }
        self.text(", Flags: [");
        self.flag_names(flags, if version == 1 { &FLAGS } else { &DRAFT_FLAGS });
        self.text("]");
        if verbose {
            return self.bfd_fields(bytes);
        }
        put!(self, ", length: {}", bytes.len);
        Ok(())
    }

    /// Prints the fields after the flags.
    fn bfd_fields(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let diagnostic = bytes.u8(0)? & 0x1f;
        let cause = DIAGNOSTICS.get(usize::from(diagnostic)).unwrap_or(&"unknown");
        put!(self, ", Diagnostic: {cause} (0x{diagnostic:02x})");
        let multiplier = bytes.u8(2)?;
        let (send, receive, echo) = (bytes.u32(12)?, bytes.u32(16)?, bytes.u32(20)?);
        // tcpdump's product wraps at 32 bits.
        let detection = u64::from(multiplier) * u64::from(send) / 1000;
        put!(self, "\n\tDetection Timer Multiplier: {multiplier} ({detection} ms Detection time)");
        put!(self, ", BFD Length: {}", bytes.u8(3)?);
        put!(self, "\n\tMy Discriminator: 0x{:08x}", bytes.u32(4)?);
        put!(self, ", Your Discriminator: 0x{:08x}", bytes.u32(8)?);
        put!(self, "\n\t  Desired min Tx Interval:    {:4} ms", send / 1000);
        put!(self, "\n\t  Required min Rx Interval:   {:4} ms", receive / 1000);
        put!(self, "\n\t  Required min Echo Interval: {:4} ms", echo / 1000);
        if bytes.u8(1)? & AUTHENTICATED != 0 { self.bfd_authentication(bytes.from(MESSAGE)) } else { Ok(()) }
    }

    fn bfd_authentication(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        bytes.get(0, 4)?;
        let (kind, len, key) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u8(2)?);
        let name = AUTHENTICATIONS.get(usize::from(kind).wrapping_sub(1)).unwrap_or(&"Unknown");
        put!(self, "\n\tAuthentication: {name} ({kind}), length: {len}\n\t  Auth Key ID: {key}");
        let (right, hash, size) = match kind {
            1 => (4..=19, "Password", usize::from(len).saturating_sub(3)),
            2 | 3 => (24..=24, "Digest", 16),
            4 | 5 => (28..=28, "Hash", 20),
            _ => return Ok(()),
        };
        if !right.contains(&len) {
            put!(self, "[invalid length {len}]");
            return Ok(());
        }
        if kind == 1 {
            put!(self, ", {hash}: ");
            let password = bytes.from(3).first(size).data;
            self.harmless(password);
            return if password.len() == size { Ok(()) } else { Err(Cut) };
        }
        put!(self, ", Sequence Number: 0x{:08x}", bytes.u32(4)?);
        let value = bytes.get(8, size)?;
        put!(self, "\n\t  {hash}: ");
        value.iter().for_each(|&byte| self.hex_byte(byte));
        Ok(())
    }
}
