//! What packets carry in which addresses stay, unless payload is overwritten.

use weir_packet::bytes::be16;
use weir_packet::ethertype::{self, IPV4, IPV6};
use weir_packet::protocol::{TCP, UDP};
use weir_packet::{port, protocol};

use crate::layout::{Layout, network};

/// What a packet carries, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Another packet.
    Packet(&'static str),
    /// A message that is known to have addresses, by its port or the number of its protocol.
    Message(&'static str),
}

/// Returns what is known of this.
pub(super) fn carried(link_type: u16, frame: &[u8]) -> Option<Carried> {
    let (kind, at) = network(link_type, frame)?;
    let packet = frame.get(at..)?;
    match kind {
        IPV4 | IPV6 => over_ip(packet),
        ethertype::MPLS | ethertype::MPLS_UPSTREAM => Some(Carried::Packet("MPLS")),
        ethertype::PPPOE => Some(Carried::Packet("PPPoE")),
        0x88e7 => Some(Carried::Packet("802.1ah")),
        0x88cc => Some(Carried::Message("LLDP")),
        // A length: the EtherType is behind the headers of LLC and SNAP.
        ..ethertype::FIRST if packet.starts_with(&[6, 6, 3]) => Some(Carried::Packet("802.2")),
        ..ethertype::FIRST if packet.starts_with(&[0xaa, 0xaa, 3]) => match be16(packet, 6)? {
            IPV4 | IPV6 => Some(Carried::Packet("SNAP")),
            0x2000 => Some(Carried::Message("CDP")),
            _ => None,
        },
        _ => None,
    }
}

fn over_ip(packet: &[u8]) -> Option<Carried> {
    use Carried::{Message, Packet};
    let layout = Layout::of(packet)?;
    let transport = &packet[layout.transport.clone()];
    match layout.protocol {
        protocol::IPV4 | protocol::IPV6 => Some(Packet("IP in IP")),
        protocol::GRE => Some(Packet("GRE")),
        97 => Some(Packet("EtherIP")),
        115 => Some(Packet("L2TP")),
        137 => Some(Packet("MPLS")),
        88 => Some(Message("EIGRP")),
        protocol::OSPF => Some(Message("OSPF")),
        protocol::PIM => Some(Message("PIM")),
        protocol::VRRP => Some(Message("VRRP")),
        UDP if !layout.is_later() && transport.len() > 8 => either(transport, over_udp),
        TCP if !layout.is_later() => {
            let header = 4 * usize::from(transport.get(12)? >> 4);
            (transport.len() > header).then(|| either(transport, over_tcp))?
        }
        _ => None,
    }
}

/// Asks for both ports.
fn either(transport: &[u8], by: fn(u16) -> Option<Carried>) -> Option<Carried> {
    // A tunnel has its port at the end that it goes to, and any at the other.
    be16(transport, 2).and_then(by).or_else(|| be16(transport, 0).and_then(by))
}

fn over_udp(port: u16) -> Option<Carried> {
    use Carried::{Message, Packet};
    Some(match port {
        port::VXLAN | port::LINUX_VXLAN | 4790 => Packet("VXLAN"),
        port::GENEVE => Packet("Geneve"),
        port::GTP_U => Packet("GTP"),
        1701 => Packet("L2TP"),
        3544 => Packet("Teredo"),
        6635 => Packet("MPLS"),
        53 | 5353 | 5355 => Message("DNS"),
        67 | 68 | 546 | 547 => Message("DHCP"),
        137 | 138 => Message("NetBIOS"),
        520 | 521 => Message("RIP"),
        1900 => Message("SSDP"),
        5060 => Message("SIP"),
        _ => return None,
    })
}

fn over_tcp(port: u16) -> Option<Carried> {
    Some(Carried::Message(match port {
        21 => "FTP",
        53 => "DNS",
        179 => "BGP",
        5060 => "SIP",
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::Carried::{Message, Packet};
    use super::*;

    fn ipv4(protocol: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let head = [0x45, 0, 0, 0, 0, 7, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&head[..], transport].concat()
    }

    fn ports(source: u16, destination: u16, length: usize) -> Vec<u8> {
        let mut transport = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        transport.resize(length, 0x50);
        transport
    }

    #[test]
    fn what_frames_and_packets_carry_is_named() {
        for (kind, begin, expected) in [
            (0x8847_u16, &[][..], Some(Packet("MPLS"))),
            (0x8848, &[], Some(Packet("MPLS"))),
            (0x8864, &[], Some(Packet("PPPoE"))),
            (0x88e7, &[], Some(Packet("802.1ah"))),
            (0x88cc, &[], Some(Message("LLDP"))),
            (100, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], Some(Packet("SNAP"))),
            (1535, &[0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd], Some(Packet("SNAP"))),
            (100, &[0xaa, 0xaa, 3, 0, 0, 0xc, 0x20, 0], Some(Message("CDP"))),
            (100, &[0xaa, 0xaa, 3, 0, 0, 0, 9, 9], None),
            (100, &[0x42, 0x42, 3, 0, 0, 0, 8, 0], None),
            (100, &[6, 6, 3, 0x45], Some(Packet("802.2"))),
            (1536, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], None),
            (0x1234, &[], None),
        ] {
            let frame = [&[2; 12][..], &kind.to_be_bytes(), begin].concat();
            assert_eq!(carried(1, &frame), expected, "{kind:#x} {begin:02x?}");
        }
        for (protocol, expected) in [
            (4, Some(Packet("IP in IP"))),
            (41, Some(Packet("IP in IP"))),
            (47, Some(Packet("GRE"))),
            (97, Some(Packet("EtherIP"))),
            (115, Some(Packet("L2TP"))),
            (137, Some(Packet("MPLS"))),
            (88, Some(Message("EIGRP"))),
            (89, Some(Message("OSPF"))),
            (103, Some(Message("PIM"))),
            (112, Some(Message("VRRP"))),
            (1, None),
        ] {
            assert_eq!(carried(101, &ipv4(protocol, 0, &[0; 30])), expected, "{protocol}");
        }
    }

    #[test]
    fn ports_tell_at_either_end() {
        for (protocol, name, ports_of) in [
            (UDP, Packet("VXLAN"), &[4789, 4790, 8472][..]),
            (UDP, Packet("Geneve"), &[6081]),
            (UDP, Packet("GTP"), &[2152]),
            (UDP, Packet("L2TP"), &[1701]),
            (UDP, Packet("Teredo"), &[3544]),
            (UDP, Packet("MPLS"), &[6635]),
            (UDP, Message("DNS"), &[53, 5353, 5355]),
            (UDP, Message("DHCP"), &[67, 68, 546, 547]),
            (UDP, Message("NetBIOS"), &[137, 138]),
            (UDP, Message("RIP"), &[520, 521]),
            (UDP, Message("SSDP"), &[1900]),
            (UDP, Message("SIP"), &[5060]),
            (TCP, Message("FTP"), &[21]),
            (TCP, Message("DNS"), &[53]),
            (TCP, Message("BGP"), &[179]),
            (TCP, Message("SIP"), &[5060]),
        ] {
            for &port in ports_of {
                let of = |fragment, transport: &[u8]| carried(101, &ipv4(protocol, fragment, transport));
                for transport in [ports(port, 40_000, 40), ports(40_000, port, 40)] {
                    assert_eq!(of(0, &transport), Some(name), "{protocol} {port}");
                    assert_eq!(of(0x2000, &transport), Some(name), "the first fragment has the ports");
                    assert_eq!(of(5, &transport), None, "others have not");
                }
                // Nothing is carried by a header alone.
                let header = if protocol == UDP { 8 } else { 20 };
                assert_eq!(of(0, &ports(port, port, header)), None, "{protocol} {port}");
                assert_eq!(of(0, &ports(port, port, header + 1)), Some(name), "{protocol} {port}");
                assert_eq!(of(0, &ports(9, 40_000, 40)), None);
            }
        }
        // The end that it goes to comes first.
        assert_eq!(carried(101, &ipv4(UDP, 0, &ports(53, 4789, 40))), Some(Packet("VXLAN")));
    }
}
