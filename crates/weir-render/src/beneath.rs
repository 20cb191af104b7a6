//! The interface that a packet passed, in a file of `any`, which stands for all.

use std::collections::BTreeMap;

use weir::FileInterface;

const LINUX_SLL2: u16 = 276;

/// Returns the index of the interface that a packet passed, if its link-layer header says so.
pub(crate) fn index(link_type: u16, data: &[u8]) -> Option<u32> {
    let index = data.get(4..)?.first_chunk().filter(|_| link_type == LINUX_SLL2)?;
    Some(u32::from_be_bytes(*index))
}

/// The interfaces that one of a file stands for.
#[derive(Clone, Debug, Default)]
pub struct Beneath {
    link_type: u16,
    names: BTreeMap<u32, String>,
}

impl Beneath {
    /// Returns those of `interface`.
    pub fn of(interface: &FileInterface) -> Self {
        Self { link_type: interface.link_type, names: interface.others() }
    }

    /// Returns the index of the one that a packet passed.
    pub fn index(&self, data: &[u8]) -> Option<u32> {
        index(self.link_type, data)
    }

    /// Returns the name of an interface; `None`: it was not there at the start of the capture.
    pub fn name(&self, index: u32) -> Option<&str> {
        self.names.get(&index).map(String::as_str)
    }
}
