//! The transport header of an IP packet, and what is behind it.

use std::net::IpAddr;

use crate::link;

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

impl<'a> Transport<'a> {
    /// Finds it in the outermost IP packet of a frame, behind VLAN tags, MPLS and PPPoE.
    pub fn outermost(link_type: u16, frame: &'a [u8]) -> Option<Self> {
        let (ip, packet) = link::outermost_ip(link_type, frame)?.ip(frame)?;
        let [source, destination] = ip.ends(packet);
        Some(Self {
            source,
            destination,
            protocol: ip.protocol,
            is_fragment: ip.fragment.is_some(),
            bytes: ip.payload_of(packet),
            length: ip.length.unwrap_or(packet.len()).saturating_sub(ip.payload),
        })
    }
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
        let found = Transport::outermost(1, &frame).expect("it is IP");
        assert_eq!((found.protocol, found.length, found.is_fragment), (17, 11, false));
        assert_eq!((&found.bytes[..2], &found.bytes[8..]), (&[1, 2][..], &b"abc"[..]));
        let cut = Transport::outermost(1, &frame[..47]).expect("it is IP");
        assert_eq!((cut.length, &cut.bytes[8..]), (11, &b"a"[..]));
        frame[20] = 0x20;
        assert!(Transport::outermost(1, &frame).is_some_and(|first| first.is_fragment));
        assert!(Transport::outermost(1, &[0; 60]).is_none());
    }
}
