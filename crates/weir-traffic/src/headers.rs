//! The headers of a flow's frames.

use std::net::IpAddr;

use weir_packet::ethertype::{IPV4, IPV6, SERVICE_VLAN, VLAN};
use weir_packet::port;
use weir_packet::protocol::{ICMP, ICMPV6, TCP, UDP};

use crate::checksum::{fold, sum};
use crate::description::{Description, Protocol};
use crate::flows::Flow;

const HOPS: u8 = 64;

/// A field that holds the size of the frame minus something, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Its offset.
    pub at: u16,
    /// What is subtracted.
    pub minus: u16,
}

/// A checksum that depends on the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Its offset.
    pub at: u16,
    /// How many times it covers the size.
    pub weight: u8,
    /// 0 is written as all ones, as in UDP.
    pub never_zero: bool,
}

/// Headers without what depends on the size.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lengths: Vec<Length>,
    /// Each with the one's complement sum of what it covers in a frame of size 0, if there were one.
    pub(crate) checksums: Vec<(Checksum, u16)>,
}

impl Headers {
    pub(crate) fn new(description: &Description, flow: &Flow) -> Self {
        let mut headers = Self::default();
        let inner = if flow.source.is_ipv4() { IPV4 } else { IPV6 };
        let vlans = &description.vlans;
        match description.vxlan {
            None => headers.ethernet(description.macs, vlans, inner),
            Some(vxlan) => {
                headers.ethernet(description.macs, vlans, IPV4);
                headers.ip(vxlan.ends.map(IpAddr::V4), UDP);
                headers.lengths.push(Length { at: headers.place() + 4, minus: headers.place() });
                headers.words(&[flow.entropy(), port::VXLAN, 0, 0]);
                headers.bytes.extend([8, 0, 0, 0]);
                headers.bytes.extend((vxlan.vni << 8).to_be_bytes());
                headers.ethernet([Description::SOURCE_MAC, Description::DESTINATION_MAC], &[], inner);
            }
        }
        headers.inside(description.protocol, flow);
        headers
    }

    fn ethernet(&mut self, [source, destination]: [[u8; 6]; 2], vlans: &[u16], payload: u16) {
        self.bytes.extend(destination);
        self.bytes.extend(source);
        for (at, &id) in vlans.iter().enumerate() {
            self.words(&[if at + 1 < vlans.len() { SERVICE_VLAN } else { VLAN }, id]);
        }
        self.words(&[payload]);
    }

    fn ip(&mut self, ends: [IpAddr; 2], protocol: u8) {
        let begin = self.place();
        match ends {
            [IpAddr::V4(source), IpAddr::V4(destination)] => {
                self.lengths.push(Length { at: begin + 2, minus: begin });
                // Do not fragment, so that the identification may be 0 (RFC 6864).
                self.words(&[0x4500, 0, 0, 0x4000]);
                self.bytes.extend([HOPS, protocol, 0, 0]);
                self.bytes.extend(source.octets());
                self.bytes.extend(destination.octets());
                let covered = sum(&[&self.bytes[begin.into()..]]).into();
                self.checksum(Checksum { at: begin + 10, weight: 1, never_zero: false }, covered, begin);
            }
            [IpAddr::V6(source), IpAddr::V6(destination)] => {
                self.lengths.push(Length { at: begin + 4, minus: begin + 40 });
                self.words(&[0x6000, 0, 0]);
                self.bytes.extend([protocol, HOPS]);
                self.bytes.extend(source.octets());
                self.bytes.extend(destination.octets());
            }
            _ => unreachable!("both ends of a flow are of one version"),
        }
    }

    /// Appends the IP header and what follows it.
    fn inside(&mut self, protocol: Protocol, flow: &Flow) {
        let (v6, ports) = (flow.source.is_ipv6(), [flow.source_port, flow.destination_port]);
        let number = match protocol {
            Protocol::Udp => UDP,
            Protocol::Tcp(_) => TCP,
            Protocol::Icmp if v6 => ICMPV6,
            Protocol::Icmp => ICMP,
        };
        self.ip([flow.source, flow.destination], number);
        let begin = self.place();
        let pseudo = addresses(flow) + u32::from(number);
        // What precedes the packet in the checksum, the field, and how often the length is in it.
        let (pseudo, at, weight) = match protocol {
            Protocol::Udp => {
                self.lengths.push(Length { at: begin + 4, minus: begin });
                self.words(&[ports[0], ports[1], 0, 0]);
                (pseudo, 6, 2)
            }
            Protocol::Tcp(flags) => {
                self.words(&[ports[0], ports[1], 0, 1, 0, 0, 0x5000 | u16::from(flags), 0xffff, 0, 0]);
                (pseudo, 16, 1)
            }
            Protocol::Icmp => {
                self.words(&[if v6 { 0x8000 } else { 0x0800 }, 0, ports[0], ports[1]]);
                if v6 { (pseudo, 2, 1) } else { (0, 2, 0) }
            }
        };
        let covered = pseudo + u32::from(sum(&[&self.bytes[begin.into()..]]));
        let never_zero = protocol == Protocol::Udp;
        self.checksum(Checksum { at: begin + at, weight, never_zero }, covered, begin);
    }

    /// Adds a checksum that covers so much, and as often as it has `weight` the size less `minus`.
    fn checksum(&mut self, checksum: Checksum, covered: u32, minus: u16) {
        // In one's complement, adding the complement subtracts.
        let sum = covered + u32::from(checksum.weight) * u32::from(!minus);
        self.checksums.push((checksum, fold(sum.into())));
    }

    /// Returns the offset of what comes next.
    fn place(&self) -> u16 {
        u16::try_from(self.bytes.len()).expect("headers are short")
    }

    fn words(&mut self, words: &[u16]) {
        self.bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }
}

/// Returns the sum of the addresses.
fn addresses(flow: &Flow) -> u32 {
    let one = |address| match address {
        IpAddr::V4(address) => u32::from(sum(&[&address.octets()])),
        IpAddr::V6(address) => u32::from(sum(&[&address.octets()])),
    };
    one(flow.source) + one(flow.destination)
}
