//! Two namespaces and the veth pairs between them.

use std::sync::Arc;

use weir_sys::ethtool::Ethtool;
use weir_sys::link::Links;
use weir_sys::netns::NetNs;
use weir_sys::pair::{Pair, Port, Veth, silence};
use weir_sys::veth;

use crate::borrowed::Borrowed;
use crate::{Error, root};

/// Two network namespaces, `tx` and `rx`, and the pairs between them. They exist until the last reference is dropped.
#[derive(Debug)]
pub struct Network {
    // Dropped first: cards have to leave the namespaces while these exist.
    borrowed: Vec<Borrowed>,
    tx: Arc<NetNs>,
    rx: Arc<NetNs>,
    pairs: Vec<Pair>,
}

impl Network {
    /// Creates the namespaces and a first pair, `tx0` and `rx0`, and waits until it is up.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_SYS_ADMIN`, `CAP_NET_ADMIN`), or the kernel rejects the [`Veth`].
    pub fn new(veth: Veth) -> Result<Self, Error> {
        let mut network = Self::empty()?;
        network.connect(veth)?;
        Ok(network)
    }

    /// Creates a network from two connected network cards in the caller's namespace. They keep their names and are as
    /// silent as a [`Veth`] pair. When the network is dropped they return, and are up or down as before. IP addresses do
    /// not survive the move. If the process is killed, the kernel moves cards to the system's initial namespace.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), or there is no such card.
    pub fn of_cards(tx: &str, rx: &str) -> Result<Self, Error> {
        let mut network = Self::empty()?;
        for (netns, name) in [(&network.tx, tx), (&network.rx, rx)] {
            network.borrowed.push(Borrowed::take(name, netns)?);
            silence(netns, name, false)?;
            netns.run(Links::open)?.bring_up_silent(name)?;
        }
        let port = |netns: &Arc<NetNs>, name: &str| {
            let link = netns.run(|| veth::with_carrier(name))?;
            let mac = link.address.first_chunk().copied().expect("cards have addresses of 6 bytes");
            let (netns, name) = (Arc::clone(netns), name.to_owned());
            // Cards have more queues than they use.
            let used = netns.run(Ethtool::new)?.rx_queues(&name);
            let (index, queues) = (link.index, used.unwrap_or(link.rx_queues));
            Ok::<_, Error>(Port { netns, name, index, mac, ipv4: None, ipv6: None, queues })
        };
        let pair = Pair { tx: port(&network.tx, tx)?, rx: port(&network.rx, rx)? };
        network.pairs.push(pair);
        Ok(network)
    }

    fn empty() -> Result<Self, Error> {
        let (tx, rx) = (Arc::new(root::namespace()?), Arc::new(root::namespace()?));
        let network = Self { borrowed: Vec::new(), tx, rx, pairs: Vec::new() };
        for netns in [&network.tx, &network.rx] {
            netns.run(Links::open)?.bring_up("lo")?;
        }
        Ok(network)
    }

    /// Adds another pair: `tx1` and `rx1`, and so on.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn connect(&mut self, veth: Veth) -> Result<&Pair, Error> {
        let number = u8::try_from(self.pairs.len()).ok().filter(|&number| number < 100);
        let number = number.expect("a network has at most a hundred pairs");
        Error::check_range("number of queues", veth.queues.into(), 1, 4096)?;
        Error::check_range("MTU", veth.mtu.into(), 68, 65_535)?;
        let pair = veth.connect(&self.tx, &self.rx, number)?;
        self.pairs.push(pair);
        Ok(self.pairs.last().expect("just added"))
    }

    /// Returns the sending namespace.
    pub fn tx(&self) -> &NetNs {
        &self.tx
    }

    /// Returns the receiving namespace.
    pub fn rx(&self) -> &NetNs {
        &self.rx
    }

    /// Returns the first pair.
    pub fn pair(&self) -> &Pair {
        &self.pairs[0]
    }

    /// Returns all pairs.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }
}
