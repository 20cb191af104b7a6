//! The sockets that are found by the same key, one after the other or at once.

use crate::key::Takes;
use crate::socket::Name;

/// Sockets of one key that a look at it goes through, from the time asked for on: more hardly ever have the same ends, or share a port.
const MOST_LOOKED_AT: usize = 1024;

/// A socket, and when it is found by this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) socket: u32,
    pub(crate) takes: Takes,
    pub(crate) from: u64,
    pub(crate) known: u64,
    pub(crate) end: u64,
}

impl Link {
    pub(crate) fn new(socket: u32, name: &Name) -> Self {
        let Name { takes, from, known, end, .. } = *name;
        Self { socket, takes, from, known, end }
    }
}

/// Links, by when they are known to hold. Most keys have one.
#[derive(Clone, Debug)]
pub(crate) enum Chain {
    One(Link),
    More(Vec<Link>),
}

impl Chain {
    pub(crate) fn add(&mut self, link: Link) {
        match self {
            Self::One(first) => {
                let mut links = vec![*first, link];
                links.sort_by_key(|link| link.known);
                *self = Self::More(links);
            }
            Self::More(links) => {
                let index = links.partition_point(|other| other.known <= link.known);
                links.insert(index, link);
            }
        }
    }

    /// Returns whether none is left.
    pub(crate) fn remove(&mut self, link: &Link) -> bool {
        match self {
            Self::One(_) => true,
            Self::More(links) => {
                let index = links.partition_point(|other| other.known < link.known);
                if let Some(found) = links[index..].iter().position(|other| other == link) {
                    links.remove(index + found);
                }
                if let [last] = links[..] {
                    *self = Self::One(last);
                }
                false
            }
        }
    }

    fn links(&self) -> &[Link] {
        match self {
            Self::One(link) => std::slice::from_ref(link),
            Self::More(links) => links,
        }
    }

    /// Returns the latest that is known at a time.
    #[inline]
    pub(crate) fn latest(&self, at: u64) -> Option<&Link> {
        match self {
            Self::One(link) => (link.known <= at).then_some(link),
            Self::More(_) => self.around(at).0.next(),
        }
    }

    /// Returns those that are known at a time, the latest first, and those that are known only later, the first first.
    #[inline]
    pub(crate) fn around(
        &self,
        at: u64,
    ) -> (impl Iterator<Item = &Link> + Clone, impl Iterator<Item = &Link> + Clone) {
        let (known, later) = self.links().split_at(self.links().partition_point(|link| link.known <= at));
        (known.iter().rev().take(MOST_LOOKED_AT), later.iter().take(MOST_LOOKED_AT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_in_the_order_in_which_they_are_known() {
        let link = |socket: u32, known: u64| Link { socket, takes: Takes::V4, from: 0, known, end: 9 };
        let mut chain = Chain::One(link(0, 5));
        for (socket, known) in [(1, 3), (2, 7), (3, 5)] {
            chain.add(link(socket, known));
        }
        let around = |chain: &Chain, at| {
            let (known, later) = chain.around(at);
            let [known, later] =
                [known.map(|link| link.socket).collect::<Vec<_>>(), later.map(|link| link.socket).collect()];
            (known, later)
        };
        assert_eq!(around(&chain, 6), (vec![3, 0, 1], vec![2]));
        assert_eq!(around(&chain, 4), (vec![1], vec![0, 3, 2]));
        assert!(!chain.remove(&link(0, 5)));
        assert_eq!(around(&chain, 9), (vec![2, 3, 1], vec![]));
        assert!(!chain.remove(&link(1, 3)) && !chain.remove(&link(2, 7)));
        assert!(matches!(chain, Chain::One(Link { socket: 3, .. })));
        assert!(chain.remove(&link(3, 5)));
    }
}
