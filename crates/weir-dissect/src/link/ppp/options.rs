//! Options of PPP's control protocols.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::names;
use crate::base::text::put;

/// Length of an option without a value.
const OPTION: usize = 2;

const LCP: u16 = 0xc021;
const IPCP: u16 = 0x8021;
const IP6CP: u16 = 0x8057;
const CCP: u16 = 0x80fd;
const BACP: u16 = 0xc02b;

/// Names of LCP's options, from number 0.
const LCP_OPTIONS: [&str; 31] = [
    "Vend-Ext",
    "MRU",
    "ACCM",
    "Auth-Prot",
    "Qual-Prot",
    "Magic-Num",
    "deprecated(6)",
    "PFC",
    "ACFC",
    "FCS-Alt",
    "SDP",
    "Num-Mode",
    "deprecated(12)",
    "Call-Back",
    "deprecated(14)",
    "deprecated(15)",
    "deprecated(16)",
    "MRRU",
    "12-Bit seq #",
    "End-Disc",
    "Proprietary",
    "DCE-Id",
    "MP+",
    "Link-Disc",
    "LCP-Auth-Opt",
    "COBS",
    "Prefix-elision",
    "Multilink-header-Form",
    "I18N",
    "SDL-over-SONET/SDH",
    "PPP-Muxing",
];

/// How an option is printed.
#[derive(Clone, Copy)]
enum Value {
    Number16,
    Hex16,
    Hex32,
    Magic,
    Vendor,
    Authentication,
    Quality,
    CallBack,
    Endpoint,
    Address,
    Addresses,
    Compression,
    Interface,
    Bsd,
    Mvrca,
    Deflate,
    /// No value is read.
    Nothing,
    Unknown,
}

/// Name, length and value of an option; the length is the least one if the flag is set.
type Kind = (&'static str, usize, bool, Value);

fn lcp_option(kind: u8) -> Option<Kind> {
    let name = LCP_OPTIONS.get(usize::from(kind))?;
    let (len, least, value) = match kind {
        0 => (6, true, Value::Vendor),
        1 | 17 => (4, false, Value::Number16),
        2 | 5 => (6, false, Value::Hex32),
        3 => (4, true, Value::Authentication),
        4 => (4, true, Value::Quality),
        7 | 8 => (2, true, Value::Nothing),
        13 => (3, true, Value::CallBack),
        19 => (3, true, Value::Endpoint),
        23 => (4, false, Value::Hex16),
        _ => (2, true, Value::Unknown),
    };
    Some((name, len, least, value))
}

fn ipcp_option(kind: u8) -> Kind {
    match kind {
        1 => ("IP-Addrs", 10, false, Value::Addresses),
        2 => ("IP-Comp", 4, true, Value::Compression),
        3 => ("IP-Addr", 6, false, Value::Address),
        4 => ("Home-Addr", 6, false, Value::Address),
        129 => ("Pri-DNS", 6, false, Value::Address),
        130 => ("Pri-NBNS", 6, false, Value::Address),
        131 => ("Sec-DNS", 6, false, Value::Address),
        132 => ("Sec-NBNS", 6, false, Value::Address),
        _ => ("unknown", 2, true, Value::Unknown),
    }
}

fn ccp_option(kind: u8) -> Kind {
    match kind {
        0 => ("OUI", 2, true, Value::Unknown),
        1 => ("Pred-1", 2, true, Value::Unknown),
        2 => ("Pred-2", 2, true, Value::Unknown),
        3 => ("Puddle", 2, true, Value::Unknown),
        16 => ("HP-PPC", 2, true, Value::Unknown),
        17 => ("Stac-LZS", 2, true, Value::Unknown),
        18 => ("MPPC", 2, true, Value::Unknown),
        19 => ("Gand-FZA", 2, true, Value::Unknown),
        20 => ("V.42bis", 2, true, Value::Unknown),
        21 => ("BSD-Comp", 3, true, Value::Bsd),
        23 => ("LZS-DCP", 2, true, Value::Unknown),
        24 => ("MVRCA", 4, true, Value::Mvrca),
        25 => ("DEC", 2, true, Value::Unknown),
        26 => ("Deflate", 4, true, Value::Deflate),
        _ => ("Unknown", 2, true, Value::Unknown),
    }
}

impl Printer<'_> {
    /// Prints options, which take `left` bytes. As in tcpdump, the value of the last one may be longer.
    pub(crate) fn ppp_options(
        &mut self,
        protocol: u16,
        name: &'static str,
        mut rest: Bytes<'_>,
        mut left: usize,
    ) -> Result<(), Cut> {
        while left > 0 {
            let (Ok(kind), Ok(len)) = (rest.u8(0), rest.u8(1)) else {
                put!(self, "[|{}]", name.to_ascii_lowercase());
                return Ok(());
            };
            if left < OPTION {
                return Ok(());
            }
            let len = usize::from(len);
            let known = match protocol {
                LCP => lcp_option(kind),
                IPCP => Some(ipcp_option(kind)),
                IP6CP if kind == 1 => Some(("Interface-ID", 10, false, Value::Interface)),
                IP6CP => Some(("unknown", 2, true, Value::Unknown)),
                CCP => Some(ccp_option(kind)),
                BACP if kind == 1 => Some(("Favored-Peer", 6, false, Value::Magic)),
                BACP => Some(("Unknown", 2, true, Value::Unknown)),
                _ => return Ok(()),
            };
            match known {
                None | Some((_, _, _, Value::Unknown)) if len > left => return Ok(()),
                Some((name, right, least, value)) => {
                    put!(self, "\n\t  {name} Option (0x{kind:02x}), length {len}");
                    if len < OPTION {
                        put!(self, " (length bogus, should be >= {OPTION})");
                        return Ok(());
                    }
                    if len < right || !least && len != right {
                        put!(self, " (length bogus, should be {} {right})", if least { ">=" } else { "=" });
                        if protocol != LCP {
                            return Ok(());
                        }
                    } else {
                        self.ppp_value(value, rest.first(len))?;
                    }
                }
                None => {
                    put!(self, "\n\tunknown LCP option 0x{kind:02x}");
                    if len < OPTION || len > left {
                        return Ok(());
                    }
                }
            }
            if len > left {
                put!(self, " [remaining options length {left} < {len}] (invalid)");
                return Ok(());
            }
            rest = rest.from(len);
            left -= len;
        }
        Ok(())
    }

    fn ppp_value(&mut self, value: Value, option: Bytes<'_>) -> Result<(), Cut> {
        let content = option.from(OPTION);
        let mut dump = self.options.verbose > 1;
        match value {
            Value::Number16 => put!(self, ": {}", content.u16(0)?),
            Value::Hex16 => put!(self, ": 0x{:04x}", content.u16(0)?),
            Value::Hex32 => put!(self, ": 0x{:08x}", content.u32(0)?),
            Value::Magic => put!(self, ": Magic-Num 0x{:08x}", content.u32(0)?),
            Value::Vendor => {
                let number = content.u24(0)?;
                put!(self, ": Vendor: {} ({number})", names::organization(number));
            }
            Value::Authentication => self.ppp_authentication(option)?,
            Value::Quality => {
                self.text(if content.u16(0)? == 0xc025 { ": LQR" } else { ": unknown" });
            }
            Value::CallBack => {
                self.text(": ");
                let operation = content.u8(0)?;
                let name = match operation {
                    0 => "UserAuth",
                    1 => "DialString",
                    2 => "LocalID",
                    3 => "E.164",
                    4 => "X.500",
                    6 => "CBCP",
                    _ => "Unknown",
                };
                put!(self, ": Callback Operation {name} ({operation})");
            }
            Value::Endpoint => self.ppp_endpoint(option)?,
            Value::Address => {
                self.text(": ");
                self.ip4_address(content.ip4(0)?);
            }
            Value::Addresses => {
                self.text(": src ");
                self.ip4_address(content.ip4(0)?);
                self.text(", dst ");
                self.ip4_address(content.ip4(4)?);
            }
            Value::Compression => self.ppp_compression(option)?,
            Value::Interface => {
                put!(self, ": {:04x}:{:04x}", content.u16(0)?, content.u16(2)?);
                put!(self, ":{:04x}:{:04x}", content.u16(4)?, content.u16(6)?);
            }
            Value::Bsd => {
                let byte = content.u8(0)?;
                put!(self, ": Version: {}, Dictionary Bits: {}", byte >> 5, byte & 31);
            }
            Value::Mvrca => {
                let byte = content.u8(0)?;
                let packet = if byte & 32 != 0 { "Enabled" } else { "Disabled" };
                put!(self, ": Features: {}, PxP: {packet}, History: {}", byte >> 6, byte & 31);
                put!(self, ", #CTX-ID: {}", content.u8(1)?);
            }
            Value::Deflate => {
                let (byte, check) = (content.u8(0)?, content.u8(1)?);
                let (window, method) = (byte >> 4, byte & 15);
                let name = if method == 8 { "zlib" } else { "unknown" };
                put!(self, ": Window: {window}K, Method: {name} (0x{method:x})");
                put!(self, ", MBZ: {}, CHK: {}", check >> 2, check & 3);
            }
            Value::Nothing => {}
            Value::Unknown => dump = true,
        }
        if dump && option.len > OPTION {
            self.rows("\n\t    ", content.data);
        }
        Ok(())
    }

    fn ppp_authentication(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        let protocol = option.u16(2)?;
        self.text(": ");
        match protocol {
            0xc023 => self.text("PAP"),
            0xc223 => {
                self.text("CHAP");
                if option.len > 4 {
                    match option.u8(4)? {
                        5 => self.text(", MD5"),
                        0x80 => self.text(", MS-CHAPv1"),
                        0x81 => self.text(", MS-CHAPv2"),
                        other => put!(self, ", Unknown Auth Alg {other}"),
                    }
                }
            }
            0xc227 => self.text("EAP"),
            0xc027 => self.text("SPAP"),
            other => {
                match other {
                    0xc025 => self.text("LQM"),
                    // As in tcpdump, without the number.
                    _ => self.text("Unknown Auth Proto (0x04x)"),
                }
                self.rows("\n\t", option.get(0, option.len)?);
            }
        }
        Ok(())
    }

    fn ppp_endpoint(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        const CLASSES: [&str; 6] = ["Null", "Local", "IPv4", "MAC", "Magic-Num-Block", "PSNDN"];
        let class = option.u8(2)?;
        let right = match class {
            2 => 7,
            3 => 9,
            _ => option.len,
        };
        if option.len != right {
            put!(self, " (length bogus, should be = {right})");
            return Ok(());
        }
        match CLASSES.get(usize::from(class)) {
            Some(name) => put!(self, ": {name}"),
            None => put!(self, ": Unknown class {class}"),
        }
        if right == 7 && class == 2 {
            self.text(" ");
            self.ip4_address(option.ip4(3)?);
        }
        if right == 9 && class == 3 {
            self.text(" ");
            self.mac(option.mac(3)?);
        }
        Ok(())
    }

    /// Prints compression of IP headers (RFC 2507 in RFC 3544).
    fn ppp_compression(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        const FIELDS: [&str; 5] =
            ["TCP Space ", ", non-TCP Space ", ", maxPeriod ", ", maxTime ", ", maxHdr "];
        let method = option.u16(2)?;
        let name = match method {
            0x2d => "VJ-Comp",
            0x61 => "IP Header Compression",
            _ => "Unknown",
        };
        put!(self, ": {name} (0x{method:02x}):");
        if method != 0x61 {
            return Ok(());
        }
        if option.len < 14 {
            self.text(" (length bogus, should be >= 14)");
            return Ok(());
        }
        if option.get(0, option.len).is_err() {
            self.text("[|ipcp]");
            return Ok(());
        }
        self.text("\n\t    ");
        for (number, name) in FIELDS.into_iter().enumerate() {
            put!(self, "{name}{}", option.u16(4 + 2 * number)?);
        }
        let mut rest = option.from(14);
        put!(self, "\n\t      Suboptions, length {}", rest.len);
        while rest.len > 1 {
            let (kind, len) = (rest.u8(0)?, usize::from(rest.u8(1)?));
            if len < OPTION || len > rest.len {
                break;
            }
            let name = match kind {
                1 => "RTP-Compression",
                2 => "Enhanced RTP-Compression",
                _ => "Unknown",
            };
            put!(self, "\n\t\t{name} Suboption #{kind}, length {len}");
            rest = rest.from(len);
        }
        Ok(())
    }
}
