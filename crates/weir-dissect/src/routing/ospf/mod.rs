//! OSPF version 2 (RFC 2328). Link states are in `states`, version 3 is in `v3`.

mod states;
mod v3;

use std::net::Ipv4Addr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 24;
/// A checksum over the whole message, which follows it.
const CRYPTOGRAPHIC: u16 = 2;
/// The option of a block after the message (link-local signaling, RFC 5613).
const SIGNALS: u8 = 0x10;

/// From 1.
const NAMES: [&str; 5] = ["Hello", "Database Description", "LS-Request", "LS-Update", "LS-Ack"];

pub(crate) const OPTIONS: [(u8, &str); 8] = [
    (0x01, "MultiTopology"),
    (0x02, "External"),
    (0x04, "Multicast"),
    (0x08, "NSSA"),
    (SIGNALS, "LLS"),
    (0x20, "Demand Circuit"),
    (0x40, "Opaque"),
    (0x80, "Up/Down"),
];
const DESCRIPTION_FLAGS: [(u8, &str); 4] = [(4, "Init"), (2, "More"), (1, "Master"), (8, "OOBResync")];
const EXTENDED_OPTIONS: [(u32, &str); 2] = [(1, "LSDB resync"), (2, "Restart")];

impl Printer<'_> {
    /// `six`: within IPv6.
    pub(crate) fn ospf(&mut self, bytes: Bytes<'_>, six: bool) -> Result<(), Cut> {
        self.protocol = if six { "ospf3" } else { "ospf2" };
        self.facts.protocol = Some("ospf");
        let (version, kind) = (bytes.u8(0)?, bytes.u8(1)?);
        // The length that is printed includes no digest after the message.
        let digest = match !six && bytes.u16(14)? == CRYPTOGRAPHIC {
            true => bytes.u8(19)?.into(),
            false => 0,
        };
        put!(self, "OSPFv{version}, ");
        let len = bytes.len.saturating_sub(digest);
        let Some(name) = NAMES.get(usize::from(kind).wrapping_sub(1)) else {
            match six {
                true => put!(self, "unknown packet type ({kind})"),
                false => put!(self, "unknown LS-type {kind}"),
            }
            put!(self, ", length {len}");
            return Ok(());
        };
        put!(self, "{name}, length {len}");
        if self.options.verbose == 0 {
            return Ok(());
        }
        let given = bytes.u16(2)?.into();
        if len < given || len != given && !six {
            put!(self, " [len {given}]");
        }
        if six && len < given {
            return Ok(());
        }
        let (router, area) = (bytes.ip4(4)?, bytes.ip4(8));
        self.text("\n\tRouter-ID ");
        self.ip4_address(router);
        match area? {
            Ipv4Addr::UNSPECIFIED => self.text(", Backbone Area"),
            area => {
                self.text(", Area ");
                self.ip4_number(area);
            }
        }
        let message = bytes.first(len.min(given));
        if six {
            if bytes.u8(14)? != 0 {
                put!(self, ", Instance {}", bytes.u8(14)?);
            }
            return if version == 3 { self.ospf3_message(kind, message) } else { Ok(()) };
        }
        if !self.ospf_authentication(bytes)? {
            return Ok(());
        }
        if version != 2 {
            put!(self, " ospf [version {version}]");
            return Ok(());
        }
        let options = self.ospf_message(kind, message.from(HEADER))?;
        let signals = bytes.from(given + digest);
        if options & SIGNALS != 0 && signals.len > 0 { self.ospf_signals(signals) } else { Ok(()) }
    }

    /// Returns whether the message is to be read.
    fn ospf_authentication(&mut self, message: Bytes<'_>) -> Result<bool, Cut> {
        let kind = message.u16(14)?;
        let name = match kind {
            0 => "none",
            1 => "simple",
            CRYPTOGRAPHIC => "MD5",
            _ => "unknown",
        };
        message.get(16, 8)?;
        put!(self, ", Authentication Type: {name} ({kind})");
        match kind {
            0 => {}
            1 => {
                self.text("\n\tSimple text password: ");
                let password = message.get(16, 8)?;
                self.harmless(password.split(|&byte| byte == 0).next().unwrap_or_default());
            }
            CRYPTOGRAPHIC => {
                put!(self, "\n\tKey-ID: {}, Auth-Length: {}", message.u8(18)?, message.u8(19)?);
                put!(self, ", Crypto Sequence Number: 0x{:08x}", message.u32(20)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Prints what follows the header; returns the options of the sender.
    fn ospf_message(&mut self, kind: u8, message: Bytes<'_>) -> Result<u8, Cut> {
        let mut options = 0;
        match kind {
            1 => {
                options = message.u8(6)?;
                self.ospf_options("\n\tOptions [", options);
                let (hello, dead) = (message.u16(4)?, message.u32(8)?);
                put!(self, "\n\t  Hello Timer {hello}s, Dead Timer {dead}s, Mask ");
                self.ip4_number(message.ip4(0)?);
                put!(self, ", Priority {}", message.u8(7)?);
                self.ospf_designated(message.from(12))?;
                let neighbours = message.from(20);
                if neighbours.len > 0 {
                    self.text("\n\t  Neighbor List:");
                    self.ospf_routers("\n\t    ", neighbours)?;
                }
            }
            2 => {
                options = message.u8(2)?;
                self.ospf_options("\n\tOptions [", options);
                self.text(", DD Flags [");
                self.flag_names(message.u8(3)?, &DESCRIPTION_FLAGS);
                put!(self, "], MTU: {}", message.u16(0)?);
                put!(self, ", Sequence: 0x{:08x}", message.u32(4)?);
                self.ospf_state_heads(message.from(8))?;
            }
            3 => {
                for at in (0..message.len).step_by(12) {
                    let (kind, router) = (message.u32(at)?, message.ip4(at + 8)?);
                    self.text("\n\t  Advertising Router: ");
                    self.ip4_address(router);
                    self.ospf_state_name(", ", kind, message.from(at + 4), true)?;
                }
            }
            4 => self.ospf_states(message)?,
            _ => self.ospf_state_heads(message)?,
        }
        Ok(options)
    }

    pub(crate) fn ospf_options(&mut self, before: &str, options: u8) {
        self.text(before);
        self.flag_names(options, &OPTIONS);
        self.text("]");
    }

    /// Prints the designated router and its backup, if there are any.
    pub(crate) fn ospf_designated(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        for (at, before) in [(0, "\n\t  Designated Router "), (4, ", Backup Designated Router ")] {
            if bytes.u32(at)? != 0 {
                self.text(before);
                self.ip4_address(bytes.ip4(at)?);
            }
        }
        Ok(())
    }

    pub(crate) fn ospf_routers(&mut self, before: &str, bytes: Bytes<'_>) -> Result<(), Cut> {
        for at in (0..bytes.len).step_by(4) {
            let router = bytes.ip4(at)?;
            self.text(before);
            self.ip4_address(router);
        }
        Ok(())
    }

    fn ospf_signals(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let (checksum, words) = (bytes.u16(0)?, bytes.u16(2)?);
        put!(self, "\n\t  LLS: checksum: 0x{checksum:04x}, length: {words}");
        let mut rest = bytes.first(usize::from(words) * 4).from(4);
        while rest.len >= 4 {
            let (kind, len) = (rest.u16(0)?, rest.u16(2)?);
            let (name, right) = match kind {
                1 => ("Extended Options", 4),
                2 => ("MD5 Authentication", 20),
                _ => ("Unknown TLV", len),
            };
            put!(self, "\n\t    {name} ({kind}), length: {len}");
            if len != right {
                put!(self, " [should be {right}]");
            }
            if kind == 1 {
                let options = rest.u32(4)?;
                put!(self, "\n\t      Options: 0x{options:08x} [");
                match options & 3 {
                    0 => self.text("?"),
                    _ => self.flag_names(options, &EXTENDED_OPTIONS),
                }
                self.text("]");
            } else if kind == 2 {
                put!(self, "\n\t      Sequence number: 0x{:08x}", rest.u32(4)?);
            }
            // Fields that are known have their size, whatever they say.
            rest = rest.from(4 + usize::from(right).next_multiple_of(4));
        }
        Ok(())
    }
}
