//! BGP (RFC 4271): with `-v`, its messages. Updates are in `update`.

mod update;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// What every message begins with.
const MARKER: [u8; 16] = [0xff; 16];
/// Length of the header.
const HEADER: usize = 19;

/// From 0.
const NAMES: [&str; 6] = ["Unknown", "Open", "Update", "Notification", "Keepalive", "Route Refresh"];
/// What a notification is about, and its details from 1.
const ERRORS: [(&str, &[&str]); 8] = [
    ("Unknown Error", &[]),
    ("Message Header Error", &["Connection Not Synchronized", "Bad Message Length", "Bad Message Type"]),
    (
        "OPEN Message Error",
        &[
            "Unsupported Version Number",
            "Bad Peer AS",
            "Bad BGP Identifier",
            "Unsupported Optional Parameter",
            "Authentication Failure",
            "Unacceptable Hold Time",
            "Capability Message Error",
        ],
    ),
    (
        "UPDATE Message Error",
        &[
            "Malformed Attribute List",
            "Unrecognized Well-known Attribute",
            "Missing Well-known Attribute",
            "Attribute Flags Error",
            "Attribute Length Error",
            "Invalid ORIGIN Attribute",
            "AS Routing Loop",
            "Invalid NEXT_HOP Attribute",
            "Optional Attribute Error",
            "Invalid Network Field",
            "Malformed AS_PATH",
        ],
    ),
    ("Hold Timer Expired", &[]),
    ("Finite State Machine Error", &["In OpenSent State", "In OpenConfirm State", "In Established State"]),
    (
        "Cease",
        &[
            "Maximum Number of Prefixes Reached",
            "Administrative Shutdown",
            "Peer Unconfigured",
            "Administrative Reset",
            "Connection Rejected",
            "Other Configuration Change",
            "Connection Collision Resolution",
        ],
    ),
    (
        "Capability Message Error",
        &[
            "Invalid Action Value",
            "Invalid Capability Length",
            "Malformed Capability Value",
            "Unsupported Capability Code",
        ],
    ),
];
const STATE_MACHINE: u8 = 5;
const CEASE: u8 = 6;

impl Printer<'_> {
    pub(crate) fn bgp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "bgp";
        self.facts.protocol = Some("bgp");
        self.text(": BGP");
        if self.options.verbose > 0 { self.bgp_messages(payload) } else { Ok(()) }
    }

    fn bgp_messages(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        // A segment can begin within a message.
        while let Some(at) = rest.data.windows(MARKER.len()).position(|window| window == MARKER) {
            rest = rest.from(at);
            rest.get(0, HEADER)?;
            if at > 0 {
                self.text(" [|bgp]");
            }
            let (len, kind) = (usize::from(rest.u16(16)?), rest.u8(18)?);
            let name = NAMES.get(usize::from(kind)).unwrap_or(&NAMES[0]);
            if len < HEADER {
                put!(self, "\nmessage length {len} < {HEADER} (invalid)");
                return Ok(());
            }
            if rest.data.len() < len {
                let name = if *name == NAMES[0] { "Unknown Message Type" } else { name };
                put!(self, "\n[|BGP {name}]");
                return Ok(());
            }
            put!(self, "\n\t{name} Message ({kind}), length: {len}");
            let message = rest.first(len);
            match kind {
                1 => self.bgp_open(message.from(HEADER))?,
                2 => self.bgp_update(message.from(HEADER))?,
                3 => self.bgp_notification(message.from(HEADER))?,
                4 => {}
                5 => {
                    let (family, safi) = (message.u16(19)?, message.u8(22)?);
                    self.text("\n\t  ");
                    self.bgp_family(family, safi);
                    if self.options.verbose > 1 {
                        self.rows("\n\t  ", message.data);
                    }
                }
                _ => {
                    put!(self, "\n\t  no Message {kind} decoder");
                    self.rows("\n\t  ", message.data);
                }
            }
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints what addresses are of, and what they are for.
    pub(crate) fn bgp_family(&mut self, family: u16, safi: u8) {
        put!(self, "AFI {} ({family}), SAFI {} ({safi})", family_name(family), safi_name(safi));
    }

    fn bgp_open(&mut self, message: Bytes<'_>) -> Result<(), Cut> {
        message.get(0, 10)?;
        let (version, system, hold) = (message.u8(0)?, message.u16(1)?, message.u16(3)?);
        put!(self, "\n\t  Version {version}, my AS {system}, Holdtime {hold}s, ID ");
        self.ip4_number(message.ip4(5)?);
        let len = usize::from(message.u8(9)?);
        put!(self, "\n\t  Optional parameters, length: {len}");
        let mut at = 0;
        let options = message.from(10);
        while at < len {
            let option = options.from(at);
            let (kind, size) = (option.u8(0)?, usize::from(option.u8(1)?));
            at += 2 + size;
            if at > len {
                put!(self, "\n\t     Option {kind}, length: {size}, goes past the end of the options");
                return Ok(());
            }
            let name = match kind {
                1 => "Authentication Information",
                2 => "Capabilities Advertisement",
                _ => "Unknown",
            };
            put!(self, "\n\t    Option {name} ({kind}), length: {size}");
            match kind {
                2 => self.bgp_capabilities(option.from(2).first(size))?,
                _ => put!(self, "\n\t      no decoder for option {kind}"),
            }
        }
        Ok(())
    }

    fn bgp_capabilities(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            put!(self, "\n\t      {} ({kind}), length: {len}", capability(kind));
            rest.get(2, len)?;
            let value = rest.from(2).first(len);
            let least = match kind {
                1 | 8 | 65 | 69 => 4,
                64 => 2,
                _ => 0,
            };
            if len < least {
                put!(self, " (too short, < {least})");
                return Ok(());
            }
            let known = self.bgp_capability(kind, value)?;
            if !known || self.options.verbose > 1 {
                self.rows("\n\t\t", value.data);
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    /// Prints the value of a capability; returns whether it is known.
    fn bgp_capability(&mut self, kind: u8, value: Bytes<'_>) -> Result<bool, Cut> {
        match kind {
            1 => {
                self.text("\n\t\t");
                self.bgp_family(value.u16(0)?, value.u8(3)?);
            }
            2 | 71 | 128 => {}
            64 => {
                let first = value.u16(0)?;
                let flags = if first & 0x8000 != 0 { "R" } else { "none" };
                put!(self, "\n\t\tRestart Flags: [{flags}], Restart Time {}s", first & 0xfff);
                for at in (2..value.len.saturating_sub(3)).step_by(4) {
                    self.text("\n\t\t  ");
                    self.bgp_family(value.u16(at)?, value.u8(at + 2)?);
                    let kept = if value.u8(at + 3)? & 0x80 != 0 { "yes" } else { "no" };
                    put!(self, ", Forwarding state preserved: {kept}");
                }
            }
            65 => {
                let system = value.u32(0)?;
                self.text("\n\t\t 4 Byte AS ");
                self.bgp_system(system);
            }
            8 | 69 => {
                for at in (0..value.len.saturating_sub(3)).step_by(4) {
                    self.text("\n\t\t");
                    self.bgp_family(value.u16(at)?, value.u8(at + 2)?);
                    match (kind, value.u8(at + 3)?) {
                        (8, count) => put!(self, ", Count: {count}"),
                        (_, 1) => self.text(", Send/Receive: Receive"),
                        (_, 2) => self.text(", Send/Receive: Send"),
                        (_, 3) => self.text(", Send/Receive: Both"),
                        (_, other) => put!(self, ", Send/Receive: Bogus (0x{other:02x})"),
                    }
                }
            }
            _ => {
                put!(self, "\n\t\tno decoder for Capability {kind}");
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bgp_notification(&mut self, message: Bytes<'_>) -> Result<(), Cut> {
        let (kind, detail) = (message.u8(0)?, message.u8(1)?);
        let (name, details) = ERRORS.get(usize::from(kind)).unwrap_or(&ERRORS[0]);
        put!(self, ", {name} ({kind})");
        if details.is_empty() {
            return Ok(());
        }
        let detail_name = match (kind, detail) {
            (STATE_MACHINE, 0) => "Unspecified Error",
            _ => details.get(usize::from(detail).wrapping_sub(1)).unwrap_or(&"Unknown"),
        };
        let comma = if matches!(kind, STATE_MACHINE | 7) { "" } else { "," };
        put!(self, "{comma} subcode {detail_name} ({detail})");
        let data = message.from(2);
        match (kind, detail) {
            (CEASE, 1) if data.len >= 7 => {
                self.text(", ");
                self.bgp_family(data.u16(0)?, data.u8(2)?);
                put!(self, ", Max Prefixes: {}", data.u32(3)?);
            }
            (CEASE, 2 | 4) if data.len > 0 => {
                let len = usize::from(data.u8(0)?);
                if len == 0 {
                    self.text(", empty Shutdown Communication");
                } else if len >= data.len {
                    put!(self, ", invalid Shutdown Communication length, Data: (length: {})", data.len);
                    self.rows("\n\t\t", data.data);
                } else {
                    put!(self, ", Shutdown Communication (length: {len}): \"");
                    self.harmless(data.get(1, len)?);
                    self.text("\"");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

pub(crate) fn family_name(family: u16) -> &'static str {
    match family {
        0 => "Reserved",
        1 => "IPv4",
        2 => "IPv6",
        3 => "NSAP",
        6 => "802",
        25 => "VPLS",
        196 => "Layer-2 VPN",
        _ => "Unknown",
    }
}

pub(crate) fn safi_name(safi: u8) -> &'static str {
    match safi {
        0 => "Reserved",
        1 => "Unicast",
        2 => "Multicast",
        3 => "Unicast+Multicast",
        4 => "labeled Unicast",
        5 => "Multicast VPN",
        64 => "Tunnel",
        65 => "VPLS",
        66 => "MDT",
        70 => "EVPN",
        128 => "labeled VPN Unicast",
        129 => "labeled VPN Multicast",
        132 => "Route Target Routing Information",
        _ => "Unknown",
    }
}

fn capability(kind: u8) -> &'static str {
    match kind {
        1 => "Multiprotocol Extensions",
        2 => "Route Refresh",
        3 => "Cooperative Route Filtering",
        4 => "Multiple Routes to a Destination",
        5 => "Extended Next Hop Encoding",
        8 => "Multiple Labels",
        64 => "Graceful Restart",
        65 => "32-Bit AS Number",
        67 => "Dynamic Capability",
        68 => "Multisession BGP",
        69 => "Multiple Paths",
        70 => "Enhanced Route Refresh",
        71 => "Long-lived Graceful Restart",
        128 => "Route Refresh (Cisco)",
        _ => "Unknown",
    }
}
