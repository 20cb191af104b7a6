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
use weir_filter::set::Contents;
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

/// What the members of a set are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// Ports, VLANs.
    Numbers,
    /// MAC addresses.
    Macs,
    /// IPv4 networks.
    Ipv4,
    /// IPv6 networks.
    Ipv6,
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

impl LiveSet {
    /// Changes it: `text` lists members as a file of a set does. Members of the other family are of no effect.
    ///
    /// # Errors
    ///
    /// A member that is none, no privilege, no room.
    pub fn change(self, change: SetChange, text: &str, names: &dyn Names) -> Result<Changed, Error> {
        let SetLabel { name, kind } = self.label;
        let like = match kind {
            MemberKind::Numbers => Contents::Numbers(Vec::new()),
            MemberKind::Macs => Contents::Macs(Vec::new()),
            MemberKind::Ipv4 => Contents::Ipv4(Vec::new()),
            MemberKind::Ipv6 => Contents::Ipv6(Vec::new()),
        };
        let members = parse::members(text, &like, names)
            .map_err(|error| Error::Options(format!("members of `@{name}`: {}", error.message)))?;
        let map = SetMap::received(name, kind.into(), self.descriptor)?;
        let members = members.iter().find(|members| SetKind::of(members) == map.kind());
        Ok(map.change(change, members.expect("members of this kind were asked for"))?)
    }
}

/// The label of a set, and a descriptor of its map.
pub(crate) type Labelled = (SetLabel, OwnedFd);

/// The sets of the filter at a place, shared by all who exchange it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveSets(Arc<Mutex<Vec<Labelled>>>);

impl LiveSets {
    /// Those of the filter that is there from now on. What they are is for who changes them to check.
    pub(crate) fn put(&self, sets: Vec<Labelled>) {
        *self.lock() = sets;
    }

    /// The labels, with a descriptor for each.
    pub(crate) fn labelled(&self) -> Result<Vec<Labelled>, Error> {
        Ok(duplicated(self.lock().iter().map(|(label, map)| (label, map)))?)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Labelled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sets that have a name, by which they can be changed.
pub(crate) fn labelled(sets: &[SetMap]) -> Result<Vec<Labelled>, CallError> {
    let named = sets.iter().filter_map(|set| Some((set.name()?, set)));
    let labelled = |(name, set): (&str, &SetMap)| {
        Ok((SetLabel { name: name.to_owned(), kind: set.kind().into() }, set.descriptor()?))
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

impl From<SetKind> for MemberKind {
    fn from(kind: SetKind) -> Self {
        match kind {
            SetKind::Numbers => Self::Numbers,
            SetKind::Macs => Self::Macs,
            SetKind::Ipv4 => Self::Ipv4,
            SetKind::Ipv6 => Self::Ipv6,
        }
    }
}

impl From<MemberKind> for SetKind {
    fn from(kind: MemberKind) -> Self {
        match kind {
            MemberKind::Numbers => Self::Numbers,
            MemberKind::Macs => Self::Macs,
            MemberKind::Ipv4 => Self::Ipv4,
            MemberKind::Ipv6 => Self::Ipv6,
        }
    }
}
