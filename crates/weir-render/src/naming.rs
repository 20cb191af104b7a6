//! Names in lines: which ones a line needs, and how long it waits for them.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::Packet;
use weir_dissect::{Dissector, Facts, Names, Options, Resolve};

use crate::Ready;

/// Where the names of hosts and services come from.
pub trait Directory: Resolve + Debug + Send {
    /// Starts to look for the names of these hosts, as far as they are new. Returns whether it is worth [waiting](Self::wait).
    fn ask(&mut self, hosts: Vec<IpAddr>) -> bool;

    /// Waits for the names that were asked for, but not for long.
    fn wait(&mut self);

    /// Returns whether a datagram over UDP between these two is one of its own questions or answers.
    fn is_own(&self, source: SocketAddr, destination: SocketAddr) -> bool;
}

/// The names in lines.
#[derive(Debug)]
pub struct Naming {
    directory: Box<dyn Directory>,
    /// Finds out which names a line needs. It has no connections, because the line is made again.
    first: Dissector,
    line: Vec<u8>,
    /// Counts the packets of the process that finds names, which are left out; `None`: they are printed.
    own: Option<Arc<AtomicU64>>,
}

const UDP: u8 = 17;

impl Naming {
    /// `options`: those of the lines. `own`: counts the directory's own packets, which are then left out;
    /// `None`: they are printed.
    pub fn new(directory: Box<dyn Directory>, options: Options, own: Option<Arc<AtomicU64>>) -> Self {
        let first = Dissector::new(Options { absolute: true, no_dump: true, ..options });
        Self { directory, first, line: Vec::new(), own }
    }

    /// Asks for the names in the line of a packet.
    pub(crate) fn prepare(&mut self, packet: &Packet<'_>, link_type: u16, others: &Names) -> Ready {
        self.line.clear();
        let mut wanted = Wanted::default();
        let facts = self.first.packet_named(
            Some(&mut wanted),
            others,
            link_type,
            packet.data,
            packet.original_len,
            &mut self.line,
        );
        if let Some(own) = self.own.as_ref().filter(|_| self.is_own(&facts)) {
            // Relaxed: it says nothing about other memory.
            own.fetch_add(1, Ordering::Relaxed);
            return Ready::Never;
        }
        if self.directory.ask(wanted.0) { Ready::Soon } else { Ready::Now }
    }

    fn is_own(&self, facts: &Facts) -> bool {
        let end = |address: Option<IpAddr>, port: Option<u16>| Some(SocketAddr::new(address?, port?));
        let ends = end(facts.source, facts.source_port).zip(end(facts.destination, facts.destination_port));
        facts.ip_protocol == Some(UDP)
            && ends.is_some_and(|(source, destination)| self.directory.is_own(source, destination))
    }

    /// Waits for what [`prepare`](Self::prepare) has asked for.
    pub(crate) fn wait(&mut self) {
        self.directory.wait();
    }
}

impl Resolve for Naming {
    fn host(&mut self, address: IpAddr) -> Option<&str> {
        self.directory.host(address)
    }

    fn service(&mut self, port: u16, protocol: &str) -> Option<&str> {
        self.directory.service(port, protocol)
    }
}

/// The addresses in a line.
#[derive(Debug, Default)]
struct Wanted(Vec<IpAddr>);

impl Resolve for Wanted {
    fn host(&mut self, address: IpAddr) -> Option<&str> {
        self.0.push(address);
        None
    }

    fn service(&mut self, _port: u16, _protocol: &str) -> Option<&str> {
        None
    }
}
