//! EIGRP (RFC 7868): with `-v`, the header, and what greetings and updates over IPv4 carry.

use std::net::Ipv4Addr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 20;

const FLAGS: [(u32, &str); 4] =
    [(1, "Init"), (2, "Conditionally Received"), (4, "Restart"), (8, "End-of-Table")];

impl Printer<'_> {
    pub(crate) fn eigrp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "eigrp";
        self.facts.protocol = Some("eigrp");
        bytes.get(0, HEADER)?;
        let (version, operation) = (bytes.u8(0)?, bytes.u8(1)?);
        if version != 2 {
            put!(self, "EIGRP version {version} packet not supported");
            return Ok(());
        }
        let name = match operation {
            1 => Some("Update"),
            3 => Some("Query"),
            4 => Some("Reply"),
            5 => Some("Hello"),
            6 => Some("IPX SAP"),
            7 => Some("Probe"),
            _ => None,
        };
        if self.options.verbose == 0 {
            match name {
                Some(name) => put!(self, "EIGRP {name}, length: {}", bytes.len),
                None => put!(self, "EIGRP unknown ({operation}), length: {}", bytes.len),
            }
            return Ok(());
        }
        self.text("\n\tEIGRP v2, opcode: ");
        match name {
            Some(name) => self.text(name),
            None => put!(self, "unknown, type: {operation}"),
        }
        put!(self, " ({operation}), chksum: 0x{:04x}, Flags: [", bytes.u16(2)?);
        self.flag_names(bytes.u32(4)?, &FLAGS);
        put!(self, "]\n\tseq: 0x{:08x}, ack: 0x{:08x}", bytes.u32(8)?, bytes.u32(12)?);
        put!(self, ", VRID: {}, AS: {}, length: {}", bytes.u16(16)?, bytes.u16(18)?, bytes.len - HEADER);
        self.eigrp_fields(bytes.from(HEADER))
    }

    fn eigrp_fields(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            if len < 4 || len > rest.len {
                self.rows("\n\t    ", rest.from(4).data);
                return Ok(());
            }
            let (name, least) = match kind {
                0x0001 => ("General Parameters", 8),
                0x0002 => ("Authentication", 0),
                0x0003 => ("Sequence", 0),
                0x0004 => ("Software Version", 4),
                0x0005 => ("Next Multicast Sequence", 0),
                0x0102 => ("IP Internal routes", 22),
                0x0103 => ("IP External routes", 0),
                _ => ("Unknown", 0),
            };
            put!(self, "\n\t  {name} TLV (0x{kind:04x}), length: {len}");
            rest.get(0, len)?;
            let value = rest.from(4).first(len - 4);
            if value.len < least {
                put!(self, " (too short, < {})", least + 4);
                return Ok(());
            }
            let known = self.eigrp_field(kind, value)?;
            if !known || self.options.verbose > 1 {
                self.rows("\n\t    ", value.data);
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints a value; returns whether it is known.
    fn eigrp_field(&mut self, kind: u16, value: Bytes<'_>) -> Result<bool, Cut> {
        match kind {
            0x0001 => {
                put!(self, "\n\t    holdtime: {}s", value.u16(6)?);
                for at in 0..5 {
                    put!(self, ", k{} {}", at + 1, value.u8(at)?);
                }
            }
            0x0004 => {
                put!(self, "\n\t    IOS version: {}.{}", value.u8(0)?, value.u8(1)?);
                put!(self, ", EIGRP version {}.{}", value.u8(2)?, value.u8(3)?);
            }
            0x0102 => {
                let bits = value.u8(20)?;
                let len = usize::from(bits).div_ceil(8);
                if bits > 32 {
                    put!(self, "\n\t    illegal prefix length {bits}");
                    return Ok(true);
                }
                let mut address = [0; 4];
                address[..len].copy_from_slice(value.get(21, len)?);
                put!(self, "\n\t    IPv4 prefix: {:>15}/{bits}, nexthop: ", Ipv4Addr::from(address));
                match value.ip4(0)? {
                    Ipv4Addr::UNSPECIFIED => self.text("self"),
                    router => self.ip4_address(router),
                }
                put!(self, "\n\t      delay {} ms, bandwidth {} Kbps", value.u32(4)? / 100, value.u32(8)?);
                put!(self, ", mtu {}, hop {}", value.u24(12)?, value.u8(15)?);
                put!(self, ", reliability {}, load {}", value.u8(16)?, value.u8(17)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
