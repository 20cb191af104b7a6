//! What a packet says about its flow.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use weir_packet::protocol::{ICMP, ICMPV6, TCP};
use weir_packet::{Endpoint, Extent, Fragment, Ip, Layer, Version, Walk, What, ethertype};

use crate::flow::Icmp;
use crate::fragments::Datagram;
use crate::settings::Settings;

/// A packet, as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// When, in nanoseconds since the Unix epoch.
    pub time: u64,
    /// The index of its interface.
    pub interface: u16,
    /// `LINKTYPE_*` (tcpdump.org/linktypes.html).
    pub link_type: u16,
    /// The bytes that were captured.
    pub frame: &'a [u8],
    /// Bytes on the wire.
    pub length: u32,
}

/// Which flow it is; both directions have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Addresses, the lower end first; those of IPv4 have four bytes, and zeros behind them.
    pub(crate) addresses: [[u8; 16]; 2],
    pub(crate) ports: [u16; 2],
    pub(crate) tunnel: u32,
    pub(crate) vlan: u16,
    pub(crate) interface: u16,
    pub(crate) protocol: u8,
    /// Of `IS_V6` and `HAS_TUNNEL`.
    pub(crate) kind: u8,
}

pub(crate) const IS_V6: u8 = 1;
pub(crate) const HAS_TUNNEL: u8 = 2;
/// No tag.
pub(crate) const UNTAGGED: u16 = u16::MAX;

impl Hash for Key {
    /// In words: a hasher takes many small writes for many.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for address in self.addresses {
            hasher.write_u128(u128::from_ne_bytes(address));
        }
        let [low, high] = self.ports.map(u64::from);
        let (tunnel, vlan) = (u64::from(self.tunnel), u64::from(self.vlan));
        hasher.write_u64(low | high << 16 | tunnel << 32);
        hasher.write_u64(
            vlan | u64::from(self.interface) << 16
                | u64::from(self.protocol) << 32
                | u64::from(self.kind) << 40,
        );
    }
}

impl Key {
    /// Returns one of its ends.
    pub(crate) fn end(&self, index: usize) -> Endpoint {
        let bytes = self.addresses[index];
        let address = match self.kind & IS_V6 {
            0 => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
            _ => IpAddr::from(bytes),
        };
        Endpoint { address, port: self.ports[index] }
    }
}

/// Flags of TCP.
pub(crate) mod flag {
    pub(crate) const FIN: u8 = 1;
    pub(crate) const SYN: u8 = 2;
    pub(crate) const RST: u8 = 4;
    pub(crate) const ACK: u8 = 16;
}

/// A header of TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSeen {
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) window: u16,
    /// Bytes behind the header.
    pub(crate) payload: u32,
}

/// What the packet says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) key: Key,
    /// Which end of the key has sent it.
    pub(crate) from: usize,
    /// Bytes of the IP packet.
    pub(crate) bytes: u64,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    /// Addresses of sender and receiver.
    pub(crate) macs: Option<[[u8; 6]; 2]>,
    pub(crate) tcp: Option<TcpSeen>,
    pub(crate) icmp: Option<Icmp>,
    pub(crate) part: Part,
}

/// What part of a datagram it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Whole,
    First(Datagram),
    /// Its ports are in the first.
    Later(Datagram),
}

/// Why a packet belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    NotIp,
    Cut,
}

/// The IP packet that a flow is about.
struct Found {
    at: usize,
    ip: Ip,
    vlan: u16,
    tunnel: Option<u32>,
    ethernet: Option<usize>,
}

impl Seen {
    #[inline]
    pub(crate) fn of(observation: &Observation<'_>, settings: &Settings) -> Result<Self, Unseen> {
        let frame = observation.frame;
        let Found { at, ip, vlan, tunnel, ethernet } = find(observation, settings.inner)?;
        let packet = &frame[at..];
        if ip.extent == Extent::Cut || ip.length.is_some_and(|length| length < ip.payload) {
            return Err(Unseen::Cut);
        }
        let length = ip.length.unwrap_or_else(|| (observation.length as usize).saturating_sub(at));
        let [from, to] = ip.addresses().map(|range| {
            let mut address = [0; 16];
            address[..range.len()].copy_from_slice(&packet[range]);
            address
        });
        let has_ports = weir_packet::protocol::has_ports(ip.protocol) && ip.extent == Extent::Complete;
        let ports = match ip.ports(packet) {
            Some(ports) => ports,
            None if has_ports && !ip.is_later() => return Err(Unseen::Cut),
            None => [0; 2],
        };
        let datagram =
            |Fragment { identification, .. }| Datagram { from, to, identification, protocol: ip.protocol };
        let part = match ip.fragment {
            None => Part::Whole,
            // No ports to look for.
            Some(_) if !has_ports => Part::Whole,
            Some(fragment) if fragment.is_later() => Part::Later(datagram(fragment)),
            Some(fragment) => Part::First(datagram(fragment)),
        };
        let payload = ip.payload_of(packet);
        let behind = length - ip.payload;
        let (tcp, icmp) = match ip.protocol {
            _ if ip.is_later() || ip.extent != Extent::Complete => (None, None),
            TCP => (tcp(payload, behind), None),
            ICMP | ICMPV6 => (None, payload.first_chunk().map(|&[kind, code]| Icmp { kind, code })),
            _ => (None, None),
        };
        let (ttl, tos, version) = match ip.version {
            Version::V4 => (packet[8], packet[1], 0),
            Version::V6 => (packet[7], packet[0] << 4 | packet[1] >> 4, IS_V6),
        };
        let mut key = Key {
            addresses: [from, to],
            ports,
            tunnel: tunnel.unwrap_or_default(),
            vlan,
            interface: if settings.across_interfaces { 0 } else { observation.interface },
            protocol: ip.protocol,
            kind: version | if tunnel.is_some() { HAS_TUNNEL } else { 0 },
        };
        let from = order(&mut key);
        let macs = ethernet.and_then(|at| frame.get(at..)?.first_chunk::<12>()).map(|bytes| {
            let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
            [[g, h, i, j, k, l], [a, b, c, d, e, f]]
        });
        Ok(Self { key, from, bytes: length as u64, ttl, tos, macs, tcp, icmp, part })
    }

    /// Gives a later fragment the ports of the first.
    pub(crate) fn set_ports(&mut self, ports: [u16; 2]) {
        self.key.ports = ports;
        if self.from == 1 {
            self.key.addresses.swap(0, 1);
        }
        self.from = order(&mut self.key);
    }

    /// The ports of source and destination.
    pub(crate) fn ports(&self) -> [u16; 2] {
        [self.key.ports[self.from], self.key.ports[1 - self.from]]
    }
}

/// Puts the lower end first. The key has source and destination; returns where the source went.
pub(crate) fn order(key: &mut Key) -> usize {
    let [from, to] = [0, 1].map(|end| (key.addresses[end], key.ports[end]));
    if from <= to {
        return 0;
    }
    key.addresses.swap(0, 1);
    key.ports.swap(0, 1);
    1
}

/// Finds the IP packet, and what is in front of it.
#[inline]
fn find(observation: &Observation<'_>, inner: bool) -> Result<Found, Unseen> {
    let (mut vlan, mut ethernet, mut tunnel) = (UNTAGGED, None, None);
    let mut found: Option<(usize, Ip, Option<usize>)> = None;
    for layer in Walk::new(observation.link_type, observation.frame) {
        match layer {
            Layer::Ethernet { at } => ethernet = Some(at),
            Layer::Tag(tag) if vlan == UNTAGGED && found.is_none() => vlan = tag.id(),
            Layer::Ip { at, ip } => {
                if found.is_some() && !inner {
                    break;
                }
                found = Some((at, ip, ethernet.take()));
            }
            Layer::Tunnel { entry, .. } => {
                tunnel = entry.number.or(tunnel);
                if !inner {
                    break;
                }
            }
            Layer::Rest { what, extent, .. } if found.is_none() => {
                let is_ip = matches!(what, What::Kind(ethertype::IPV4 | ethertype::IPV6));
                return Err(if is_ip || extent == Extent::Cut { Unseen::Cut } else { Unseen::NotIp });
            }
            _ => {}
        }
    }
    let (at, ip, ethernet) = found.ok_or(Unseen::NotIp)?;
    Ok(Found { at, ip, vlan, tunnel, ethernet })
}

/// Reads a header of TCP. `length`: bytes of it and its payload, also of those that were not captured.
fn tcp(bytes: &[u8], length: usize) -> Option<TcpSeen> {
    let head: &[u8; 16] = bytes.first_chunk()?;
    let header = usize::from(head[12] >> 4) * 4;
    Some(TcpSeen {
        flags: head[13],
        sequence: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
        window: u16::from_be_bytes([head[14], head[15]]),
        payload: u32::try_from(length.saturating_sub(header)).unwrap_or(u32::MAX),
    })
}
