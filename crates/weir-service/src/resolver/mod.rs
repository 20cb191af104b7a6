//! Finds the names of hosts, in a process of its own that has neither packets nor privileges.
//!
//! ```text
//! program: Resolver -- addresses --> weir-names: /etc/hosts, then the servers of /etc/resolv.conf
//!                   <-- names ------
//! ```
//!
//! The process reads both files and opens its sockets when it starts; then it gives up everything else. It asks servers
//! itself, not through the C library, for two reasons: modules of the C library may need any file and any call, and nobody
//! could tell which packets are its own queries.

mod answer;
mod dns;
mod files;
mod wire;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

use self::wire::{Began, LONGEST};
use crate::Error;
use crate::confine::Become;

/// Longest wait for the names of a line.
const PATIENCE: Duration = Duration::from_millis(100);

/// Vain waits in a row after which there are no more, until a name comes in time again.
const VAIN: u32 = 10;

/// Addresses remembered. The one asked for first is forgotten first.
const MOST: usize = 1 << 16;

/// The names of hosts, as far as they are known.
#[derive(Debug)]
pub struct Resolver {
    process: Forked,
    sockets: Vec<(SocketAddr, SocketAddr)>,
    unreachable: Option<String>,
    hosts: HashMap<IpAddr, Host>,
    /// The addresses of `hosts`, the oldest first.
    order: VecDeque<IpAddr>,
    /// Addresses that the last call of `ask` has asked for.
    waiting: Vec<IpAddr>,
    /// Vain waits in a row.
    vain: u32,
    /// Whether the process still answers.
    answers: bool,
}

#[derive(Debug)]
enum Host {
    Asked(Instant),
    Named(String),
    Nameless,
}

impl Resolver {
    /// Starts the process, before this one has other threads and is confined. If root starts it, it becomes another user.
    ///
    /// # Errors
    ///
    /// If the process does not start, or cannot be confined.
    pub fn start() -> Result<Self, Error> {
        Self::start_as(Become::find(None)?.user())
    }

    /// Starts the process, which becomes `user` if there is one.
    pub(crate) fn start_as(user: Option<&User>) -> Result<Self, Error> {
        let process = fork(c"weir-names", |socket| answer::find_names(&socket, user))
            .map_err(|error| helper(&error))?;
        let mut buffer = [0; LONGEST];
        let began = wire::receive(process.socket(), &mut buffer).map_err(|error| helper(&error))?;
        let began: Began = serde_json::from_slice(began).map_err(|_| helper(&"it has ended"))?;
        began.refused.map_or(Ok(()), |why| Err(helper(&why)))?;
        ioctl_fionbio(process.socket(), true).map_err(|error| helper(&error))?;
        Ok(Self {
            process,
            sockets: began.sockets,
            unreachable: began.unreachable,
            hosts: HashMap::new(),
            order: VecDeque::new(),
            waiting: Vec::new(),
            vain: 0,
            answers: true,
        })
    }

    /// Returns a server that cannot be reached, and why, if no server can.
    pub fn unreachable(&self) -> Option<&str> {
        self.unreachable.as_deref()
    }

    /// Returns whether a packet between these ports is a query of the process, or a reply to one.
    pub fn is_own(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        self.sockets.iter().any(|&(own, server)| {
            (own, server) == (source, destination) || (server, own) == (source, destination)
        })
    }

    /// Returns the name of an address, if it is known. It has only letters, digits, `-`, `_` and `.`.
    pub fn host(&self, address: IpAddr) -> Option<&str> {
        match self.hosts.get(&address.to_canonical())? {
            Host::Named(name) => Some(name),
            Host::Asked(_) | Host::Nameless => None,
        }
    }

    /// Asks for names that were not asked for before. Returns whether to [`wait`](Self::wait) for them.
    pub fn ask(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> bool {
        self.waiting.clear();
        self.hear();
        for address in addresses.into_iter().map(|address| address.to_canonical()) {
            // Without room, the process is busy; a later packet asks again.
            if self.is_new(address)
                && self.answers
                && wire::send(self.process.socket(), &wire::ask(address)).is_ok()
            {
                self.remember(address);
                self.waiting.push(address);
            }
        }
        self.vain < VAIN && !self.waiting.is_empty()
    }

    /// Waits until the names that [`ask`](Self::ask) has asked for are known, but not for long.
    pub fn wait(&mut self) {
        let end = Instant::now() + PATIENCE;
        loop {
            self.hear();
            let asked = |address| matches!(self.hosts.get(address), Some(Host::Asked(_)));
            if !self.answers || !self.waiting.iter().any(asked) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.vain += 1;
                return;
            }
            let left = Timespec::try_from(left).ok();
            let _retried = poll(&mut [PollFd::new(&self.process.socket(), PollFlags::IN)], left.as_ref());
        }
    }

    /// Returns whether to ask for the name of an address.
    fn is_new(&self, address: IpAddr) -> bool {
        // Nobody has the unspecified one.
        !address.is_unspecified() && !self.hosts.contains_key(&address)
    }

    fn remember(&mut self, address: IpAddr) {
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.hosts.remove(&oldest);
        }
        self.order.push_back(address);
        self.hosts.insert(address, Host::Asked(Instant::now()));
    }

    /// Takes the answers that are there.
    fn hear(&mut self) {
        let mut buffer = [0; LONGEST];
        while self.answers {
            match wire::receive(self.process.socket(), &mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(message) => match wire::address(message) {
                    Some((address, name)) => {
                        // Copied once, then checked: the process talks to strangers.
                        let name = str::from_utf8(name).ok().filter(|name| dns::is_host_name(name));
                        self.note(address, name.map(str::to_owned));
                    }
                    None => self.answers = false,
                },
                Err(_) => self.answers = false,
            }
        }
    }

    /// Takes note of the answer for an address, if it was asked for.
    fn note(&mut self, address: IpAddr, name: Option<String>) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let Host::Asked(since) = host else { return };
        if since.elapsed() <= PATIENCE {
            self.vain = 0;
        }
        *host = name.map_or(Host::Nameless, Host::Named);
    }
}

fn helper(why: &dyn std::fmt::Display) -> Error {
    Error::Helper(why.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weir_sys::fork::in_a_test;

    use super::*;

    #[test]
    fn the_address_asked_for_first_is_forgotten_first() {
        let said = in_a_test(|| {
            let mut resolver = Resolver::start_as(None).expect("a process");
            let address = |number: usize| {
                IpAddr::from(Ipv4Addr::from_bits(u32::try_from(number).expect("a short number")))
            };
            (0..MOST).for_each(|number| resolver.remember(address(number)));
            assert_eq!((resolver.hosts.len(), resolver.order.len()), (MOST, MOST));
            assert!((0..MOST).all(|number| resolver.hosts.contains_key(&address(number))));
            for more in MOST..MOST + 2 {
                resolver.remember(address(more));
                assert_eq!((resolver.hosts.len(), resolver.order.len()), (MOST, MOST));
                assert!(resolver.hosts.contains_key(&address(more)));
                assert!(!resolver.hosts.contains_key(&address(more - MOST)));
                assert!(resolver.hosts.contains_key(&address(more - MOST + 1)));
            }
            "well".to_owned()
        });
        assert_eq!(said, "well");
    }

    #[test]
    fn an_address_is_asked_for_once_and_own_queries_are_known() {
        let said = in_a_test(|| {
            let mut resolver = Resolver::start_as(None).expect("a process");
            let host = IpAddr::from([192, 0, 2, 1]);
            assert!(resolver.is_new(host));
            resolver.remember(host);
            assert!(!resolver.is_new(host) && resolver.is_new([192, 0, 2, 2].into()));
            assert!(!resolver.is_new(Ipv4Addr::UNSPECIFIED.into()), "nobody has it");

            let [own, server] =
                ["192.0.2.9:1024", "192.0.2.53:53"].map(|end| end.parse().expect("an address"));
            let other = "192.0.2.9:1025".parse().expect("another port");
            resolver.sockets = vec![(other, own), (own, server)];
            assert!(resolver.is_own(own, server) && resolver.is_own(server, own));
            for (from, to) in [(other, server), (server, other), (own, own), (server, server)] {
                assert!(!resolver.is_own(from, to), "{from} {to}");
            }
            "well".to_owned()
        });
        assert_eq!(said, "well");
    }
}
