//! Name resolution for hosts, networks, ports and protocols in expressions.

use std::net::IpAddr;

/// A name resolver. The default methods know no names. The crate itself does no I/O: `weir_sys::names` asks the system.
pub trait Names: std::fmt::Debug {
    /// Returns the addresses of a host, as getaddrinfo(3) gives them, without duplicates.
    fn host(&self, _name: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    /// Returns the number of a network (networks(5)), as getnetbyname(3) gives it: 0x0a000000 for `10.0.0.0`.
    fn network(&self, _name: &str) -> Option<u32> {
        None
    }

    /// Returns the MAC address of a host (ethers(5)).
    fn ethernet(&self, _name: &str) -> Option<[u8; 6]> {
        None
    }

    /// Returns the TCP, UDP and SCTP ports of a service (services(5)).
    fn service(&self, _name: &str) -> Service {
        Service::default()
    }

    /// Returns all service names, to suggest the nearest one for an unknown name.
    fn services(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of an IP protocol (protocols(5)).
    fn protocol(&self, _name: &str) -> Option<u8> {
        None
    }

    /// Returns the content of a set's file (`@NAME`), or why it cannot be read.
    fn set(&self, name: &str) -> Result<String, String> {
        Err(format!("no file for the set `@{name}`"))
    }
}

/// The ports of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// TCP port.
    pub tcp: Option<u16>,
    /// UDP port.
    pub udp: Option<u16>,
    /// SCTP port.
    pub sctp: Option<u16>,
}

/// A resolver that knows no names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {}
