//! Service access points of 802.2, and the types of organizations (SNAP): names, and what they lead to.

use weir_packet::ethertype;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::registry::{Read, osi};

const INTERNET: u8 = 0x06;
const SPANNING_TREE: u8 = 0x42;
const OSI: u8 = 0xfe;

const CISCO: u32 = 0x0c;

/// Returns the name of a service access point.
pub(crate) fn name(number: u8) -> Option<&'static str> {
    Some(match number & !1 {
        0x00 => "Null",
        0x02 => "802.1B I",
        0x04 => "SNA",
        INTERNET => "IP",
        0x0e => "ProWay NM",
        SPANNING_TREE => "STP",
        0x4e => "RS511",
        0x7e => "ISO8208",
        0x8e => "ProWay",
        0xaa => "SNAP",
        0xe0 => "IPX",
        0xf0 => "NetBeui",
        OSI => "OSI",
        _ => return None,
    })
}

/// Returns the name of an organization's type, and what prints its payload. Some organizations use EtherTypes instead.
pub(crate) fn snap(organization: u32, kind: u16) -> Option<(&'static str, Option<Read>)> {
    Some(match (organization, kind) {
        (CISCO, 0x010b) => ("PVST", Some(|printer, bytes| printer.stp(bytes))),
        (CISCO, 0x010c) => ("VLAN Bridge", None),
        (CISCO, 0x0111) => ("UDLD", Some(|printer, bytes| printer.udld(bytes))),
        (CISCO, 0x2000) => ("CDP", Some(|printer, bytes| printer.cdp(bytes))),
        (CISCO, 0x2003) => ("VTP", None),
        (CISCO, 0x2004) => ("DTP", None),
        _ => return None,
    })
}

impl Printer<'_> {
    /// Prints what two access points of the same number send each other, if it is known.
    pub(crate) fn access_point(&mut self, point: u8, bytes: Bytes<'_>) -> Result<bool, Cut> {
        match point {
            INTERNET => self.carried(ethertype::IPV4, bytes).map(|_| true),
            SPANNING_TREE => self.stp(bytes).map(|()| true),
            OSI if bytes.u8(0).is_ok_and(osi::known) => self.osi(bytes).map(|()| true),
            _ => Ok(false),
        }
    }
}
