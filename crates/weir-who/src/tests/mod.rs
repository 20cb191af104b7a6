//! Packets and whose they are.

mod frames;
mod limits;
mod rules;
mod sides;
mod twin;
mod wire;

use std::net::IpAddr;
use std::sync::Arc;

use weir_packet::{Endpoint, link_type, protocol};

use crate::*;

/// The namespace of most tests.
const HOME: u64 = 1;

/// A process of the user 1000 whose name is its number.
fn process(number: u32) -> Arc<Process> {
    named(number, &format!("p{number}"), 1000)
}

fn named(number: u32, name: &str, user: u32) -> Arc<Process> {
    Arc::new(Process {
        id: ProcessId { number, started: 7 },
        parent: 1,
        user,
        name: name.to_owned(),
        program: None,
        arguments: None,
        cgroup: None,
        container: None,
        unit: None,
    })
}

/// An end: an address and a port as they are written.
fn end(text: &str) -> Endpoint {
    let end: std::net::SocketAddr = text.parse().expect("an address and a port");
    Endpoint { address: end.ip(), port: end.port() }
}

/// What a register is told, one after the other.
#[derive(Debug)]
struct Story {
    register: Register,
    namespace: u64,
}

impl Story {
    fn new() -> Self {
        Self::of(&Settings { sockets: 100, linger: 1000 })
    }

    fn of(settings: &Settings) -> Self {
        Self { register: Register::new(settings), namespace: HOME }
    }

    /// A host with addresses.
    fn at_home() -> Self {
        let mut story = Self::new();
        for address in ["10.0.0.1", "fd00::1"] {
            story.has(address);
        }
        story
    }

    fn has(&mut self, address: &str) -> &mut Self {
        let address = address.parse().expect("an address");
        self.register.learn(&News::Address { at: 0, namespace: self.namespace, address });
        self
    }

    /// What comes now is of this namespace.
    fn within(&mut self, namespace: u64) -> &mut Self {
        self.namespace = namespace;
        self
    }

    fn lost(&mut self, at: u64) -> &mut Self {
        self.register.learn(&News::Lost { at, sightings: 1 });
        self
    }

    fn saw(&mut self, at: u64, socket: Socket, cause: Cause, process: u32) -> &mut Self {
        let process = (process > 0).then(|| self::process(process));
        self.saw_as(at, socket, cause, process)
    }

    fn saw_as(&mut self, at: u64, socket: Socket, cause: Cause, process: Option<Arc<Process>>) -> &mut Self {
        let Socket { cookie, kind, protocol, local, remote } = socket;
        let sighting = Sighting {
            at,
            socket: cookie,
            namespace: self.namespace,
            kind,
            protocol,
            local: end(local),
            remote: remote.map(end),
            cause,
            process,
        };
        self.register.learn(&News::Sighting(sighting));
        self
    }

    fn ask(&self, at: u64, frame: &[u8], side: Side) -> String {
        self.ask_in(Some(HOME), at, frame, side)
    }

    fn ask_in(&self, namespace: Option<u64>, at: u64, frame: &[u8], side: Side) -> String {
        let question = Question { at, namespace, link_type: link_type::ETHERNET, frame };
        let owner = self.register.owner(&question, side);
        assert_eq!(owner, self.register.known.owner_by_all_rules(&question, side));
        said(&owner)
    }

    fn sender(&self, at: u64, frame: &[u8]) -> String {
        self.ask(at, frame, Side::Sender)
    }

    fn receiver(&self, at: u64, frame: &[u8]) -> String {
        self.ask(at, frame, Side::Receiver)
    }

    fn is_unsettled(&self, at: u64, frame: &[u8]) -> bool {
        let link_type = link_type::ETHERNET;
        self.register.is_unsettled(&Question { at, namespace: Some(HOME), link_type, frame })
    }
}

/// An answer in a line: how certain it is, then the names of processes.
fn said(owner: &Owner) -> String {
    let names = owner.processes.iter().map(|process| process.name.as_str());
    std::iter::once(format!("{:?}", owner.certainty).as_str()).chain(names).collect::<Vec<_>>().join(" ")
}

/// A socket, as a sighting tells it.
#[derive(Clone, Copy, Debug)]
struct Socket {
    cookie: u64,
    kind: SocketKind,
    protocol: u8,
    local: &'static str,
    remote: Option<&'static str>,
}

impl Socket {
    fn tcp(cookie: u64) -> Self {
        let (kind, protocol) = (SocketKind::Stream, protocol::TCP);
        Self { cookie, kind, protocol, local: "0.0.0.0:0", remote: None }
    }

    fn udp(cookie: u64) -> Self {
        Self { kind: SocketKind::Datagram, protocol: protocol::UDP, ..Self::tcp(cookie) }
    }

    fn ping(cookie: u64) -> Self {
        Self { kind: SocketKind::Datagram, protocol: protocol::ICMP, ..Self::tcp(cookie) }
    }

    fn raw(cookie: u64, protocol: u8) -> Self {
        Self { kind: SocketKind::Raw, protocol, ..Self::tcp(cookie) }
    }

    fn at(self, local: &'static str) -> Self {
        Self { local, ..self }
    }

    fn to(self, remote: &'static str) -> Self {
        Self { remote: Some(remote), ..self }
    }
}
