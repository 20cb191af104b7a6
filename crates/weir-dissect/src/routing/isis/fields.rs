//! What messages of IS-IS carry (ISO 10589, RFC 1195, RFC 5120, RFC 5303, RFC 5305, RFC 5308).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const NAMES: [(u8, &str); 38] = [
    (1, "Area address(es)"),
    (2, "IS Reachability"),
    (3, "ES Neighbor(s)"),
    (4, "Partition DIS"),
    (5, "Prefix Neighbors"),
    (6, "IS Neighbor(s)"),
    (7, "Instance Identifier"),
    (8, "Padding"),
    (9, "LSP entries"),
    (10, "Authentication"),
    (12, "Checksum"),
    (13, "Purge Originator Identifier"),
    (14, "LSP Buffersize"),
    (22, "Extended IS Reachability"),
    (24, "IS Alias ID"),
    (42, "DECnet Phase IV"),
    (128, "IPv4 Internal Reachability"),
    (129, "Protocols supported"),
    (130, "IPv4 External Reachability"),
    (131, "Inter-Domain Information Type"),
    (132, "IPv4 Interface address(es)"),
    (133, "IPv4 authentication (deprecated)"),
    (134, "Traffic Engineering Router ID"),
    (135, "Extended IPv4 Reachability"),
    (137, "Hostname"),
    (138, "Shared Risk Link Group"),
    (211, "Restart Signaling"),
    (222, "Multi Topology IS Reachability"),
    (229, "Multi Topology"),
    (232, "IPv6 Interface address(es)"),
    (235, "Multi-Topology IPv4 Reachability"),
    (236, "IPv6 reachability"),
    (237, "Multi-Topology IP6 Reachability"),
    (240, "Point-to-point Adjacency State"),
    (242, "IS-IS Router Capability"),
    (250, "Vendor Private"),
    (0, "unknown"),
    (255, "unknown"),
];
const RESTART_FLAGS: [(u8, &str); 3] =
    [(1, "Restart Request"), (2, "Restart Acknowledgement"), (4, "Suppress adjacency advertisement")];
const TOPOLOGY_FLAGS: [(u16, &str); 2] = [(0x4000, "ATT bit set"), (0x8000, "Overload bit set")];

impl Printer<'_> {
    pub(crate) fn isis_fields(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            let name = NAMES.iter().find(|(number, _)| *number == kind).map_or("unknown", |(_, name)| name);
            put!(self, "\n\t    {name} TLV #{kind}, length: {len}");
            let value = rest.from(2).first(len);
            let known = self.isis_field(kind, value)?;
            rest.get(2, len)?;
            if !known && self.options.verbose == 1 {
                self.rows("\n\t\t", value.data);
            }
            if self.options.verbose > 1 {
                self.rows("\n\t      ", value.data);
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    /// Prints a value; returns whether it is known.
    fn isis_field(&mut self, kind: u8, value: Bytes<'_>) -> Result<bool, Cut> {
        match kind {
            1 => self.isis_areas(value)?,
            6 => {
                for address in value.data.chunks_exact(6) {
                    self.text("\n\t      SNPA: ");
                    self.isis_system(address);
                }
            }
            8 => {}
            9 => {
                for at in (0..value.len - value.len % 16).step_by(16) {
                    let entry = value.from(at);
                    self.text("\n\t      lsp-id: ");
                    self.isis_system(entry.get(2, 8)?);
                    put!(self, ", seq: 0x{:08x}, lifetime: {:5}s", entry.u32(10)?, entry.u16(0)?);
                    put!(self, ", chksum: 0x{:04x}", entry.u16(14)?);
                }
            }
            10 => self.isis_authentication(value)?,
            14 if value.len >= 2 => put!(self, "\n\t      LSP Buffersize: {}", value.u16(0)?),
            22 => self.isis_neighbours(value)?,
            128 | 130 => self.isis_old_prefixes(value)?,
            129 => {
                self.text("\n\t      NLPID(s): ");
                for (at, byte) in value.data.iter().enumerate() {
                    let name = match byte {
                        0x81 => "CLNP",
                        0x82 => "ES-IS",
                        0x83 => "IS-IS",
                        0x8e => "IPv6",
                        0xcc => "IPv4",
                        _ => "unknown",
                    };
                    put!(self, "{name} (0x{byte:02x}){}", if at + 1 < value.len { ", " } else { "" });
                }
            }
            132 => {
                for at in (0..value.len - value.len % 4).step_by(4) {
                    self.text("\n\t      IPv4 interface address: ");
                    self.ip4_address(value.ip4(at)?);
                }
            }
            134 if value.len >= 4 => {
                self.text("\n\t      Traffic Engineering Router ID: ");
                self.ip4_address(value.ip4(0)?);
            }
            222 => {
                self.isis_topology(value.u16(0)?);
                self.isis_neighbours(value.from(2))?;
            }
            135 | 235..=237 => {
                let mut rest = value;
                if kind % 2 == 1 && kind != 135 {
                    self.isis_topology(value.u16(0)?);
                    rest = value.from(2);
                }
                while rest.len > 0 {
                    rest = rest.from(self.isis_prefix(rest, matches!(kind, 236 | 237))?);
                }
            }
            137 => {
                self.text("\n\t      Hostname: ");
                self.harmless(value.data);
            }
            211 if value.len > 0 => {
                self.text("\n\t      Flags [");
                self.flag_names(value.u8(0)?, &RESTART_FLAGS);
                self.text("]");
                if value.len >= 3 {
                    put!(self, ", Remaining holding time {}s", value.u16(1)?);
                }
                if value.len >= 9 {
                    self.text(", for ");
                    self.isis_system(value.get(3, 6)?);
                }
            }
            229 => {
                for at in (0..value.len).step_by(2) {
                    let Ok(topology) = value.u16(at) else {
                        self.text("\n\t      invalid MT-ID");
                        break;
                    };
                    self.isis_topology(topology);
                }
            }
            232 => {
                for at in (0..value.len - value.len % 16).step_by(16) {
                    self.text("\n\t      IPv6 interface address: ");
                    self.ip6_address(value.ip6(at)?);
                }
            }
            240 if value.len > 0 => {
                let state = value.u8(0)?;
                let name = ["Up", "Initializing", "Down"].get(usize::from(state)).unwrap_or(&"unknown");
                put!(self, "\n\t      Adjacency State: {name} ({state})");
                if value.len >= 5 {
                    put!(self, "\n\t      Extended Local circuit-ID: 0x{:08x}", value.u32(1)?);
                }
                if value.len >= 11 {
                    self.text("\n\t      Neighbor System-ID: ");
                    self.isis_system(value.get(5, 6)?);
                }
                if value.len >= 15 {
                    put!(self, "\n\t      Neighbor Extended Local circuit-ID: 0x{:08x}", value.u32(11)?);
                }
            }
            14 | 134 | 211 | 240 => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn isis_areas(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let mut at = 0;
        while at < value.len {
            let len = usize::from(value.u8(at)?);
            let Ok(area) = value.get(at + 1, len) else { return Ok(()) };
            put!(self, "\n\t      Area address (length: {len}): ");
            if area.is_empty() || len > 20 {
                self.text("isonsap_string: illegal length");
            }
            for (at, byte) in area.iter().enumerate().take(20) {
                self.text(if at % 2 == 1 { "." } else { "" });
                self.hex_byte(*byte);
            }
            at += 1 + len;
        }
        Ok(())
    }

    fn isis_authentication(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let Ok(kind) = value.u8(0) else { return Ok(()) };
        let secret = value.from(1);
        match kind {
            1 => {
                self.text("\n\t      simple text password: ");
                self.harmless(secret.data);
            }
            54 => {
                self.text("\n\t      HMAC-MD5 password: ");
                secret.data.iter().for_each(|&byte| self.hex_byte(byte));
                self.text(if secret.len == 16 { "" } else { ", (invalid subTLV) " });
                self.text(" (unchecked)");
            }
            3 => {
                let key = secret.u16(0)?;
                put!(self, "\n\t      Generic Crypto key-id: {key}, password: ");
                secret.from(2).data.iter().for_each(|&byte| self.hex_byte(byte));
            }
            255 => {
                self.text("\n\t      Routing Domain private password: ");
                self.rows("\n\t\t  ", secret.data);
            }
            _ => {
                put!(self, "\n\t      unknown Authentication type 0x{kind:02x}: ");
                self.rows("\n\t\t  ", secret.data);
            }
        }
        Ok(())
    }

    fn isis_neighbours(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let mut rest = value;
        while rest.len > 0 {
            rest.get(0, 11)?;
            self.text("\n\t      IS Neighbor: ");
            self.isis_system(rest.get(0, 7)?);
            put!(self, ", Metric: {}", rest.u24(7)?);
            let len = usize::from(rest.u8(10)?);
            match len {
                0 => self.text(", no sub-TLVs present"),
                _ => put!(self, ", sub-TLVs present ({len})"),
            }
            rest.get(11, len)?;
            self.isis_subfields(rest.from(11).first(len), true)?;
            rest = rest.from(11 + len);
        }
        Ok(())
    }

    /// `link`: of a link to a neighbour; otherwise of a prefix.
    fn isis_subfields(&mut self, mut rest: Bytes<'_>, link: bool) -> Result<(), Cut> {
        while rest.len > 0 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            let name = match (link, kind) {
                (true, 3) => "Administrative groups",
                (true, 6) => "IPv4 interface address",
                (true, 8) => "IPv4 neighbor address",
                (false, 1) => "32-Bit Administrative tag",
                _ => "unknown",
            };
            put!(self, "\n\t        {name} subTLV #{kind}, length: {len}");
            rest.get(2, len)?;
            let value = rest.from(2).first(len);
            match (link, kind) {
                (true, 3) if len >= 4 => put!(self, ", 0x{:08x}", value.u32(0)?),
                (true, 6 | 8) if len >= 4 => {
                    self.text(", ");
                    self.ip4_address(value.ip4(0)?);
                }
                (false, 1) if len >= 4 => put!(self, ", 0x{0:08x} (={0})", value.u32(0)?),
                _ => self.rows("\n\t\t    ", value.data),
            }
            rest = rest.from(2 + len);
        }
        Ok(())
    }

    fn isis_old_prefixes(&mut self, value: Bytes<'_>) -> Result<(), Cut> {
        let mut rest = value;
        while rest.len > 0 {
            if rest.len < 12 {
                put!(self, "short IPv4 Reachability ({} vs 12)", rest.len);
                return Ok(());
            }
            let (address, mask) = (rest.ip4(4)?, rest.u32(8)?);
            match mask.leading_ones() {
                bits if mask.checked_shl(bits).unwrap_or(0) == 0 => {
                    put!(self, "\n\t      IPv4 prefix: {address:>15}/{bits}")
                }
                _ => put!(self, "\n\t      IPv4 prefix: {address} mask {}", Ipv4Addr::from(mask)),
            }
            let metric = rest.u8(0)?;
            let way = if metric & 0x80 != 0 { "down" } else { "up" };
            put!(self, ", Distribution: {way}, Metric: {}, {}", metric & 0x3f, origin(metric));
            for (at, name) in [(1, "Delay"), (2, "Expense"), (3, "Error")] {
                let metric = rest.u8(at)?;
                if metric & 0x80 == 0 {
                    put!(self, "\n\t\t  {name} Metric:   {}, {}", metric & 0x3f, origin(metric));
                }
            }
            rest = rest.from(12);
        }
        Ok(())
    }

    /// Prints a prefix; returns the number of bytes that it has.
    fn isis_prefix(&mut self, bytes: Bytes<'_>, six: bool) -> Result<usize, Cut> {
        let (metric, status) = (bytes.u32(0)?, bytes.u8(4)?);
        let (bits, at) = if six { (bytes.u8(5)?, 6) } else { (status & 0x3f, 5) };
        let width = if six { 128 } else { 32 };
        if bits > width {
            put!(self, "\n\t      IPv{} prefix: bad bit length {bits}", if six { 6 } else { 4 });
            return Err(Cut);
        }
        let len = usize::from(bits).div_ceil(8);
        let mut address = [0; 16];
        address[..len].copy_from_slice(bytes.get(at, len)?);
        match (six, address) {
            (true, _) => {
                self.text("\n\t      IPv6 prefix: ");
                self.ip6_number(Ipv6Addr::from(address));
            }
            (false, [a, b, c, d, ..]) => {
                put!(self, "\n\t      IPv4 prefix: {:>15}", Ipv4Addr::new(a, b, c, d))
            }
        }
        let way = if status & 0x80 != 0 { "down" } else { "up" };
        put!(self, "/{bits}, Distribution: {way}, Metric: {metric}");
        if six {
            put!(self, ", {}", origin(status));
        }
        let mut size = at + len;
        if status & if six { 0x20 } else { 0x40 } != 0 {
            let len = usize::from(bytes.u8(size)?);
            put!(self, ", sub-TLVs present ({len})");
            bytes.get(size + 1, len)?;
            self.isis_subfields(bytes.from(size + 1).first(len), false)?;
            size += 1 + len;
        }
        Ok(size)
    }

    fn isis_topology(&mut self, topology: u16) {
        let number = topology & 0xfff;
        let name = match number {
            0 => "IPv4 unicast",
            1 => "In-Band Management",
            2 => "IPv6 unicast",
            3 => "Multicast",
            4095 => "Development, Experimental or Proprietary",
            _ => "Reserved for IETF Consensus",
        };
        put!(self, "\n\t      {name} Topology (0x{number:03x}), Flags: [");
        self.flag_names(topology, &TOPOLOGY_FLAGS);
        self.text("]");
    }
}

/// Returns whether a route is of this routing domain.
fn origin(metric: u8) -> &'static str {
    if metric & 0x40 == 0 { "Internal" } else { "External" }
}
