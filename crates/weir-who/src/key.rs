//! By what sockets are found.

use std::net::{IpAddr, Ipv6Addr};

use weir_packet::Endpoint;

/// By what a socket is found. Other than connections: a socket without another end by its port, one that has another end but no port
/// yet by that end, a raw one by its protocol; what is missing is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    namespace: u64,
    local: u128,
    remote: u128,
    /// The ports, local and remote, and the protocol.
    rest: u64,
}

impl Key {
    fn new(namespace: u64, protocol: u8, local: (u128, u16), remote: (u128, u16)) -> Self {
        let rest = u64::from(local.1) << 32 | u64::from(remote.1) << 16 | u64::from(protocol);
        Self { namespace, local: local.0, remote: remote.0, rest }
    }

    /// A socket with both ends. An unspecified address is any.
    pub(crate) fn connected(namespace: u64, protocol: u8, local: Endpoint, remote: Endpoint) -> Self {
        let local = (number(local.address), local.port);
        Self::new(namespace, protocol, local, (number(remote.address), remote.port))
    }

    /// The same with any address of its own.
    pub(crate) fn any_address(self) -> Self {
        Self { local: 0, ..self }
    }

    /// A socket with a port and no other end.
    pub(crate) fn port(namespace: u64, protocol: u8, port: u16) -> Self {
        Self::new(namespace, protocol, (0, port), (0, 0))
    }

    /// A socket with another end and no port yet.
    pub(crate) fn remote(namespace: u64, protocol: u8, remote: Endpoint) -> Self {
        Self::new(namespace, protocol, (0, 0), (number(remote.address), remote.port))
    }

    /// A raw socket.
    pub(crate) fn raw(namespace: u64, protocol: u8) -> Self {
        Self::new(namespace, protocol, (0, 0), (0, 0))
    }
}

/// Returns an address as a number; 0 is any.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => 0,
        IpAddr::V4(address) => u128::from(0xffff_u16) << 32 | u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Which addresses a socket takes as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One.
    One(IpAddr),
    /// Any of IPv4.
    V4,
    /// Any.
    All,
}

impl Takes {
    pub(crate) fn of(local: IpAddr) -> Self {
        match local {
            _ if !local.is_unspecified() => Self::One(local),
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::All,
        }
    }

    /// Returns whether it takes an address, and how well it fits, as the kernel looks for sockets: its own address first, then those
    /// that take any, before those that take the other version of IP, too (`compute_score`, net/ipv4/udp.c).
    #[inline]
    pub(crate) fn fit(self, address: IpAddr) -> Option<u8> {
        match self {
            Self::One(own) => (own == address).then_some(2),
            Self::V4 => address.is_ipv4().then_some(1),
            Self::All => Some(u8::from(address.is_ipv6())),
        }
    }
}

/// Returns an end as sockets are found by it: an IPv4 address in IPv6 is that of IPv4.
pub(crate) fn plain(end: Endpoint) -> Endpoint {
    Endpoint { address: end.address.to_canonical(), port: end.port }
}

/// Returns where a socket is connected to. For the kernel, any address is its own.
pub(crate) fn destination(local: Endpoint, remote: Endpoint) -> Endpoint {
    let address = match remote.address {
        address if !address.is_unspecified() => address,
        _ if !local.address.is_unspecified() => local.address,
        IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    Endpoint { address, port: remote.port }
}
