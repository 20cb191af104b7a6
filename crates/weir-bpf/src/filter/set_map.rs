//! Sets as the kernel's maps.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use weir_filter::set::{Contents, Set};
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};

/// A set in the kernel. Members come and go while filters look into it; each change is seen at once.
#[derive(Debug)]
pub struct SetMap {
    name: Option<String>,
    map: Map,
}

/// Members that a set with a name has room for; one without is not changed.
const ROOM: u32 = 100_000;

impl SetMap {
    /// Makes the map of `set`, with its members.
    ///
    /// # Errors
    ///
    /// No privilege, no memory.
    pub fn new(set: &Set) -> Result<Self, CallError> {
        let kind = match set.contents {
            Contents::Numbers(_) | Contents::Macs(_) => MapKind::Hash,
            Contents::Ipv4(_) | Contents::Ipv6(_) => MapKind::Trie,
        };
        let members = u32::try_from(set.len()).unwrap_or(u32::MAX).max(1);
        let room = if set.name.is_some() { members.max(ROOM) } else { members };
        let map = Map::new(kind, key_bytes(&set.contents), 1, room)?;
        let map = Self { name: set.name.clone(), map };
        map.add(&set.contents)?;
        Ok(map)
    }

    /// What the expression calls it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Adds members; those that are there already stay.
    ///
    /// # Errors
    ///
    /// `E2BIG` or `ENOSPC`: it is full, and the members up to there are in it.
    pub fn add(&self, members: &Contents) -> Result<(), CallError> {
        let keys = keys(members);
        let values = vec![1; members_in(members)];
        self.map.update_all(&keys, &values)
    }

    /// Takes members out. A prefix goes as a whole, and only if it is a member itself.
    ///
    /// # Errors
    ///
    /// What the kernel says; not that a member is not there.
    pub fn remove(&self, members: &Contents) -> Result<(), CallError> {
        let size = key_bytes(members) as usize;
        keys(members).chunks_exact(size).try_for_each(|key| self.map.remove(key))
    }

    /// Makes the members `new` where they were `old`: what is in both never goes.
    ///
    /// # Errors
    ///
    /// As [`SetMap::add`].
    pub fn replace(&self, old: &Contents, new: &Contents) -> Result<(), CallError> {
        self.remove(&without(old, new))?;
        self.add(&without(new, old))
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

/// Bytes of a key, as `weir_filter::emit::ebpf::Symbol::Set` lays it out.
fn key_bytes(contents: &Contents) -> u32 {
    match contents {
        Contents::Numbers(_) => 4,
        Contents::Macs(_) => 8,
        Contents::Ipv4(_) => 4 + 4,
        Contents::Ipv6(_) => 4 + 16,
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

/// The keys one behind the other.
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

/// The members of `these` that are not among `those`, which are of the same kind.
fn without(these: &Contents, those: &Contents) -> Contents {
    fn left<T: Copy + Eq + std::hash::Hash>(these: &[T], those: &[T]) -> Vec<T> {
        let those: std::collections::HashSet<&T> = those.iter().collect();
        these.iter().filter(|member| !those.contains(member)).copied().collect()
    }
    match (these, those) {
        (Contents::Numbers(these), Contents::Numbers(those)) => Contents::Numbers(left(these, those)),
        (Contents::Macs(these), Contents::Macs(those)) => Contents::Macs(left(these, those)),
        (Contents::Ipv4(these), Contents::Ipv4(those)) => Contents::Ipv4(left(these, those)),
        (Contents::Ipv6(these), Contents::Ipv6(those)) => Contents::Ipv6(left(these, those)),
        _ => these.clone(),
    }
}
