//! UDP (RFC 768), and the protocols that its ports identify.

use weir_packet::protocol::UDP;

use crate::Printer;
use crate::application::nfs;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::segment::{Around, Segment};
use crate::base::text::put;
use crate::registry::applications;

impl Printer<'_> {
    pub(crate) fn udp(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "udp";
        self.facts.protocol = Some("udp");
        let (Ok(source), Ok(destination)) = (bytes.u16(0), bytes.u16(2)) else {
            if !around.shown {
                self.addresses(around.source, around.destination);
            }
            return Err(Cut);
        };
        self.ports(around, source, destination);
        if bytes.len < 8 {
            put!(self, "truncated-udp {}", bytes.len);
            return Ok(());
        }
        let given = bytes.u16(4)?;
        // The length is 0 in jumbograms.
        let len = if given == 0 && bytes.len > 0xffff { bytes.len } else { usize::from(given) };
        if len < 8 {
            put!(self, "truncated-udplength {len}");
            return Ok(());
        }
        let checksum = bytes.u16(6)?;
        let datagram = bytes.first(len);
        let payload = datagram.from(8);
        self.facts.payload_len.get_or_insert(payload.len);
        let segment = Segment { protocol: UDP, around, source, destination, payload };
        // The rest of the datagram is in other fragments.
        let whole = if around.fragment { bytes.sized(len).from(8) } else { payload };
        self.read_segment(&Segment { payload: whole, ..segment }, None);
        if let Some(printed) = self.named_datagram(around, payload) {
            return printed;
        }
        let silent = !self.options.quick && nfs::is_datagram(&segment);
        let level = if around.source.is_ipv4() { 2 } else { 1 };
        if self.options.verbose >= level && !self.options.unverified && !around.fragment && !silent {
            if checksum == 0 && level == 2 {
                self.text("[no cksum] ");
            } else if datagram.whole() {
                let right = checksum::right(around.source, around.destination, UDP, datagram.data, 6);
                // Zero means no checksum, so a sum of zero is sent in its other form.
                match if right == 0 { 0xffff } else { right } {
                    right if right == checksum => self.text("[udp sum ok] "),
                    right => put!(self, "[bad udp cksum 0x{checksum:04x} -> 0x{right:04x}!] "),
                }
            }
        }
        if !self.options.quick
            && let Some(read) = applications::reader(&segment)
        {
            return read(self, segment);
        }
        if len > bytes.len && !around.fragment {
            put!(self, "UDP, bad length {} > {}", len - 8, bytes.len - 8);
            return Ok(());
        }
        self.text("UDP, length ");
        self.size(len - 8);
        Ok(())
    }
}
