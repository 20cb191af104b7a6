//! The life of one socket.

use weir_packet::{Endpoint, protocol};

use crate::key::{Key, Takes, destination, plain};
use crate::{Cause, Certainty, Side, Sighting, SocketKind};

/// Accounts of its ends that are remembered: the latest.
const MOST_ENDS: usize = 12;
/// So many may be there that add nothing to others.
const FEW_ENDS: usize = 4;
/// So many are remembered in any case.
const LATEST_ENDS: usize = 2;
/// Acts of processes that are remembered: the latest.
const MOST_ACTS: usize = 16;

/// What is known of a socket.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) cookie: u64,
    pub(crate) namespace: u64,
    kind: SocketKind,
    protocol: u8,
    /// When it was first sighted.
    first: u64,
    /// When it was closed; the end of time: not yet.
    closed: u64,
    /// Since when it takes connections.
    listening: u64,
    was_created: bool,
    was_found: bool,
    was_accepted: bool,
    /// Accounts of its ends, in the order of time.
    ends: Vec<Ends>,
    /// By what it is found.
    names: Vec<Name>,
    /// What processes did with it, in the order of time.
    acts: Vec<Act>,
    /// Acts were forgotten, and with them who had it before this.
    crowded_until: u64,
    /// The one process that has ever had it, and how that is known, whatever time is asked for.
    sole: Option<(Certainty, u32)>,
}

/// An account of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    at: u64,
    local: Endpoint,
    remote: Option<Endpoint>,
    /// It has got its other end just now.
    connects: bool,
}

/// By what a socket is found, for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) key: Key,
    pub(crate) takes: Takes,
    /// Since when it may have had it.
    pub(crate) from: u64,
    /// Since when it is known to have it.
    pub(crate) known: u64,
    /// When it got another one, or was closed.
    pub(crate) end: u64,
}

/// What a process did with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Act {
    at: u64,
    strength: Strength,
    process: u32,
}

/// What an act says about whose packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strength {
    /// The process has used it.
    Used,
    /// The process has made it ready.
    Prepared,
    /// The process has held it before anybody looked.
    Held,
    /// The process listens for what it was made for.
    Listener,
    /// The process was there when something happened to it.
    There,
}

impl Socket {
    pub(crate) fn new(sighting: &Sighting) -> Self {
        Self {
            cookie: sighting.socket,
            namespace: sighting.namespace,
            kind: sighting.kind,
            protocol: sighting.protocol,
            first: sighting.at,
            closed: u64::MAX,
            listening: u64::MAX,
            was_created: false,
            was_found: false,
            was_accepted: false,
            ends: Vec::new(),
            names: Vec::new(),
            acts: Vec::new(),
            crowded_until: 0,
            sole: None,
        }
    }

    /// Returns since when it may have been there.
    pub(crate) fn from(&self) -> u64 {
        if self.was_found && !self.was_created { 0 } else { self.first }
    }

    /// Returns what decides when it is forgotten: those that are closed before others, then by time.
    pub(crate) fn turn(&self) -> (bool, u64) {
        if self.closed < u64::MAX { (false, self.closed) } else { (true, self.first) }
    }

    pub(crate) fn names(&self) -> &[Name] {
        &self.names
    }

    /// Takes its names away, once it is forgotten.
    pub(crate) fn take_names(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.names)
    }

    /// Returns the processes that it names, some of them twice.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.acts.iter().map(|act| act.process)
    }

    /// Returns whether it is one of connections, which gets none without listening.
    pub(crate) fn has_connections(&self) -> bool {
        matches!(self.kind, SocketKind::Stream | SocketKind::Other)
    }

    pub(crate) fn listens(&self, at: u64) -> bool {
        self.listening <= at
    }

    pub(crate) fn was_accepted(&self) -> bool {
        self.was_accepted
    }

    /// Takes in a sighting, but for its process. Returns whether its names may have changed.
    pub(crate) fn see(&mut self, sighting: &Sighting) -> bool {
        let before = (self.from(), self.closed);
        let at = sighting.at;
        self.first = self.first.min(at);
        match sighting.cause {
            Cause::Found => {
                self.was_found = true;
                if self.kind == SocketKind::Stream && sighting.remote.is_none() && sighting.local.port != 0 {
                    self.listening = 0;
                }
            }
            Cause::Created => self.was_created = true,
            Cause::Listening => self.listening = self.listening.min(at),
            Cause::Accepted => self.was_accepted = true,
            // Told twice, it is the later one.
            Cause::Closed if self.closed == u64::MAX => self.closed = at,
            Cause::Closed => self.closed = self.closed.max(at),
            Cause::Bound | Cause::Connecting | Cause::Sent | Cause::Taken | Cause::Established => {}
        }
        self.see_ends(sighting) | (before != (self.from(), self.closed))
    }

    fn see_ends(&mut self, sighting: &Sighting) -> bool {
        let local = plain(sighting.local);
        let remote = match sighting.cause {
            // Of this datagram alone.
            Cause::Sent => None,
            _ => sighting.remote.map(|remote| self.other_end(local, remote)),
        };
        let connects = remote.is_some() && matches!(sighting.cause, Cause::Connecting | Cause::Accepted);
        let ends = Ends { at: sighting.at, local, remote, connects };
        let index = self.ends.partition_point(|other| other.at <= ends.at);
        let is_last = index == self.ends.len();
        self.ends.insert(index, ends);
        let says_nothing_new = is_last && self.repeats().last() == Some(true);
        if self.ends.len() > FEW_ENDS {
            self.forget_ends();
        }
        !says_nothing_new
    }

    /// Forgets an account that adds nothing, or else the first if they are too many. The latest are kept: others may come in between.
    fn forget_ends(&mut self) {
        let old = self.ends.len() - LATEST_ENDS;
        let adds_nothing = self.repeats().take(old).position(|repeats| repeats);
        if let Some(index) = adds_nothing {
            self.ends.remove(index);
        } else if self.ends.len() > MOST_ENDS {
            self.ends.remove(0);
        }
    }

    /// Returns for each account whether it says what those before it do.
    fn repeats(&self) -> impl Iterator<Item = bool> {
        let mut now: Option<Ends> = None;
        self.ends.iter().map(move |next| {
            let then = now.and_then(|now| now.then(next));
            let repeats = then.is_some() && then == now;
            now = Some(then.unwrap_or(*next));
            repeats
        })
    }

    fn other_end(&self, local: Endpoint, remote: Endpoint) -> Endpoint {
        let mut remote = destination(local, plain(remote));
        if matches!(self.protocol, protocol::ICMP | protocol::ICMPV6) {
            remote.port = 0;
        }
        remote
    }

    /// Takes in what a process did. Returns the processes of acts that are no longer remembered, each as often as it was.
    pub(crate) fn act(&mut self, at: u64, cause: Cause, process: u32) -> [Option<u32>; 2] {
        let strength = match cause {
            Cause::Connecting | Cause::Sent | Cause::Taken => Strength::Used,
            Cause::Created | Cause::Bound | Cause::Listening => Strength::Prepared,
            Cause::Found => Strength::Held,
            Cause::Accepted => Strength::Listener,
            Cause::Established | Cause::Closed => Strength::There,
        };
        let mut forgotten = [None; 2];
        if strength != Strength::Used {
            // The first one says it.
            let is_same = |other: &Act| other.strength == strength && other.process == process;
            if let Some(index) = self.acts.iter().position(is_same) {
                if self.acts[index].at <= at {
                    return [Some(process), None];
                }
                self.acts.remove(index);
                forgotten[0] = Some(process);
            }
        }
        let index = self.acts.partition_point(|other| other.at <= at);
        self.acts.insert(index, Act { at, strength, process });
        if self.acts.len() > MOST_ACTS {
            forgotten[1] = Some(self.forget_act().process);
        }
        self.sole = self.find_sole();
        forgotten
    }

    /// Forgets an act that says what the one before it does, or else the first.
    fn forget_act(&mut self) -> Act {
        let mut used = None;
        for index in 0..self.acts.len() {
            let act = self.acts[index];
            if act.strength != Strength::Used {
                continue;
            }
            if used == Some(act.process) {
                return self.acts.remove(index);
            }
            used = Some(act.process);
        }
        let first = self.acts.remove(0);
        self.crowded_until = self.acts[0].at;
        first
    }

    fn find_sole(&self) -> Option<(Certainty, u32)> {
        if self.crowded_until > 0 {
            return None;
        }
        let has = |strength: Strength| self.acts.iter().any(|act| act.strength == strength);
        let is_used = has(Strength::Used) || has(Strength::Prepared);
        let (certainty, strengths) = match (is_used, has(Strength::Held)) {
            (true, true) => return None,
            (true, false) => (Certainty::Certain, [Strength::Used, Strength::Prepared]),
            (false, true) => (Certainty::Before, [Strength::Held; 2]),
            (false, false) => (Certainty::Listener, [Strength::Listener; 2]),
        };
        let mut processes =
            self.acts.iter().filter(|act| strengths.contains(&act.strength)).map(|act| act.process);
        let first = processes.next()?;
        processes.all(|process| process == first).then_some((certainty, first))
    }

    /// Returns the one process that has ever had it, and how that is known.
    #[inline]
    pub(crate) fn sole(&self) -> Option<(Certainty, u32)> {
        self.sole
    }

    /// Tells `answer` each process whose a packet of it may be, and how that is known. Nothing is known if there is none.
    #[inline]
    pub(crate) fn owners(&self, at: u64, side: Side, answer: &mut impl FnMut(Certainty, u32)) {
        match self.sole {
            Some((certainty, process)) => answer(certainty, process),
            None => self.owners_among_several(at, side, answer),
        }
    }

    #[inline(never)]
    fn owners_among_several(&self, at: u64, side: Side, answer: &mut impl FnMut(Certainty, u32)) {
        let of = |strength: Strength| self.acts.iter().filter(move |act| act.strength == strength);
        let used = || of(Strength::Used);
        if at < self.crowded_until {
            return self.acts.iter().for_each(|act| answer(Certainty::Several, act.process));
        }
        if let Some(latest) = used().rfind(|act| act.at <= at) {
            if side == Side::Receiver && self.is_shared() {
                return used().for_each(|act| answer(Certainty::Several, act.process));
            }
            return answer(Certainty::Certain, latest.process);
        }
        // Who used it first may have had it before.
        let prepared = || of(Strength::Prepared).filter(|act| act.at <= at);
        let held = || of(Strength::Held);
        let mut holders = prepared().chain(held()).chain(used().next()).peekable();
        if holders.peek().is_some() {
            let is_older = prepared().next().is_none() && held().next().is_some();
            let certainty = if is_older { Certainty::Before } else { Certainty::Certain };
            return holders.for_each(|act| answer(certainty, act.process));
        }
        if let Some(first) = of(Strength::Prepared).next() {
            return answer(Certainty::Certain, first.process);
        }
        let (certainty, strength) = match of(Strength::Listener).next() {
            Some(_) => (Certainty::Listener, Strength::Listener),
            None => (Certainty::Before, Strength::There),
        };
        of(strength).for_each(|act| answer(certainty, act.process));
    }

    /// Returns whether processes use it in turn: nobody can say which of them gets what comes.
    fn is_shared(&self) -> bool {
        let mut used = self.acts.iter().filter(|act| act.strength == Strength::Used).map(|act| act.process);
        let Some(first) = used.next() else { return false };
        let mut runs = vec![first];
        for process in used {
            if runs.last() != Some(&process) {
                if runs.contains(&process) {
                    return true;
                }
                runs.push(process);
            }
        }
        false
    }

    /// Finds out its names anew, and returns the old ones.
    pub(crate) fn rename(&mut self) -> Vec<Name> {
        let names = self.find_names();
        std::mem::replace(&mut self.names, names)
    }

    fn find_names(&self) -> Vec<Name> {
        // Most have one, and it is kept.
        let mut names = Vec::with_capacity(1);
        if self.kind == SocketKind::Raw {
            let bound = self.ends.iter().map(|ends| ends.local.address).rfind(|own| !own.is_unspecified());
            names.extend(self.ends.first().map(|ends| Name {
                key: Key::raw(self.namespace, self.protocol),
                takes: Takes::of(bound.unwrap_or(ends.local.address)),
                from: self.from(),
                known: self.from(),
                end: self.closed,
            }));
            return names;
        }
        let mut now: Option<(Ends, [u64; 2])> = None;
        for next in &self.ends {
            // One of several that share a port may be as old as the others; of those with the same ends, only one was there then.
            let is_old = self.was_found && !self.was_created && next.remote.is_none();
            let told = if is_old { 0 } else { next.at };
            now = Some(match now {
                None => (*next, [if next.connects { next.at } else { self.from() }, told]),
                Some((ends, [from, known])) => match ends.then(next) {
                    None => {
                        names.extend(self.name(&ends, from, known, next.at));
                        let port = ends.port_after(next, self.kind);
                        let local = Endpoint { port, ..next.local };
                        (Ends { local, ..*next }, [next.at, next.at])
                    }
                    Some(then) if ends.remote.is_none() && then.remote.is_some() => {
                        // Without a word about when it was connected, both may have been at any time.
                        names.extend(self.name(&ends, from, known, next.at));
                        (then, [if next.connects { next.at } else { from }, next.at])
                    }
                    Some(then) => {
                        let known = if then.local.port == ends.local.port { known } else { next.at };
                        (then, [from, known])
                    }
                },
            });
        }
        if let Some((ends, [from, known])) = now {
            names.extend(self.name(&ends, from, known, self.closed));
        }
        names
    }

    /// Returns the name that these ends give it, if they do.
    fn name(&self, ends: &Ends, from: u64, known: u64, end: u64) -> Option<Name> {
        let (namespace, protocol, local) = (self.namespace, self.protocol, ends.local);
        let key = match ends.remote {
            Some(remote) if local.port == 0 => Key::remote(namespace, protocol, remote.into()),
            Some(remote) => Key::connected(namespace, protocol, local, remote),
            None if local.port != 0 => Key::port(namespace, protocol, local.port),
            None => return None,
        };
        Some(Name { key, takes: Takes::of(local.address), from, known, end })
    }
}

impl Ends {
    /// Returns what two accounts, one after the other, say together. `None`: the socket got another end between them.
    fn then(&self, next: &Self) -> Option<Self> {
        let (mine, its) = (self.local, next.local);
        let is_same_address =
            mine.address.is_unspecified() || its.address.is_unspecified() || mine.address == its.address;
        let is_same_port = mine.port == 0 || its.port == 0 || mine.port == its.port;
        let is_same_remote = self.remote.is_none() || next.remote.is_none() || self.remote == next.remote;
        if !is_same_address || !is_same_port || !is_same_remote {
            return None;
        }
        let address = if mine.address.is_unspecified() && !its.address.is_unspecified() {
            its.address
        } else {
            mine.address
        };
        let port = if mine.port == 0 { its.port } else { mine.port };
        Some(Self { local: Endpoint { address, port }, remote: self.remote.or(next.remote), ..*self })
    }

    /// Returns the port after another account: a datagram socket keeps its port when it is connected to somebody else.
    fn port_after(&self, next: &Self, kind: SocketKind) -> u16 {
        let keeps = next.local.port == 0 && kind == SocketKind::Datagram;
        if keeps { self.local.port } else { next.local.port }
    }
}
