//! Options of DHCP (RFC 2132, RFC 3004, RFC 3046, RFC 3442, RFC 4702), with `-v`.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const PAD: u8 = 0;
const NODE: u8 = 46;
const OVERLOAD: u8 = 52;
const MESSAGE: u8 = 53;
const REQUESTED: u8 = 55;
const CLIENT: u8 = 61;
const USER: u8 = 77;
const NAME: u8 = 81;
const AGENT: u8 = 82;
const ROUTES: u8 = 121;
const ROUTES_MICROSOFT: u8 = 249;
const END: u8 = 255;

/// From 1.
#[rustfmt::skip]
const MESSAGES: [&str; 13] = [
    "Discover", "Offer", "Request", "Decline", "ACK", "NACK", "Release", "Inform", "", "LeaseQuery", "LeaseUnassigned",
    "LeaseUnknown", "LeaseActive",
];
/// What a client does for its name (RFC 4702, section 2.1).
const NAME_FLAGS: [(u8, &str); 4] = [(1, "S"), (2, "O"), (4, "E"), (8, "N")];

/// How the value of an option is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Addresses,
    /// Two addresses each.
    Pairs,
    Text,
    Long,
    Short,
    Bytes,
    Flags,
}

impl Form {
    /// Returns the length of an item.
    fn size(self) -> usize {
        match self {
            Self::Pairs => 8,
            Self::Addresses | Self::Long => 4,
            Self::Short => 2,
            Self::Bytes | Self::Flags | Self::Text => 1,
        }
    }
}

/// Returns name and form of an option.
fn option(kind: u8) -> Option<(&'static str, Form)> {
    use Form::{Addresses, Bytes, Flags, Long, Pairs, Short, Text};
    Some(match kind {
        PAD => ("PAD", Bytes),
        1 => ("Subnet-Mask", Addresses),
        2 => ("Time-Zone", Long),
        3 => ("Default-Gateway", Addresses),
        4 => ("Time-Server", Addresses),
        5 => ("IEN-Name-Server", Addresses),
        6 => ("Domain-Name-Server", Addresses),
        7 => ("LOG", Addresses),
        8 => ("CS", Addresses),
        9 => ("LPR-Server", Addresses),
        10 => ("IM", Addresses),
        11 => ("RL", Addresses),
        12 => ("Hostname", Text),
        13 => ("BS", Short),
        14 => ("DP", Text),
        15 => ("Domain-Name", Text),
        16 => ("SS", Addresses),
        17 => ("RP", Text),
        18 => ("EP", Text),
        19 => ("IPF", Flags),
        20 => ("SRT", Flags),
        21 => ("PF", Pairs),
        22 => ("RSZ", Short),
        23 => ("TTL", Bytes),
        24 => ("MTU-Timeout", Long),
        25 => ("MTU-Table", Short),
        26 => ("MTU", Short),
        27 => ("LSN", Flags),
        28 => ("BR", Addresses),
        29 => ("MD", Flags),
        30 => ("MS", Flags),
        31 => ("Router-Discovery", Flags),
        32 => ("RSA", Addresses),
        33 => ("Static-Route", Pairs),
        34 => ("UT", Flags),
        35 => ("AT", Long),
        36 => ("IE", Flags),
        37 => ("TT", Bytes),
        38 => ("KI", Long),
        39 => ("KG", Flags),
        40 => ("YD", Text),
        41 => ("YS", Addresses),
        42 => ("NTP", Addresses),
        43 => ("Vendor-Option", Bytes),
        44 => ("Netbios-Name-Server", Addresses),
        45 => ("WDD", Addresses),
        NODE => ("Netbios-Node", Bytes),
        47 => ("Netbios-Scope", Text),
        48 => ("XFS", Addresses),
        49 => ("XDM", Addresses),
        50 => ("Requested-IP", Addresses),
        51 => ("Lease-Time", Long),
        OVERLOAD => ("OO", Bytes),
        MESSAGE => ("DHCP-Message", Bytes),
        54 => ("Server-ID", Addresses),
        REQUESTED => ("Parameter-Request", Bytes),
        56 => ("MSG", Text),
        57 => ("MSZ", Short),
        58 => ("RN", Long),
        59 => ("RB", Long),
        60 => ("Vendor-Class", Text),
        CLIENT => ("Client-ID", Bytes),
        64 => ("N+D", Short),
        65 => ("N+S", Addresses),
        66 => ("TFTP", Text),
        67 => ("BF", Text),
        68 => ("MH", Addresses),
        69 => ("SMTP", Addresses),
        70 => ("POP3", Addresses),
        71 => ("NNTP", Addresses),
        72 => ("WWW", Addresses),
        73 => ("FG", Addresses),
        74 => ("IRC", Addresses),
        75 => ("STS", Addresses),
        76 => ("STDA", Addresses),
        USER => ("User-Class", Bytes),
        78 => ("SLP-DA", Bytes),
        79 => ("SLP-SCOPE", Bytes),
        80 => ("SLP-NA", Text),
        NAME => ("FQDN", Bytes),
        AGENT => ("Agent-Information", Bytes),
        83 => ("ARMT", Bytes),
        88 => ("TZSTR", Text),
        89 => ("FQDNS", Bytes),
        90 => ("AUTH", Bytes),
        91 => ("Last-Transaction-Time", Long),
        92 => ("Associated-IP", Addresses),
        93 => ("ARCH", Short),
        94 => ("NDI", Bytes),
        95 => ("LDAP", Text),
        97 => ("GUID", Bytes),
        98 => ("UAP", Text),
        100 => ("POSIX-TZ", Text),
        101 => ("TZ-Name", Text),
        112 => ("NI", Addresses),
        113 => ("NITAG", Text),
        114 => ("URL", Text),
        116 => ("NOAUTO", Flags),
        117 => ("NSSEARCH", Short),
        118 => ("SUBNET", Addresses),
        ROUTES => ("Classless-Static-Route", Bytes),
        150 => ("TFTP-Server-Address", Addresses),
        161 => ("MUD-URL", Text),
        ROUTES_MICROSOFT => ("Classless-Static-Route-Microsoft", Bytes),
        END => ("END", Bytes),
        _ => return None,
    })
}

/// Returns the name of the hardware that an address belongs to.
fn hardware(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "ether",
        6 => "ieee802",
        7 => "arcnet",
        15 => "frelay",
        23 => "strip",
        24 => "ieee1394",
        _ => return None,
    })
}

impl Printer<'_> {
    pub(crate) fn dhcp_options(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let everything = self.options.verbose > 2;
        while !rest.data.is_empty() {
            let kind = rest.u8(0)?;
            if kind == END && !everything {
                return Ok(());
            }
            if matches!(kind, PAD | END) {
                let run = rest.data.iter().take_while(|&&byte| byte == kind && kind == PAD).count().max(1);
                if everything {
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
            let name = option(kind).map_or("Unknown", |(name, _)| name);
            put!(self, "\n\t    {name} ({kind}), length {len}{}", if len > 0 { ": " } else { "" });
            rest.get(2, len)?;
            let left = self.dhcp_option(kind, rest.from(2).first(len))?;
            if left > 0 {
                put!(self, "\n\t  trailing data length {left}");
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    /// Prints the value of an option; returns how many bytes of it are left.
    fn dhcp_option(&mut self, kind: u8, value: Bytes<'_>) -> Result<usize, Cut> {
        let least = match kind {
            NODE | OVERLOAD | CLIENT => 1,
            USER => 2,
            NAME => 3,
            ROUTES | ROUTES_MICROSOFT => 5,
            _ => 0,
        };
        if value.len < least {
            put!(self, "[ERROR: length < {least} bytes]");
            return Ok(0);
        }
        match kind {
            MESSAGE if value.len == 1 => {
                let message = value.u8(0)?;
                match MESSAGES.get(usize::from(message).wrapping_sub(1)).filter(|name| !name.is_empty()) {
                    Some(name) => self.text(name),
                    None => put!(self, "Unknown ({message})"),
                }
            }
            NODE | OVERLOAD => {
                let number = value.u8(0)?;
                match (kind, number) {
                    (NODE, 1) => self.text("b-node"),
                    (NODE, 2) => self.text("p-node"),
                    (NODE, 4) => self.text("m-node"),
                    (NODE, 8) => self.text("h-node"),
                    (OVERLOAD, 1) => self.text("file"),
                    (OVERLOAD, 2) => self.text("sname"),
                    (OVERLOAD, 3) => self.text("file+sname"),
                    _ => put!(self, "#{number}"),
                }
                return Ok(value.len - 1);
            }
            REQUESTED => {
                for (number, &kind) in value.data.iter().enumerate() {
                    self.text(if number % 4 == 0 { "\n\t      " } else { ", " });
                    put!(self, "{} ({kind})", option(kind).map_or("Unknown", |(name, _)| name));
                }
            }
            CLIENT => self.client_identifier(value)?,
            USER => self.user_classes(value)?,
            NAME => self.client_name(value)?,
            AGENT => return self.relay_agent(value),
            ROUTES | ROUTES_MICROSOFT => self.classless_routes(value)?,
            _ => return self.dhcp_items(kind, value),
        }
        Ok(0)
    }

    /// Prints a value that consists of like items.
    fn dhcp_items(&mut self, kind: u8, value: Bytes<'_>) -> Result<usize, Cut> {
        let form = option(kind).map(|(_, form)| form);
        let form = form.unwrap_or(match value.len % 4 {
            0 => Form::Long,
            2 => Form::Short,
            _ => Form::Bytes,
        });
        if form == Form::Text {
            self.quoted(value.data);
            return Ok(0);
        }
        let size = form.size();
        for at in (0..value.len / size * size).step_by(size) {
            if at > 0 {
                self.text(if form == Form::Bytes { "." } else { "," });
            }
            match form {
                Form::Addresses => self.ip4_address(value.ip4(at)?),
                Form::Pairs => {
                    let (from, to) = (value.ip4(at)?, value.ip4(at + 4)?);
                    self.text("(");
                    self.ip4_address(from);
                    self.text(":");
                    self.ip4_address(to);
                    self.text(")");
                }
                Form::Long => self.number(value.u32(at)?),
                Form::Short => self.number(value.u16(at)?),
                Form::Bytes | Form::Text => self.number(value.u8(at)?),
                Form::Flags => match value.u8(at)? {
                    0 => self.text("N"),
                    1 => self.text("Y"),
                    other => put!(self, "{other}?"),
                },
            }
        }
        Ok(value.len % size)
    }

    fn quoted(&mut self, text: &[u8]) {
        self.text("\"");
        self.harmless(text);
        self.text("\"");
    }

    fn client_identifier(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let (kind, address) = (value.u8(0)?, value.from(1).data);
        match hardware(kind) {
            _ if kind == 0 => {
                self.quoted(address);
                return Ok(());
            }
            Some(name) => put!(self, "{name} "),
            None => put!(self, "hardware-type {kind}, "),
        }
        for (at, byte) in address.iter().enumerate() {
            put!(self, "{}{byte:02x}", if at == 0 { "" } else { ":" });
        }
        Ok(())
    }

    /// Prints what kinds of users or hosts the client stands for (RFC 3004).
    fn user_classes(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut number = 0;
        while rest.len > 0 {
            number += 1;
            let len = usize::from(rest.u8(0)?);
            put!(self, "\n\t      instance#{number}: ");
            if len == 0 {
                self.text("[ERROR: suboption length must be non-zero]");
                return Ok(());
            }
            if rest.len < 1 + len {
                self.text("[ERROR: invalid option]");
                return Ok(());
            }
            self.quoted(rest.get(1, len)?);
            put!(self, ", length {len}");
            rest = rest.from(1 + len);
        }
        Ok(())
    }

    /// Prints the client's name in DNS (RFC 4702).
    fn client_name(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let (flags, first, second) = (value.u8(0)?, value.u8(1)?, value.u8(2)?);
        if flags & 0xf0 != 0 {
            put!(self, "[ERROR: MBZ nibble 0x{:x} != 0] ", flags >> 4);
        }
        if flags & 15 != 0 {
            self.text("[");
            NAME_FLAGS.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, letter)| self.text(letter));
            self.text("] ");
        }
        if first != 0 || second != 0 {
            put!(self, "{first}/{second} ");
        }
        self.quoted(value.from(3).data);
        Ok(())
    }

    /// Prints what a relay says about the client (RFC 3046).
    fn relay_agent(&mut self, mut rest: Bytes<'_>) -> Result<usize, Cut> {
        while rest.len > 1 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            let name = match kind {
                1 => "Circuit-ID",
                2 => "Remote-ID",
                6 => "Subscriber-ID",
                _ => "Unknown",
            };
            put!(self, "\n\t      {name} SubOption {kind}, length {len}: ");
            if rest.len < 2 + len {
                self.text("length goes past end of option");
                return Ok(0);
            }
            let value = rest.get(2, len)?;
            match name {
                "Unknown" => self.rows("\n\t\t", value),
                _ => self.harmless(value),
            }
            rest = rest.from(2 + len);
        }
        Ok(rest.len)
    }

    /// Prints routes in their compact form (RFC 3442).
    fn classless_routes(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut before = "";
        while rest.len > 0 {
            let len = usize::from(rest.u8(0)?);
            let size = len.div_ceil(8);
            self.text(before);
            before = ",";
            if len > 32 {
                put!(self, "[ERROR: Mask width ({len}) > 32]");
                return Ok(());
            }
            if rest.len - 1 < size + 4 {
                put!(self, "[ERROR: Remaining length ({}) < {} bytes]", rest.len - 1, size + 4);
                return Ok(());
            }
            self.text("(");
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
}
