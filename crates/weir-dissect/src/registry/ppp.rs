//! Protocols of PPP (<https://www.iana.org/assignments/ppp-numbers>): their names in tcpdump, and what they lead to.

use weir_packet::{ethertype, ppp};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const OSI: u16 = 0x23;
const MLPPP: u16 = 0x3d;
const PAP: u16 = 0xc023;
const CHAP: u16 = 0xc223;

/// Returns the name of a protocol.
pub(crate) fn name(protocol: u16) -> Option<&'static str> {
    Some(match protocol {
        ppp::IPV4 => "IP",
        OSI => "OSI",
        0x0025 => "NS",
        0x0027 => "DECNET",
        0x0029 => "APPLE",
        0x002b => "IPX",
        0x002d => "VJC IP",
        0x002f => "VJNC IP",
        0x0031 => "BRPDU",
        0x0033 => "STII",
        0x0035 => "VINES",
        MLPPP => "MLPPP",
        ppp::IPV6 => "IP6",
        0x00fd => "Compressed",
        0x0201 => "HELLO",
        0x0231 => "LUXCOM",
        0x0233 => "SNS",
        0x0281 | 0x0283 => "MPLS",
        0x8021 => "IPCP",
        0x8023 => "OSICP",
        0x8025 => "NSCP",
        0x8027 => "DECNETCP",
        0x8029 => "APPLECP",
        0x802b => "IPXCP",
        0x8033 => "STIICP",
        0x8035 => "VINESCP",
        0x8057 => "IP6CP",
        0x80fd => "CCP",
        0x8281 => "MPLSCP",
        0xc021 => "LCP",
        PAP => "PAP",
        0xc025 => "LQM",
        0xc027 => "SPAP",
        0xc02b => "BACP",
        0xc02d => "BAP",
        0xc03d => "MLPPP-CP",
        CHAP => "CHAP",
        0xc227 => "EAP",
        _ => return None,
    })
}

impl Printer<'_> {
    /// Prints the payload of a protocol.
    pub(crate) fn ppp_content(&mut self, protocol: u16, inner: Bytes<'_>) -> Result<(), Cut> {
        match (protocol, name(protocol)) {
            (ppp::IPV4 | 0x002f, _) => self.carried(ethertype::IPV4, inner).map(drop),
            (ppp::IPV6, _) => self.carried(ethertype::IPV6, inner).map(drop),
            (0x0281 | 0x0283, _) => self.mpls(inner),
            (OSI, _) => self.osi(inner),
            (MLPPP, _) => self.multilink(inner),
            (0x00fd, _) => {
                self.text("compressed PPP data");
                Ok(())
            }
            (PAP, _) => self.pap(inner),
            (CHAP, _) => self.chap(inner),
            (0xc02d, _) => Ok(()),
            (0x8021 | 0x8023 | 0x8057 | 0x80fd | 0x8281 | 0xc021 | 0xc02b, Some(name)) => {
                self.ppp_control(protocol, name, inner)
            }
            (_, name) => {
                match name {
                    Some(name) => put!(self, "{name} "),
                    None => put!(self, "unknown PPP protocol (0x{protocol:04x}) "),
                }
                self.rows("\n\t", inner.data);
                Ok(())
            }
        }
    }
}
