//! Sets as kernel maps.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use weir_filter::set::{Contents, Set, SetName};
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};

/// A set in the kernel. Members can change while filters use it; changes take effect at once.
#[derive(Debug)]
pub struct SetMap {
    name: Option<SetName>,
    kind: SetKind,
    map: Map,
}

/// The kind of a set's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Ports and other small numbers.
    Numbers,
    /// MAC addresses.
    Macs,
    /// IPv4 networks.
    Ipv4,
    /// IPv6 networks.
    Ipv6,
}

impl SetKind {
    /// Returns the kind of these members.
    pub fn of(contents: &Contents) -> Self {
        match contents {
            Contents::Numbers(_) => Self::Numbers,
            Contents::Macs(_) => Self::Macs,
            Contents::Ipv4(_) => Self::Ipv4,
            Contents::Ipv6(_) => Self::Ipv6,
        }
    }

    fn map(self) -> MapKind {
        match self {
            Self::Numbers | Self::Macs => MapKind::Hash,
            Self::Ipv4 | Self::Ipv6 => MapKind::Trie,
        }
    }

    /// Returns the size of a key in bytes; `weir_filter::emit::ebpf::Symbol::Set` defines the layout.
    fn key_bytes(self) -> u32 {
        match self {
            Self::Numbers => 4,
            Self::Macs => 8,
            Self::Ipv4 => 4 + 4,
            Self::Ipv6 => 4 + 16,
        }
    }
}

/// A change to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// Adds these members.
    Add,
    /// Removes these members. Only exact members are removed: a prefix goes as a whole.
    Remove,
    /// Makes these the only members. Those already in the set stay there throughout.
    Replace,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Members that were not in the set before.
    pub added: usize,
    /// Members that are no longer in the set.
    pub removed: usize,
}

/// Members that a named set has room for. Unnamed sets never change.
const ROOM: u32 = 100_000;

impl SetMap {
    /// Creates the map of `set`, with its members.
    ///
    /// # Errors
    ///
    /// Missing privileges, or no memory.
    pub fn new(set: &Set) -> Result<Self, CallError> {
        let kind = SetKind::of(&set.contents);
        let members = u32::try_from(set.len()).unwrap_or(u32::MAX).max(1);
        let room = if set.name.is_some() { members.max(ROOM) } else { members };
        let map = Map::new(kind.map(), kind.key_bytes(), 1, room)?;
        let map = Self { name: set.name.clone(), kind, map };
        map.add(&set.contents)?;
        Ok(map)
    }

    /// Wraps a map that another process has created; the name is unknown.
    ///
    /// # Errors
    ///
    /// `EINVAL`: this is a different kind of map, or none.
    pub fn received(kind: SetKind, map: OwnedFd) -> Result<Self, CallError> {
        Ok(Self { name: None, kind, map: Map::received(map, kind.map(), kind.key_bytes(), 1)? })
    }

    /// Returns the kind of the set's members.
    pub fn kind(&self) -> SetKind {
        self.kind
    }

    /// Returns a new descriptor of the map, for another holder.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.map.as_fd().try_clone_to_owned()
    }

    /// Changes the set, and returns what changed. Members are added before others are removed.
    ///
    /// # Errors
    ///
    /// The errors of [`SetMap::add`].
    ///
    /// # Panics
    ///
    /// If the members are of another kind.
    pub fn change(&self, change: SetChange, members: &Contents) -> Result<Changed, CallError> {
        assert_eq!(self.kind, SetKind::of(members), "members are of the set's kind");
        let there = self.map.keys()?;
        let named = keys(members);
        let named: HashSet<&[u8]> = named.chunks_exact(self.kind.key_bytes() as usize).collect();
        let added = match change {
            SetChange::Remove => Vec::new(),
            SetChange::Add | SetChange::Replace => {
                named.iter().filter(|&&key| !there.contains(key)).copied().collect()
            }
        };
        let removed: Vec<&Vec<u8>> = there
            .iter()
            .filter(|key| match change {
                SetChange::Add => false,
                SetChange::Remove => named.contains(key.as_slice()),
                SetChange::Replace => !named.contains(key.as_slice()),
            })
            .collect();
        self.map.update_all(&added.concat(), &vec![1; added.len()])?;
        removed.iter().try_for_each(|key| self.map.remove(key))?;
        Ok(Changed { added: added.len(), removed: removed.len() })
    }

    /// Returns the set's name, if any.
    pub fn name(&self) -> Option<&SetName> {
        self.name.as_ref()
    }

    /// Adds members; existing members stay.
    ///
    /// # Errors
    ///
    /// `E2BIG` or `ENOSPC`: the set is full. It contains the members that still had room.
    pub fn add(&self, members: &Contents) -> Result<(), CallError> {
        let keys = keys(members);
        let values = vec![1; members_in(members)];
        self.map.update_all(&keys, &values)
    }
}

impl AsFd for SetMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl AsRawFd for SetMap {
    fn as_raw_fd(&self) -> RawFd {
        self.map.as_raw_fd()
    }
}

fn members_in(contents: &Contents) -> usize {
    match contents {
        Contents::Numbers(members) => members.len(),
        Contents::Macs(members) => members.len(),
        Contents::Ipv4(members) => members.len(),
        Contents::Ipv6(members) => members.len(),
    }
}

/// Returns the members' keys, concatenated.
fn keys(contents: &Contents) -> Vec<u8> {
    fn prefix(bits: u8, words: &[u32]) -> Vec<u8> {
        let mut key = u32::from(bits).to_ne_bytes().to_vec();
        key.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        key
    }
    match contents {
        Contents::Numbers(members) => members.iter().flat_map(|number| number.to_ne_bytes()).collect(),
        Contents::Macs(members) => members.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect(),
        Contents::Ipv4(members) => members.iter().flat_map(|net| prefix(net.bits, &net.key)).collect(),
        Contents::Ipv6(members) => members.iter().flat_map(|net| prefix(net.bits, &net.key)).collect(),
    }
}
