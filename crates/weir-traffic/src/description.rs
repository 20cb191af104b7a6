//! What traffic is wanted.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::order::Order;
use crate::payload::Payload;
use crate::ranges::{Addresses, Ports};
use crate::sizes::Sizes;

/// Test traffic, as it is wanted; [`Tables::new`](crate::Tables::new) says whether it is possible. The same description
/// always gives the same frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Source and destination of the (outer) Ethernet header.
    pub macs: [[u8; 6]; 2],
    /// IDs of VLAN tags, the outer one first: two at most.
    pub vlans: Vec<u16>,
    /// The tunnel that frames are in.
    pub vxlan: Option<Vxlan>,
    /// What IP packets carry.
    pub protocol: Protocol,
    /// Source addresses. Their version is that of the packets.
    pub sources: Addresses,
    /// Destination addresses.
    pub destinations: Addresses,
    /// Source ports; with ICMP, identifiers.
    pub source_ports: Ports,
    /// Destination ports; with ICMP, sequence numbers.
    pub destination_ports: Ports,
    /// Number of flows: no two have the same addresses and ports.
    pub flows: u32,
    /// Addresses and ports of each flow are drawn from the ranges. Otherwise each range advances with each flow, and
    /// begins anew at its end.
    pub drawn: bool,
    /// The order of flows.
    pub order: Order,
    /// Sizes of frames; `None`: the shortest frame that is possible, at least 60 bytes.
    pub sizes: Option<Sizes>,
    /// What follows the signature.
    pub payload: Payload,
    /// Determines everything that is random.
    pub seed: u64,
}

/// A VXLAN tunnel over IPv4 (RFC 7348).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vxlan {
    /// Its network identifier: 24 bits.
    pub vni: u32,
    /// Source and destination address of the outer packets.
    pub ends: [Ipv4Addr; 2],
}

/// What IP packets carry. As text: `udp`, `icmp`, `tcp` (with the flag ack), `tcp:syn,ack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP.
    Udp,
    /// TCP with these flags, as in byte 13 of its header.
    Tcp(u8),
    /// Requests of ICMP echo, over IPv6 those of ICMPv6.
    Icmp,
}

/// Names of TCP flags, from the lowest bit on.
const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

impl Description {
    /// A locally administered address: sources of frames.
    pub const SOURCE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    /// A locally administered address: destinations of frames.
    pub const DESTINATION_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Returns the description of one flow of UDP packets, over IPv6 if `v6`. Addresses are from the ranges for benchmarks
    /// (RFC 2544, RFC 5180), source ports dynamic ones from 50000 on (tcpdump knows 49152 as a protocol of its own), and the
    /// destination port is 9 (discard).
    pub fn new(v6: bool) -> Self {
        let (first, last, to): (IpAddr, IpAddr, IpAddr) = if v6 {
            let of = |network: u16, host: u16| Ipv6Addr::new(0x2001, 2, 0, network, 0, 0, 0, host).into();
            (of(0, 1), of(0, 0xffff), of(1, 1))
        } else {
            let of = |third: u8, host: [u8; 2]| Ipv4Addr::new(198, third, host[0], host[1]).into();
            (of(18, [0, 1]), of(18, [255, 254]), of(19, [0, 1]))
        };
        Self {
            macs: [Self::SOURCE_MAC, Self::DESTINATION_MAC],
            vlans: Vec::new(),
            vxlan: None,
            protocol: Protocol::Udp,
            sources: Addresses::new(first, last).expect("a range"),
            destinations: Addresses::new(to, to).expect("a range"),
            source_ports: Ports::new(50_000, 65_535).expect("a range"),
            destination_ports: Ports::new(9, 9).expect("a range"),
            flows: 1,
            drawn: false,
            order: Order::Turn,
            sizes: None,
            payload: Payload::Zeros,
            seed: 1,
        }
    }
}

impl Vxlan {
    /// Returns a tunnel between addresses for benchmarks.
    pub fn new(vni: u32) -> Self {
        Self { vni, ends: [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1)] }
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed: udp, icmp, tcp, or tcp with flags, such as tcp:syn,ack";
        let lower = text.to_ascii_lowercase();
        match (lower.as_str(), lower.split_once(':')) {
            ("udp", _) => Ok(Self::Udp),
            ("icmp", _) => Ok(Self::Icmp),
            ("tcp", _) => Ok(Self::Tcp(0b1_0000)),
            (_, Some(("tcp", names))) => {
                let mut flags = 0;
                for name in names.split(',').filter(|_| names != "none") {
                    let bit = FLAGS.iter().position(|flag| *flag == name);
                    let known = || format!("there is no flag `{name}`: {}, or none", FLAGS.join(", "));
                    flags |= 1 << bit.ok_or_else(known)?;
                }
                Ok(Self::Tcp(flags))
            }
            _ => Err(format!("`{text}` is no protocol; {ALLOWED}")),
        }
    }
}

/// What is impossible in a description: where, why, and what to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The part of the description.
    pub field: DescriptionField,
    /// What is wrong with it.
    pub why: String,
    /// What to try.
    pub remedy: String,
}

/// A part of a [`Description`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the fields of a description")]
pub enum DescriptionField {
    Vlans,
    Vxlan,
    Destinations,
    Flows,
    Order,
    Sizes,
    Payload,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field {
            DescriptionField::Vlans => "these VLAN tags",
            DescriptionField::Vxlan => "this tunnel",
            DescriptionField::Destinations => "these destination addresses",
            DescriptionField::Flows => "so many flows",
            DescriptionField::Order => "this order of flows",
            DescriptionField::Sizes => "these sizes",
            DescriptionField::Payload => "this payload",
        };
        write!(f, "cannot make frames with {field}: {}; try {}", self.why, self.remedy)
    }
}

impl Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_as_text() {
        for (text, protocol) in [
            ("udp", Protocol::Udp),
            ("ICMP", Protocol::Icmp),
            ("tcp", Protocol::Tcp(0x10)),
            ("tcp:syn", Protocol::Tcp(2)),
            ("tcp:SYN,ack", Protocol::Tcp(0x12)),
            ("tcp:none", Protocol::Tcp(0)),
            ("tcp:fin,psh,urg,cwr", Protocol::Tcp(0xa9)),
        ] {
            assert_eq!(text.parse(), Ok(protocol), "{text}");
        }
        for (text, why) in
            [("", "no protocol"), ("sctp", "no protocol"), ("udp:syn", "no protocol"), ("tcp:", "no flag ``")]
        {
            let error = text.parse::<Protocol>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
