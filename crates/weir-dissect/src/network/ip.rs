//! What IPv4 and IPv6 have in common.

use std::net::IpAddr;

use crate::Printer;
use crate::base::segment::Around;
use crate::base::text::put;
use crate::registry::protocols;

impl Printer<'_> {
    /// Prints the name of a protocol that is not dissected, or its number.
    pub(crate) fn ip_protocol(&mut self, protocol: u8) {
        match protocols::keyword(protocol).filter(|_| self.resolve.is_some()) {
            Some(name) => self.text(name),
            None => put!(self, "ip-proto-{protocol}"),
        }
    }

    /// Prints `a > b: `, unless the protocol prints the addresses with its ports.
    pub(crate) fn addresses(&mut self, source: IpAddr, destination: IpAddr) {
        self.address(source);
        self.text(" > ");
        self.address(destination);
        self.text(": ");
    }

    /// Prints `a.1 > b.2: `, or only the ports if an earlier header has printed the addresses.
    pub(crate) fn ports(&mut self, around: Around, source: u16, destination: u16) {
        self.facts.source_port.get_or_insert(source);
        self.facts.destination_port.get_or_insert(destination);
        if !around.shown {
            self.address(around.source);
            self.text(".");
        }
        self.port(self.protocol, source);
        self.text(" > ");
        if !around.shown {
            self.address(around.destination);
            self.text(".");
        }
        self.port(self.protocol, destination);
        self.text(": ");
    }
}
