//! Link layers: Ethernet, Linux cooked, loopback, raw IP.

use weir_packet::ethertype::{self, is_tag};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::registry::ethertypes::{self, LARGEST_LENGTH, MACSEC};

const ARPHRD_LOOPBACK: u16 = 772;

impl Printer<'_> {
    pub(crate) fn ethernet(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ether";
        let (destination, source) = (bytes.mac(0)?, bytes.mac(6)?);
        let ethertype = bytes.u16(12)?;
        self.facts.mac_destination.get_or_insert(destination);
        self.facts.mac_source.get_or_insert(source);
        self.facts.protocol = Some("ethernet");
        if self.options.link {
            self.ends(source, destination);
            self.kind(ethertype);
            let len =
                if ethertype > LARGEST_LENGTH { bytes.len } else { (bytes.len - 14).min(ethertype.into()) };
            put!(self, ", length {len}: ");
        }
        self.header(14);
        self.tagged(ethertype, bytes.from(14), Some((source, destination, bytes.len)))
    }

    pub(crate) fn ends(&mut self, source: [u8; 6], destination: [u8; 6]) {
        self.mac(source);
        self.text(" > ");
        self.mac(destination);
    }

    fn kind(&mut self, ethertype: u16) {
        if ethertype <= LARGEST_LENGTH {
            self.text(", 802.3");
        } else if !self.options.quick {
            self.text(", ");
            self.ethertype_name(ethertype);
        } else if let Some(name) = ethertypes::name(ethertype) {
            put!(self, ", {name}");
        } else {
            put!(self, ", Unknown Ethertype (0x{ethertype:04x})");
        }
    }

    fn ethertype_name(&mut self, ethertype: u16) {
        put!(self, "ethertype {} (0x{ethertype:04x})", ethertypes::name(ethertype).unwrap_or("Unknown"));
    }

    /// Counts bytes of the link layer, until the network layer is reached.
    pub(crate) fn header(&mut self, len: usize) {
        if self.depth == 0 {
            self.facts.link_len += len;
        }
    }

    /// Prints the payload of an EtherType, after any number of VLAN tags. `ends`: the Ethernet addresses and the length
    /// of the frame, which are printed only if the payload is unknown.
    fn tagged(
        &mut self,
        mut ethertype: u16,
        mut bytes: Bytes<'_>,
        ends: Option<([u8; 6], [u8; 6], usize)>,
    ) -> Result<(), Cut> {
        // VLAN IDs come from the outermost frame that has a tag.
        let first = self.facts.vlan.is_none();
        if ethertype == MACSEC {
            let addresses = ends.map(|(source, destination, _)| (source, destination));
            let Some((inner, rest)) = self.macsec(bytes, addresses)? else { return Ok(()) };
            (ethertype, bytes) = (inner, rest);
            if self.options.link {
                match ethertype {
                    ..=LARGEST_LENGTH => self.text("802.3"),
                    _ => {
                        self.ethertype_name(ethertype);
                        self.text(", ");
                    }
                }
            }
        }
        while is_tag(ethertype) {
            self.protocol = "vlan";
            let tci = bytes.u16(0)?;
            ethertype = bytes.u16(2)?;
            let id = tci & 0xfff;
            match self.facts.vlan {
                None => self.facts.vlan = Some(id),
                Some(_) if first => drop(self.facts.inner_vlan.get_or_insert(id)),
                Some(_) => {}
            }
            if self.options.link {
                let eligible = if tci & 0x1000 != 0 { ", DEI" } else { "" };
                put!(self, "vlan {id}, p {}{eligible}, ", tci >> 13);
                if ethertype > LARGEST_LENGTH {
                    self.ethertype_name(ethertype);
                    self.text(", ");
                }
            }
            bytes = bytes.from(4);
            self.header(4);
        }
        if ethertype <= LARGEST_LENGTH {
            let ends = ends.map(|(source, destination, _)| (source, destination));
            return self.llc(bytes.first(ethertype.into()), ends);
        }
        if self.carried(ethertype, bytes)? {
            return Ok(());
        }
        if let Some((source, destination, len)) = ends.filter(|_| !self.options.link) {
            self.ends(source, destination);
            self.kind(ethertype);
            put!(self, ", length {len}: ");
        }
        self.unknown(bytes.data);
        Ok(())
    }

    /// Prints `LINKTYPE_LINUX_SLL`.
    pub(crate) fn cooked(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "sll";
        let (kind, hardware, address_len) = (bytes.u16(0)?, bytes.u16(2)?, bytes.u16(4)?);
        let protocol = bytes.u16(14)?;
        let source = (address_len == 6).then(|| bytes.mac(6)).transpose()?;
        self.header(16);
        let announce = |printer: &mut Self| {
            put!(printer, "{:>3} ", cooked_way(kind));
            if let Some(source) = source {
                printer.mac(source);
                printer.text(" ");
            }
        };
        if self.options.link {
            announce(self);
        }
        self.cooked_content(protocol, hardware, source, bytes, 16, announce)
    }

    /// Prints `LINKTYPE_LINUX_SLL2`.
    pub(crate) fn cooked2(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "sll2";
        let (protocol, index, hardware) = (bytes.u16(0)?, bytes.u32(4)?, bytes.u16(8)?);
        let (kind, address_len) = (bytes.u8(10)?, bytes.u8(11)?);
        let source = (address_len == 6).then(|| bytes.mac(12)).transpose()?;
        bytes.get(0, 20)?;
        self.header(20);
        match self.names.get(&index) {
            Some(name) => put!(self, "{name:<5} {:<3} ", cooked_way(kind.into())),
            None => put!(self, "if{index:<4}{:<3} ", cooked_way(kind.into())),
        }
        let announce = |printer: &mut Self| {
            put!(printer, "ifindex {index} ");
            if let Some(source) = source {
                printer.mac(source);
                printer.text(" ");
            }
        };
        if self.options.link {
            announce(self);
        }
        self.cooked_content(protocol, hardware, source, bytes, 20, announce)
    }

    fn cooked_content(
        &mut self,
        protocol: u16,
        hardware: u16,
        source: Option<[u8; 6]>,
        bytes: Bytes<'_>,
        header: usize,
        announce: impl Fn(&mut Self),
    ) -> Result<(), Cut> {
        self.facts.mac_source = source.filter(|_| hardware != ARPHRD_LOOPBACK);
        self.facts.protocol = Some("cooked");
        let inner = bytes.from(header);
        // Numbers below 1536 are not EtherTypes; 4 is 802.2 (if_ether.h).
        if protocol == 4 {
            if self.options.link {
                put!(self, "802.2, length {}: ", bytes.len);
            }
            return self.llc(inner, None);
        }
        let name = |printer: &mut Self| {
            printer.ethertype_name(protocol);
            put!(printer, ", length {}: ", bytes.len);
        };
        if self.options.link {
            name(self);
        }
        if ethertypes::name(protocol).is_some() {
            return self.tagged(protocol, inner, None);
        }
        if !self.options.link {
            announce(self);
            name(self);
        }
        self.unknown(inner.data);
        Ok(())
    }

    /// Prints `LINKTYPE_NULL`, in the byte order of its writer, or `LINKTYPE_LOOP`, in network byte order.
    pub(crate) fn loopback(&mut self, bytes: Bytes<'_>, network_order: bool) -> Result<(), Cut> {
        self.protocol = "null";
        let mut family = bytes.u32(0)?;
        if !network_order && family & 0xffff_0000 != 0 {
            family = family.swap_bytes();
        }
        self.header(4);
        self.facts.protocol = Some("loopback");
        let inner = bytes.from(4);
        // Each BSD has a different number for IPv6.
        let (name, ethertype) = match family {
            2 => ("IPv4", Some(ethertype::IPV4)),
            24 | 28 | 30 => ("IPv6", Some(ethertype::IPV6)),
            _ => ("Unknown", None),
        };
        if self.options.link || ethertype.is_none() {
            put!(self, "AF {name} ({family}), length {}: ", bytes.len);
        }
        match ethertype {
            Some(ethertype) => self.carried(ethertype, inner).map(drop),
            None => {
                self.unknown(inner.data);
                Ok(())
            }
        }
    }

    /// Prints `LINKTYPE_RAW`: the packet has the IP version.
    pub(crate) fn raw_ip(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "raw";
        if self.options.link {
            self.text("ip: ");
        }
        match bytes.u8(0)? >> 4 {
            4 => self.carried(ethertype::IPV4, bytes).map(drop),
            6 => self.carried(ethertype::IPV6, bytes).map(drop),
            version => {
                put!(self, "unknown ip {version}");
                Ok(())
            }
        }
    }
}

/// Returns the direction of a cooked packet in tcpdump's words (`if_packet.h`).
fn cooked_way(kind: u16) -> &'static str {
    match kind {
        0 => "In",
        1 => "B",
        2 => "M",
        3 => "P",
        4 => "Out",
        _ => "?",
    }
}
