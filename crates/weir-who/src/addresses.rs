//! Which addresses namespaces have.

use std::net::IpAddr;

use foldhash::HashMap;

/// Addresses of all namespaces together.
const MOST: usize = 65_536;

/// Whether an address is one of a host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    Yes,
    No,
    /// Nobody has told the addresses.
    Untold,
}

/// The addresses of namespaces.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    namespaces: HashMap<u64, HashMap<IpAddr, Life>>,
    /// In all namespaces.
    len: usize,
    /// An address found no room.
    is_full: bool,
}

/// When an address came and went last, if it did.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    came: Option<u64>,
    went: Option<u64>,
}

impl Life {
    /// Returns whether it is gone. An address may have been there before it was told.
    fn is_gone(self, at: u64) -> bool {
        match (self.came, self.went) {
            (None, None) => true,
            (_, None) => false,
            (came, Some(went)) => at > went && came.is_none_or(|came| came <= went),
        }
    }
}

impl Addresses {
    pub(crate) fn came(&mut self, at: u64, namespace: u64, address: IpAddr) {
        if let Some(life) = self.life(namespace, address) {
            life.came = life.came.max(Some(at));
        }
    }

    pub(crate) fn went(&mut self, at: u64, namespace: u64, address: IpAddr) {
        if let Some(life) = self.life(namespace, address) {
            life.went = life.went.max(Some(at));
        }
    }

    fn life(&mut self, namespace: u64, address: IpAddr) -> Option<&mut Life> {
        let is_known =
            self.namespaces.get(&namespace).is_some_and(|addresses| addresses.contains_key(&address));
        if !is_known {
            if self.len >= MOST {
                self.forget_gone();
            }
            if self.len >= MOST {
                self.is_full = true;
                return None;
            }
            self.len += 1;
        }
        Some(self.namespaces.entry(namespace).or_default().entry(address).or_default())
    }

    fn forget_gone(&mut self) {
        self.namespaces.retain(|_, addresses| {
            addresses.retain(|_, life| !life.is_gone(u64::MAX));
            !addresses.is_empty()
        });
        self.len = self.namespaces.values().map(HashMap::len).sum();
    }

    /// Returns whether a namespace has an address at some time.
    pub(crate) fn is_here(&self, namespace: u64, address: IpAddr, at: u64) -> Here {
        // An unspecified source is that of a host that has no address yet.
        if address.is_loopback() || address.is_unspecified() {
            return Here::Yes;
        }
        match self.namespaces.get(&namespace) {
            None => Here::Untold,
            Some(addresses) => match addresses.get(&address) {
                Some(life) if !life.is_gone(at) => Here::Yes,
                _ if self.is_full => Here::Untold,
                _ => Here::No,
            },
        }
    }

    /// Returns the namespaces whose addresses were told.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = u64> {
        self.namespaces.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: usize) -> IpAddr {
        u32::try_from(number).map(|number| std::net::Ipv4Addr::from(number).into()).expect("small")
    }

    #[test]
    fn an_address_comes_and_goes() {
        let mut addresses = Addresses::default();
        let here = |addresses: &Addresses, at| addresses.is_here(1, address(7), at);
        assert_eq!(here(&addresses, 5), Here::Untold);
        addresses.came(10, 1, address(7));
        assert_eq!([5, 15].map(|at| here(&addresses, at)), [Here::Yes; 2]);
        addresses.went(20, 1, address(7));
        assert_eq!([15, 20, 25].map(|at| here(&addresses, at)), [Here::Yes, Here::Yes, Here::No]);
        addresses.came(30, 1, address(7));
        assert_eq!(here(&addresses, 35), Here::Yes);
        assert_eq!(addresses.is_here(1, address(8), 35), Here::No);
        assert_eq!(addresses.is_here(2, address(7), 35), Here::Untold);
    }

    #[test]
    fn addresses_without_room_make_nothing_foreign() {
        let mut addresses = Addresses::default();
        for number in 1..=MOST {
            addresses.came(1, 1, address(number));
        }
        addresses.went(2, 1, address(1));
        addresses.came(3, 2, address(0x0101_0101));
        assert_eq!(addresses.len, MOST, "one that is gone makes room");
        assert_eq!(addresses.is_here(1, address(1), 3), Here::No);
        addresses.came(4, 2, address(0x0101_0102));
        assert_eq!(addresses.len, MOST);
        assert_eq!(addresses.is_here(1, address(1), 3), Here::Untold);
        assert_eq!(addresses.is_here(1, address(2), 3), Here::Yes);
    }
}
