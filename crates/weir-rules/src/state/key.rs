//! By what packets are told apart.

use std::net::IpAddr;

use weir_filter::interpret::Packet;
use weir_packet::{Endpoint, Flow, FlowDirection, link};

use crate::action::Key;

/// The flow of a packet, both directions together, in its VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    /// ID of the outermost VLAN tag.
    vlan: Option<u16>,
    flow: Flow,
}

/// One direction of a flow, in its VLAN: what a learned rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exact {
    vlan: Option<u16>,
    protocol: u8,
    from: Endpoint,
    to: Endpoint,
}

/// Packets that share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LimitKey {
    /// They are not IP.
    NoAddress,
    Address(IpAddr),
    Flow(FlowKey),
}

impl Exact {
    /// Returns the direction of the outermost IP packet in a frame.
    pub(crate) fn of(link_type: u16, packet: &Packet<'_>) -> Option<Self> {
        let (flow, direction) = Flow::outer(link_type, packet.data)?;
        let vlan = match packet.meta.vlan {
            Some(stripped) => Some(stripped.tci & 0xfff),
            None => link::outermost_tag(link_type, packet.data).map(|tag| tag.id()),
        };
        let [low, high] = flow.ends;
        let (from, to) = match direction {
            FlowDirection::Up => (low, high),
            FlowDirection::Down => (high, low),
        };
        Some(Self { vlan, protocol: flow.protocol, from, to })
    }

    /// Returns the other direction.
    pub(crate) fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }

    /// Returns the flow.
    pub(crate) fn flow(self) -> FlowKey {
        FlowKey { vlan: self.vlan, flow: Flow::between(self.protocol, self.from, self.to).0 }
    }
}

impl LimitKey {
    /// Returns the key of a packet that is `exact`.
    pub(crate) fn of(key: Key, exact: Option<Exact>) -> Self {
        match (exact, key) {
            (None, _) => Self::NoAddress,
            (Some(exact), Key::Source) => Self::Address(exact.from.address),
            (Some(exact), Key::Destination) => Self::Address(exact.to.address),
            (Some(exact), Key::Flow) => Self::Flow(exact.flow()),
        }
    }
}
