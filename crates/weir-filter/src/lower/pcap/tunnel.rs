//! `geneve` and `vxlan`: later terms look at the inner frame, whose place depends on the length of the IP header.

use super::condition::Condition;
use super::kind::TRANSPARENT_BRIDGING;
use super::layers::Link;
use super::layers::{From, Place};
use super::port::{Ports, UDP};
use super::{Lowered, Lowering};
use crate::ast::Direction;
use crate::graph::{Operation, Relation, ValueId, Width};

impl Lowering<'_> {
    /// Lowers `geneve` (RFC 8926): version 0, with or without options, carrying a frame or a packet.
    pub(super) fn geneve(&mut self, network: Option<u32>) -> Lowered {
        let (is_geneve, header) = self
            .over_udp(6081, network, |this, transport| this.masked((transport, 8, Width::Byte), 0xc0, 0))?;
        let first = self.graph.load(Some(header), 0, Width::Byte);
        let words = self.graph.with(Operation::And, first, 0x3f);
        let options = self.graph.with(Operation::Multiply, words, 4);
        let length = self.graph.with(Operation::Add, options, 8);
        let end = self.graph.binary(Operation::Add, length, header);
        let carried = self.graph.load(Some(header), 2, Width::Half);
        let is_frame = self.compare(Relation::Equal, carried, TRANSPARENT_BRIDGING);

        let [frame, kind, payload] = [0; 3].map(|_| self.graph.slot());
        let own_kind = self.graph.with(Operation::Add, header, 2);
        let [frame_kind, frame_payload] = [12, 14].map(|bytes| self.graph.with(Operation::Add, end, bytes));
        let inside = is_frame.choose(
            Condition::Note(kind, frame_kind).and(Condition::Note(payload, frame_payload)),
            Condition::Note(kind, own_kind).and(Condition::Note(payload, end)),
        );
        let found = Condition::All(vec![is_geneve, Condition::Note(frame, end), inside]);
        self.layers.enter(Link::Ethernet, Place::in_slot(frame));
        self.layers.kind = Place::in_slot(kind);
        self.layers.payload = Place::in_slot(payload);
        self.layers.network = 0;
        self.layers.tunnel = true;
        Ok(found)
    }

    /// Lowers `vxlan` (RFC 7348), which libpcap supports from 1.11 on. It always carries a frame.
    pub(super) fn vxlan(&mut self, network: Option<u32>) -> Lowered {
        let (is_vxlan, header) =
            self.over_udp(4789, network, |this, transport| this.field(transport, 8, Width::Byte, 0x08))?;
        let [frame, payload] = [0; 2].map(|_| self.graph.slot());
        let [begin, end] = [8, 22].map(|bytes| self.graph.with(Operation::Add, header, bytes));
        let found =
            Condition::All(vec![is_vxlan, Condition::Note(frame, begin), Condition::Note(payload, end)]);
        self.layers.enter(Link::Ethernet, Place::in_slot(frame));
        self.layers.kind = self.layers.link_header.plus(12);
        self.layers.payload = Place::in_slot(payload);
        self.layers.network = 0;
        self.layers.tunnel = true;
        Ok(found)
    }

    /// Tests for UDP to `port`, over IPv4 or IPv6, followed by a header for which `test` is true and whose second word
    /// holds the network identifier. Also returns the place of that header.
    fn over_udp(
        &mut self,
        port: u16,
        network: Option<u32>,
        test: impl Fn(&mut Self, From) -> Condition,
    ) -> Result<(Condition, ValueId), String> {
        let length = self.graph.slot();
        let ipv4_length = self.behind_ipv4();
        let forty = self.graph.constant(40);
        let ipv6_length = match self.base(self.layers.payload) {
            Some(base) => self.graph.binary(Operation::Add, forty, base),
            None => forty,
        };
        let mut families = Vec::new();
        for (transport, value) in [(From::Transport4, ipv4_length), (From::Transport6, ipv6_length)] {
            let ports = self.ports_in(transport, &[UDP], Direction::Destination, Ports::One(port))?;
            let mut all = vec![ports, test(self, transport)];
            if let Some(network) = network {
                all.push(self.masked((transport, 12, Width::Word), 0xffff_ff00, network << 8));
            }
            all.push(Condition::Note(length, value));
            families.push(Condition::All(all));
        }
        let length = self.slot(length);
        let header = self.graph.with(Operation::Add, length, self.network().plus(8).constant);
        Ok((Condition::Any(families), header))
    }
}
