//! How large a value can be, whatever the packet.

use crate::graph::{Graph, Meta, Operation, Value, ValueId, Width};

/// The largest number that each value can be; found out as far as it was asked.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    most: Vec<u32>,
}

impl Ranges {
    /// The largest number that `id` can be.
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
            Value::Load { width: Width::Word, .. } | Value::Length | Value::Slot(_) => u32::MAX,
            Value::Meta(Meta::Interface) => u32::MAX,
            Value::Binary { operation, left, right } => {
                let most = |id: ValueId| self.most[id.0 as usize];
                combined(operation, most(left), most(right), graph.as_constant(right))
            }
        }
    }
}

/// The largest result for operands up to `left` and `right`; `number`, if the right one is known.
fn combined(operation: Operation, left: u32, right: u32, number: Option<u32>) -> u32 {
    let all_bits =
        |bound: u32| bound.checked_next_power_of_two().map_or(u32::MAX, |power| (power - 1) | bound);
    match (operation, number) {
        (Operation::Add, _) => left.saturating_add(right),
        (Operation::Multiply, _) => left.saturating_mul(right),
        (Operation::And, _) => left.min(right),
        (Operation::Or | Operation::Xor, _) => all_bits(left) | all_bits(right),
        (Operation::Divide, Some(number)) => left.checked_div(number).unwrap_or(left),
        (Operation::Divide, None) => left,
        (Operation::Remainder, _) => left.min(right.saturating_sub(1)),
        (Operation::ShiftRight, Some(number)) => left.checked_shr(number).unwrap_or(0),
        (Operation::ShiftRight, None) => left,
        (Operation::ShiftLeft, Some(number)) if number <= left.leading_zeros() => left << number.min(31),
        (Operation::ShiftLeft, Some(32..)) => 0,
        (Operation::ShiftLeft | Operation::Subtract, _) => u32::MAX,
    }
}
