//! Upper bounds of values, over all packets.

use crate::graph::{Graph, Meta, Node, Operation, Value, ValueId, Width};

/// Rounds in which the bounds of slots, which may depend on each other, may grow before they are dropped.
const ROUNDS: usize = 16;

/// Upper bounds of values, computed on demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    most: Vec<u32>,
    /// Upper bounds of slots; slots beyond the end are unbounded.
    slots: Vec<u32>,
}

impl Ranges {
    /// Takes the slots of `graph` into account.
    pub(crate) fn with_slots(graph: &Graph) -> Self {
        let mut slots = vec![0; graph.slots().into()];
        for _ in 0..ROUNDS {
            let mut ranges = Self { most: Vec::new(), slots: slots.clone() };
            for node in graph.nodes() {
                if let Node::Assign { slot, value, .. } = node {
                    let bound = &mut slots[usize::from(slot.0)];
                    *bound = ranges.most(graph, *value).max(*bound);
                }
            }
            if ranges.slots == slots {
                return ranges;
            }
        }
        Self::default()
    }

    /// Keeps the bounds of slots, for a graph with other values.
    pub(crate) fn for_other_values(self) -> Self {
        Self { most: Vec::new(), ..self }
    }

    /// Returns the upper bound of `id`.
    pub(crate) fn most(&mut self, graph: &Graph, id: ValueId) -> u32 {
        for index in self.most.len()..=id.0 as usize {
            self.most.push(self.bound(graph, graph.values()[index]));
        }
        self.most[id.0 as usize]
    }

    fn bound(&self, graph: &Graph, value: Value) -> u32 {
        match value {
            Value::Constant(number) => number,
            Value::Load { width: Width::Byte, .. } | Value::Meta(Meta::PacketType) => 0xff,
            Value::Load { width: Width::Half, .. }
            | Value::Meta(Meta::Protocol | Meta::VlanTag | Meta::VlanProtocol) => 0xffff,
            Value::Meta(Meta::VlanPresent) => 1,
            Value::Load { width: Width::Word, .. } | Value::Length | Value::Meta(Meta::Interface) => u32::MAX,
            Value::Slot(slot) => self.slots.get(usize::from(slot.0)).copied().unwrap_or(u32::MAX),
            Value::Binary { operation, left, right } => {
                let most = |id: ValueId| self.most[id.0 as usize];
                combined(operation, most(left), most(right), graph.as_constant(right))
            }
        }
    }
}

/// Returns all bits that a number up to `bound` can have.
pub(crate) fn bits_below(bound: u32) -> u32 {
    u32::MAX.checked_shr(bound.leading_zeros()).unwrap_or(0)
}

/// Returns the largest result for operands up to `left` and `right`. `number` is the right operand, if known.
fn combined(operation: Operation, left: u32, right: u32, number: Option<u32>) -> u32 {
    match (operation, number) {
        (Operation::Add, _) => left.saturating_add(right),
        (Operation::Multiply, _) => left.saturating_mul(right),
        (Operation::And, _) => left.min(right),
        (Operation::Or | Operation::Xor, _) => bits_below(left) | bits_below(right),
        (Operation::Divide, Some(number)) => left.checked_div(number).unwrap_or(left),
        (Operation::Divide, None) => left,
        (Operation::Remainder, _) => left.min(right.saturating_sub(1)),
        (Operation::ShiftRight, Some(number)) => left.checked_shr(number).unwrap_or(0),
        (Operation::ShiftRight, None) => left,
        (Operation::ShiftLeft, Some(number)) if number <= left.leading_zeros() => {
            left.checked_shl(number).unwrap_or(0)
        }
        (Operation::ShiftLeft, Some(32..)) => 0,
        (Operation::ShiftLeft | Operation::Subtract, _) => u32::MAX,
    }
}
