//! By what sockets are found.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_packet::Endpoint;

/// An address as a number, that of IPv4 as IPv6 has it: so both of its forms are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Address(u128);

/// What addresses of IPv4 have in front, behind 80 bits of 0 (RFC 4291, 2.5.5.2).
const V4: u128 = 0xffff;

impl Address {
    /// In the key of a socket that has any address; no packet with ports comes from `::`.
    pub(crate) const ANY: Self = Self(0);

    #[inline]
    pub(crate) fn v4(bits: u32) -> Self {
        Self(V4 << 32 | u128::from(bits))
    }

    #[inline]
    pub(crate) fn v6(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::v4(address.to_bits()),
            IpAddr::V6(address) => Self::v6(address.to_bits()),
        }
    }

    pub(crate) fn ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self.0).to_canonical()
    }

    /// Returns whether it stands for a group, or for all hosts of a network.
    #[inline]
    pub(crate) fn is_many(self) -> bool {
        const GROUP_V4: u128 = 0b1110;
        const GROUP_V6: u128 = 0xff;
        const ALL: u128 = V4 << 32 | 0xffff_ffff;
        self.0 >> 28 == V4 << 4 | GROUP_V4 || self.0 >> 120 == GROUP_V6 || self.0 == ALL
    }

    #[inline]
    fn is_v4(self) -> bool {
        self.0 >> 32 == V4
    }
}

/// An end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) address: Address,
    pub(crate) port: u16,
}

/// By what a socket is found. Other than connections: a socket without another end by its port, one that has another end but no port
/// yet by that end, a raw one by its protocol; what is missing is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    namespace: u64,
    local: Address,
    remote: Address,
    /// The ports, local and remote, and the protocol.
    rest: u64,
}

impl Key {
    #[inline]
    fn new(namespace: u64, protocol: u8, local: End, remote: End) -> Self {
        let rest = u64::from(local.port) << 32 | u64::from(remote.port) << 16 | u64::from(protocol);
        Self { namespace, local: local.address, remote: remote.address, rest }
    }

    /// A packet's ends, as those of a socket with exactly these.
    #[inline]
    pub(crate) fn packet(namespace: u64, protocol: u8, local: End, remote: End) -> Self {
        Self::new(namespace, protocol, local, remote)
    }

    /// A socket with both ends. An unspecified address of its own is any.
    pub(crate) fn connected(namespace: u64, protocol: u8, local: Endpoint, remote: Endpoint) -> Self {
        let key = Self::new(namespace, protocol, local.into(), remote.into());
        if local.address.is_unspecified() { key.any_address() } else { key }
    }

    /// The same with any address of its own.
    pub(crate) fn any_address(self) -> Self {
        Self { local: Address::ANY, ..self }
    }

    /// A socket with a port and no other end.
    pub(crate) fn port(namespace: u64, protocol: u8, port: u16) -> Self {
        Self::new(namespace, protocol, End { port, ..NONE }, NONE)
    }

    /// A socket with another end and no port yet.
    pub(crate) fn remote(namespace: u64, protocol: u8, remote: End) -> Self {
        Self::new(namespace, protocol, NONE, remote)
    }

    /// A raw socket.
    pub(crate) fn raw(namespace: u64, protocol: u8) -> Self {
        Self::new(namespace, protocol, NONE, NONE)
    }
}

const NONE: End = End { address: Address::ANY, port: 0 };

impl From<Endpoint> for End {
    fn from(end: Endpoint) -> Self {
        Self { address: Address::of(end.address), port: end.port }
    }
}

/// Which addresses a socket takes as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One.
    One(Address),
    /// Any of IPv4.
    V4,
    /// Any.
    All,
}

impl Takes {
    pub(crate) fn of(local: IpAddr) -> Self {
        match local {
            _ if !local.is_unspecified() => Self::One(Address::of(local)),
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::All,
        }
    }

    /// Returns whether it takes an address, and how well it fits, as the kernel looks for sockets: its own address first, then those
    /// that take any, before those that take the other version of IP, too (`compute_score`, net/ipv4/udp.c).
    pub(crate) fn fit(self, address: Address) -> Option<u8> {
        match self {
            Self::One(own) => (own == address).then_some(2),
            Self::V4 => address.is_v4().then_some(1),
            Self::All => Some(u8::from(!address.is_v4())),
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
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    Endpoint { address, port: remote.port }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_broadcasts_are_many() {
        for (address, expected) in [
            ("224.0.0.1", true),
            ("239.255.255.255", true),
            ("255.255.255.255", true),
            ("::ffff:224.0.0.1", true),
            ("ff02::1", true),
            ("223.255.255.255", false),
            ("240.0.0.0", false),
            ("255.255.255.254", false),
            ("fe80::1", false),
            ("::", false),
            ("::1", false),
            ("::e000:1", false),
        ] {
            let ip: IpAddr = address.parse().expect("an address");
            assert_eq!(Address::of(ip).is_many(), expected, "{address}");
            assert_eq!(Address::of(ip).ip(), ip.to_canonical());
        }
    }
}
