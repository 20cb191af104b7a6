//! Payloads that the caller names because no port does.

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
