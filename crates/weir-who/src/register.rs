//! The lives of sockets.

use foldhash::{HashMap, HashMapExt as _};

use crate::addresses::Addresses;
use crate::known::Known;
use crate::processes::KnownProcesses;
use crate::sockets::Sockets;
use crate::{Counts, News, Owner, Question, Settings, Side, Sighting};

/// How far news may be out of order: what is lost may be so much older than what was told before.
const DISORDER: u64 = 1_000_000_000;
/// Interfaces whose namespaces are remembered.
const MOST_INTERFACES: usize = 65_536;
/// KnownProcesses that are remembered without a socket: so many, and as many as there may be sockets.
const SPARE: usize = 1024;

/// What is known of a host's sockets: tells whose a packet is.
#[derive(Debug)]
pub struct Register {
    pub(crate) known: Known,
    interfaces: HashMap<u32, u64>,
    /// The latest time that was told.
    now: u64,
}

impl Register {
    /// Returns an empty register.
    pub fn new(settings: &Settings) -> Self {
        let known = Known {
            sockets: Sockets::new(settings),
            processes: KnownProcesses::new(settings.sockets.saturating_add(SPARE)),
            addresses: Addresses::default(),
            lost_from: u64::MAX,
        };
        Self { known, interfaces: HashMap::new(), now: 0 }
    }

    /// Takes news in. They may come out of order by milliseconds, since each processor reports by itself.
    pub fn learn(&mut self, news: &News) {
        match news {
            News::Sighting(sighting) => {
                self.now = self.now.max(sighting.at);
                self.see(sighting);
            }
            News::Executed { at, process } => self.known.processes.execute(*at, process),
            News::Described(process) => self.known.processes.describe(process),
            News::Address { at, namespace, address } => {
                self.now = self.now.max(*at);
                self.known.addresses.came(*at, *namespace, address.to_canonical());
            }
            News::AddressGone { at, namespace, address } => {
                self.now = self.now.max(*at);
                self.known.addresses.went(*at, *namespace, address.to_canonical());
            }
            News::Interface { interface, namespace } => {
                if self.interfaces.len() < MOST_INTERFACES || self.interfaces.contains_key(interface) {
                    self.interfaces.insert(*interface, *namespace);
                }
            }
            News::Lost { at, .. } => {
                // They are not older than what was told last, but for the disorder.
                let since = if self.now == 0 { *at } else { self.now.min(*at) };
                let lost_from = since.saturating_sub(DISORDER);
                self.known.lost_from = self.known.lost_from.min(lost_from);
                self.now = self.now.max(*at);
            }
        }
    }

    fn see(&mut self, sighting: &Sighting) {
        let Known { sockets, processes, .. } = &mut self.known;
        let mut released = Vec::new();
        let place = sockets.see(self.now, sighting, &mut |socket| released.extend(socket.processes()));
        if let Some(process) = &sighting.process {
            let process = processes.see(sighting.at, process);
            processes.hold(process);
            let forgotten = sockets.get_mut(place).act(sighting.at, sighting.cause, process);
            released.extend(forgotten.into_iter().flatten());
        }
        released.into_iter().for_each(|process| processes.release(process));
    }

    /// Returns whose packet it is, at one end.
    #[inline]
    pub fn owner(&self, question: &Question<'_>, side: Side) -> Owner {
        self.known.owner(question, side)
    }

    /// Returns whether there is a socket that may be the packet's, but whose port nobody has told yet: UDP that is connected before
    /// it has a port. A look at the kernel's table of sockets finds it.
    pub fn is_unsettled(&self, question: &Question<'_>) -> bool {
        self.known.is_unsettled(question)
    }

    /// Returns the namespace of an interface, by its number in the file, if it was told.
    pub fn namespace(&self, interface: u32) -> Option<u64> {
        self.interfaces.get(&interface).copied()
    }

    /// Returns what it has seen and forgotten.
    pub fn counts(&self) -> Counts {
        self.known.sockets.counts()
    }
}
