//! Steps that locate headers. Their nodes lead to a stage for each possible outcome.

use super::link::{MOST_TAGS, Numbers, TAGS};
use super::place::{Level, Place, assign};
use super::stage::{Find, Kind, Stage};
use crate::graph::{Graph, NodeId, Operation, Relation, Slot, TermId, Test, ValueId, Width};

/// A step at a level.
pub(super) struct Search<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) level: &'a Level,
    /// Kinds of network header that the expression distinguishes.
    pub(super) asked: &'a [Kind],
    /// Term to attribute tests to: [`TermId::NONE`] or [`TermId::RARE`].
    pub(super) term: TermId,
}

/// Returns where to continue when a stage is reached.
pub(super) type Arrive<'a> = &'a mut dyn FnMut(Stage) -> NodeId;

impl<'a> Search<'a> {
    pub(super) fn new(graph: &'a mut Graph, level: &'a Level, asked: &'a [Kind]) -> Self {
        Self { graph, level, asked, term: TermId::NONE }
    }
}

impl Search<'_> {
    /// Builds the step `find` from `stage`.
    pub(super) fn find(&mut self, find: Find, stage: Stage, to: Arrive<'_>) -> NodeId {
        match find {
            Find::Kept => self.kept(to),
            Find::Payload => self.payload(to),
            Find::Tags => self.tags(to),
            Find::Network => self.network(stage, to),
            Find::Transport => self.chain(stage, to),
        }
    }

    pub(super) fn equals(&mut self, value: ValueId, number: u32, then: NodeId, other: NodeId) -> NodeId {
        self.graph.equals(value, number, (then, other), self.term)
    }

    /// Branches on whether any bit of `mask` is set in `value`.
    pub(super) fn any_bit(&mut self, value: ValueId, mask: u32, then: NodeId, other: NodeId) -> NodeId {
        let right = self.graph.constant(mask);
        let test = Test::Compare { relation: Relation::AnyBit, left: value, right };
        self.graph.branch(test, then, other, self.term)
    }

    pub(super) fn one_of(
        &mut self,
        value: ValueId,
        numbers: &[u32],
        then: NodeId,
        mut other: NodeId,
    ) -> NodeId {
        for &number in numbers.iter().rev() {
            other = self.equals(value, number, then, other);
        }
        other
    }

    pub(super) fn assign_number(&mut self, slot: Slot, number: u32, next: NodeId) -> NodeId {
        let number = self.graph.constant(number);
        assign(self.graph, slot, number, next)
    }

    /// Returns from the inner packet: slots hold what was found before.
    fn kept(&mut self, to: Arrive<'_>) -> NodeId {
        let kind = self.level.kind(self.graph, Stage::Kept);
        let mut node = to(Stage::Held(Kind::Other));
        for (number, stage) in [(0x86dd, Stage::Chained), (0x0800, Stage::Held(Kind::Ip4))] {
            let then = to(stage);
            node = self.equals(kind, number, then, node);
        }
        node
    }

    /// Tests for a VLAN tag.
    fn tags(&mut self, to: Arrive<'_>) -> NodeId {
        let header = self.level.link_header(self.graph);
        let kind = header.load(self.graph, self.level.link.kind, Width::Half);
        let (tagged, untagged) = (to(Stage::Tagged), to(Stage::Untagged));
        self.one_of(kind, &TAGS, tagged, untagged)
    }

    /// Locates and identifies the network header.
    fn network(&mut self, stage: Stage, to: Arrive<'_>) -> NodeId {
        let link = self.level.link;
        match link.numbers {
            Numbers::Only(kind) => to(Stage::Fixed(kind)),
            Numbers::Version => {
                let header = Place::fixed(0);
                let ways = [Kind::Ip4, Kind::Ip6, Kind::Other].map(|kind| to(Stage::Fixed(kind)));
                self.version(header, ways)
            }
            _ if link.unframed => {
                let framed = self.behind(0, None, to);
                let unframed = self.unframed(to);
                // The first byte of a protocol number is even (RFC 1661), that of an address is odd.
                let first = self.graph.load(None, 0, Width::Byte);
                let odd = self.graph.with(Operation::And, first, 1);
                self.equals(odd, 0, unframed, framed)
            }
            _ => {
                let fewest = u32::from(stage == Stage::Tagged);
                let most = if link.has_tags() && stage != Stage::Untagged { MOST_TAGS } else { 0 };
                let mut node = None;
                for tags in (fewest..=most).rev() {
                    node = Some(self.behind(tags, node, to));
                }
                node.expect("a frame with the fewest tags is looked at")
            }
        }
    }

    /// Branches on the version in an IP header's first byte: IPv4, IPv6 or other.
    pub(super) fn version(&mut self, header: Place, [ip4, ip6, other]: [NodeId; 3]) -> NodeId {
        let first = header.load(self.graph, 0, Width::Byte);
        let version = self.graph.with(Operation::And, first, 0xf0);
        let not_ip4 = self.equals(version, 0x60, ip6, other);
        self.equals(version, 0x40, ip4, not_ip4)
    }

    /// Tests the number after `tags` tags; another tag continues at `deeper`.
    fn behind(&mut self, tags: u32, deeper: Option<NodeId>, to: Arrive<'_>) -> NodeId {
        let link = self.level.link;
        let header = self.level.link_header(self.graph);
        let number = header.load(self.graph, link.kind_behind(tags), link.width());
        let place = header.plus(link.header + 4 * tags);
        let fixed = tags == 0 && !self.level.is_noted();
        let mut node = self.arrive(fixed, place, Kind::Other, number, to);
        if let Some(deeper) = deeper {
            node = self.one_of(number, &TAGS, deeper, node);
        }
        for &kind in self.asked.iter().rev() {
            let numbers = link.numbers_of(kind);
            if !numbers.is_empty() {
                let there = self.arrive(fixed, place, kind, number, to);
                node = self.one_of(number, &numbers, there, node);
            }
        }
        node
    }

    /// Handles PPP that begins with the protocol number.
    fn unframed(&mut self, to: Arrive<'_>) -> NodeId {
        let link = self.level.link;
        let number = self.graph.load(None, 0, link.width());
        let place = Place::fixed(2);
        let mut node = self.arrive(false, place, Kind::Other, number, to);
        for &kind in self.asked.iter().rev() {
            let there = self.arrive(false, place, kind, number, to);
            node = self.one_of(number, &link.numbers_of(kind), there, node);
        }
        node
    }

    fn arrive(&mut self, fixed: bool, place: Place, kind: Kind, number: ValueId, to: Arrive<'_>) -> NodeId {
        if fixed {
            return to(Stage::Fixed(kind));
        }
        let number = match kind.ether_type() {
            Some(ether_type) => self.graph.constant(ether_type.into()),
            None => number,
        };
        let next = to(Stage::Moved(kind));
        self.note_network(place, number, next)
    }

    /// Assigns the start and number of the network header.
    pub(super) fn note_network(&mut self, place: Place, number: ValueId, next: NodeId) -> NodeId {
        let place = place.value(self.graph);
        let next = assign(self.graph, self.level.slots.kind, number, next);
        assign(self.graph, self.level.slots.network, place, next)
    }
}
