//! Prints payloads that the caller names.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::{Around, Segment};
use crate::registry::payload::Payload;

impl Printer<'_> {
    /// Prints the payload of a datagram as what the caller named; returns `None` if it is not for UDP.
    pub(crate) fn named_datagram(&mut self, around: Around, bytes: Bytes<'_>) -> Option<Result<(), Cut>> {
        Some(match self.options.payload? {
            Payload::Carp | Payload::Resp | Payload::Zmtp1 => return None,
            Payload::Domain => self.dns(bytes, false),
            Payload::Pgm => self.pgm(Around { shown: true, ..around }, bytes),
            Payload::Radius => self.radius(bytes),
            Payload::Rtcp => self.rtcp(bytes),
            Payload::Rtp => self.rtp(bytes),
            Payload::Snmp => self.snmp(bytes),
            Payload::Tftp => self.tftp(bytes),
            Payload::Vxlan => self.vxlan(bytes),
        })
    }

    /// Prints the payload of a TCP segment as what the caller named, if that is for TCP.
    pub(crate) fn named_segment(&mut self, segment: &Segment<'_>) -> Result<(), Cut> {
        match self.options.payload {
            Some(Payload::Domain) => self.dns_over_tcp(segment.payload),
            Some(Payload::Zmtp1) => self.zmtp(segment.payload),
            Some(Payload::Resp) => self.resp(segment.payload),
            _ => Ok(()),
        }
    }
}
