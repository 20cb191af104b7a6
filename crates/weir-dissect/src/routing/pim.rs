//! PIM version 2 (RFC 7761, RFC 5059).

use weir_packet::protocol::PIM;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::checksum;
use crate::base::segment::Around;
use crate::base::text::put;

const HEADER: usize = 4;
const REGISTER: u8 = 1;
const GRAFT_ACK: u8 = 7;
/// Bytes of a register message that its checksum includes.
const REGISTER_CHECKED: usize = 8;
/// A time that does not end.
const INFINITE: u16 = 0xffff;

const NAMES: [&str; 12] = [
    "Hello",
    "Register",
    "Register Stop",
    "Join / Prune",
    "Bootstrap",
    "Assert",
    "Graft",
    "Graft Acknowledgement",
    "Candidate RP Advertisement",
    "Prune Refresh",
    "DF Election",
    "ECMP Redirect",
];

impl Printer<'_> {
    pub(crate) fn pim(&mut self, around: Around, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "pim";
        self.facts.protocol = Some("pim");
        let first = bytes.u8(0)?;
        if first >> 4 != 2 {
            put!(self, "PIMv{}, length {}", first >> 4, bytes.len);
            return Ok(());
        }
        self.protocol = "pimv2";
        let kind = first & 15;
        let name = NAMES.get(usize::from(kind)).unwrap_or(&"Unknown Type");
        if self.options.verbose == 0 {
            put!(self, "PIMv2, {name}, length {}", bytes.len);
            return Ok(());
        }
        put!(self, "PIMv2, length {}\n\t{name}", bytes.len);
        let (second, given) = (bytes.u8(1)?, bytes.u16(2)?);
        // The second byte is reserved, except in elections; in RFC 2117, it was the length of addresses.
        if second != 0 && kind != 10 {
            self.text(", RFC2117-encoding");
        }
        put!(self, ", cksum 0x{given:04x} ");
        self.pim_checksum(around, kind, given, bytes);
        self.pim_message(kind, second, bytes.from(HEADER))
    }

    fn pim_checksum(&mut self, around: Around, kind: u8, given: u16, bytes: Bytes<'_>) {
        let right = |len: usize| {
            let data = &bytes.data[..bytes.data.len().min(len)];
            match around.source.is_ipv6() {
                true => checksum::right(around.source, around.destination, PIM, data, 2) == given,
                false => checksum::sum(&[data]) == 0xffff,
            }
        };
        let right = match kind {
            _ if given == 0 => None,
            REGISTER if bytes.data.len() >= REGISTER_CHECKED => {
                // Some senders include the whole packet.
                let some = right(REGISTER_CHECKED);
                if !some && !bytes.whole() { None } else { Some(some || right(usize::MAX)) }
            }
            _ if !bytes.whole() => None,
            _ => Some(right(usize::MAX)),
        };
        self.text(match right {
            None => "(unverified)",
            Some(true) => "(correct)",
            Some(false) => "(incorrect)",
        });
    }

    fn pim_message(&mut self, kind: u8, second: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        match kind {
            0 => self.pim_hello(bytes),
            REGISTER => self.pim_register(bytes),
            2 => {
                self.text(" group=");
                let rest = self.pim_group(bytes)?;
                self.text(" source=");
                self.pim_unicast(rest).map(drop)
            }
            3 | 6 | GRAFT_ACK => self.pim_join(kind, bytes),
            4 => self.pim_bootstrap(bytes),
            5 => {
                self.text(" group=");
                let rest = self.pim_group(bytes)?;
                self.text(" src=");
                let rest = self.pim_unicast(rest)?;
                let (preference, metric) = (rest.u32(0)?, rest.u32(4)?);
                self.text(if preference >> 31 != 0 { " RPT" } else { "" });
                put!(self, " pref={}", preference & 0x7fff_ffff);
                put!(self, " metric={metric}");
                Ok(())
            }
            8 => self.pim_candidate(bytes),
            9 => self.pim_refresh(bytes),
            10 => self.pim_election(second >> 4, bytes),
            _ => {
                put!(self, " [type {kind}]");
                Ok(())
            }
        }
    }

    fn pim_hello(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            let (name, right) = match kind {
                1 => ("Hold Time", Some(2)),
                2 => ("LAN Prune Delay", Some(4)),
                18 => ("DR Priority (Old)", Some(4)),
                19 => ("DR Priority", Some(4)),
                20 => ("Generation ID", Some(4)),
                21 => ("State Refresh Capability", Some(4)),
                22 => ("Bi-Directional Capability", None),
                24 => ("Address List", None),
                65001 => ("Address List (Old)", None),
                _ => ("Unknown", None),
            };
            put!(self, "\n\t  {name} Option ({kind}), length {len}, Value: ");
            rest.get(4, len)?;
            let value = rest.from(4).first(len);
            if let Some(right) = right.filter(|right| *right != len) {
                put!(self, "[option length {len} != {right}] (invalid)");
                return Ok(());
            }
            match kind {
                1 => self.pim_seconds(value.u16(0)?.into()),
                2 => {
                    let delay = value.u16(0)?;
                    put!(self, "\n\t    T-bit={}, LAN delay {}ms", delay >> 15, delay & 0x7fff);
                    put!(self, ", Override interval {}ms", value.u16(2)?);
                }
                18 | 19 => put!(self, "{}", value.u32(0)?),
                20 => put!(self, "0x{:08x}", value.u32(0)?),
                21 => {
                    put!(self, "v{}", value.u8(0)?);
                    let interval = value.u8(1)?;
                    if interval != 0 {
                        self.text(", interval ");
                        self.pim_seconds(interval.into());
                    }
                }
                24 | 65001 if self.options.verbose > 1 => {
                    let mut addresses = value;
                    while addresses.len > 0 {
                        self.text("\n\t    ");
                        addresses = self.pim_unicast(addresses)?;
                    }
                }
                _ => {}
            }
            if self.options.verbose > 1 || name == "Unknown" {
                self.rows("\n\t    ", value.data);
            }
            rest = rest.from(4 + len);
        }
        Ok(())
    }

    /// Prints a register message: a packet on its way to where sources and receivers meet.
    fn pim_register(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let flags = bytes.u32(0)?;
        let name = match flags >> 30 {
            1 => "Null",
            2 => "Border",
            _ => "none",
        };
        put!(self, ", Flags [ {name} ]\n\t");
        let inner = bytes.from(4);
        match inner.u8(0)? >> 4 {
            0 => {
                inner.get(0, 20)?;
                self.text("IP-Null-header ");
                self.ip4_address(inner.ip4(12)?);
                self.text(" > ");
                self.ip4_address(inner.ip4(16)?);
                Ok(())
            }
            4 => self.nested(|printer| printer.ip4(inner)),
            6 => self.nested(|printer| printer.ip6(inner)),
            version => {
                put!(self, "IP ver {version}");
                Ok(())
            }
        }
    }

    /// Prints a list of groups, and of their sources.
    fn pim_join(&mut self, kind: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut rest = bytes;
        // As in tcpdump, which expects no neighbour in an acknowledgement.
        if kind != GRAFT_ACK {
            self.text(", upstream-neighbor: ");
            rest = self.pim_unicast(rest)?;
        }
        rest.get(0, 4)?;
        let (groups, hold) = (rest.u8(1)?, rest.u16(2)?);
        put!(self, "\n\t  {groups} group(s)");
        if kind != GRAFT_ACK {
            self.text(", holdtime: ");
            match hold {
                INFINITE => self.text("infinite"),
                _ => self.pim_seconds(hold.into()),
            }
        }
        rest = rest.from(4);
        for number in 1..=groups {
            put!(self, "\n\t    group #{number}: ");
            rest = self.pim_group(rest)?;
            rest.get(0, 4)?;
            let (joined, pruned) = (rest.u16(0)?, rest.u16(2)?);
            put!(self, ", joined sources: {joined}, pruned sources: {pruned}");
            rest = rest.from(4);
            for (word, count) in [("joined", joined), ("pruned", pruned)] {
                for number in 1..=count {
                    put!(self, "\n\t      {word} source #{number}: ");
                    rest = self.pim_source(rest)?;
                }
            }
        }
        Ok(())
    }

    fn pim_bootstrap(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, " tag={}", bytes.u16(0)?);
        put!(self, " hashmlen={}", bytes.u8(2)?);
        bytes.get(3, 2)?;
        put!(self, " BSRprio={} BSR=", bytes.u8(3)?);
        let mut rest = self.pim_unicast(bytes.from(4))?;
        let mut number = 0;
        while rest.len > 0 {
            put!(self, " (group{number}: ");
            rest = self.pim_group(rest)?;
            let count = rest.u8(0)?;
            put!(self, " RPcnt={count}");
            let fragment = rest.u8(1)?;
            put!(self, " FRPcnt={fragment}");
            rest = rest.from(4);
            for point in 0..fragment {
                put!(self, " RP{point}=");
                rest = self.pim_unicast(rest)?;
                self.text(",holdtime=");
                self.pim_seconds(rest.u16(0)?.into());
                put!(self, ",prio={}", rest.u8(2)?);
                rest = rest.from(4);
            }
            self.text(")");
            number += 1;
        }
        Ok(())
    }

    fn pim_candidate(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, " prefix-cnt={}", bytes.u8(0)?);
        put!(self, " prio={}", bytes.u8(1)?);
        self.text(" holdtime=");
        self.pim_seconds(bytes.u16(2)?.into());
        self.text(" RP=");
        let mut rest = self.pim_unicast(bytes.from(4))?;
        for number in 0..bytes.u8(0)? {
            if rest.len == 0 {
                break;
            }
            put!(self, " Group{number}=");
            rest = self.pim_group(rest)?;
        }
        Ok(())
    }

    fn pim_refresh(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(" src=");
        let rest = self.pim_unicast(bytes)?;
        self.text(" grp=");
        let rest = self.pim_group(rest)?;
        self.text(" forwarder=");
        let rest = self.pim_unicast(rest)?;
        rest.u16(0)?;
        self.text(" TUNR ");
        self.pim_seconds(rest.u16(2)?.into());
        Ok(())
    }

    /// Prints a message of an election (RFC 5015).
    fn pim_election(&mut self, kind: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        let name = match kind {
            1 => "Offer",
            2 => "Winner",
            3 => "Backoff",
            4 => "Pass",
            _ => "Unknown",
        };
        put!(self, "\n\t  {name}, rpa=");
        let rest = self.pim_unicast(bytes)?;
        put!(self, " sender pref={}", rest.u32(0)?);
        put!(self, " sender metric={}", rest.u32(4)?);
        let label = match kind {
            3 => "offer",
            4 => "new winner",
            _ => return Ok(()),
        };
        put!(self, "\n\t  {label} addr=");
        let rest = self.pim_unicast(rest.from(8))?;
        put!(self, " {label} pref={}", rest.u32(0)?);
        put!(self, " {label} metric={}", rest.u32(4)?);
        if kind == 3 {
            put!(self, " interval {}ms", rest.u16(8)?);
        }
        Ok(())
    }

    /// Prints an address after its family and encoding; returns what follows.
    fn pim_unicast<'a>(&mut self, bytes: Bytes<'a>) -> Result<Bytes<'a>, Cut> {
        self.pim_address(bytes, 2, |_, _| ())
    }

    /// Prints a group, and its flags and prefix.
    fn pim_group<'a>(&mut self, bytes: Bytes<'a>) -> Result<Bytes<'a>, Cut> {
        self.pim_address(bytes, 4, |printer, flags| {
            if flags > 1 {
                put!(printer, "(0x{flags:02x})");
            }
        })
    }

    /// Prints a source, its prefix and its flags.
    fn pim_source<'a>(&mut self, bytes: Bytes<'a>) -> Result<Bytes<'a>, Cut> {
        self.pim_address(bytes, 4, |printer, flags| {
            if flags == 0 {
                return;
            }
            printer.text("(");
            for (bit, letter) in [(4, "S"), (2, "W"), (1, "R")] {
                printer.text(if flags & bit != 0 { letter } else { "" });
            }
            if flags & !7 != 0 {
                put!(printer, "+0x{:02x}", flags & !7);
            }
            printer.text(")");
        })
    }

    /// Prints an address after a header of `header` bytes: family, encoding, and in some, flags and length of the prefix.
    fn pim_address<'a>(
        &mut self,
        bytes: Bytes<'a>,
        header: usize,
        print_flags: impl Fn(&mut Self, u8),
    ) -> Result<Bytes<'a>, Cut> {
        let (family, encoding) = (bytes.u8(0)?, bytes.u8(1)?);
        if encoding != 0 {
            return Err(Cut);
        }
        let len = match family {
            1 => 4,
            2 => 16,
            _ => return Err(Cut),
        };
        bytes.get(0, header + len)?;
        match family {
            1 => self.ip4_address(bytes.ip4(header)?),
            _ => self.ip6_address(bytes.ip6(header)?),
        }
        if header > 2 {
            let prefix = bytes.u8(3)?;
            if usize::from(prefix) != len * 8 {
                put!(self, "/{prefix}");
            }
            print_flags(self, bytes.u8(2)?);
        }
        Ok(bytes.from(header + len))
    }

    /// Prints seconds as hours, minutes and seconds, without those that are zero.
    fn pim_seconds(&mut self, seconds: u32) {
        if seconds == 0 {
            return self.text("0s");
        }
        for (count, unit) in [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")] {
            if count != 0 {
                put!(self, "{count}{unit}");
            }
        }
    }
}
