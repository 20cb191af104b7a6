//! IPv6 extension headers (RFC 8200, section 4; AH: RFC 4302), unrolled because a graph has no cycles.

use super::extension::{AUTHENTICATION, FRAGMENT, OPTIONS};
use super::find::{Arrive, Search};
use super::place::{MOST_EXTENSIONS, Place, assign};
use super::stage::{Kind, Stage};
use super::terms::Chain;
use crate::graph::{Graph, NodeId, Operation, Relation, Slot, TermId, Test, Value, ValueId, Width};
use crate::lower::Ways;

/// Returns the term of tests on the header at `index`: few packets have more than one extension header.
fn further(index: usize) -> TermId {
    if index == 0 { TermId::NONE } else { TermId::RARE }
}

/// Returns the length of the extension header at `header`: its length field plus `more`, in units of `1 << shift`
/// bytes.
fn length(graph: &mut Graph, header: Place, more: u32, shift: u32) -> ValueId {
    let units = header.load(graph, 1, Width::Byte);
    let units = graph.with(Operation::Add, units, more);
    graph.with(Operation::ShiftLeft, units, shift)
}

impl Search<'_> {
    /// Locates the transport header of an IPv6 packet.
    pub(super) fn chain(&mut self, stage: Stage, to: Arrive<'_>) -> NodeId {
        if matches!(stage, Stage::Fixed(_)) { self.first(to) } else { self.walk(to) }
    }

    /// Tests whether there is an extension header at all.
    fn first(&mut self, to: Arrive<'_>) -> NodeId {
        let stage = Stage::Fixed(Kind::Ip6);
        let network = self.level.network(self.graph, stage);
        let next = network.load(self.graph, 6, Width::Byte);
        let number = self.graph.constant(0x86dd);
        let moved = to(Stage::Moved(Kind::Ip6));
        let moved = self.note_network(network, number, moved);
        let plain = to(Stage::Plain);
        let node = self.one_of(next, &OPTIONS, moved, plain);
        let node = self.one_of(next, &[FRAGMENT, AUTHENTICATION], moved, node);
        self.one_of(next, &[6, 17], plain, node)
    }

    /// Walks the headers.
    fn walk(&mut self, to: Arrive<'_>) -> NodeId {
        let network = self.level.network(self.graph, Stage::Moved(Kind::Ip6));
        let steps = self.level.slots.steps;
        let (found, later) = (to(Stage::Chained), to(Stage::Later));
        let mut deeper = None;
        for index in (0..=MOST_EXTENSIONS).rev() {
            self.term = further(index);
            let (header, number) = match index.checked_sub(1) {
                None => (network.plus(40), network.load(self.graph, 6, Width::Byte)),
                Some(step) => self.noted(steps[step]),
            };
            let done = self.note_transport(header, number, found);
            deeper = Some(match deeper {
                None => done,
                Some(next) => {
                    let behind = header.load(self.graph, 0, Width::Byte);
                    let later = assign(self.graph, self.level.slots.protocol, behind, later);
                    let node = self.extension(header, number, steps[index], (next, later), done);
                    if index == 0 { self.one_of(number, &[6, 17], done, node) } else { node }
                }
            });
        }
        deeper.expect("there is a first header")
    }

    /// Branches to `ways` on whether the chain contains the wanted header.
    pub(super) fn contains(
        &mut self,
        chain: Chain,
        steps: &[(Slot, Slot); MOST_EXTENSIONS],
        ways: Ways,
        term: TermId,
    ) -> NodeId {
        let mut deeper = ways.1;
        for index in (0..=MOST_EXTENSIONS).rev() {
            self.term = further(index);
            let (header, number) = match index.checked_sub(1) {
                None => (chain.header, chain.number),
                Some(step) => self.noted(steps[step]),
            };
            if let Some(&step) = steps.get(index) {
                deeper = if chain.ip6 {
                    let behind = header.load(self.graph, 0, Width::Byte);
                    let later = self.graph.equals(behind, chain.wanted, ways, term);
                    self.extension(header, number, step, (deeper, later), ways.1)
                } else {
                    let next = self.authentication(header, step, deeper);
                    self.equals(number, AUTHENTICATION, next, ways.1)
                };
            }
            deeper = self.graph.equals(number, chain.wanted, (ways.0, deeper), term);
        }
        deeper
    }

    fn noted(&mut self, (at, number): (Slot, Slot)) -> (Place, ValueId) {
        (Place::noted(self.graph, at), self.graph.value(Value::Slot(number)))
    }

    /// Skips the header at `header` if `number` is one that is walked.
    fn extension(
        &mut self,
        header: Place,
        number: ValueId,
        step: (Slot, Slot),
        (next, later): (NodeId, NodeId),
        done: NodeId,
    ) -> NodeId {
        let authentication = self.authentication(header, step, next);
        let options = length(self.graph, header, 1, 3);
        let options = self.pass(header, options, step, next);
        let eight = self.graph.constant(8);
        let fragment = self.pass(header, eight, step, next);
        let piece = header.load(self.graph, 2, Width::Half);
        let offset = self.graph.constant(0xfff8);
        let test = Test::Compare { relation: Relation::AnyBit, left: piece, right: offset };
        let fragment = self.graph.branch(test, later, fragment, self.term);

        let node = self.one_of(number, &OPTIONS, options, done);
        let node = self.equals(number, AUTHENTICATION, authentication, node);
        self.equals(number, FRAGMENT, fragment, node)
    }

    /// Skips an authentication header.
    fn authentication(&mut self, header: Place, step: (Slot, Slot), next: NodeId) -> NodeId {
        let length = length(self.graph, header, 2, 2);
        self.pass(header, length, step, next)
    }

    /// Assigns the start and number of the header that follows one of this length.
    fn pass(&mut self, header: Place, length: ValueId, (at, number): (Slot, Slot), next: NodeId) -> NodeId {
        let behind = header.load(self.graph, 0, Width::Byte);
        let next = assign(self.graph, number, behind, next);
        let place = header.plus_value(self.graph, length).value(self.graph);
        assign(self.graph, at, place, next)
    }

    /// Assigns the start and number of the transport header.
    pub(super) fn note_transport(&mut self, place: Place, number: ValueId, next: NodeId) -> NodeId {
        let place = place.value(self.graph);
        let next = assign(self.graph, self.level.slots.protocol, number, next);
        assign(self.graph, self.level.slots.transport, place, next)
    }
}
