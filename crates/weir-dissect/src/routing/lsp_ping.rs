//! MPLS LSP ping (RFC 4379): is a path of labels alive, and which one is it?

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::text::put;

/// Lengths of the header, and of the type and length in front of each value.
const HEADER: usize = 32;
const ITEM: usize = 4;

const TARGETS: u16 = 1;
const DOWNSTREAM: u16 = 2;
const VENDOR: u16 = 5;
const BFD: u16 = 15;

/// Parts of the name of a path, from 1, and their lengths; 0: not read.
const PARTS: [(&str, usize); 13] = [
    ("LDP IPv4 prefix", 5),
    ("LDP IPv6 prefix", 17),
    ("RSVP IPv4 Session Query", 20),
    ("RSVP IPv6 Session Query", 56),
    ("Reserved", 0),
    ("VPN IPv4 prefix", 13),
    ("VPN IPv6 prefix", 25),
    ("L2 VPN endpoint", 14),
    ("FEC 128 pseudowire (old)", 10),
    ("FEC 128 pseudowire", 14),
    ("Unknown", 0),
    ("BGP labeled IPv4 prefix", 5),
    ("BGP labeled IPv6 prefix", 17),
];
/// Types of pseudowires (RFC 4446).
const PSEUDOWIRES: [&str; 26] = [
    "Reserved",
    "Frame Relay DLCI (Martini Mode)",
    "ATM AAL5 SDU VCC transport",
    "ATM transparent cell transport",
    "Ethernet VLAN",
    "Ethernet",
    "Cisco-HDLC",
    "PPP",
    "SONET/SDH Circuit Emulation Service over MPLS",
    "ATM n-to-one VCC cell transport",
    "ATM n-to-one VPC cell transport",
    "IP Layer2 Transport",
    "ATM one-to-one VCC Cell Mode",
    "ATM one-to-one VPC Cell Mode",
    "ATM AAL5 PDU VCC transport",
    "Frame-Relay Port mode",
    "SONET/SDH Circuit Emulation over Packet",
    "Structure-agnostic E1 over Packet",
    "Structure-agnostic T1 (DS1) over Packet",
    "Structure-agnostic E3 over Packet",
    "Structure-agnostic T3 (DS3) over Packet",
    "CESoPSN basic mode",
    "TDMoIP basic mode",
    "CESoPSN TDM with CAS",
    "TDMoIP TDM with CAS",
    "Frame Relay DLCI",
];

/// How an item goes on.
#[derive(PartialEq)]
enum Read {
    All,
    /// The rest is dumped.
    Some,
    TooShort,
}

fn message(kind: u8) -> &'static str {
    match kind {
        1 => "MPLS Echo Request",
        2 => "MPLS Echo Reply",
        _ => "unknown",
    }
}

fn reply_mode(mode: u8) -> &'static str {
    match mode {
        1 => "Do not reply",
        2 => "Reply via an IPv4/IPv6 UDP packet",
        3 => "Reply via an IPv4/IPv6 UDP packet with Router Alert",
        4 => "Reply via application level control channel",
        _ => "unknown",
    }
}

/// Returns the meaning of a code, and whether the depth of the stack follows.
fn return_code(code: u8) -> (&'static str, bool) {
    match code {
        0 => ("No return code or return code contained in the Error Code TLV", false),
        1 => ("Malformed echo request received", false),
        2 => ("One or more of the TLVs was not understood", false),
        3 => ("Replying router is an egress for the FEC at stack depth", true),
        4 => ("Replying router has no mapping for the FEC at stack depth", true),
        5..=7 => ("Reserved", false),
        8 => ("Label switched at stack-depth", true),
        9 => ("Label switched but no MPLS forwarding at stack-depth", false),
        10 => ("Mapping for this FEC is not the given label at stack depth", true),
        11 => ("No label entry at stack-depth", true),
        12 => ("Protocol not associated with interface at FEC stack depth", true),
        13 => ("Premature termination of ping due to label stack shrinking to a single label", false),
        _ => ("unknown", false),
    }
}

impl Printer<'_> {
    pub(crate) fn lsp_ping(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "lspping";
        self.facts.protocol = Some("lsp-ping");
        bytes.get(0, HEADER)?;
        let version = bytes.u16(0)?;
        if version != 1 {
            put!(self, "LSP-PING version {version} packet not supported");
            return Ok(());
        }
        let (kind, sequence) = (bytes.u8(4)?, bytes.u32(12)?);
        let name = message(kind);
        if self.options.verbose == 0 {
            put!(self, "LSP-PINGv{version}, {name}");
            if name == "unknown" {
                put!(self, " ({kind})");
            }
            put!(self, ", seq {sequence}, length: {}", bytes.len);
            return Ok(());
        }
        put!(self, "\n\tLSP-PINGv{version}, msg-type: {name} ({kind}), length: {}", bytes.len);
        let mode = bytes.u8(5)?;
        put!(self, "\n\t  reply-mode: {} ({mode})", reply_mode(mode));
        let (code, depth) = (bytes.u8(6)?, bytes.u8(7)?);
        let (meaning, deep) = return_code(code);
        put!(self, "\n\t  Return Code: {meaning} ");
        if deep {
            put!(self, "{depth} ");
        }
        put!(self, "({code})\n\t  Return Subcode: ({depth})");
        put!(self, "\n\t  Sender Handle: 0x{:08x}, Sequence: {sequence}", bytes.u32(8)?);
        self.text("\n\t  Sender Timestamp: ");
        self.ntp_moment(bytes.u64(16)?);
        self.text(" Receiver Timestamp: ");
        match bytes.u64(24)? {
            0 => self.text("no timestamp"),
            moment => self.ntp_moment(moment),
        }
        self.lsp_items(bytes.from(HEADER))
    }

    fn lsp_items(&mut self, mut rest: Bytes<'_>) -> Result<(), Cut> {
        while rest.len > 0 {
            if rest.len < ITEM {
                self.text("\n\t\t packet is too short");
                return Ok(());
            }
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            let name = match kind {
                TARGETS => "Target FEC Stack",
                DOWNSTREAM => "Downstream Mapping",
                3 => "Pad",
                VENDOR => "Vendor Enterprise Code",
                7 => "Interface Label Stack",
                9 => "Error Code",
                10 => "Reply TOS Byte",
                BFD => "BFD Discriminator",
                _ => "Unknown",
            };
            put!(self, "\n\t  {name} TLV ({kind}), length: {len}");
            if len == 0 {
                rest = rest.from(ITEM);
                continue;
            }
            if rest.len < ITEM + len.next_multiple_of(4) {
                self.text("\n\t\t packet is too short");
                return Ok(());
            }
            let value = rest.from(ITEM).first(len);
            value.get(0, len)?;
            let read = match kind {
                TARGETS => match self.lsp_targets(value)? {
                    Some(read) => read,
                    None => return Ok(()),
                },
                DOWNSTREAM => self.lsp_downstream(value)?,
                VENDOR if len < 4 => Read::TooShort,
                VENDOR => {
                    let vendor = value.u32(0)?;
                    let name = names::enterprise(vendor).unwrap_or("Unknown");
                    put!(self, "\n\t    Vendor: {name} (0x{vendor:04x})");
                    Read::All
                }
                BFD if len < 4 => Read::TooShort,
                BFD => {
                    put!(self, "\n\t    BFD Discriminator 0x{:08x}", value.u32(0)?);
                    Read::All
                }
                _ => Read::Some,
            };
            if read == Read::TooShort {
                self.text("\n\t      TLV is too short");
            }
            if read != Read::All || self.options.verbose > 1 {
                self.rows("\n\t    ", value.data);
            }
            rest = rest.from(ITEM + len.next_multiple_of(4));
        }
        Ok(())
    }

    /// Prints what names the path that is asked for; `None`: its end is missing, and nothing more is read.
    fn lsp_targets(&mut self, value: Bytes<'_>) -> Result<Option<Read>, Cut> {
        let mut rest = value;
        while rest.len > 0 {
            if rest.len < ITEM || rest.len < ITEM + usize::from(rest.u16(2)?) {
                return Ok(Some(Read::TooShort));
            }
            let (kind, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            let part = rest.from(ITEM).first(len);
            let (name, right) = PARTS.get(usize::from(kind).wrapping_sub(1)).unwrap_or(&("Unknown", 0));
            put!(self, "\n\t    {name} subTLV ({kind}), length: {len}");
            let known = *right > 0 && *right == len;
            if *right > 0 && !known {
                put!(self, "\n\t      invalid subTLV length, should be {right}");
            }
            if known {
                self.text("\n\t      ");
                self.lsp_target(kind, part)?;
            }
            if !known || self.options.verbose > 1 {
                self.rows("\n\t      ", part.data);
            }
            if rest.len < ITEM + len.next_multiple_of(4) {
                self.text("\n\t\t TLV is too short");
                return Ok(None);
            }
            rest = rest.from(ITEM + len.next_multiple_of(4));
        }
        Ok(Some(Read::All))
    }

    fn lsp_target(&mut self, kind: u16, part: Bytes<'_>) -> Result<(), Cut> {
        match kind {
            1 | 12 => self.lsp_prefix(part, 4),
            2 | 13 => self.lsp_prefix(part, 16),
            3 => {
                self.text("tunnel end-point ");
                self.ip4_address(part.ip4(0)?);
                self.text(", tunnel sender ");
                self.ip4_address(part.ip4(12)?);
                put!(self, ", lsp-id 0x{:04x}", part.u16(18)?);
                put!(self, "\n\t      tunnel-id 0x{:04x}, extended tunnel-id ", part.u16(6)?);
                self.ip4_address(part.ip4(8)?);
                Ok(())
            }
            4 => {
                self.text("tunnel end-point ");
                self.ip6_address(part.ip6(0)?);
                self.text(", tunnel sender ");
                self.ip6_address(part.ip6(36)?);
                put!(self, ", lsp-id 0x{:04x}", part.u16(54)?);
                put!(self, "\n\t      tunnel-id 0x{:04x}, extended tunnel-id ", part.u16(18)?);
                self.ip6_address(part.ip6(20)?);
                Ok(())
            }
            6 | 7 => {
                self.bgp_distinguisher(part)?;
                self.lsp_prefix(part.from(8), part.len - 9)
            }
            8 => {
                self.bgp_distinguisher(part)?;
                put!(self, "Sender VE ID: {}, Receiver VE ID: {}", part.u16(8)?, part.u16(10)?);
                self.text("\n\t      Encapsulation Type: ");
                self.lsp_pseudowire(part.u16(12)?);
                Ok(())
            }
            _ => {
                let mut rest = part;
                if kind == 10 {
                    self.text("Sender PE: ");
                    self.ip4_address(part.ip4(0)?);
                    self.text(", ");
                    rest = part.from(4);
                }
                self.text("Remote PE: ");
                self.ip4_address(rest.ip4(0)?);
                put!(self, "\n\t      PW ID: 0x{:08x}, PW Type: ", rest.u32(4)?);
                self.lsp_pseudowire(rest.u16(8)?);
                Ok(())
            }
        }
    }

    /// Prints an address of `len` bytes, and the length of its prefix.
    fn lsp_prefix(&mut self, part: Bytes<'_>, len: usize) -> Result<(), Cut> {
        match len {
            4 => self.ip4_address(part.ip4(0)?),
            _ => self.ip6_address(part.ip6(0)?),
        }
        put!(self, "/{}", part.u8(len)?);
        Ok(())
    }

    fn lsp_pseudowire(&mut self, kind: u16) {
        let name = match kind {
            64 => "IP-interworking",
            _ => PSEUDOWIRES.get(usize::from(kind)).unwrap_or(&"unknown"),
        };
        put!(self, "{name} ({kind})");
    }

    /// Prints where the replying router sends packets of the path on.
    fn lsp_downstream(&mut self, value: Bytes<'_>) -> Result<Read, Cut> {
        if value.len < 4 {
            return Ok(Read::TooShort);
        }
        let (mtu, kind) = (value.u16(0)?, value.u8(2)?);
        let name = match kind {
            1 => "IPv4",
            2 => "Unnumbered IPv4",
            3 | 4 => "IPv6",
            _ => "unknown",
        };
        put!(self, "\n\t    MTU: {mtu}, Address-Type: {name} ({kind})");
        let (address, interface) = match kind {
            1 | 2 => (4, 4),
            3 => (16, 16),
            4 => (16, 4),
            _ => return Ok(Read::Some),
        };
        let rest = value.from(4);
        if rest.len < address + interface {
            return Ok(Read::TooShort);
        }
        self.text("\n\t    Downstream IP: ");
        match address {
            4 => self.ip4_address(rest.ip4(0)?),
            _ => self.ip6_address(rest.ip6(0)?),
        }
        match kind {
            1 => {
                self.text("\n\t    Downstream Interface IP: ");
                self.ip4_address(rest.ip4(4)?);
            }
            3 => {
                self.text("\n\t    Downstream Interface IP: ");
                self.ip6_address(rest.ip6(16)?);
            }
            _ => put!(self, "\n\t    Downstream Interface Index: 0x{:08x}", rest.u32(address)?),
        }
        Ok(if rest.len < address + interface + 4 { Read::TooShort } else { Read::Some })
    }
}
