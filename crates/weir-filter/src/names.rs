//! Where names come from: hosts, networks, ports and protocols that an expression calls by name.

use std::net::IpAddr;

/// Looks names up: of each kind none is known, if nothing else is said. The crate does no I/O itself: `weir_sys::names` asks the
/// system.
pub trait Names: std::fmt::Debug {
    /// Addresses of a host, as getaddrinfo(3) gives them, each once.
    fn host(&self, _name: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    /// Number of a network (networks(5)), as getnetbyname(3) gives it: 0x0a000000 for `10.0.0.0`.
    fn network(&self, _name: &str) -> Option<u32> {
        None
    }

    /// MAC address of a host (ethers(5)).
    fn ethernet(&self, _name: &str) -> Option<[u8; 6]> {
        None
    }

    /// Port of a service (services(5)) by TCP, by UDP and by SCTP.
    fn service(&self, _name: &str) -> Service {
        Service::default()
    }

    /// Names of services, of which the nearest to an unknown one is told.
    fn services(&self) -> Vec<String> {
        Vec::new()
    }

    /// Number of a protocol over IP (protocols(5)).
    fn protocol(&self, _name: &str) -> Option<u8> {
        None
    }

    /// Content of the file of a set (`@NAME`), or why there is none.
    fn set(&self, name: &str) -> Result<String, String> {
        Err(format!("no file for the set `@{name}`"))
    }
}

/// Ports of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Over TCP.
    pub tcp: Option<u16>,
    /// Over UDP.
    pub udp: Option<u16>,
    /// Over SCTP.
    pub sctp: Option<u16>,
}

/// Knows no name.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {}
