//! Where names come from: hosts, networks, ports and protocols that an expression calls by name.

use std::net::IpAddr;

/// Looks names up. The crate does no I/O itself: `weir_sys::names` asks the system.
pub trait Names: std::fmt::Debug {
    /// Addresses of a host, as getaddrinfo(3) gives them, each once.
    fn host(&self, name: &str) -> Vec<IpAddr>;
    /// Number of a network (networks(5)), as getnetbyname(3) gives it: 0x0a000000 for `10.0.0.0`.
    fn network(&self, name: &str) -> Option<u32>;
    /// MAC address of a host (ethers(5)).
    fn ethernet(&self, name: &str) -> Option<[u8; 6]>;
    /// Port of a service (services(5)) by TCP, by UDP and by SCTP.
    fn service(&self, name: &str) -> Service;
    /// Number of a protocol over IP (protocols(5)).
    fn protocol(&self, name: &str) -> Option<u8>;
    /// Content of the file of a set (`@NAME`), or why there is none.
    fn set(&self, name: &str) -> Result<String, String>;
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

impl Names for NoNames {
    fn host(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    fn network(&self, _: &str) -> Option<u32> {
        None
    }

    fn ethernet(&self, _: &str) -> Option<[u8; 6]> {
        None
    }

    fn service(&self, _: &str) -> Service {
        Service::default()
    }

    fn protocol(&self, _: &str) -> Option<u8> {
        None
    }

    fn set(&self, name: &str) -> Result<String, String> {
        Err(format!("no file for the set `@{name}`"))
    }
}
