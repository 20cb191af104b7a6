//! Names in lines: which ones a line needs, and how long it waits for them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::Packet;
use weir_dissect::{Dissector, Facts, Names, Options, Resolve};
use weir_service::resolver::Resolver;
use weir_sys::names::every_service;

use super::Ready;
use crate::style;

/// The names of hosts and services.
#[derive(Debug)]
pub(crate) struct Naming {
    hosts: Resolver,
    services: Services,
    /// Finds out which names a line needs. It has no connections, because the line is made again.
    first: Dissector,
    line: Vec<u8>,
    /// Counts the packets of the process that finds names, which have no lines; `None`: they have.
    own: Option<Arc<AtomicU64>>,
}

/// By port, for each protocol.
type Services = HashMap<String, HashMap<u16, String>>;

const UDP: u8 = 17;

impl Naming {
    /// Reads the names of services, while this is allowed. `own`: counts packets that are printed only because names are.
    pub(super) fn new(hosts: Resolver, options: Options, own: Option<Arc<AtomicU64>>) -> Self {
        let mut services = Services::new();
        for service in every_service() {
            if !service.name.contains(style::is_order) {
                // The first in services(5) counts.
                services.entry(service.protocol).or_default().entry(service.port).or_insert(service.name);
            }
        }
        let first = Dissector::new(Options { absolute: true, no_dump: true, ..options });
        Self { hosts, services, first, line: Vec::new(), own }
    }

    /// Asks for the names in the line of a packet.
    pub(super) fn prepare(&mut self, packet: &Packet<'_>, link_type: u16, others: &Names) -> Ready {
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
        if self.hosts.ask(wanted.0) { Ready::Soon } else { Ready::Now }
    }

    fn is_own(&self, facts: &Facts) -> bool {
        let end = |address: Option<IpAddr>, port: Option<u16>| Some(SocketAddr::new(address?, port?));
        let ends = end(facts.source, facts.source_port).zip(end(facts.destination, facts.destination_port));
        facts.ip_protocol == Some(UDP)
            && ends.is_some_and(|(source, destination)| self.hosts.is_own(source, destination))
    }

    /// Waits for what [`prepare`](Self::prepare) has asked for.
    pub(super) fn wait(&mut self) {
        self.hosts.wait();
    }
}

impl Resolve for Naming {
    fn host(&mut self, address: IpAddr) -> Option<&str> {
        self.hosts.host(address)
    }

    fn service(&mut self, port: u16, protocol: &str) -> Option<&str> {
        self.services.get(protocol)?.get(&port).map(String::as_str)
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
