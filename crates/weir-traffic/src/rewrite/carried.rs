//! What packets carry in which addresses stay, unless payload is overwritten.

use weir_packet::bytes::word;
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
        ..ethertype::FIRST if packet.starts_with(&[0xaa, 0xaa, 3]) => match word(packet, 6)? {
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
    word(transport, 2).and_then(by).or_else(|| word(transport, 0).and_then(by))
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
