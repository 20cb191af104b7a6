//! The process that finds names. It asks several servers about many addresses at once, with the sockets that it has opened
//! before it was confined.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::write;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use weir_sys::user::User;

use super::dns::{self, Reply};
use super::files;
use super::wire::{self, Began, LONGEST};
use crate::confine::{Needs, confine_user};

/// Addresses asked about at a time. More wait in the socket to the program, or are not asked for.
const MOST: usize = 256;

/// Time for a reply of a server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Times that each server is asked.
const ROUNDS: usize = 2;

/// Finds names until the program at the other end of `socket` has ended.
pub(super) fn find_names(socket: &OwnedFd, user: Option<&User>) {
    if no_terminal().is_err() {
        return;
    }
    let hosts = files::hosts();
    let (mut servers, mut unreachable) = (Vec::new(), None);
    for server in files::servers() {
        match connected(server) {
            Ok(socket) => servers.push(socket),
            Err(error) => unreachable = Some(format!("{}: {error}", server.ip())),
        }
    }
    unreachable = unreachable.filter(|_| servers.is_empty());
    let ends = |server: &UdpSocket| Some((server.local_addr().ok()?, server.peer_addr().ok()?));
    let sockets = servers.iter().filter_map(ends).collect();
    let refused = confine_user(&Needs::to_read(&[], None), user).err().map(|error| error.to_string());
    let ends = refused.is_some();
    let Ok(began) = serde_json::to_vec(&Began { refused, sockets, unreachable }) else { return };
    if wire::send(socket, &began).is_err() || ends {
        return;
    }
    let mut finder = Finder { program: socket, hosts, servers, queries: HashMap::new() };
    while finder.turn().is_ok() {}
}

/// Leaves standard input, output and error to the program.
fn no_terminal() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    Ok(dup2_stderr(&null)?)
}

/// Returns a socket that stays open as long as the process, so that nobody else has its port meanwhile.
fn connected(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

struct Finder<'a> {
    program: &'a OwnedFd,
    hosts: HashMap<IpAddr, String>,
    servers: Vec<UdpSocket>,
    /// By the number in the message.
    queries: HashMap<u16, Query>,
}

struct Query {
    address: IpAddr,
    question: Vec<u8>,
    /// Servers asked so far, some more than once.
    asked: usize,
    /// When the next server is asked.
    due: Instant,
}

impl Finder<'_> {
    /// Waits for something to do, and does it. An error: the program has ended.
    fn turn(&mut self) -> io::Result<()> {
        self.ask_others();
        let due = self.queries.values().map(|query| query.due).min();
        let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let more = if self.queries.len() < MOST { PollFlags::IN } else { PollFlags::empty() };
        let mut ready = vec![PollFd::new(self.program, more)];
        ready.extend(self.servers.iter().map(|server| PollFd::new(server, PollFlags::IN)));
        match poll(&mut ready, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = ready.iter().map(|descriptor| !descriptor.revents().is_empty()).collect();
        for (server, _) in ready[1..].iter().enumerate().filter(|(_, ready)| **ready) {
            self.hear(server)?;
        }
        if ready[0] { self.take() } else { Ok(()) }
    }

    /// Takes an address from the program.
    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0; LONGEST];
        let Some((address, [])) = wire::address(wire::receive(self.program, &mut buffer)?) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if let Some(name) = self.hosts.get(&address) {
            return self.tell(address, Some(name));
        }
        let id = loop {
            let id = random();
            if !self.queries.contains_key(&id) {
                break id;
            }
        };
        let question = dns::question(address);
        self.queries.insert(id, Query { address, question, asked: 0, due: Instant::now() });
        Ok(())
    }

    /// Reads what a server has sent.
    fn hear(&mut self, server: usize) -> io::Result<()> {
        let mut buffer = [0; LONGEST];
        let message = match wire::receive(&self.servers[server], &mut buffer) {
            Ok(message) => message,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_unreachable) => {
                // Those who wait for it need not wait any longer.
                let servers = self.servers.len();
                let now = Instant::now();
                let waits = |query: &&mut Query| query.asked > 0 && (query.asked - 1) % servers == server;
                self.queries.values_mut().filter(waits).for_each(|query| query.due = now);
                return Ok(());
            }
        };
        let Some(id) = dns::id(message) else { return Ok(()) };
        let Some(query) = self.queries.get_mut(&id) else { return Ok(()) };
        let address = query.address;
        let name = match dns::reply(message, &query.question) {
            None => return Ok(()),
            Some(Reply::Failed) => {
                query.due = Instant::now();
                return Ok(());
            }
            Some(Reply::Nameless) => None,
            Some(Reply::Name(name)) => Some(name),
        };
        self.queries.remove(&id);
        self.tell(address, name.as_deref())
    }

    /// Asks the next server about each address whose time has come, and gives up when none is left.
    fn ask_others(&mut self) {
        let now = Instant::now();
        let mut nameless = Vec::new();
        let servers = &self.servers;
        self.queries.retain(|&id, query| {
            while query.due <= now {
                if query.asked == servers.len() * ROUNDS {
                    nameless.push(query.address);
                    return false;
                }
                let server = &servers[query.asked % servers.len()];
                query.asked += 1;
                // Not `send`, a call that a process without need for other sockets does not have.
                if write(server, &dns::query(id, &query.question)).is_ok() {
                    query.due = now + PATIENCE;
                }
            }
            true
        });
        for address in nameless {
            let _it_asks_no_more = self.tell(address, None);
        }
    }

    /// Answers the program. If it does not read, it does without.
    fn tell(&self, address: IpAddr, name: Option<&str>) -> io::Result<()> {
        match wire::send(self.program, &wire::answer(address, name)) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns a number that others cannot foresee: who sees no query cannot forge its reply.
fn random() -> u16 {
    let [first, second, ..] = RandomState::new().hash_one(()).to_ne_bytes();
    u16::from_ne_bytes([first, second])
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    /// A reply to `query` under another number, with this name below `test`.
    fn reply(query: &[u8], by: u16, name: &str) -> Vec<u8> {
        let id = dns::id(query).expect("a number").wrapping_add(by);
        let label = |label: &str| [&[u8::try_from(label.len()).expect("short")], label.as_bytes()].concat();
        let name = [label(name), label("test"), vec![0]].concat();
        let header = [id, 0x8180, 1, 1, 0, 0].map(u16::to_be_bytes).concat();
        let len = u16::try_from(name.len()).expect("short");
        let record = [0xc00c, 12, 1, 0, 60, len].map(u16::to_be_bytes).concat();
        [&header, &query[12..], &record, &name].concat()
    }

    /// Whoever cannot see the query does not know its number: a reply with another one is forged, or late.
    #[test]
    fn only_the_reply_with_the_number_of_the_query_counts() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let ours = connected(server.local_addr().expect("an address")).expect("a socket");
        let (asks, program) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None)
                .expect("sockets");
        let mut finder =
            Finder { program: &program, hosts: HashMap::new(), servers: vec![ours], queries: HashMap::new() };
        let address = IpAddr::from([192, 0, 2, 1]);
        wire::send(&asks, &wire::ask(address)).expect("room");
        let mut buffer = [0; LONGEST];
        finder.turn().expect("the question is taken");
        finder.ask_others();
        let (len, from) = server.recv_from(&mut buffer).expect("a query");
        let query = buffer[..len].to_vec();
        for by in [1, 0x100, u16::MAX] {
            server.send_to(&reply(&query, by, "wrong"), from).expect("sent");
            finder.turn().expect("the program is there");
        }
        // That of another question, under the right number.
        let mut other = reply(&query, 0, "wrong");
        other[13] ^= 1;
        server.send_to(&other, from).expect("sent");
        finder.turn().expect("the program is there");
        assert!(
            wire::receive(&asks, &mut buffer).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        );
        server.send_to(&reply(&query, 0, "right"), from).expect("sent");
        finder.turn().expect("the program is there");
        let answer = wire::receive(&asks, &mut buffer).expect("an answer");
        assert_eq!(wire::address(answer), Some((address, &b"right.test"[..])));
        assert!(finder.queries.is_empty());
    }

    /// A host that has no server says so at once: the next server is asked, about what was asked of that one alone.
    #[test]
    fn what_an_unreachable_server_was_asked_goes_to_the_next() {
        let live = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        live.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
        let addresses = [closed.expect("an address"), live.local_addr().expect("an address")];
        let (asks, program) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None)
                .expect("sockets");
        let finder = |addresses: [SocketAddr; 2]| {
            let servers = addresses.map(|address| connected(address).expect("a socket")).into();
            wire::send(&asks, &wire::ask([192, 0, 2, 1].into())).expect("room");
            let mut finder =
                Finder { program: &program, hosts: HashMap::new(), servers, queries: HashMap::new() };
            finder.turn().expect("the question is taken");
            finder.ask_others();
            finder
        };
        let asked = |finder: &Finder<'_>| finder.queries.values().map(|query| query.asked).sum::<usize>();
        let mut first = finder(addresses);
        assert_eq!(asked(&first), 1);
        let due = |finder: &Finder<'_>| finder.queries.values().map(|query| query.due).max();
        let patience = due(&first);
        first.turn().expect("the program is there");
        assert!(due(&first) < patience, "nobody waits for it");
        first.ask_others();
        assert_eq!(asked(&first), 2);
        live.recv_from(&mut [0; LONGEST]).expect("a query");
        // That another server is unreachable changes nothing.
        let mut second = finder([addresses[1], addresses[0]]);
        let patience = due(&second);
        write(&second.servers[1], b"a query about something else").expect("sent");
        second.hear(1).expect("the program is there");
        assert_eq!((asked(&second), due(&second)), (1, patience));
    }
}
