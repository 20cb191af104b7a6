//! Sets of the active filters, which can be changed while the filters run.
//!
//! The capture changes them itself, which takes no privilege but the descriptor (Linux 5.19), and counts what it has
//! changed. No descriptor of a set leaves it: whoever had one could keep the set's memory, and change it unnoticed.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use weir_bpf::filter::{Changed, SetChange, SetKind, SetMap};
use weir_filter::names::Names;
use weir_filter::parse;
use weir_filter::set::{Contents, Holds, SetName};
use weir_sys::CallError;

use crate::Error;
use crate::filter::remembered::{Answers, Remembered};

/// The name and kind of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLabel {
    /// The name in the expression, without `@`.
    pub name: String,
    /// The kind of its members.
    pub kind: MemberKind,
}

/// The kind of a set's members, and how lists of them are parsed. A set of addresses is two sets, one per address
/// family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// Ports of `port in`.
    Ports,
    /// Ports of `tcp port in`.
    TcpPorts,
    /// Ports of `udp port in`.
    UdpPorts,
    /// Ports of `sctp port in`.
    SctpPorts,
    /// VLANs of `vlan in`.
    Vlans,
    /// MAC addresses of `ether host in`.
    Macs,
    /// IPv4 addresses of `host in`.
    Ipv4Hosts,
    /// IPv6 addresses of `host in`.
    Ipv6Hosts,
    /// IPv4 networks of `net in`.
    Ipv4Networks,
    /// IPv6 networks of `net in`.
    Ipv6Networks,
}

/// Members for sets as text, with the values of their names: another process reads them without looking anything up.
#[derive(Clone, Serialize, Deserialize)]
pub struct PortableMembers {
    text: String,
    names: Answers,
}

impl PortableMembers {
    /// Parses a list of members, in the format of set files, for all of these sets.
    ///
    /// # Errors
    ///
    /// A member is invalid.
    pub fn new(
        text: impl Into<String>,
        sets: &[SetLabel],
        names: impl Names + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let (text, names) = (text.into(), Remembered::new(Arc::new(names)));
        for set in sets {
            set.members(&text, &names)?;
        }
        Ok(Self { text, names: names.answers() })
    }
}

/// Omits the members.
impl fmt::Debug for PortableMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortableMembers").finish_non_exhaustive()
    }
}

impl SetLabel {
    fn members(&self, text: &str, names: &dyn Names) -> Result<Vec<Contents>, Error> {
        let read = parse::members(text, self.kind.holds(), names);
        read.map_err(|source| Error::Members { set: self.name.clone(), source })
    }
}

/// Changes these sets, which all have this name. For each kind of members, the largest change counts.
pub(crate) fn change_all(
    name: &str,
    sets: Vec<Labelled>,
    change: SetChange,
    members: &PortableMembers,
) -> Result<Changed, Error> {
    let mut ready = Vec::new();
    for (label, map) in sets {
        let contents = label.members(&members.text, &members.names)?;
        let map = SetMap::received(label.kind.map(), map)?;
        // Of the two address families, the map holds one.
        let contents = contents.into_iter().find(|contents| SetKind::of(contents) == map.kind());
        ready.push((label.kind, map, contents.expect("members of the set's kind")));
    }
    let mut changed: BTreeMap<MemberKind, Changed> = BTreeMap::new();
    for (kind, map, contents) in ready {
        let now = map.change(change, &contents).map_err(|error| Error::SetPartlyChanged {
            set: name.to_owned(),
            source: Box::new(error.into()),
        })?;
        let most = changed.entry(kind).or_default();
        most.added = most.added.max(now.added);
        most.removed = most.removed.max(now.removed);
    }
    let added = changed.values().map(|changed| changed.added).sum();
    let removed = changed.values().map(|changed| changed.removed).sum();
    Ok(Changed { added, removed })
}

/// The label of a set, and a descriptor of its map.
pub(crate) type Labelled = (SetLabel, OwnedFd);

/// The active filter in a place, with its sets, shared by all that replace it. Sets may come from another process, so
/// [`change_all`] checks what they are.
#[derive(Debug, Default)]
pub(crate) struct InForce<T>(Arc<Mutex<(T, Vec<Labelled>)>>);

impl<T> InForce<T> {
    /// Activates this filter; returns the previous one.
    pub(crate) fn replace(&self, filter: (T, Vec<Labelled>)) -> (T, Vec<Labelled>) {
        std::mem::replace(&mut *self.lock(), filter)
    }

    /// Asks about the active filter.
    pub(crate) fn ask<R>(&self, question: impl FnOnce(&T) -> R) -> R {
        question(&self.lock().0)
    }

    /// Returns the labels and descriptors of its sets.
    pub(crate) fn sets(&self) -> Result<Vec<Labelled>, Error> {
        Ok(duplicated(self.lock().1.iter().map(|(label, map)| (label, map)))?)
    }

    fn lock(&self) -> MutexGuard<'_, (T, Vec<Labelled>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for InForce<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Returns the sets that have names, by which they can be changed.
pub(crate) fn labelled(sets: &[SetMap]) -> Result<Vec<Labelled>, CallError> {
    let named = sets.iter().filter_map(|set| Some((set.name()?, set)));
    let labelled = |(name, set): (&SetName, &SetMap)| {
        let kind = MemberKind::new(name.holds, set.kind());
        Ok((SetLabel { name: name.text.clone(), kind }, set.descriptor()?))
    };
    named.map(labelled).collect::<io::Result<_>>().map_err(|error| CallError::new(DUPLICATE, error))
}

const DUPLICATE: &str = "duplicate a descriptor";

pub(crate) fn duplicated<'a>(
    sets: impl Iterator<Item = (&'a SetLabel, &'a OwnedFd)>,
) -> Result<Vec<Labelled>, CallError> {
    let one = |(label, map): (&SetLabel, &OwnedFd)| Ok((label.clone(), map.try_clone()?));
    sets.map(one).collect::<io::Result<_>>().map_err(|error| CallError::new(DUPLICATE, error))
}

impl MemberKind {
    /// Returns the kind of a set with these members in such a map.
    fn new(holds: Holds, map: SetKind) -> Self {
        match (holds, map) {
            (Holds::Ports, _) => Self::Ports,
            (Holds::TcpPorts, _) => Self::TcpPorts,
            (Holds::UdpPorts, _) => Self::UdpPorts,
            (Holds::SctpPorts, _) => Self::SctpPorts,
            (Holds::Vlans, _) => Self::Vlans,
            (Holds::Macs, _) => Self::Macs,
            (Holds::Hosts, SetKind::Ipv6) => Self::Ipv6Hosts,
            (Holds::Hosts, _) => Self::Ipv4Hosts,
            (Holds::Networks, SetKind::Ipv6) => Self::Ipv6Networks,
            (Holds::Networks, _) => Self::Ipv4Networks,
        }
    }

    fn holds(self) -> Holds {
        match self {
            Self::Ports => Holds::Ports,
            Self::TcpPorts => Holds::TcpPorts,
            Self::UdpPorts => Holds::UdpPorts,
            Self::SctpPorts => Holds::SctpPorts,
            Self::Vlans => Holds::Vlans,
            Self::Macs => Holds::Macs,
            Self::Ipv4Hosts | Self::Ipv6Hosts => Holds::Hosts,
            Self::Ipv4Networks | Self::Ipv6Networks => Holds::Networks,
        }
    }

    fn map(self) -> SetKind {
        match self {
            Self::Ports | Self::TcpPorts | Self::UdpPorts | Self::SctpPorts | Self::Vlans => SetKind::Numbers,
            Self::Macs => SetKind::Macs,
            Self::Ipv4Hosts | Self::Ipv4Networks => SetKind::Ipv4,
            Self::Ipv6Hosts | Self::Ipv6Networks => SetKind::Ipv6,
        }
    }
}
