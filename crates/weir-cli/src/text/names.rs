//! The names of hosts and services that this system knows.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use weir_dissect::Resolve;
use weir_render::{Directory, is_order};
use weir_service::resolver::Resolver;
use weir_sys::names::every_service;

/// Hosts from another process, which asks for them, and services(5).
#[derive(Debug)]
pub(super) struct System {
    hosts: Resolver,
    services: Services,
}

/// By port, for each protocol.
type Services = HashMap<String, HashMap<u16, String>>;

impl System {
    /// Reads the names of services, while this is allowed.
    pub(super) fn new(hosts: Resolver) -> Self {
        let mut services = Services::new();
        for service in every_service() {
            if !service.name.contains(is_order) {
                // The first in services(5) counts.
                services.entry(service.protocol).or_default().entry(service.port).or_insert(service.name);
            }
        }
        Self { hosts, services }
    }
}

impl Resolve for System {
    fn host(&mut self, address: IpAddr) -> Option<&str> {
        self.hosts.host(address)
    }

    fn service(&mut self, port: u16, protocol: &str) -> Option<&str> {
        self.services.get(protocol)?.get(&port).map(String::as_str)
    }
}

impl Directory for System {
    fn ask(&mut self, hosts: Vec<IpAddr>) -> bool {
        self.hosts.ask(hosts)
    }

    fn wait(&mut self) {
        self.hosts.wait();
    }

    fn is_own(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        self.hosts.is_own(source, destination)
    }
}
