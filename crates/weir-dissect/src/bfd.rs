//! Bidirectional forwarding detection (RFC 5880, RFC 5881, RFC 5883, RFC 7130).

use crate::Printer;
use crate::bytes::Cut;
use crate::segment::Segment;
use crate::text::put;

const ECHO: u16 = 3785;
const MULTIHOP: u16 = 4784;
const LAG: u16 = 6784;

const FLAGS: [(u8, &str); 6] = [
    (0x20, "Poll"),
    (0x10, "Final"),
    (0x08, "Control Plane Independent"),
    (0x04, "Authentication Present"),
    (0x02, "Demand"),
    (0x01, "Multipoint"),
];
const STATES: [&str; 4] = ["AdminDown", "Down", "Init", "Up"];

impl Printer<'_> {
    pub(crate) fn bfd(&mut self, segment: Segment<'_>) -> Result<(), Cut> {
        self.protocol = "bfd";
        self.facts.protocol = Some("bfd");
        let bytes = segment.payload;
        if segment.destination == ECHO {
            put!(self, "BFD, Echo, length: {}", bytes.len);
            return Ok(());
        }
        bytes.get(0, 4)?;
        let (version, flags) = (bytes.u8(0)? >> 5, bytes.u8(1)?);
        let name = match segment.destination {
            MULTIHOP => "Multihop",
            LAG => "Lag",
            _ => "Control",
        };
        put!(self, "BFDv{version}, {name}");
        // Version 0, a draft, had other flags.
        if version != 1 {
            put!(self, ", length: {}", bytes.len);
            return Ok(());
        }
        put!(self, ", State {}", STATES[usize::from(flags >> 6)]);
        self.text(", Flags: [");
        self.flag_names(flags, &FLAGS);
        put!(self, "], length: {}", bytes.len);
        Ok(())
    }
}
