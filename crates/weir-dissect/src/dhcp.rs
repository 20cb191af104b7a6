//! BOOTP and DHCP (RFC 951, RFC 2131, RFC 2132).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// Where the vendor area begins, with the cookie of RFC 1497.
const VENDOR: usize = 236;
const COOKIE: u32 = 0x6382_5363;
const PAD: u8 = 0;
const END: u8 = 255;
const MESSAGE: u8 = 53;
const REQUESTED: u8 = 55;
const CLIENT: u8 = 61;
const ROUTES: u8 = 121;
const AGENT: u8 = 82;
const MESSAGES: [&str; 8] = ["Discover", "Offer", "Request", "Decline", "ACK", "NACK", "Release", "Inform"];

/// How the value of an option is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Addresses,
    Text,
    Long,
    Short,
    Flags,
}

/// Returns name and form of an option.
fn option(kind: u8) -> Option<(&'static str, Form)> {
    use Form::{Addresses, Flags, Long, Short, Text};
    Some(match kind {
        1 => ("Subnet-Mask", Addresses),
        2 => ("Time-Zone", Long),
        3 => ("Default-Gateway", Addresses),
        4 => ("Time-Server", Addresses),
        5 => ("IEN-Name-Server", Addresses),
        6 => ("Domain-Name-Server", Addresses),
        7 => ("LOG", Addresses),
        8 => ("CS", Addresses),
        9 => ("LPR-Server", Addresses),
        12 => ("Hostname", Text),
        15 => ("Domain-Name", Text),
        17 => ("RP", Text),
        19 => ("IPF", Flags),
        26 => ("MTU", Short),
        28 => ("BR", Addresses),
        31 => ("Router-Discovery", Flags),
        33 => ("Static-Route", Addresses),
        35 => ("AT", Long),
        40 => ("YD", Text),
        41 => ("YS", Addresses),
        42 => ("NTP", Addresses),
        43 => ("Vendor-Option", Addresses),
        44 => ("Netbios-Name-Server", Addresses),
        45 => ("WDD", Addresses),
        46 => ("Netbios-Node", Addresses),
        47 => ("Netbios-Scope", Text),
        50 => ("Requested-IP", Addresses),
        51 => ("Lease-Time", Long),
        MESSAGE => ("DHCP-Message", Addresses),
        54 => ("Server-ID", Addresses),
        REQUESTED => ("Parameter-Request", Addresses),
        56 => ("MSG", Text),
        57 => ("MSZ", Short),
        58 => ("RN", Long),
        59 => ("RB", Long),
        60 => ("Vendor-Class", Text),
        CLIENT => ("Client-ID", Addresses),
        66 => ("TFTP", Text),
        67 => ("BF", Text),
        69 => ("SMTP", Addresses),
        77 => ("User-Class", Addresses),
        81 => ("FQDN", Addresses),
        AGENT => ("Agent-Information", Addresses),
        93 => ("ARCH", Short),
        94 => ("NDI", Addresses),
        97 => ("GUID", Addresses),
        100 => ("POSIX-TZ", Text),
        101 => ("TZ-Name", Text),
        116 => ("NOAUTO", Flags),
        121 => ("Classless-Static-Route", Addresses),
        150 => ("TFTP-Server-Address", Addresses),
        249 => ("Classless-Static-Route-Microsoft", Addresses),
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn bootp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "bootp";
        self.facts.protocol = Some("dhcp");
        self.text("BOOTP/DHCP, ");
        let operation = bytes.u8(0)?;
        match operation {
            1 => self.text("Request"),
            2 => self.text("Reply"),
            _ => put!(self, "unknown (0x{operation:02x})"),
        }
        let ethernet = (bytes.u8(1)?, bytes.u8(2)?) == (1, 6);
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
                self.harmless(text.split(|&byte| byte == 0).next().unwrap_or_default());
                self.text("\"");
            }
        }
        match bytes.u32(VENDOR)? {
            COOKIE => self.dhcp_options(bytes.from(VENDOR + 4)),
            0 => Ok(()),
            cookie => {
                put!(self, "\n\t  Vendor-#0x{cookie:08x}");
                Ok(())
            }
        }
    }

    fn dhcp_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        put!(self, "\n\t  Vendor-rfc1048 Extensions\n\t    Magic Cookie 0x{COOKIE:08x}");
        while !rest.data.is_empty() {
            let kind = rest.u8(0)?;
            if matches!(kind, PAD | END) {
                let run = rest.data.iter().take_while(|&&byte| byte == kind && kind == PAD).count().max(1);
                if self.options.verbose > 2 {
                    match (kind, run) {
                        (END, _) => self.text("\n\t    END (255), length 0"),
                        (_, 1) => self.text("\n\t    PAD (0), length 0"),
                        _ => put!(self, "\n\t    PAD (0), length 0, occurs {run}"),
                    }
                }
                rest = rest.from(run);
                continue;
            }
            let len = usize::from(rest.u8(1)?);
            let (name, form) = option(kind).unwrap_or(("Unknown", Form::Long));
            put!(self, "\n\t    {name} ({kind}), length {len}{}", if len > 0 { ": " } else { "" });
            rest.get(2, len)?;
            self.dhcp_option(kind, form, rest.from(2).first(len))?;
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    /// Prints what a relay says about the client (RFC 3046).
    fn relay_agent(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 1 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            let name = match kind {
                1 => "Circuit-ID",
                2 => "Remote-ID",
                6 => "Subscriber-ID",
                _ => "Unknown",
            };
            put!(self, "\n\t      {name} SubOption {kind}, length {len}: ");
            let value = rest.from(2).first(len);
            if name != "Unknown" {
                self.harmless(value.data);
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    /// Prints routes in their compact form (RFC 3442).
    fn classless_routes(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut before = "";
        while rest.len > 0 {
            let len = usize::from(rest.u8(0)?);
            let size = len.div_ceil(8);
            if len > 32 {
                put!(self, "{before}bad width {len}");
                return Ok(());
            }
            put!(self, "{before}(");
            before = ",";
            let mut network = [0; 4];
            network[..size].copy_from_slice(rest.get(1, size)?);
            match len {
                0 => self.text("default"),
                _ => {
                    self.ip4_address(network.into());
                    put!(self, "/{len}");
                }
            }
            self.text(":");
            self.ip4_address(rest.ip4(1 + size)?);
            self.text(")");
            rest = rest.from(5 + size);
        }
        Ok(())
    }

    /// Prints a value of which nothing is known: numbers of two bytes, or of one.
    fn dotted(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let (size, between) = if value.len.is_multiple_of(2) { (2, ",") } else { (1, ".") };
        for at in (0..value.len).step_by(size) {
            self.text(if at > 0 { between } else { "" });
            match size {
                2 => self.number(value.u16(at)?),
                _ => self.number(value.u8(at)?),
            }
        }
        Ok(())
    }

    fn dhcp_option(&mut self, kind: u8, form: Form, value: Bytes<'_>) -> Result<(), Cut> {
        match (kind, value.len) {
            (MESSAGE, 1) => {
                let message = value.u8(0)?;
                match MESSAGES.get(usize::from(message).wrapping_sub(1)) {
                    Some(name) => self.text(name),
                    None => put!(self, "Unknown ({message})"),
                }
                return Ok(());
            }
            (REQUESTED, _) => {
                for (number, &kind) in value.data.iter().enumerate() {
                    self.text(if number % 4 == 0 { "\n\t      " } else { ", " });
                    put!(self, "{} ({kind})", option(kind).map_or("Unknown", |(name, _)| name));
                }
                return Ok(());
            }
            (CLIENT, 7) if value.u8(0)? == 1 => {
                self.text("ether ");
                self.mac(value.mac(1)?);
                return Ok(());
            }
            (CLIENT, 1..) if value.u8(0)? == 0 => {
                self.text("\"");
                self.harmless(value.from(1).data);
                self.text("\"");
                return Ok(());
            }
            (AGENT, _) => return self.relay_agent(value),
            (ROUTES, _) => return self.classless_routes(value),
            _ if form == Form::Long && !value.len.is_multiple_of(4) && option(kind).is_none() => {
                return self.dotted(value);
            }
            _ => {}
        }
        if form == Form::Text {
            self.text("\"");
            self.harmless(value.data);
            self.text("\"");
            return Ok(());
        }
        let size = match form {
            Form::Addresses | Form::Long => 4,
            Form::Short => 2,
            Form::Flags | Form::Text => 1,
        };
        for at in (0..value.len / size * size).step_by(size) {
            if at > 0 {
                self.text(",");
            }
            match form {
                Form::Addresses => self.ip4_address(value.ip4(at)?),
                Form::Long => self.number(value.u32(at)?),
                Form::Short => self.number(value.u16(at)?),
                Form::Flags | Form::Text => match value.u8(at)? {
                    0 => self.text("N"),
                    1 => self.text("Y"),
                    other => put!(self, "{other}?"),
                },
            }
        }
        Ok(())
    }
}
