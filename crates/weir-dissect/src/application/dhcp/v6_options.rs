//! Options of DHCPv6 (RFC 8415, section 21, and what iana.org/assignments/dhcpv6-parameters lists).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const HEADER: usize = 4;

/// How an option is printed.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    /// Nothing but the name.
    Name,
    Identifier,
    /// An identity, two times, and options.
    Association,
    /// An identity and options.
    Temporary,
    Address,
    Prefix,
    Requested,
    Number8,
    Number16,
    Number32,
    Message,
    Authentication,
    Status,
    /// The first bytes in hex.
    Hex,
    Reconfigure,
    Domains,
    Addresses,
    Remote,
    /// Text of at least so many bytes.
    Text(usize),
    Servers,
    Label,
    Query,
    Nested,
    Relayed,
}

const STATES: [&str; 11] = [
    "Success",
    "UnspecFail",
    "NoAddrsAvail",
    "NoBinding",
    "NotOnLink",
    "UseMulticast",
    "NoPrefixAvail",
    "UnknownQueryType",
    "MalformedQuery",
    "NotConfigured",
    "NotAllowed",
];

fn option(code: u16) -> Option<(&'static str, Value)> {
    Some(match code {
        1 => ("client-ID", Value::Identifier),
        2 => ("server-ID", Value::Identifier),
        3 => ("IA_NA", Value::Association),
        4 => ("IA_TA", Value::Temporary),
        5 => ("IA_ADDR", Value::Address),
        6 => ("option-request", Value::Requested),
        7 => ("preference", Value::Number8),
        8 => ("elapsed-time", Value::Number16),
        9 => ("relay-message", Value::Message),
        11 => ("authentication", Value::Authentication),
        12 => ("server-unicast", Value::Name),
        13 => ("status-code", Value::Status),
        14 => ("rapid-commit", Value::Name),
        15 => ("user-class", Value::Name),
        16 => ("vendor-class", Value::Name),
        17 => ("vendor-specific-info", Value::Name),
        18 => ("interface-ID", Value::Hex),
        19 => ("reconfigure-message", Value::Reconfigure),
        20 => ("reconfigure-accept", Value::Name),
        21 => ("SIP-servers-domain", Value::Domains),
        22 => ("SIP-servers-address", Value::Addresses),
        23 => ("DNS-server", Value::Addresses),
        24 => ("DNS-search-list", Value::Domains),
        25 => ("IA_PD", Value::Association),
        26 => ("IA_PD-prefix", Value::Prefix),
        27 => ("NIS-server", Value::Addresses),
        28 => ("NIS+-server", Value::Addresses),
        29 => ("NIS-domain-name", Value::Name),
        30 => ("NIS+-domain-name", Value::Name),
        31 => ("SNTP-servers", Value::Addresses),
        32 => ("lifetime", Value::Number32),
        33 => ("BCMCS-domain-name", Value::Name),
        34 => ("BCMCS-server", Value::Addresses),
        36 => ("Geoconf-Civic", Value::Name),
        37 => ("Remote-ID", Value::Remote),
        38 => ("Subscriber-ID", Value::Hex),
        39 => ("Client-FQDN", Value::Name),
        40 => ("PANA-agent", Value::Addresses),
        41 => ("POSIX-timezone", Value::Text(5)),
        42 => ("POSIX-tz-database", Value::Text(3)),
        43 => ("Echo-request-option", Value::Requested),
        44 => ("Lease-query", Value::Query),
        45 => ("LQ-client-data", Value::Nested),
        46 => ("Clt-time", Value::Number32),
        47 => ("LQ-relay-data", Value::Relayed),
        48 => ("LQ-client-link", Value::Addresses),
        56 => ("NTP-server", Value::Servers),
        64 => ("AFTR-Name", Value::Label),
        112 => ("MUD-URL", Value::Text(5)),
        _ => return None,
    })
}

impl Printer<'_> {
    /// Prints options. Those after one that is cut off are left out.
    pub(crate) fn dhcp6_options(&mut self, mut rest: Bytes<'_>) {
        while !rest.data.is_empty() {
            if self.dhcp6_option(rest).is_err() {
                self.text(" [|dhcp6]");
                return;
            }
            let len = rest.u16(2).unwrap_or_default();
            rest = rest.from(HEADER + usize::from(len));
        }
    }

    fn dhcp6_option(&mut self, rest: Bytes<'_>) -> Result<(), Cut> {
        let (code, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
        rest.get(HEADER, len)?;
        self.text(" (");
        self.dhcp6_option_name(code);
        let value = rest.from(HEADER).first(len);
        let how = option(code).map_or(Value::Name, |(_, how)| how);
        // What relays forward ends without a bracket of its own, as in tcpdump.
        if how == Value::Message {
            self.text(" (");
            return self.nested(|printer| {
                if printer.dhcp6(value).is_err() {
                    printer.truncated();
                }
                printer.text(")");
                Ok(())
            });
        }
        if how == Value::Domains {
            self.dhcp6_domains(value)?;
        } else if how == Value::Servers {
            self.dhcp6_servers(value)?;
        } else if self.dhcp6_value(how, value).is_err() {
            self.text(" ?");
        }
        self.text(")");
        Ok(())
    }

    fn dhcp6_option_name(&mut self, code: u16) {
        match option(code) {
            Some((name, _)) => self.text(name),
            None => put!(self, "opt_{code}"),
        }
    }

    /// Prints a value; `Cut`: it is too short.
    fn dhcp6_value(&mut self, how: Value, value: Bytes<'_>) -> Result<(), Cut> {
        match how {
            Value::Name | Value::Message | Value::Domains | Value::Servers => {}
            Value::Identifier => self.dhcp6_identifier(value)?,
            Value::Association => {
                value.get(0, 12)?;
                put!(self, " IAID:{} T1:{} T2:{}", value.u32(0)?, value.u32(4)?, value.u32(8)?);
                self.dhcp6_inner(value.from(12));
            }
            Value::Temporary => {
                put!(self, " IAID:{}", value.u32(0)?);
                self.dhcp6_inner(value.from(4));
            }
            Value::Address => {
                value.get(0, 24)?;
                self.text(" ");
                self.ip6_address(value.ip6(0)?);
                put!(self, " pltime:{} vltime:{}", value.u32(16)?, value.u32(20)?);
                self.dhcp6_inner(value.from(24));
            }
            Value::Prefix => {
                value.get(0, 25)?;
                self.text(" ");
                self.ip6_address(value.ip6(9)?);
                put!(self, "/{} pltime:{} vltime:{}", value.u8(8)?, value.u32(0)?, value.u32(4)?);
                self.dhcp6_inner(value.from(25));
            }
            Value::Requested if !value.len.is_multiple_of(2) => return Err(Cut),
            Value::Requested => {
                for at in (0..value.len).step_by(2) {
                    self.text(" ");
                    self.dhcp6_option_name(value.u16(at)?);
                }
            }
            Value::Number8 if value.len != 1 => return Err(Cut),
            Value::Number16 if value.len != 2 => return Err(Cut),
            Value::Number32 if value.len != 4 => return Err(Cut),
            Value::Number8 => put!(self, " {}", value.u8(0)?),
            Value::Number16 => put!(self, " {}", value.u16(0)?),
            Value::Number32 => put!(self, " {}", value.u32(0)?),
            Value::Authentication => self.dhcp6_authentication(value)?,
            Value::Status => {
                let code = value.u16(0)?;
                match STATES.get(usize::from(code)) {
                    Some(name) => put!(self, " {name}"),
                    None if code > 255 => self.text(" INVALID code"),
                    None => put!(self, " code{code}"),
                }
            }
            Value::Hex => {
                self.text(" ");
                self.dhcp6_hex(value);
            }
            Value::Reconfigure if value.len != 1 => return Err(Cut),
            Value::Reconfigure => match value.u8(0)? {
                5 => self.text(" for renew"),
                11 => self.text(" for inf-req"),
                other => put!(self, " for ???({other:02x})"),
            },
            Value::Addresses if !value.len.is_multiple_of(16) => return Err(Cut),
            Value::Addresses => {
                for at in (0..value.len).step_by(16) {
                    self.text(" ");
                    self.ip6_address(value.ip6(at)?);
                }
            }
            Value::Remote => {
                put!(self, " {} ", value.u32(0)?);
                self.dhcp6_hex(value.from(4));
            }
            Value::Text(least) if value.len < least => return Err(Cut),
            Value::Text(_) => {
                self.text(" ");
                self.harmless(value.data.split(|&byte| byte == 0).next().unwrap_or_default());
            }
            Value::Label if value.len < 3 => return Err(Cut),
            Value::Label => {
                self.text(" ");
                self.dhcp6_label(value)?;
            }
            Value::Query => {
                value.get(0, 17)?;
                match value.u8(0)? {
                    1 => self.text(" by-address"),
                    2 => self.text(" by-clientID"),
                    other => put!(self, " type_{other}"),
                }
                self.text(" ");
                self.ip6_address(value.ip6(1)?);
                self.dhcp6_inner(value.from(17));
            }
            Value::Nested => self.dhcp6_inner(value),
            Value::Relayed => {
                self.text(if value.len < 16 { "" } else { " " });
                self.ip6_address(value.ip6(0)?);
                self.text(" ");
                self.dhcp6_hex(value.from(16));
            }
        }
        Ok(())
    }

    fn dhcp6_inner(&mut self, options: Bytes<'_>) {
        if self.nested(|printer| {
            printer.dhcp6_options(options);
            Ok(())
        }) == Err(Cut)
        {
            self.truncated();
        }
    }

    /// Prints at most ten bytes.
    fn dhcp6_hex(&mut self, value: Bytes<'_>) {
        value.first(10).data.iter().for_each(|&byte| self.hex_byte(byte));
        self.text("...");
    }

    /// Prints a DHCP unique identifier (RFC 8415, section 11).
    fn dhcp6_identifier(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let kind = value.u16(0)?;
        let at = match kind {
            1 if value.len >= 8 => {
                put!(self, " hwaddr/time type {} time {} ", value.u16(2)?, value.u32(4)?);
                8
            }
            2 if value.len >= 8 => {
                self.text(" vid ");
                2
            }
            3 if value.len >= 4 => {
                put!(self, " hwaddr type {} ", value.u16(2)?);
                4
            }
            1..=3 => return Err(Cut),
            _ => {
                put!(self, " type {kind}");
                return Ok(());
            }
        };
        // Of an enterprise's identifier, its number and the first bytes.
        let shown = if kind == 2 { value.from(at).first(8) } else { value.from(at) };
        shown.data.iter().for_each(|&byte| self.hex_byte(byte));
        Ok(())
    }

    fn dhcp6_authentication(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        value.get(0, 11)?;
        let (protocol, algorithm, detection) = (value.u8(0)?, value.u8(1)?, value.u8(2)?);
        match protocol {
            2 => self.text(" proto: delayed"),
            3 => self.text(" proto: reconfigure"),
            _ => put!(self, " proto: {protocol}"),
        }
        match algorithm {
            1 => self.text(", alg: HMAC-MD5"),
            _ => put!(self, ", alg: {algorithm}"),
        }
        match detection {
            0 => self.text(", RDM: mono"),
            _ => put!(self, ", RDM: {detection}"),
        }
        self.text(", RD:");
        for at in (3..11).step_by(2) {
            put!(self, " {:04x}", value.u16(at)?);
        }
        let rest = value.from(11);
        match (protocol, rest.len) {
            (2, 0) => {}
            (2, 20..) => {
                let realm = rest.len - 20;
                if realm > 0 {
                    self.text(", realm: ");
                    rest.first(realm).data.iter().for_each(|&byte| self.hex_byte(byte));
                }
                put!(self, ", key ID: {:08x}, HMAC-MD5:", rest.u32(realm)?);
                self.dhcp6_key(rest.from(realm + 4))?;
            }
            (3, 17..) => {
                match rest.u8(0)? {
                    1 => self.text(" reconfig-key value:"),
                    2 => self.text(" type: HMAC-MD5 value:"),
                    _ => {
                        self.text(" ??");
                        return Ok(());
                    }
                }
                self.dhcp6_key(rest.from(1))?;
            }
            _ => self.text(" ??"),
        }
        Ok(())
    }

    fn dhcp6_key(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        for at in (0..16).step_by(4) {
            put!(self, " {:08x}", value.u32(at)?);
        }
        Ok(())
    }

    /// Prints servers of time (RFC 5908).
    fn dhcp6_servers(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len >= HEADER {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            rest.get(HEADER, len)?;
            put!(self, " subopt:{kind}");
            let value = rest.from(HEADER).first(len);
            match kind {
                1 | 2 if len == 16 => {
                    self.text(" ");
                    self.ip6_address(value.ip6(0)?);
                }
                3 => self.dhcp6_domains(value)?,
                _ => {
                    self.text(" ?");
                    return Ok(());
                }
            }
            rest = rest.from(HEADER + len);
        }
        Ok(())
    }

    /// Prints names, with a dot after each label.
    fn dhcp6_domains(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            self.text(" ");
            if rest.u8(0)? == 0 {
                self.text(".");
            }
            loop {
                let len = usize::from(rest.u8(0)?);
                let label = rest.from(1).first(len);
                rest = rest.from(1 + len);
                if len == 0 {
                    break;
                }
                self.harmless(label.data);
                label.get(0, len)?;
                self.text(".");
            }
        }
        Ok(())
    }

    /// Prints a name, with a dot between labels.
    fn dhcp6_label(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut before = "";
        while rest.len > 0 {
            let len = usize::from(rest.u8(0)?);
            if len == 0 {
                break;
            }
            let label = rest.get(1, len)?;
            self.text(before);
            self.harmless(label);
            before = ".";
            rest = rest.from(1 + len);
        }
        Ok(())
    }
}
