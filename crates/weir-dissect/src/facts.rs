//! What programs want to know of a packet.

use std::net::IpAddr;

/// What was read of a packet. Of headers in headers, the outermost that has the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Bytes before the network layer.
    pub link_len: usize,
    /// Hardware addresses.
    pub mac_source: Option<[u8; 6]>,
    /// See [`Facts::mac_source`].
    pub mac_destination: Option<[u8; 6]>,
    /// The outer VLAN identifier.
    pub vlan: Option<u16>,
    /// The inner VLAN identifier, of two tags.
    pub inner_vlan: Option<u16>,
    /// The network layer as an Ethernet type, where the link layer says it in one way or another.
    pub ethertype: Option<u16>,
    /// Addresses of the IP header.
    pub source: Option<IpAddr>,
    /// See [`Facts::source`].
    pub destination: Option<IpAddr>,
    /// Time to live, or hop limit.
    pub ttl: Option<u8>,
    /// What IP carries (IANA's protocol numbers), behind extension headers.
    pub ip_protocol: Option<u8>,
    /// A fragment other than the first: it has no ports.
    pub later_fragment: bool,
    /// Ports of TCP, UDP or SCTP.
    pub source_port: Option<u16>,
    /// See [`Facts::source_port`].
    pub destination_port: Option<u16>,
    /// TCP flags, as the header has them: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR.
    pub tcp_flags: Option<u8>,
    /// TCP sequence number, absolute.
    pub tcp_sequence: Option<u32>,
    /// TCP acknowledgement number, absolute.
    pub tcp_acknowledgement: Option<u32>,
    /// TCP window, unscaled.
    pub tcp_window: Option<u16>,
    /// Bytes that TCP or UDP carries, on the wire.
    pub payload_len: Option<usize>,
    /// The protocol furthest inside that was recognised: `arp`, `tcp`, `dns`, `vxlan`, ...
    pub protocol: Option<&'static str>,
}
