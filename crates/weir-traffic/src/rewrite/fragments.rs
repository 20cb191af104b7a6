//! The checksum of TCP in fragments so small that it is in another one than the ports.

use std::collections::{HashMap, VecDeque};

use super::Change;

/// How many datagrams are known; the oldest are forgotten. Hosts forget what is incomplete after 30 seconds.
const MOST: usize = 1 << 16;

/// Both addresses as they were in the file, and the identification.
pub(super) type Key = (Vec<u8>, u32);

/// Datagrams of TCP whose first fragment ends before the checksum.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    known: HashMap<Key, Datagram>,
    oldest: VecDeque<Key>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Datagram {
    /// What has changed in the first fragment, once it was seen.
    ports: Option<Change>,
    /// The checksum in the file, once it was seen.
    checksum: Option<u16>,
}

impl Datagrams {
    /// Takes note of what is to change in the ports. Returns whether it may: not if the checksum was there before.
    pub(super) fn ports(&mut self, key: Key, change: Change) -> bool {
        let known = self.get(key);
        let may = !matches!(known, Datagram { ports: None, checksum: Some(_) });
        if may {
            *known = Datagram { ports: Some(change), checksum: None };
        } else {
            known.ports = Some(Change::default());
        }
        may
    }

    /// Returns what has changed in the ports of the datagram that has this checksum.
    pub(super) fn checksum(&mut self, key: Key, checksum: u16) -> Change {
        let known = self.get(key);
        // Another datagram with the same identification.
        if known.checksum.is_some_and(|before| before != checksum) {
            *known = Datagram::default();
        }
        known.checksum = Some(checksum);
        known.ports.unwrap_or_default()
    }

    /// Returns what has changed in the ports of a datagram that is quoted.
    pub(super) fn quoted(&self, key: &Key) -> Change {
        self.known.get(key).and_then(|datagram| datagram.ports).unwrap_or_default()
    }

    fn get(&mut self, key: Key) -> &mut Datagram {
        if !self.known.contains_key(&key) {
            self.oldest.push_back(key.clone());
            if self.oldest.len() > MOST
                && let Some(oldest) = self.oldest.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        self.known.entry(key).or_default()
    }
}
