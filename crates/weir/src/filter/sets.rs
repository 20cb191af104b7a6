//! Sets of the filters in force, which change while they run.
//!
//! A capture may not be permitted to change a map, but it may give somebody else a descriptor: who asks for a change makes it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
pub use weir_bpf::filter::{Changed, SetChange};
use weir_bpf::filter::{SetKind, SetMap};
use weir_filter::names::Names;
use weir_filter::parse;
use weir_filter::set::{Contents, Holds, SetName};
use weir_sys::CallError;

use super::Program;
use crate::Error;

/// What is known of a set beside its map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLabel {
    /// What the expression calls it, without `@`.
    pub name: String,
    /// What its members are.
    pub kind: MemberKind,
}

/// What the members of a set are, and how the words are read that list them. A set of addresses is two: one a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// Of `port in`.
    Ports,
    /// Of `tcp port in`.
    TcpPorts,
    /// Of `udp port in`.
    UdpPorts,
    /// Of `sctp port in`.
    SctpPorts,
    /// Of `vlan in`.
    Vlans,
    /// Of `ether host in`.
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

/// A set of a filter that is in force.
#[derive(Debug)]
pub struct LiveSet {
    /// Number of the interface.
    pub interface: u32,
    /// What it is.
    pub label: SetLabel,
    /// Its map.
    pub descriptor: OwnedFd,
}

/// Members for a set.
#[derive(Clone, Debug)]
pub struct Members(Vec<Contents>);

impl SetLabel {
    /// Reads what `text` lists, as in the file of such a set.
    ///
    /// # Errors
    ///
    /// A member that is none.
    pub fn members(&self, text: &str, names: &dyn Names) -> Result<Members, Error> {
        let read = parse::members(text, self.kind.holds(), names);
        let wrong = |error: weir_filter::Error| format!("members of `@{}`: {}", self.name, error.message);
        read.map(Members).map_err(|error| Error::Options(wrong(error)))
    }
}

impl LiveSet {
    /// Changes it. `members` are what its label has read; those of the other family are of no effect.
    ///
    /// # Errors
    ///
    /// No privilege, no room: then some may have changed.
    ///
    /// # Panics
    ///
    /// If the members are of another kind.
    pub fn change(self, change: SetChange, Members(members): &Members) -> Result<Changed, Error> {
        let map = SetMap::received(self.label.kind.map(), self.descriptor)?;
        let members = members.iter().find(|members| SetKind::of(members) == map.kind());
        Ok(map.change(change, members.expect("members of the set's kind"))?)
    }
}

/// The label of a set, and a descriptor of its map.
pub(crate) type Labelled = (SetLabel, OwnedFd);

/// The filter in force at a place, with its sets; shared by all who exchange it. What the sets are is for who changes them to
/// check.
#[derive(Debug, Default)]
pub(crate) struct InForce<T>(Arc<Mutex<(T, Vec<Labelled>)>>);

impl<T> InForce<T> {
    /// This one comes into force; gives the one before.
    pub(crate) fn replace(&self, filter: (T, Vec<Labelled>)) -> (T, Vec<Labelled>) {
        std::mem::replace(&mut *self.lock(), filter)
    }

    /// What it is.
    pub(crate) fn ask<R>(&self, question: impl FnOnce(&T) -> R) -> R {
        question(&self.lock().0)
    }

    /// The labels of its sets, with a descriptor for each.
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

/// The sets that have a name, by which they can be changed.
pub(crate) fn labelled(sets: &[SetMap]) -> Result<Vec<Labelled>, CallError> {
    let named = sets.iter().filter_map(|set| Some((set.name()?, set)));
    let labelled = |(name, set): (&SetName, &SetMap)| {
        let kind = MemberKind::new(name.holds, set.kind());
        Ok((SetLabel { name: name.text.clone(), kind }, set.descriptor()?))
    };
    named.map(labelled).collect::<io::Result<_>>().map_err(|error| CallError::new(DUPLICATE, error))
}

impl Program {
    /// The descriptors of its programs.
    pub(crate) fn programs(&self) -> &[OwnedFd] {
        &self.descriptors[..self.descriptors.len().saturating_sub(self.sets.len())]
    }

    /// Its sets.
    pub(crate) fn labelled(&self) -> Result<Vec<Labelled>, CallError> {
        duplicated(self.sets.iter().zip(&self.descriptors[self.programs().len()..]))
    }
}

const DUPLICATE: &str = "duplicate a descriptor";

fn duplicated<'a>(
    sets: impl Iterator<Item = (&'a SetLabel, &'a OwnedFd)>,
) -> Result<Vec<Labelled>, CallError> {
    let one = |(label, map): (&SetLabel, &OwnedFd)| Ok((label.clone(), map.try_clone()?));
    sets.map(one).collect::<io::Result<_>>().map_err(|error| CallError::new(DUPLICATE, error))
}

impl MemberKind {
    /// Of a set that is read so and is in such a map.
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
