//! Packet fields for programs.

use std::net::IpAddr;

/// The fields of a packet. In nested headers, each value comes from the outermost one that has the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Length of everything before the network layer, in bytes.
    pub link_len: usize,
    /// Source hardware address.
    pub mac_source: Option<[u8; 6]>,
    /// Destination hardware address.
    pub mac_destination: Option<[u8; 6]>,
    /// VLAN ID of the outer tag.
    pub vlan: Option<u16>,
    /// VLAN ID of the inner of two tags.
    pub inner_vlan: Option<u16>,
    /// Network protocol as an EtherType, if the link layer names it in any form.
    pub ethertype: Option<u16>,
    /// Source address in the IP header.
    pub source: Option<IpAddr>,
    /// Destination address in the IP header.
    pub destination: Option<IpAddr>,
    /// Time to live, or hop limit.
    pub ttl: Option<u8>,
    /// Protocol number of the IP payload (IANA), after extension headers.
    pub ip_protocol: Option<u8>,
    /// Whether it is a fragment other than the first, which has no ports.
    pub later_fragment: bool,
    /// Source port of TCP, UDP or SCTP.
    pub source_port: Option<u16>,
    /// Destination port of TCP, UDP or SCTP.
    pub destination_port: Option<u16>,
    /// TCP flags as in the header: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR.
    pub tcp_flags: Option<u8>,
    /// TCP sequence number, absolute.
    pub tcp_sequence: Option<u32>,
    /// TCP acknowledgement number, absolute.
    pub tcp_acknowledgement: Option<u32>,
    /// TCP window, unscaled.
    pub tcp_window: Option<u16>,
    /// Length of the TCP or UDP payload on the wire, in bytes.
    pub payload_len: Option<usize>,
    /// The innermost protocol that was recognised: `arp`, `tcp`, `dns`, `vxlan`, ...
    pub protocol: Option<&'static str>,
}
