//! Messages in datagrams, in a file.

/// Returns a pcap file of datagrams over IPv4, each to its port: messages of one exporter for each port.
pub(crate) fn pcap(datagrams: &[(u16, &[u8])]) -> Vec<u8> {
    const RAW: u32 = 101;
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, RAW] {
        file.extend(word.to_le_bytes());
    }
    for (port, message) in datagrams {
        let length = u16::try_from(28 + message.len()).expect("it fits into a datagram");
        for word in [1_700_000_000, 0, u32::from(length), u32::from(length)] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x45, 0]);
        file.extend(length.to_be_bytes());
        file.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        for word in [port + 10_000, *port, length - 20, 0] {
            file.extend(word.to_be_bytes());
        }
        file.extend_from_slice(message);
    }
    file
}
