//! Stacked interfaces, so that a capture on all interfaces takes each frame once.
//!
//! A frame that passes a bridge, bond or VLAN also appears at the interface below, with the same bytes except for a
//! tag. So frames of the upper interface are skipped. Exceptions are a macvlan in bridge mode, which passes frames to
//! its siblings past the interface below, and a tunnel, whose frames differ.

use std::collections::BTreeMap;

use weir_sys::CallError;
use weir_sys::link::{Link, LinkChange, LinkMonitor, Links};

/// `MACVLAN_MODE_BRIDGE` (linux/if_link.h).
const MACVLAN_BRIDGE: u32 = 4;

/// The interfaces of a namespace, kept up to date, and the upper ones among them.
#[derive(Debug)]
pub(super) struct Stack {
    monitor: LinkMonitor,
    table: Links,
    links: BTreeMap<u32, Link>,
    /// Sorted indexes.
    uppers: Vec<u32>,
}

impl Stack {
    /// Reads the interfaces of this thread's namespace.
    pub(super) fn open() -> Result<Self, CallError> {
        // Open the monitor first: it catches changes during the reading.
        let monitor = LinkMonitor::open()?;
        let mut stack = Self { monitor, table: Links::open()?, links: BTreeMap::new(), uppers: Vec::new() };
        stack.look()?;
        Ok(stack)
    }

    /// Processes the changes since the last call.
    pub(super) fn refresh(&mut self) -> Result<(), CallError> {
        let (mut changed, mut missed) = (false, false);
        self.monitor.changes(|change| {
            changed = true;
            match change {
                LinkChange::Is(link) => drop(self.links.insert(link.index, link)),
                LinkChange::Gone(link) => drop(self.links.remove(&link.index)),
                LinkChange::Missed => missed = true,
            }
        })?;
        if missed {
            self.look()?;
        } else if changed {
            self.uppers = uppers(&self.links);
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), CallError> {
        self.links = self.table.all()?.into_iter().map(|link| (link.index, link)).collect();
        self.uppers = uppers(&self.links);
        Ok(())
    }

    /// Whether frames of this interface also appear below it.
    #[inline]
    pub(super) fn is_upper(&self, interface: u32) -> bool {
        self.uppers.binary_search(&interface).is_ok()
    }
}

fn uppers(links: &BTreeMap<u32, Link>) -> Vec<u32> {
    let has_port = |index| links.values().any(|link| link.master == Some(index) && link.is_up());
    let upper = |link: &&Link| match link.kind.as_deref() {
        // Without a port, frames sent through it appear nowhere else.
        Some("bridge" | "bond" | "team") => has_port(link.index),
        Some("vlan") => link.lower.is_some(),
        Some("macvlan" | "macvtap") => link.lower.is_some() && link.macvlan_mode != Some(MACVLAN_BRIDGE),
        _ => false,
    };
    links.values().filter(upper).map(|link| link.index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_on_another_is_an_upper() {
        let link =
            |index: u32, kind: &str| Link { index, flags: 1, kind: Some(kind.to_owned()), ..Link::default() };
        let links = [
            link(1, ""),
            Link { master: Some(10), ..link(2, "") },
            Link { master: Some(11), flags: 0, ..link(3, "veth") },
            Link { master: Some(12), ..link(4, "") },
            Link { lower: Some(6), ..link(5, "veth") },
            Link { lower: Some(5), ..link(6, "veth") },
            link(10, "bridge"),
            link(11, "bridge"), // its port is down
            link(12, "bond"),
            Link { lower: Some(10), ..link(20, "vlan") },
            link(21, "vlan"), // its lower interface is in another namespace
            Link { lower: Some(2), macvlan_mode: Some(2), ..link(22, "macvlan") },
            Link { lower: Some(2), macvlan_mode: Some(MACVLAN_BRIDGE), ..link(23, "macvlan") },
            Link { lower: Some(2), ..link(24, "vxlan") },
            Link { master: Some(25), ..link(26, "") },
            link(25, "vrf"), // local traffic appears only there
        ];
        let links = links.into_iter().map(|link| (link.index, link)).collect();
        assert_eq!(uppers(&links), [10, 12, 20, 22]);
    }
}
