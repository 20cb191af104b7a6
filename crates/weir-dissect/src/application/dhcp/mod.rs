//! BOOTP and DHCP (RFC 951, RFC 2131). Options are in `options`.

mod options;
mod v6;
mod v6_options;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Where the vendor area begins, with the cookie of RFC 1497.
const VENDOR: usize = 236;
const COOKIE: u32 = 0x6382_5363;

impl Printer<'_> {
    pub(crate) fn bootp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "bootp";
        self.facts.protocol = Some("dhcp");
        let operation = bytes.u8(0)?;
        self.text("BOOTP/DHCP, ");
        match operation {
            1 => self.text("Request"),
            2 => self.text("Reply"),
            _ => put!(self, "unknown (0x{operation:02x})"),
        }
        let (hardware, address_len) = (bytes.u8(1)?, bytes.u8(2)?);
        let ethernet = (hardware, address_len) == (1, 6);
        if operation == 1 && ethernet {
            let mac = bytes.mac(28)?;
            self.text(" from ");
            self.mac(mac);
        }
        put!(self, ", length {}", bytes.len);
        if self.options.verbose == 0 {
            return Ok(());
        }
        let (hops, id, seconds, flags) = (bytes.u8(3)?, bytes.u32(4)?, bytes.u16(8)?, bytes.u16(10)?);
        if hardware != 1 {
            put!(self, ", htype {hardware}");
        }
        if !ethernet {
            put!(self, ", hlen {address_len}");
        }
        if hops > 0 {
            put!(self, ", hops {hops}");
        }
        if id > 0 {
            put!(self, ", xid 0x{id:x}");
        }
        if seconds > 0 {
            put!(self, ", secs {seconds}");
        }
        put!(self, ", Flags [{}]", if flags & 0x8000 != 0 { "Broadcast" } else { "none" });
        if self.options.verbose > 1 {
            put!(self, " (0x{flags:04x})");
        }
        for (at, name) in [(12, "Client"), (16, "Your"), (20, "Server"), (24, "Gateway")] {
            let address = bytes.ip4(at)?;
            if !address.is_unspecified() {
                put!(self, "\n\t  {name}-IP {address}");
            }
        }
        if ethernet {
            let mac = bytes.mac(28)?;
            self.text("\n\t  Client-Ethernet-Address ");
            self.mac(mac);
        }
        for (at, len, name) in [(44, 64, "sname"), (108, 128, "file")] {
            if bytes.u8(at)? != 0 {
                put!(self, "\n\t  {name} \"");
                let text = bytes.get(at, len)?;
                let end = text.iter().position(|&byte| byte == 0);
                self.harmless(&text[..end.unwrap_or(len)]);
                self.text("\"");
                end.ok_or(Cut)?;
            }
        }
        match bytes.u32(VENDOR)? {
            COOKIE => {
                put!(self, "\n\t  Vendor-rfc1048 Extensions\n\t    Magic Cookie 0x{COOKIE:08x}");
                self.dhcp_options(bytes.from(VENDOR + 4))
            }
            0 => Ok(()),
            cookie => {
                put!(self, "\n\t  Vendor-#0x{cookie:08x}");
                Ok(())
            }
        }
    }
}
