//! Flows: which packets belong together.

use std::net::IpAddr;

use crate::ip::Ip;
use crate::link;
use crate::walk::{Layer, Walk};

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port; 0 if the protocol has none, and where it is cut or in another fragment.
    pub port: u16,
}

/// A flow: two ends and the protocol between them. Both directions are the same flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The protocol of IP, behind extension headers.
    pub protocol: u8,
    /// Both ends, the lower one first.
    pub ends: [Endpoint; 2],
}

/// Which way a packet of a flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowDirection {
    /// From the lower end to the higher one.
    Up,
    /// From the higher end to the lower one.
    Down,
}

impl Flow {
    /// Returns the flow from one end to another, and which way that is.
    #[inline]
    pub fn between(protocol: u8, from: Endpoint, to: Endpoint) -> (Self, FlowDirection) {
        if from <= to {
            (Self { protocol, ends: [from, to] }, FlowDirection::Up)
        } else {
            (Self { protocol, ends: [to, from] }, FlowDirection::Down)
        }
    }

    /// Returns the flow of an IP packet with this header.
    #[inline]
    pub fn of(ip: &Ip, packet: &[u8]) -> (Self, FlowDirection) {
        let [source, destination] = ip.ends(packet);
        let [from, to] = ip.ports(packet).unwrap_or_default();
        let (from, to) =
            (Endpoint { address: source, port: from }, Endpoint { address: destination, port: to });
        Self::between(ip.protocol, from, to)
    }

    /// Returns the flow of the outermost IP packet in a frame.
    #[inline]
    pub fn outer(link_type: u16, frame: &[u8]) -> Option<(Self, FlowDirection)> {
        let (ip, packet) = link::outermost_ip(link_type, frame)?.ip(frame)?;
        Some(Self::of(&ip, packet))
    }

    /// Returns the flow of the innermost IP packet in a frame, behind an EtherType wherever Ethernet has one or a length: not
    /// behind LLC.
    pub fn inner(link_type: u16, frame: &[u8]) -> Option<(Self, FlowDirection)> {
        let ip = |layer| match layer {
            Layer::Ip { at, ip } => Some((at, ip)),
            _ => None,
        };
        let (at, ip) = Walk::without_llc(link_type, frame).filter_map(ip).last()?;
        Some(Self::of(&ip, &frame[at..]))
    }
}
