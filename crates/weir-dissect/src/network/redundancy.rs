//! VRRP (RFC 3768, RFC 5798), CARP and HSRP (RFC 2281): routers that share an address.

use weir_packet::protocol::VRRP;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::segment::Around;
use crate::base::text::put;

/// VRRP authentication: a password of eight bytes at the end.
const PASSWORD: u8 = 1;
/// Length of a CARP header with its counter.
const CARP: usize = 16;
const DEFAULT_PASSWORD: &[u8] = b"cisco\0\0\0";

impl Printer<'_> {
    pub(crate) fn vrrp(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "vrrp";
        self.facts.protocol = Some("vrrp");
        let first = bytes.u8(0)?;
        let (version, kind) = (first >> 4, first & 15);
        put!(self, "VRRPv{version}, ");
        if kind != 1 {
            put!(self, "unknown type ({kind})");
            return Ok(());
        }
        self.text("Advertisement");
        // Other routers on the same link send it, so no router has counted it down.
        if around.ttl != 255 {
            put!(self, ", (ttl {})", around.ttl);
        }
        put!(self, ", vrid {}, prio {}", bytes.u8(1)?, bytes.u8(2)?);
        let (count, authentication) = (usize::from(bytes.u8(3)?), bytes.u8(4)?);
        if version == 2 {
            match authentication {
                0 => self.text(", authtype none"),
                1 => self.text(", authtype simple"),
                2 => self.text(", authtype ah"),
                _ => put!(self, ", authtype type#{authentication}"),
            }
            put!(self, ", intvl {}s, length {}", bytes.u8(5)?, bytes.len);
        } else {
            put!(self, ", intvl {}cs, length {}", bytes.u16(4)? & 0xfff, bytes.len);
        }
        if self.options.verbose == 0 {
            return Ok(());
        }
        let given = bytes.u16(6)?;
        if version == 3 && bytes.whole() {
            let right = checksum::right(around.source, around.destination, VRRP, bytes.data, 6);
            if given != right {
                put!(self, ", (bad vrrp cksum {given:x})");
            }
        } else if version == 2 && bytes.whole() && checksum::sum(&[bytes.data]) != 0xffff {
            put!(self, ", (bad vrrp cksum {given:x})");
        }
        self.text(", addrs");
        if count > 1 {
            put!(self, "({count})");
        }
        let six = version == 3 && around.source.is_ipv6();
        let size = if six { 16 } else { 4 };
        for number in 0..count {
            self.text(if number == 0 { ": " } else { "," });
            match six {
                true => self.ip6_address(bytes.ip6(8 + number * size)?),
                false => self.ip4_address(bytes.ip4(8 + number * size)?),
            }
        }
        if version == 2 && authentication == PASSWORD {
            let password = bytes.get(8 + count * size, 8)?;
            self.text(" auth \"");
            self.harmless(password.split(|&byte| byte == 0).next().unwrap_or_default());
            self.text("\"");
        }
        Ok(())
    }

    /// Prints CARP, OpenBSD's protocol with VRRP's number.
    pub(crate) fn carp(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "carp";
        self.facts.protocol = Some("carp");
        let first = bytes.u8(0)?;
        let (version, kind) = (first >> 4, first & 15);
        put!(self, "CARPv{version}-{} {}: ", if kind == 1 { "advertise" } else { "unknown" }, bytes.len);
        if around.ttl != 255 {
            put!(self, "[ttl={}!] ", around.ttl);
        }
        if (version, kind) != (2, 1) {
            return Ok(());
        }
        bytes.get(0, CARP)?;
        let (host, skew, words, base) = (bytes.u8(1)?, bytes.u8(2)?, bytes.u8(3)?, bytes.u8(5)?);
        put!(self, "vhid={host} advbase={base} advskew={skew} authlen={words} ");
        if self.options.verbose > 0 && bytes.whole() && checksum::sum(&[bytes.data]) != 0xffff {
            put!(self, " (bad carp cksum {:x}!)", bytes.u16(6)?);
        }
        put!(self, "counter={}", u64::from(bytes.u32(8)?) << 32 | u64::from(bytes.u32(12)?));
        Ok(())
    }

    pub(crate) fn hsrp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "hsrp";
        self.facts.protocol = Some("hsrp");
        let version = bytes.u8(0)?;
        put!(self, "HSRPv{version}");
        if version != 0 {
            return Ok(());
        }
        let operation = bytes.u8(1)?;
        match ["hello", "coup", "resign"].get(usize::from(operation)) {
            Some(name) => put!(self, "-{name}"),
            None => put!(self, "-unknown ({operation})"),
        }
        put!(self, " {}: ", bytes.len);
        let state = bytes.u8(2)?;
        let name = match state {
            0 => "initial",
            1 => "learn",
            2 => "listen",
            4 => "speak",
            8 => "standby",
            16 => "active",
            _ => "Unknown",
        };
        put!(self, "state={name}");
        if name == "Unknown" {
            put!(self, " ({state})");
        }
        put!(self, " group={}", bytes.u8(6)?);
        self.text(" addr=");
        self.ip4_address(bytes.ip4(16)?);
        if self.options.verbose > 0 {
            let (hello, hold, priority) = (bytes.u8(3)?, bytes.u8(4)?, bytes.u8(5)?);
            put!(self, " hellotime={hello}s holdtime={hold}s priority={priority} auth=\"");
            let password = bytes.get(8, 8)?;
            let password = if password == [0; 8] { DEFAULT_PASSWORD } else { password };
            self.harmless(password.split(|&byte| byte == 0).next().unwrap_or_default());
            self.text("\"");
        }
        Ok(())
    }
}
