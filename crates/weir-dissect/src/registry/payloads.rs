//! Payloads that the caller names, because no port does.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::segment::{Around, Segment};

/// What segments carry, whatever their ports (tcpdump's `-T`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// CARP, in place of VRRP.
    Carp,
    /// DNS, over UDP and TCP.
    Domain,
    /// PGM over UDP.
    Pgm,
    /// RADIUS.
    Radius,
    /// RESP, the protocol of Redis, over TCP.
    Resp,
    /// RTCP.
    Rtcp,
    /// RTP.
    Rtp,
    /// SNMP.
    Snmp,
    /// TFTP.
    Tftp,
    /// VXLAN.
    Vxlan,
    /// ZMTP/1.0, the protocol of ZeroMQ, over TCP.
    Zmtp1,
}

impl Payload {
    /// Every payload, and its name in tcpdump.
    pub const ALL: [(&'static str, Self); 11] = [
        ("carp", Self::Carp),
        ("domain", Self::Domain),
        ("pgm", Self::Pgm),
        ("radius", Self::Radius),
        ("resp", Self::Resp),
        ("rtcp", Self::Rtcp),
        ("rtp", Self::Rtp),
        ("snmp", Self::Snmp),
        ("tftp", Self::Tftp),
        ("vxlan", Self::Vxlan),
        ("zmtp1", Self::Zmtp1),
    ];
}

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
