//! An interface as a capture file describes it.

use std::collections::BTreeMap;

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

impl FileInterface {
    /// Of a file of `any`: the interfaces that there were at its beginning, by the index that packets tell. Names came later, so
    /// there may be others.
    pub fn others(&self) -> BTreeMap<u32, String> {
        let listed = self.description.as_deref().filter(|_| self.link_type == LINUX_SLL2).unwrap_or_default();
        let one = |entry: &str| {
            let (index, name) = entry.split_once(' ')?;
            Some((index.parse().ok()?, name.to_owned()))
        };
        // What is no such list tells nothing.
        listed.split(LIST).map(one).collect::<Option<_>>().unwrap_or_default()
    }
}

/// What stands between two in a list of interfaces.
pub(crate) const LIST: &str = ", ";
const LINUX_SLL2: u16 = 276;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_interfaces_is_read_as_it_was_written() {
        let others = |link_type, description: &str| {
            let description = Some(description.to_owned());
            FileInterface { link_type, description, ..FileInterface::default() }.others()
        };
        assert_eq!(others(276, "1 lo, 12 eth0.5"), [(1, "lo".into()), (12, "eth0.5".into())].into());
        for (link_type, description) in [(1, "1 lo"), (276, ""), (276, "Ethernet"), (276, "1 lo, the rest")] {
            assert!(others(link_type, description).is_empty(), "{description}");
        }
    }
}
