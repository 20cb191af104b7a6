//! The transport header of an IP packet, and what is behind it.

use std::net::IpAddr;

use crate::live::flow::{self, Network, Part};

/// What the outermost IP header of a packet carries.
#[derive(Clone, Copy, Debug)]
pub struct Transport<'a> {
    /// Who sent it.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// The protocol (IANA), behind extension headers of IPv6.
    pub protocol: u8,
    /// It is a part of a datagram.
    pub is_fragment: bool,
    /// Its header and payload, as far as captured, without what pads a short frame.
    pub bytes: &'a [u8],
    /// Their length on the wire.
    pub length: usize,
}

/// Finds it in a packet with this link type (`LINKTYPE_*`), as far as flows are found: behind VLAN tags, MPLS labels and PPPoE.
pub fn transport_of(link_type: u16, packet: &[u8]) -> Option<Transport<'_>> {
    let (network, rest) = flow::network(link_type, packet)?;
    let key = network.key(rest)?;
    let total = match network {
        Network::V4 => usize::from(flow::word(rest, 2)?),
        Network::V6 => usize::from(flow::word(rest, 4)?) + 40,
    };
    // Super-frames built by offloads may be longer than the field can say; it is 0 then.
    let is_told = total > if network == Network::V4 { 0 } else { 40 };
    let total = if is_told { total } else { rest.len() };
    Some(Transport {
        source: network.address(key.source),
        destination: network.address(key.destination),
        protocol: key.protocol,
        is_fragment: !matches!(key.part, Part::Whole(_)),
        bytes: rest.get(key.next..total.min(rest.len())).unwrap_or_default(),
        length: total.saturating_sub(key.next),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_no_payload_and_what_was_cut_counts() {
        // Ethernet, IPv4 with one word of options, UDP, three bytes, and padding.
        let mut frame = vec![0; 60];
        frame[12..15].copy_from_slice(&[8, 0, 0x46]);
        (frame[17], frame[23]) = (24 + 8 + 3, 17);
        frame[38..40].copy_from_slice(&[1, 2]);
        frame[46..49].copy_from_slice(b"abc");
        let found = transport_of(1, &frame).expect("it is IP");
        assert_eq!((found.protocol, found.length, found.is_fragment), (17, 11, false));
        assert_eq!((&found.bytes[..2], &found.bytes[8..]), (&[1, 2][..], &b"abc"[..]));
        let cut = transport_of(1, &frame[..47]).expect("it is IP");
        assert_eq!((cut.length, &cut.bytes[8..]), (11, &b"a"[..]));
        frame[20] = 0x20;
        assert!(transport_of(1, &frame).is_some_and(|first| first.is_fragment));
        assert!(transport_of(1, &[0; 60]).is_none());
    }
}
