//! The header in front of packets of all interfaces, where their own link-layer headers would be of different kinds:
//! `LINKTYPE_LINUX_SLL2` (tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html).

use weir_sys::packet::Origin;

/// Bytes of the header.
pub(super) const HEADER: usize = 20;

/// The header of a packet that was met at `origin`, with this protocol (network byte order) behind it.
pub(super) fn header(origin: &Origin, protocol: [u8; 2]) -> [u8; HEADER] {
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
    fn the_header_is_in_network_byte_order() {
        let origin = Origin::new(0x0102_0304, 4, 0x86dd, 772, [1, 2, 3, 4, 5, 6]);
        let expected = [0x86, 0xdd, 0, 0, 1, 2, 3, 4, 3, 4, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        assert_eq!(header(&origin, origin.protocol()), expected);
    }
}
