//! An interface as a capture file describes it.

use crate::Interface;

/// One interface of a capture file: what pcapng's Interface Description Block says, or the head of a pcap file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileInterface {
    /// `LINKTYPE_*` (tcpdump.org/linktypes.html): 1 Ethernet, 101 raw IP, 276 Linux cooked v2.
    pub link_type: u16,
    /// Bytes kept of a packet; 0: no limit.
    pub snap_len: u32,
    /// Name, such as `eth0`.
    pub name: Option<String>,
    /// What kind of device it is, in words.
    pub description: Option<String>,
    /// Hardware address.
    pub mac: Option<[u8; 6]>,
    /// Bits per second.
    pub speed_bits: Option<u64>,
    /// The filter that its packets have passed, in words.
    pub filter: Option<String>,
    /// Operating system that captured.
    pub os: Option<String>,
    /// What the interface is made of.
    pub hardware: Option<String>,
    /// Bytes of the frame check sequence with which packets end, if that is known.
    pub fcs_len: Option<u8>,
    /// Free text.
    pub comment: Option<String>,
    /// What else a pcapng file says of it and another one takes: options in native byte order, without their end mark.
    pub more: Vec<u8>,
}

impl From<&Interface> for FileInterface {
    fn from(interface: &Interface) -> Self {
        Self {
            link_type: interface.link_type,
            snap_len: interface.snap_len,
            name: Some(interface.name.clone()),
            description: interface.description.clone(),
            mac: interface.mac,
            filter: interface.filter.clone(),
            speed_bits: interface.speed_bits,
            os: Some(crate::writer::os()),
            ..Self::default()
        }
    }
}
