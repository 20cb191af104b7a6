//! "Linux cooked" packets: the header of packets from all interfaces, in place of their different link-layer headers: `LINKTYPE_LINUX_SLL2`
//! (tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html).

use super::{Origin, Packet};

/// Length of the header in bytes.
pub const HEADER: usize = 20;

/// Length of an Ethernet header in bytes.
const ETHERNET: usize = 14;
/// Whether interfaces of this `ARPHRD_*` have Ethernet headers: Ethernet and loopback.
fn is_ethernet(hardware: u16) -> bool {
    [1, 772].contains(&hardware)
}

/// Splits off a packet's link-layer header. Returns the protocol that follows, in network byte order, and the bytes
/// after the header.
///
/// For a frame with several VLAN tags the kernel may report the protocol after the innermost tag (seen on Linux 6.18),
/// although the bytes still begin with a tag. The frame itself always names the outermost.
pub fn behind_link_layer<'a>(packet: &Packet<'a>) -> ([u8; 2], &'a [u8]) {
    let (told, data) = (packet.origin.protocol(), packet.data);
    if is_ethernet(packet.origin.hardware())
        && packet.link_header >= ETHERNET
        && let Some((&[.., high, low], rest)) = data.split_first_chunk::<ETHERNET>()
    {
        // Any other value below the Ethertypes is a driver's own protocol, such as a switch tag.
        let of_a_frame =
            u16::from_be_bytes(told) >= FIRST_ETHERTYPE || [NOVELL, LLC, [high, low]].contains(&told);
        let protocol = match u16::from_be_bytes([high, low]) {
            _ if !of_a_frame => told,
            FIRST_ETHERTYPE.. => [high, low],
            // A length: the frame is 802.3.
            _ if rest.starts_with(&[0xff, 0xff]) => NOVELL,
            _ => LLC,
        };
        return (protocol, rest);
    }
    (told, data.get(packet.link_header..).unwrap_or_default())
}

/// The smallest Ethertype. Smaller values are lengths, or the kernel's own protocols.
const FIRST_ETHERTYPE: u16 = 0x0600;
/// `ETH_P_802_3`: an 802.3 frame without LLC.
const NOVELL: [u8; 2] = [0, 1];
/// `ETH_P_802_2`: an 802.3 frame with LLC.
const LLC: [u8; 2] = [0, 4];

/// Returns the header of a packet captured at `origin`, followed by this protocol (network byte order).
pub fn header(origin: &Origin, protocol: [u8; 2]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&protocol);
    header[4..8].copy_from_slice(&origin.interface().to_be_bytes());
    header[8..10].copy_from_slice(&origin.hardware().to_be_bytes());
    header[10] = origin.kind();
    header[11] = origin.address_len();
    header[12..].copy_from_slice(&origin.address());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_that_of_the_frame() {
        let frame = |kind: &[u8]| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], kind, &[9; 8]].concat();
        let behind = |data: &[u8], link_header, hardware, told| {
            let origin = Origin::new(1, 0, told, hardware, [0; 6]);
            let packet = Packet { data, link_header, original_len: 60, timestamp: 0, tag: None, origin };
            let (protocol, rest) = behind_link_layer(&packet);
            (u16::from_be_bytes(protocol), rest.len())
        };
        for hardware in [1, 772] {
            assert_eq!(behind(&frame(&[8, 0]), 14, hardware, 0x0800), (0x0800, 8));
            // The kernel reports the protocol after both tags, or counts one as part of the header.
            assert_eq!(behind(&frame(&[0x81, 0, 0, 5, 8, 0]), 14, hardware, 0x0800), (0x8100, 12));
            assert_eq!(behind(&frame(&[0x81, 0, 0, 5, 8, 0]), 18, hardware, 0x0800), (0x8100, 12));
            assert_eq!(behind(&frame(&[0, 9, 0x42, 0x42, 3]), 14, hardware, 4), (4, 11));
            assert_eq!(behind(&frame(&[0, 9, 0xff, 0xff]), 14, hardware, 1), (1, 10));
            assert_eq!(
                behind(&frame(&[0, 9, 0x42, 0x42, 3]), 14, hardware, 9),
                (4, 11),
                "as a raw socket sends it"
            );
            assert_eq!(behind(&frame(&[8, 0]), 14, hardware, 0xf8), (0xf8, 8), "a tag of a switch");
            assert_eq!(behind(&frame(&[8, 0])[..13], 13, hardware, 0x0800), (0x0800, 0));
        }
        // Tunnels have no link-layer header; other kinds have a different one.
        assert_eq!(behind(&frame(&[8, 0]), 0, 65534, 0x0800), (0x0800, 22));
        assert_eq!(behind(&frame(&[8, 0]), 20, 32, 0x86dd), (0x86dd, 2));
    }

    #[test]
    fn the_header_is_in_network_byte_order() {
        let origin = Origin::new(0x0102_0304, 4, 0x86dd, 772, [1, 2, 3, 4, 5, 6]);
        let expected = [0x86, 0xdd, 0, 0, 1, 2, 3, 4, 3, 4, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        assert_eq!(header(&origin, origin.protocol()), expected);
    }
}
