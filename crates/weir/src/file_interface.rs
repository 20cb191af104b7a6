//! An interface as a capture file describes it.

use std::collections::BTreeMap;
use std::fs;

/// An interface in a capture file, from pcapng's Interface Description Block or the header of a pcap file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInterface {
    /// `LINKTYPE_*` (tcpdump.org/linktypes.html): 1 Ethernet, 101 raw IP, 276 Linux cooked v2.
    pub link_type: u16,
    /// Bytes kept of each packet; 0: no limit.
    pub snap_len: u32,
    /// Name, such as `eth0`.
    pub name: Option<String>,
    /// Kind of the device, in words.
    pub description: Option<String>,
    /// Hardware address.
    pub mac: Option<[u8; 6]>,
    /// Bits per second.
    pub speed_bits: Option<u64>,
    /// The filter with which its packets were captured, in words.
    pub filter: Option<String>,
    /// Operating system of the capturing host.
    pub os: Option<String>,
    /// Hardware of the interface.
    pub hardware: Option<String>,
    /// Length in bytes of the frame check sequence at the end of packets, if it is known.
    pub fcs_len: Option<u8>,
    /// Free text.
    pub comment: Option<String>,
    /// Other information to carry over from one pcapng file to another: options in native byte order, without the end
    /// of options.
    pub more: Vec<u8>,
}

impl FileInterface {
    /// Describes an interface with packets of this link type (`LINKTYPE_*`), whose other fields can then be set.
    pub fn new(link_type: u16) -> Self {
        Self { link_type, ..Self::default() }
    }

    /// Returns, for a file of `any`, the names of the interfaces at the start of the capture, by the index that packets
    /// contain. Interfaces that were added later are missing.
    pub fn others(&self) -> BTreeMap<u32, String> {
        let listed = self.description.as_deref().filter(|_| self.link_type == LINUX_SLL2).unwrap_or_default();
        let one = |entry: &str| {
            let (index, name) = entry.split_once(' ')?;
            Some((index.parse().ok()?, name.to_owned()))
        };
        // Other descriptions contain no such list.
        listed.split(LIST).map(one).collect::<Option<_>>().unwrap_or_default()
    }
}

/// Separator in a list of interfaces.
pub(crate) const LIST: &str = ", ";
const LINUX_SLL2: u16 = 276;

/// The operating system of this machine.
pub(crate) fn os() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "Linux".to_owned(), |release| format!("Linux {}", release.trim()))
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
