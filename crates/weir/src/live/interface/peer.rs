//! The other end of a veth pair. VLAN tags that it leaves to its device arrive here beside the frame, not in it; checksums
//! that it leaves to its device arrive incomplete. It decides whether this end takes redirected packets, too.

use std::fs;

use weir_sys::ethtool::{Ethtool, Stripping};
use weir_sys::link::{Link, links};
use weir_sys::netns::NetNs;

use crate::live::error::command::DIRECTORIES;

/// The other end, if it can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its name, in the form for [`command::place`](crate::live::error::command::place).
    pub(crate) label: String,
    /// The tags that it leaves to its device.
    pub(crate) inserts: Stripping,
    /// It leaves checksums to its device.
    pub(crate) checksums: bool,
    /// It has GRO, which an XDP program turns on as well: so it takes what is redirected to this end.
    pub(crate) gro: bool,
}

impl Peer {
    /// Finds the other end of `link`, one of the interfaces `here` of this thread's namespace. `label` is the user's
    /// name for `link`.
    pub(crate) fn of(link: &Link, here: &[Link], label: &str) -> Option<Self> {
        let Some((index, number)) = link.far else {
            let other = here.iter().find(|other| Some(other.index) == link.lower)?;
            let namespace = label.rsplit_once('/').map(|(namespace, _)| format!("{namespace}/"));
            return Self::named(namespace.unwrap_or_default(), &other.name);
        };
        let in_directory = |directory| fs::read_dir(directory).into_iter().flatten().flatten();
        let named = DIRECTORIES.into_iter().flat_map(in_directory);
        let named = named.filter_map(|entry| {
            Some((entry.file_name().into_string().ok()?, NetNs::open(entry.path()).ok()?))
        });
        // The system's initial namespace is that of its first process.
        let first = NetNs::open("/proc/1/ns/net").ok().map(|netns| ("1".to_owned(), netns));
        let (namespace, netns) = named.chain(first).find(|(_, netns)| netns.number_here() == Some(number))?;
        let found = move || {
            let other = links().ok()?.into_iter().find(|other| other.index == index)?;
            Self::named(format!("{namespace}/"), &other.name)
        };
        netns.inside(found).ok()?
    }

    /// Asks for what `name` in this thread's namespace leaves to its device; `namespace` goes before the name.
    fn named(namespace: String, name: &str) -> Option<Self> {
        let ethtool = Ethtool::new().ok()?;
        Some(Self {
            label: namespace + name,
            inserts: ethtool.inserting(name)?,
            checksums: ethtool.completes_checksums(name)?,
            gro: ethtool.joins_received(name)?,
        })
    }
}
