//! DHCPv6 (RFC 8415).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Messages between relays have two addresses in place of an identifier.
const RELAYED: std::ops::RangeInclusive<u8> = 12..=13;
const NAMES: [&str; 15] = [
    "solicit",
    "advertise",
    "request",
    "confirm",
    "renew",
    "rebind",
    "reply",
    "release",
    "decline",
    "reconfigure",
    "inf-req",
    "relay-fwd",
    "relay-reply",
    "leasequery",
    "leasequery-reply",
];

impl Printer<'_> {
    pub(crate) fn dhcp6(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "dhcp6";
        self.facts.protocol = Some("dhcp6");
        self.text("dhcp6");
        let kind = bytes.u8(0)?;
        bytes.get(0, 4)?;
        match NAMES.get(usize::from(kind).wrapping_sub(1)) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " msgtype-{kind}"),
        }
        if self.options.verbose == 0 {
            return Ok(());
        }
        self.text(" (");
        if RELAYED.contains(&kind) {
            let link = bytes.ip6(2)?;
            self.text("linkaddr=");
            self.ip6_address(link);
            let peer = bytes.ip6(18)?;
            self.text(" peeraddr=");
            self.ip6_address(peer);
            self.dhcp6_options(bytes.from(34));
        } else {
            put!(self, "xid={:x}", bytes.u24(1)?);
            self.dhcp6_options(bytes.from(4));
        }
        self.text(")");
        Ok(())
    }
}
