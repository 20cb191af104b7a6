//! Updates of BGP (RFC 4271), for several kinds of addresses (RFC 4760), with labels (RFC 8277) and VPNs (RFC 4364).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::routing::bgp::{family_name, safi_name};

const AS_PATH: u8 = 2;
/// The same with numbers of four bytes.
const AS4_PATH: u8 = 17;
const AGGREGATOR: u8 = 7;
const AS4_AGGREGATOR: u8 = 18;
const REACHABLE: u8 = 14;
const UNREACHABLE: u8 = 15;

/// What the flags of an attribute say.
const FLAGS: [(u8, &str); 4] = [(0x80, "O"), (0x40, "T"), (0x20, "P"), (EXTENDED, "E")];
/// The flag of a length of two bytes.
const EXTENDED: u8 = 0x10;

/// From 1.
#[rustfmt::skip]
const NAMES: [&str; 18] = [
    "Origin", "AS Path", "Next Hop", "Multi Exit Discriminator", "Local Preference", "Atomic Aggregate", "Aggregator",
    "Community", "Originator ID", "Cluster List", "DPA", "Advertisers", "RCID Path / Cluster ID",
    "Multi-Protocol Reach NLRI", "Multi-Protocol Unreach NLRI", "Extended Community", "AS4 Path", "Aggregator4",
];
/// What comes before and after the numbers of a segment of a path, by its type.
const SEGMENTS: [(&str, &str); 5] = [("?", "?"), ("{ ", "}"), ("", ""), ("( ", ")"), ("({ ", "})")];

/// What is before a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Label,
    /// A label and the number of a VPN.
    Vpn,
}

impl Printer<'_> {
    pub(crate) fn bgp_update(&mut self, message: Bytes<'_>) -> Result<(), Cut> {
        let len = usize::from(message.u16(0)?);
        if len > 0 {
            message.get(2, len)?;
            self.text("\n\t  Withdrawn routes:");
            self.bgp_prefixes("\n\t    ", message.from(2).first(len), false, Before::Nothing)?;
        }
        let rest = message.from(2 + len);
        let len = usize::from(rest.u16(0)?);
        rest.get(2, len)?;
        let (attributes, routes) = (rest.from(2).first(len), rest.from(2 + len));
        if len == 0 && routes.len == 0 {
            self.text("\n\t  End-of-Rib Marker (empty NLRI)");
        }
        self.bgp_attributes(attributes)?;
        if routes.len > 0 {
            self.text("\n\t  Updated routes:");
            self.bgp_prefixes("\n\t    ", routes, false, Before::Nothing)?;
        }
        Ok(())
    }

    fn bgp_attributes(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (flags, kind) = (rest.u8(0)?, rest.u8(1)?);
            let (len, head) = match flags & EXTENDED {
                0 => (usize::from(rest.u8(2)?), 3),
                _ => (usize::from(rest.u16(2)?), 4),
            };
            put!(self, "\n\t  {} ({kind}), length: {len}", attribute(kind));
            if flags != 0 {
                self.text(", Flags [");
                FLAGS.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, letter)| self.text(letter));
                if flags & 0xf != 0 {
                    put!(self, "+{:x}", flags & 0xf);
                }
                self.text("]: ");
            }
            if head + len > rest.len {
                self.text(" [path attrs too short]");
                return Ok(());
            }
            let value = rest.from(head).first(len);
            let known = self.bgp_attribute(kind, value)?;
            if !known || self.options.verbose > 1 {
                self.rows("\n\t    ", value.data);
            }
            rest = rest.from(head + len);
        }
        Ok(())
    }

    /// Prints the value of an attribute; returns whether it is known.
    fn bgp_attribute(&mut self, kind: u8, value: Bytes<'_>) -> Result<bool, Cut> {
        let len = value.len;
        let fits = match kind {
            1 => len == 1,
            AS_PATH | AS4_PATH => len.is_multiple_of(2),
            3..=5 | 9 => len == 4,
            6 => len == 0,
            AGGREGATOR => matches!(len, 6 | 8),
            AS4_AGGREGATOR => len == 8,
            8 | 10 => len.is_multiple_of(4),
            16 => len.is_multiple_of(8),
            32 => len > 0 && len.is_multiple_of(12),
            _ => true,
        };
        if !fits {
            self.text("invalid len");
            return Ok(true);
        }
        match kind {
            1 => {
                let names = ["IGP", "EGP", "Incomplete"];
                self.text(names.get(usize::from(value.u8(0)?)).unwrap_or(&"Unknown Origin Typecode"));
            }
            AS_PATH | AS4_PATH if len == 0 => self.text("empty"),
            AS_PATH | AS4_PATH => self.bgp_path(value, if kind == AS_PATH { short(value) } else { false })?,
            3 | 9 => self.ip4_address(value.ip4(0)?),
            4 | 5 => put!(self, "{}", value.u32(0)?),
            6 => {}
            AGGREGATOR | AS4_AGGREGATOR => {
                let system = if len == 6 { value.u16(0)?.into() } else { value.u32(0)? };
                self.text(" AS #");
                self.bgp_system(system);
                self.text(", origin ");
                self.ip4_address(value.ip4(len - 4)?);
            }
            8 => self.bgp_communities(value)?,
            10 => {
                for at in (0..len).step_by(4) {
                    self.text(if at > 0 { ", " } else { "" });
                    self.ip4_address(value.ip4(at)?);
                }
            }
            REACHABLE => return self.bgp_reachable(value),
            UNREACHABLE => {
                let (family, safi) = (value.u16(0)?, value.u8(2)?);
                self.bgp_kind(family, safi);
                if len == 3 {
                    self.text("\n\t      End-of-Rib Marker (empty NLRI)");
                    return Ok(true);
                }
                let Some(before) = before(family, safi) else { return Ok(self.bgp_no_kind(family, safi)) };
                self.bgp_prefixes("\n\t      ", value.from(3), family == 2, before)?;
            }
            16 => {
                for at in (0..len).step_by(8) {
                    self.bgp_extended_community(value.from(at).first(8))?;
                }
            }
            32 => {
                for at in (0..len).step_by(12) {
                    let (a, b, c) = (value.u32(at)?, value.u32(at + 4)?, value.u32(at + 8)?);
                    put!(self, "{}{a}:{b}:{c}", if at > 0 { ", " } else { "\n\t    " });
                }
            }
            _ => {
                put!(self, "\n\t    no Attribute {kind} decoder");
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints the number of an autonomous system.
    pub(crate) fn bgp_system(&mut self, number: u32) {
        match number >> 16 {
            high @ 1.. if self.options.asdot => put!(self, "{high}.{}", number & 0xffff),
            _ => put!(self, "{number}"),
        }
    }

    /// Prints the systems that a route passed. `short`: numbers of two bytes.
    fn bgp_path(&mut self, value: Bytes<'_>, short: bool) -> Result<(), Cut> {
        let mut at = 0;
        while at < value.len {
            let (kind, count) = (value.u8(at)?, value.u8(at + 1)?);
            let (open, close) = SEGMENTS.get(usize::from(kind)).unwrap_or(&SEGMENTS[0]);
            self.text(open);
            at += 2;
            for _ in 0..count {
                let system = if short { value.u16(at)?.into() } else { value.u32(at)? };
                self.bgp_system(system);
                self.text(" ");
                at += if short { 2 } else { 4 };
            }
            self.text(close);
        }
        Ok(())
    }

    fn bgp_communities(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        for at in (0..value.len).step_by(4) {
            match value.u32(at)? {
                0xffff_ff01 => self.text(" NO_EXPORT"),
                0xffff_ff02 => self.text(" NO_ADVERTISE"),
                0xffff_ff03 => self.text(" NO_EXPORT_SUBCONFED"),
                number => {
                    let comma = if at + 4 < value.len { ", " } else { "" };
                    put!(self, "{}:{}{comma}", number >> 16, number & 0xffff);
                }
            }
        }
        Ok(())
    }

    fn bgp_extended_community(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let kind = value.u16(0)?;
        let name = match kind {
            0x0002 | 0x0102 | 0x0202 => "target",
            0x0003 | 0x0103 | 0x0203 => "origin",
            0x0005 => "ospf-domain",
            0x4004 => "link-BW",
            _ => "unknown extd community typecode",
        };
        let flags = match kind >> 14 {
            0 => "none",
            1 => "non-transitive",
            2 => "vendor-specific",
            _ => "vendor-specific, non-transitive",
        };
        put!(self, "\n\t    {name} (0x{kind:04x}), Flags [{flags}]: ");
        match kind {
            0x0002 | 0x0003 => {
                put!(self, "{}:{} (= ", value.u16(2)?, value.u32(4)?);
                self.ip4_address(value.ip4(4)?);
                self.text(")");
            }
            0x0102 | 0x0103 => {
                self.ip4_address(value.ip4(2)?);
                put!(self, ":{}", value.u16(6)?);
            }
            0x0202 | 0x0203 => {
                self.bgp_system(value.u32(2)?);
                put!(self, ":{}", value.u16(6)?);
            }
            0x0005 => self.ip4_address(value.ip4(2)?),
            0x4004 => {
                // Bytes per second.
                let rate = f64::from(f32::from_bits(value.u32(4)?));
                put!(self, "bandwidth: {:.3} Mbps", rate * 8.0 / 1e6);
            }
            _ => value.get(2, 6)?.iter().for_each(|&byte| self.hex_byte(byte)),
        }
        Ok(())
    }

    fn bgp_kind(&mut self, family: u16, safi: u8) {
        let name = match family_name(family) {
            "Unknown" => "Unknown AFI",
            name => name,
        };
        put!(self, "\n\t    AFI: {name} ({family}), SAFI: {} ({safi})", safi_name(safi));
    }

    fn bgp_no_kind(&mut self, family: u16, safi: u8) -> bool {
        put!(self, "\n\t    no AFI {family} / SAFI {safi} decoder");
        false
    }

    /// Prints routes and the next router on them; returns whether they are known.
    fn bgp_reachable(&mut self, value: Bytes<'_>) -> Result<bool, Cut> {
        let (family, safi) = (value.u16(0)?, value.u8(2)?);
        self.bgp_kind(family, safi);
        let Some(before) = before(family, safi) else { return Ok(self.bgp_no_kind(family, safi)) };
        let len = usize::from(value.u8(3)?);
        value.get(4, len)?;
        self.text("\n\t    nexthop: ");
        let size = if family == 1 { 4 } else { 16 } + if before == Before::Vpn { 8 } else { 0 };
        let mut at = 4;
        while at < 4 + len {
            self.text(if at > 4 { ", " } else { "" });
            if at + size > 4 + len {
                self.text("invalid len");
                break;
            }
            let mut router = value.from(at);
            if before == Before::Vpn {
                self.bgp_distinguisher(router)?;
                router = router.from(8);
            }
            match family {
                1 => self.ip4_address(router.ip4(0)?),
                _ => self.ip6_address(router.ip6(0)?),
            }
            at += size;
        }
        put!(self, ", nh-length: {len}");
        let mut rest = value.from(4 + len);
        let count = rest.u8(0)?;
        rest = rest.from(1);
        match count {
            0 => self.text(", no SNPA"),
            _ => put!(self, "\n\t    {count} SNPA"),
        }
        for _ in 0..count {
            let len = rest.u8(0)?;
            put!(self, "\n\t      {len} bytes");
            rest.get(1, len.into())?;
            rest = rest.from(1 + usize::from(len));
        }
        self.bgp_prefixes("\n\t      ", rest, family == 2, before)?;
        Ok(true)
    }

    /// Prints the number that tells equal addresses of VPNs apart.
    pub(crate) fn bgp_distinguisher(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        bytes.get(0, 8)?;
        self.text("RD: ");
        match bytes.u16(0)? {
            0 => {
                put!(self, "{}:{} (= ", bytes.u16(2)?, bytes.u32(4)?);
                self.ip4_number(bytes.ip4(4)?);
                self.text(")");
            }
            1 => {
                self.ip4_number(bytes.ip4(2)?);
                put!(self, ":{}", bytes.u16(6)?);
            }
            2 => {
                let number = bytes.u16(6)?;
                self.bgp_system(bytes.u32(2)?);
                put!(self, ":{number} (");
                self.ip4_number(bytes.ip4(2)?);
                put!(self, ":{number})");
            }
            _ => self.text("unknown RD format"),
        }
        self.text(", ");
        Ok(())
    }

    fn bgp_prefixes(&mut self, indent: &str, bytes: Bytes<'_>, six: bool, before: Before) -> Result<(), Cut> {
        let width = if six { 128 } else { 32 };
        let ahead = match before {
            Before::Nothing => 0,
            Before::Label => 3,
            Before::Vpn => 11,
        };
        let mut at = 0;
        while at < bytes.len {
            let bits = usize::from(bytes.u8(at)?).checked_sub(ahead * 8).filter(|bits| *bits <= width);
            let Some(bits) = bits else {
                put!(self, "{indent}(illegal prefix length)");
                return Ok(());
            };
            let prefix = bytes.from(at + 1);
            let len = bits.div_ceil(8);
            let mut address = [0; 16];
            address[..len].copy_from_slice(prefix.get(ahead, len)?);
            if !bits.is_multiple_of(8) {
                address[len - 1] &= 0xff << (8 - bits % 8);
            }
            self.text(indent);
            if before == Before::Vpn {
                self.bgp_distinguisher(prefix.from(3))?;
            }
            match (six, address) {
                (true, _) => self.ip6_address(Ipv6Addr::from(address)),
                (false, [a, b, c, d, ..]) => self.ip4_address(Ipv4Addr::new(a, b, c, d)),
            }
            put!(self, "/{bits}");
            if before != Before::Nothing {
                let label = prefix.u24(0)?;
                let end = if label & 1 != 0 { "(bottom)" } else { "(BOGUS: Bottom of Stack NOT set!)" };
                put!(self, ", label:{} {end}", label >> 4);
            }
            at += 1 + ahead + len;
        }
        Ok(())
    }
}

/// Returns what is before the prefixes of a kind of addresses, if it is one that is read.
fn before(family: u16, safi: u8) -> Option<Before> {
    match (family, safi) {
        (1 | 2, 1..=3) => Some(Before::Nothing),
        (1 | 2, 4) => Some(Before::Label),
        (1 | 2, 128) => Some(Before::Vpn),
        _ => None,
    }
}

/// Returns whether the numbers of a path have two bytes: nothing in the message says so.
fn short(value: Bytes<'_>) -> bool {
    let mut at = 0;
    while at < value.len {
        let (Ok(1..=4), Ok(count @ 1..)) = (value.u8(at), value.u8(at + 1)) else { return false };
        at += 2 + 2 * usize::from(count);
    }
    at == value.len
}

fn attribute(kind: u8) -> &'static str {
    match kind {
        22 => "PMSI Tunnel",
        23 => "Tunnel Encapsulation",
        24 => "Traffic Engineering",
        25 => "IPv6 Extended Community",
        26 => "Accumulated IGP Metric",
        27 => "PE Distinguisher Label",
        28 => "Entropy Label",
        32 => "Large Community",
        128 => "Attribute Set",
        _ => NAMES.get(usize::from(kind).wrapping_sub(1)).unwrap_or(&"Unknown Attribute"),
    }
}
