//! Whose a packet is, by all that is known.

use std::sync::Arc;

use weir_packet::protocol;

use crate::addresses::{Addresses, Here};
use crate::found::Found;
use crate::key::{Address, Key};
use crate::packet::{Body, Contents, Packet, Plain, flag};
use crate::processes::KnownProcesses;
use crate::sockets::{Asked, Match, Sockets};
use crate::{Certainty, Owner, Question, Side};

/// All that is known of a host.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) sockets: Sockets,
    pub(crate) processes: KnownProcesses,
    pub(crate) addresses: Addresses,
    /// From this time on, sockets may be missing whose sightings were lost.
    pub(crate) lost_from: u64,
}

/// A packet, when and where it was captured, and the end that is asked about.
#[derive(Clone, Copy, Debug)]
struct Sight<'p> {
    at: u64,
    namespace: Option<u64>,
    side: Side,
    packet: &'p Packet<'p>,
}

impl Known {
    #[inline]
    pub(crate) fn owner(&self, question: &Question<'_>, side: Side) -> Owner {
        match self.usual(question, side) {
            Some(owner) => owner,
            None => self.owner_by_all_rules(question, side),
        }
    }

    /// Returns the answer for most packets: those of an open connection that one process alone has used.
    #[inline]
    fn usual(&self, question: &Question<'_>, side: Side) -> Option<Owner> {
        let &Question { at, namespace, link_type, frame } = question;
        let packet = Plain::of(link_type, frame)?;
        let [local, remote] = packet.ends(side);
        if local.address == Address::ANY {
            return None;
        }
        let key = Key::packet(namespace?, packet.protocol, local, remote);
        let (certainty, process) = self.sockets.get(self.sockets.exactly(&key, at)?).sole()?;
        Some(Owner { certainty, processes: Arc::clone(self.processes.at(process, at)).into() })
    }

    #[inline(never)]
    pub(crate) fn owner_by_all_rules(&self, question: &Question<'_>, side: Side) -> Owner {
        let &Question { at, namespace, link_type, frame } = question;
        match Contents::of(link_type, frame) {
            Contents::Ip(packet) => self.owner_of(&Sight { at, namespace, side, packet: &packet }),
            Contents::Arp => Owner::nobody(Certainty::Kernel),
            Contents::Other => Owner::nobody(Certainty::Unknown),
        }
    }

    #[inline]
    fn owner_of(&self, sight: &Sight<'_>) -> Owner {
        if let Some(asked) = sight.asked() {
            let mut found = Found::default();
            match sight.namespace {
                Some(namespace) => self.find(namespace, &asked, &mut found),
                None => self.find_everywhere(&asked, &mut found),
            }
            if let Some(owner) = found.owner(sight.at, &self.processes) {
                return owner;
            }
        }
        self.without_socket(sight)
    }

    /// Finds whose the packet is in one namespace.
    #[inline]
    fn find(&self, namespace: u64, asked: &Asked, found: &mut Found) {
        self.sockets.find(namespace, asked, &mut |matched| {
            if !self.add(asked, matched, found) {
                self.find_listener(namespace, asked, matched, found);
            }
        });
    }

    /// Nobody has told whose a socket is: if it was accepted, it is the listener's.
    #[cold]
    fn find_listener(&self, namespace: u64, asked: &Asked, matched: Match, found: &mut Found) {
        let mut is_known = false;
        if self.sockets.get(matched.socket).was_accepted() {
            self.sockets.find_listeners(namespace, asked, &mut |listener| {
                is_known |= self.add(asked, listener, found);
            });
        }
        if !is_known {
            found.add_unknown();
        }
    }

    /// Adds the processes of a socket. Returns whether any is known.
    #[inline]
    fn add(&self, asked: &Asked, matched: Match, found: &mut Found) -> bool {
        let mut is_known = false;
        self.sockets.get(matched.socket).owners(asked.at, asked.side, &mut |certainty, process| {
            is_known = true;
            found.add(if matched.listens { Certainty::Listener } else { certainty }, process);
        });
        is_known
    }

    #[cold]
    fn find_everywhere(&self, asked: &Asked, found: &mut Found) {
        for namespace in self.sockets.namespaces() {
            let is_elsewhere =
                self.addresses.is_here(namespace, asked.local.address.ip(), asked.at) == Here::No;
            if !is_elsewhere || asked.is_to_many {
                self.find(namespace, asked, found);
            }
        }
    }

    #[inline(never)]
    fn without_socket(&self, sight: &Sight<'_>) -> Owner {
        let Sight { side, packet, .. } = *sight;
        let [here, there] = sight.addresses().map(|(address, is_to_many)| {
            // All hosts of its network get it.
            if is_to_many { Here::Yes } else { self.is_here(sight, address) }
        });
        match [here, there] {
            [Here::No, Here::No] => return Owner::nobody(Certainty::Forwarded),
            [Here::No, _] => return Owner::nobody(Certainty::Unknown),
            _ => {}
        }
        let kernel = || Owner::nobody(Certainty::Kernel);
        let unknown = || Owner::nobody(Certainty::Unknown);
        let raw = || self.raw(sight);
        // No socket is told: there is none, if none can have been missed.
        let nobody = || {
            let is_sure = here == Here::Yes && !self.may_miss(sight);
            if is_sure { kernel() } else { unknown() }
        };
        match (packet.body, side) {
            (Body::Error(_) | Body::EchoReply(_), Side::Sender)
            | (Body::EchoRequest(_) | Body::Instruction, Side::Receiver)
            | (Body::Housekeeping, _) => kernel(),
            (Body::Error(_), Side::Receiver) => match packet.body.quoted() {
                // What it is about came from here.
                Some(quoted) => self.owner_of(&Sight { side: Side::Sender, packet: &quoted, ..*sight }),
                None => unknown(),
            },
            (Body::EchoReply(_), Side::Receiver) => raw().unwrap_or_else(nobody),
            (Body::Ports { .. }, Side::Sender)
                if packet.protocol == protocol::TCP && packet.has_flag(flag::RST) =>
            {
                nobody()
            }
            (Body::Ports { .. }, Side::Receiver)
                if matches!(packet.protocol, protocol::TCP | protocol::UDP) =>
            {
                raw().unwrap_or_else(nobody)
            }
            (Body::Ports { .. } | Body::EchoRequest(_) | Body::Instruction | Body::Plain, _) => {
                raw().unwrap_or_else(unknown)
            }
            (Body::Missing, _) => unknown(),
        }
    }

    fn is_here(&self, sight: &Sight<'_>, address: Address) -> Here {
        let address = address.ip();
        let is_here = |namespace| self.addresses.is_here(namespace, address, sight.at);
        if let Some(namespace) = sight.namespace {
            return is_here(namespace);
        }
        let mut all = self.sockets.namespaces().chain(self.addresses.namespaces()).map(is_here).peekable();
        if all.peek().is_none() {
            return Here::Untold;
        }
        all.fold(Here::No, |so_far, here| match (so_far, here) {
            (Here::Yes, _) | (_, Here::Yes) => Here::Yes,
            (Here::Untold, _) | (_, Here::Untold) => Here::Untold,
            (Here::No, Here::No) => Here::No,
        })
    }

    /// Returns whether the packet may be of a socket that is not known.
    fn may_miss(&self, sight: &Sight<'_>) -> bool {
        sight.at >= self.lost_from
            || self.sockets.may_have_forgotten(sight.at)
            || sight.asked().is_some_and(|asked| self.waits_for_port(sight.namespace, &asked))
    }

    /// Returns whose it is as a packet of raw sockets.
    fn raw(&self, sight: &Sight<'_>) -> Option<Owner> {
        let Sight { at, side, packet, .. } = *sight;
        let [own, _] = packet.addresses(side);
        let mut found = Found::default();
        let mut find = |namespace| {
            self.sockets.find_raw(namespace, packet.protocol, at, side, own, &mut |socket| {
                let mut is_known = false;
                self.sockets.get(socket).owners(at, side, &mut |certainty, process| {
                    is_known = true;
                    found.add(certainty, process);
                });
                if !is_known {
                    found.add_unknown();
                }
            });
        };
        match sight.namespace {
            Some(namespace) => find(namespace),
            None => self.sockets.namespaces().for_each(find),
        }
        found.owner(at, &self.processes)
    }

    /// Returns whether the packet may be of a socket that has no port yet.
    fn waits_for_port(&self, namespace: Option<u64>, asked: &Asked) -> bool {
        match namespace {
            Some(namespace) => self.sockets.is_unsettled(namespace, asked),
            None => self.sockets.namespaces().any(|namespace| self.sockets.is_unsettled(namespace, asked)),
        }
    }

    pub(crate) fn is_unsettled(&self, question: &Question<'_>) -> bool {
        let &Question { at, namespace, link_type, frame } = question;
        let Contents::Ip(packet) = Contents::of(link_type, frame) else { return false };
        [Side::Sender, Side::Receiver].into_iter().any(|side| {
            let Some(asked) = (Sight { at, namespace, side, packet: &packet }).asked() else { return false };
            let is_connected = || match namespace {
                Some(namespace) => self.sockets.is_connected(namespace, &asked),
                None => {
                    self.sockets.namespaces().any(|namespace| self.sockets.is_connected(namespace, &asked))
                }
            };
            self.waits_for_port(namespace, &asked) && !is_connected()
        })
    }
}

impl Sight<'_> {
    /// Returns what sockets are looked for by. `None`: nothing in the packet says.
    #[inline]
    fn asked(&self) -> Option<Asked> {
        let Self { at, side, packet, .. } = *self;
        let [local, remote] = packet.ends(side)?;
        if local.port == 0 || local.address == Address::ANY {
            return None;
        }
        let is_datagram = matches!(packet.protocol, protocol::UDP | protocol::UDP_LITE);
        Some(Asked {
            at,
            side,
            protocol: packet.protocol,
            local,
            remote,
            is_to_many: is_datagram && side == Side::Receiver && packet.is_to_many(),
            begins: packet.protocol == protocol::TCP && packet.has_flag(flag::SYN),
        })
    }

    /// Returns the addresses of this end and the other, and whether they stand for many hosts.
    fn addresses(&self) -> [(Address, bool); 2] {
        let [own, other] = self.packet.addresses(self.side);
        let is_to_many = self.packet.is_to_many();
        match self.side {
            Side::Sender => [(own, false), (other, is_to_many)],
            Side::Receiver => [(own, is_to_many), (other, false)],
        }
    }
}
