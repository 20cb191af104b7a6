//! The table of sockets.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt as _};
use weir_packet::protocol;

use crate::chain::{Chain, Link};
use crate::key::{Address, End, Key};
use crate::socket::{Name, Socket};
use crate::{Counts, Settings, Side, Sighting};

/// All sockets that are remembered.
#[derive(Debug)]
pub(crate) struct Sockets {
    settings: Settings,
    sockets: Vec<Socket>,
    free: Vec<u32>,
    cookies: HashMap<u64, u32>,
    names: HashMap<Key, Chain>,
    /// Which goes next.
    turns: BTreeSet<((bool, u64), u32)>,
    /// How many sockets each namespace has.
    namespaces: HashMap<u64, usize>,
    counts: Counts,
    /// From this time on, open sockets were forgotten.
    forgotten_from: u64,
    /// Before this time, packets may be of sockets that were closed and are forgotten.
    forgotten_until: u64,
}

/// A packet's ends, as sockets are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) at: u64,
    pub(crate) side: Side,
    pub(crate) protocol: u8,
    pub(crate) local: End,
    pub(crate) remote: End,
    /// It goes to all sockets with its port.
    pub(crate) is_to_many: bool,
    /// It begins a connection.
    pub(crate) begins: bool,
}

/// A socket that a packet may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) socket: u32,
    /// It listens for the connection that the packet is of.
    pub(crate) listens: bool,
}

impl Match {
    fn connected(link: &Link) -> Self {
        Self { socket: link.socket, listens: false }
    }
}

impl Sockets {
    pub(crate) fn new(settings: &Settings) -> Self {
        let most = settings.sockets.clamp(1, u32::MAX as usize);
        Self {
            settings: Settings { sockets: most, ..*settings },
            sockets: Vec::new(),
            free: Vec::new(),
            cookies: HashMap::new(),
            names: HashMap::new(),
            turns: BTreeSet::new(),
            namespaces: HashMap::new(),
            counts: Counts::default(),
            forgotten_from: u64::MAX,
            forgotten_until: 0,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { known: self.cookies.len() as u64, ..self.counts }
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> &Socket {
        &self.sockets[place as usize]
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> &mut Socket {
        &mut self.sockets[place as usize]
    }

    /// Returns the namespaces that have sockets.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = u64> {
        self.namespaces.keys().copied()
    }

    /// Returns whether a packet of this time may be of a socket that was forgotten.
    pub(crate) fn may_have_forgotten(&self, at: u64) -> bool {
        at >= self.forgotten_from || at < self.forgotten_until
    }

    /// Takes in a sighting, but for its process, and returns its socket's place. A socket that had to go, at time `now`, is handed over.
    pub(crate) fn see(&mut self, now: u64, sighting: &Sighting, gone: &mut impl FnMut(&Socket)) -> u32 {
        let place = match self.cookies.get(&sighting.socket) {
            Some(&place) => place,
            None => {
                if self.cookies.len() == self.settings.sockets {
                    self.forget(now, gone);
                }
                self.add(Socket::new(sighting))
            }
        };
        let socket = &mut self.sockets[place as usize];
        let turn = socket.turn();
        if socket.see(sighting) {
            let old = socket.rename();
            self.relink(place, &old);
        }
        let new = self.sockets[place as usize].turn();
        if new != turn {
            self.turns.remove(&(turn, place));
            self.turns.insert((new, place));
        }
        place
    }

    fn add(&mut self, socket: Socket) -> u32 {
        let (cookie, namespace, turn) = (socket.cookie, socket.namespace, socket.turn());
        let place = match self.free.pop() {
            Some(place) => {
                self.sockets[place as usize] = socket;
                place
            }
            None => {
                self.sockets.push(socket);
                u32::try_from(self.sockets.len() - 1).expect("there are at most so many")
            }
        };
        self.counts.sockets += 1;
        self.cookies.insert(cookie, place);
        self.turns.insert((turn, place));
        *self.namespaces.entry(namespace).or_default() += 1;
        place
    }

    /// Forgets the socket that was closed longest ago; if none is closed, the oldest.
    fn forget(&mut self, now: u64, gone: &mut impl FnMut(&Socket)) {
        let Some(((is_open, since), place)) = self.turns.pop_first() else { return };
        let socket = &mut self.sockets[place as usize];
        gone(socket);
        let (cookie, namespace) = (socket.cookie, socket.namespace);
        if is_open {
            self.counts.forgotten_open += 1;
            self.forgotten_from = self.forgotten_from.min(socket.from());
        } else {
            if now.saturating_sub(since) <= self.settings.linger {
                self.counts.forgotten_closed += 1;
            }
            let until = since.saturating_add(self.settings.linger).saturating_add(1);
            self.forgotten_until = self.forgotten_until.max(until);
        }
        for name in socket.take_names() {
            self.unlink(place, &name);
        }
        self.cookies.remove(&cookie);
        if let Some(count) = self.namespaces.get_mut(&namespace) {
            *count -= 1;
            if *count == 0 {
                self.namespaces.remove(&namespace);
            }
        }
        self.free.push(place);
    }

    fn relink(&mut self, place: u32, old: &[Name]) {
        if self.sockets[place as usize].names() == old {
            return;
        }
        for name in old {
            self.unlink(place, name);
        }
        for name in self.sockets[place as usize].names() {
            let link = Link::new(place, name);
            self.names.entry(name.key).and_modify(|chain| chain.add(link)).or_insert(Chain::One(link));
        }
    }

    fn unlink(&mut self, place: u32, name: &Name) {
        let link = Link::new(place, name);
        if let Some(chain) = self.names.get_mut(&name.key)
            && chain.remove(&link)
        {
            self.names.remove(&name.key);
        }
    }

    /// Returns the socket that has exactly these ends.
    #[inline]
    pub(crate) fn exactly(&self, key: &Key, at: u64) -> Option<u32> {
        let link = self.names.get(key)?.latest(at)?;
        (at <= link.end).then_some(link.socket)
    }

    /// Tells `answer` each socket of a namespace that a packet may be of; all of those that fit best.
    #[inline]
    pub(crate) fn find(&self, namespace: u64, asked: &Asked, answer: &mut impl FnMut(Match)) {
        let key = Key::packet(namespace, asked.protocol, asked.local, asked.remote);
        if !asked.is_to_many
            && let Some(socket) = self.exactly(&key, asked.at)
        {
            // No other can have these ends now.
            return answer(Match { socket, listens: false });
        }
        self.find_others(namespace, asked, key, answer);
    }

    #[inline(never)]
    fn find_others(&self, namespace: u64, asked: &Asked, key: Key, answer: &mut impl FnMut(Match)) {
        let (at, local) = (asked.at, asked.local);
        let chains = [key, key.any_address()].map(|key| self.names.get(&key));
        let ports = self.names.get(&Key::port(namespace, asked.protocol, local.port));
        let ports = ports.filter(|_| local.port != 0);
        if asked.is_to_many {
            let all = chains.into_iter().flatten().chain(ports);
            let there = |link: &&Link| link.from <= at && at <= link.end;
            all.flat_map(|chain| {
                let (known, later) = chain.around(at);
                known.chain(later)
            })
            .filter(there)
            .filter(|link| link.takes.fit(local.address).is_some())
            .filter(|link| !self.get(link.socket).has_connections())
            .for_each(|link| answer(Match::connected(link)));
            return;
        }
        if let Some(link) = connected(&chains, at, local.address) {
            return answer(Match::connected(link));
        }
        // After its end, a connection still has packets; but nothing begins there, and datagrams go to those that are open.
        let ended = chains.into_iter().flatten().filter_map(|chain| self.ended(chain, at, local.address));
        let ended = ended.max_by_key(|link| link.end).filter(|_| !asked.begins);
        if let Some(link) = ended.filter(|_| asked.protocol == protocol::TCP) {
            return answer(Match::connected(link));
        }
        let mut found = false;
        if let Some(chain) = ports {
            self.find_ports(chain, at, local.address, &mut |matched| {
                found = true;
                answer(matched);
            });
        }
        if found {
            return;
        }
        let sent = || {
            let chain = ports.filter(|_| asked.side == Side::Sender)?;
            let link = self.ended(chain, at, local.address)?;
            (!self.get(link.socket).has_connections()).then_some(link)
        };
        if let Some(link) = ended.or_else(sent) {
            answer(Match::connected(link));
        }
    }

    /// Tells `answer` each socket without another end that gets what comes to an address of its port.
    pub(crate) fn find_listeners(&self, namespace: u64, asked: &Asked, answer: &mut impl FnMut(Match)) {
        let local = asked.local;
        if let Some(chain) = self.names.get(&Key::port(namespace, asked.protocol, local.port)) {
            self.find_ports(chain, asked.at, local.address, answer);
        }
    }

    fn find_ports(&self, chain: &Chain, at: u64, address: Address, answer: &mut impl FnMut(Match)) {
        let fit = |link: &Link| {
            if at > link.end || link.from > at {
                return None;
            }
            let socket = self.get(link.socket);
            if socket.has_connections() && !socket.listens(at) {
                return None;
            }
            link.takes.fit(address)
        };
        let mut tell = |links: &mut dyn Iterator<Item = &Link>, best: u8| {
            for link in links.filter(|link| fit(link) == Some(best)) {
                let listens = self.get(link.socket).has_connections();
                answer(Match { socket: link.socket, listens });
            }
        };
        // What is known is before what became known later.
        let (mut known, mut later) = chain.around(at);
        if let Some(best) = known.clone().filter_map(fit).max() {
            tell(&mut known, best);
        } else if let Some(best) = later.clone().filter_map(fit).max() {
            tell(&mut later, best);
        }
    }

    /// Returns the socket of a chain that was closed, or got other ends, last before a time, but not too long before it.
    fn ended<'a>(&self, chain: &'a Chain, at: u64, address: Address) -> Option<&'a Link> {
        let lingers = |link: &&Link| {
            link.end < at && at - link.end <= self.settings.linger && link.takes.fit(address).is_some()
        };
        chain.around(at).0.filter(lingers).max_by_key(|link| link.end)
    }

    /// Returns how much there is of each.
    #[cfg(test)]
    pub(crate) fn lengths(&self) -> [usize; 5] {
        let names = self.cookies.values().map(|place| self.get(*place).names().len()).sum();
        let linked: usize =
            self.names.values().map(|chain| chain.around(0).0.count() + chain.around(0).1.count()).sum();
        assert_eq!(linked, names, "each name leads to its socket");
        [self.sockets.len(), self.cookies.len(), names, self.turns.len(), self.namespaces.len()]
    }

    /// Returns whether a socket is connected to the other end, but nobody has told its port.
    pub(crate) fn is_unsettled(&self, namespace: u64, asked: &Asked) -> bool {
        let (at, local) = (asked.at, asked.local);
        let key = Key::remote(namespace, asked.protocol, asked.remote);
        self.names.get(&key).is_some_and(|chain| {
            let (known, later) = chain.around(at);
            let lingers =
                |link: &&Link| link.from <= at && at <= link.end.saturating_add(self.settings.linger);
            known.chain(later).filter(lingers).any(|link| link.takes.fit(local.address).is_some())
        })
    }

    /// Returns whether a socket has exactly these ends.
    pub(crate) fn is_connected(&self, namespace: u64, asked: &Asked) -> bool {
        let local = asked.local;
        let key = Key::packet(namespace, asked.protocol, local, asked.remote);
        let chains = [key, key.any_address()].map(|key| self.names.get(&key));
        connected(&chains, asked.at, local.address).is_some()
    }

    /// Tells `answer` each raw socket of a namespace that may have sent a packet of this protocol from its own address, or gets a copy.
    pub(crate) fn find_raw(
        &self,
        namespace: u64,
        protocol: u8,
        at: u64,
        side: Side,
        own: Address,
        answer: &mut impl FnMut(u32),
    ) {
        /// `IPPROTO_RAW`, with which packets of any protocol are sent, and none received (raw(7)).
        const ANY: u8 = 255;
        let any = (side == Side::Sender && protocol != ANY).then_some(ANY);
        for protocol in [Some(protocol), any].into_iter().flatten() {
            let Some(chain) = self.names.get(&Key::raw(namespace, protocol)) else { continue };
            let links = chain.around(at).0;
            links
                .filter(|link| at <= link.end && link.takes.fit(own).is_some())
                .for_each(|link| answer(link.socket));
        }
    }
}

/// Returns the socket that has both ends at a time, of those with exactly its own address and those with any.
fn connected<'a>(chains: &[Option<&'a Chain>; 2], at: u64, address: Address) -> Option<&'a Link> {
    let fits = |link: &&Link| at <= link.end && link.takes.fit(address).is_some();
    let chains = || chains.iter().copied().flatten();
    let known = chains().find_map(|chain| chain.around(at).0.find(fits));
    // Those whose ends became known later.
    known.or_else(|| chains().find_map(|chain| chain.around(at).1.filter(|link| link.from <= at).find(fits)))
}
