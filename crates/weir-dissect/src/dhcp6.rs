//! DHCPv6 (RFC 8415).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

/// Messages between relays have two addresses in place of an identifier.
const RELAYED: std::ops::RangeInclusive<u8> = 12..=13;
const NAMES: [&str; 13] = [
    "solicit",
    "advertise",
    "request",
    "confirm",
    "renew",
    "rebind",
    "reply",
    "release",
    "decline",
    "reconf",
    "inf-req",
    "relay-fwd",
    "relay-reply",
];

impl Printer<'_> {
    pub(crate) fn dhcp6(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "dhcp6";
        self.facts.protocol = Some("dhcp6");
        self.text("dhcp6");
        let kind = bytes.u8(0)?;
        bytes.get(0, if RELAYED.contains(&kind) { 34 } else { 4 })?;
        match NAMES.get(usize::from(kind).wrapping_sub(1)) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " msgtype-{kind}"),
        }
        if self.options.verbose > 0 && !RELAYED.contains(&kind) {
            put!(self, " (xid={:x})", bytes.u24(1)?);
        }
        Ok(())
    }
}
