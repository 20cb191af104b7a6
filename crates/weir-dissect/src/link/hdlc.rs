//! Cisco's HDLC (`LINKTYPE_C_HDLC`).

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::ethertypes::{self, RARP};

const HEADER: usize = 4;
const UNICAST: u8 = 0x0f;
const BROADCAST: u8 = 0x8f;
/// The EtherType of ISO's protocols; the next byte is their number, or padding before it.
const OSI: u16 = 0xfefe;
/// ISO's protocols that padding can precede: CLNP, ES-IS and IS-IS.
const AFTER_PADDING: std::ops::RangeInclusive<u8> = 0x81..=0x83;
/// Least length of SLARP, and its length with the time that the link is up.
const SLARP: usize = 14;
const SLARP_WITH_TIME: usize = 18;

impl Printer<'_> {
    pub(crate) fn cisco_hdlc(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "chdlc";
        self.facts.protocol = Some("hdlc");
        bytes.get(0, HEADER)?;
        let (address, protocol) = (bytes.u8(0)?, bytes.u16(2)?);
        self.header(HEADER);
        if self.options.link {
            match address {
                UNICAST => self.text("unicast"),
                BROADCAST => self.text("bcast"),
                _ => put!(self, "0x{address:02x}"),
            }
            let name = if protocol == OSI { Some("OSI") } else { ethertypes::name(protocol) };
            put!(self, ", ethertype {} (0x{protocol:04x})", name.unwrap_or("Unknown"));
            put!(self, ", length {}: ", bytes.len);
        }
        let inner = bytes.from(HEADER);
        match protocol {
            ethertype::IPV4 | ethertype::IPV6 | ethertype::MPLS | ethertype::MPLS_UPSTREAM => {
                self.carried(protocol, inner).map(drop)
            }
            RARP => self.slarp(inner),
            OSI => match inner.u8(1)? {
                second if AFTER_PADDING.contains(&second) => self.osi(inner.from(1)),
                _ => self.osi(inner),
            },
            _ => {
                if !self.options.link {
                    put!(self, "unknown CHDLC protocol (0x{protocol:04x})");
                }
                Ok(())
            }
        }
    }

    /// Prints how the ends of a link find each other's addresses, and whether the other end is there.
    fn slarp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "chdlc_slarp";
        put!(self, "SLARP (length: {}), ", bytes.len);
        bytes.get(0, SLARP)?;
        let mut read = 4;
        match bytes.u32(0)? {
            0 => self.text("request"),
            1 => {
                self.text("reply ");
                self.ip4_address(bytes.ip4(4)?);
                self.text("/");
                self.ip4_address(bytes.ip4(8)?);
            }
            2 => {
                let (mine, yours) = (bytes.u32(4)?, bytes.u32(8)?);
                put!(self, "keepalive: mineseen=0x{mine:08x}, yourseen=0x{yours:08x}");
                put!(self, ", reliability=0x{:04x}", bytes.u16(12)?);
                read = SLARP;
                if bytes.len >= SLARP_WITH_TIME {
                    let seconds = bytes.u32(14)? / 1000;
                    let (minutes, hours) = (seconds / 60, seconds / 3600);
                    put!(self, ", link uptime={}d{}h", hours / 24, hours % 24);
                    put!(self, "{}m{}s", minutes % 60, seconds % 60);
                    read = SLARP_WITH_TIME;
                }
            }
            code => {
                put!(self, "0x{code:02x} unknown");
                if self.options.verbose < 2 {
                    self.rows("\n\t", bytes.from(4).data);
                }
            }
        }
        if self.options.verbose > 0 && bytes.len > SLARP_WITH_TIME {
            put!(self, ", (trailing junk: {} bytes)", bytes.len - SLARP_WITH_TIME);
        }
        if self.options.verbose > 1 {
            self.rows("\n\t", bytes.from(read).data);
        }
        Ok(())
    }
}
