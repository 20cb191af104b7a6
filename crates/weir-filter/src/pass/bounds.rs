//! Ranges of values, including slots, over all packets.

use crate::graph::{Graph, Node, Operation, Value, ValueId, Width};

/// The smallest and the largest value.
type Span = (u32, u32);

/// The full range.
const ALL: Span = (0, u32::MAX);

/// Rounds after which slots that still grow get the full range; more than there are headers in a chain.
const ROUNDS: u32 = 64;

/// The range of each value in a graph; `None` for values that are never evaluated.
#[derive(Debug)]
pub(super) struct Bounds {
    values: Vec<Option<Span>>,
}

impl Bounds {
    /// Computes the ranges for `graph`, of which only the `reached` nodes count.
    pub(super) fn of(graph: &Graph, reached: &[bool]) -> Self {
        let mut slots: Vec<Option<Span>> = vec![None; graph.slots().into()];
        let mut bounds = Self { values: Vec::new() };
        for round in 0.. {
            bounds.values.clear();
            for &value in graph.values() {
                let span = bounds.span(graph, value, &slots);
                bounds.values.push(span);
            }
            let mut grown = false;
            for (node, reached) in graph.nodes().iter().zip(reached) {
                let (Node::Assign { slot, value, .. }, true) = (node, reached) else { continue };
                let Some((least, most)) = bounds.values[value.0 as usize] else { continue };
                let held = &mut slots[usize::from(slot.0)];
                let wider = held.map_or((least, most), |held| (held.0.min(least), held.1.max(most)));
                if *held != Some(wider) {
                    *held = Some(if round < ROUNDS { wider } else { ALL });
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        bounds
    }

    /// Returns the range of `base + offset`, unless the sum wraps for some packets only.
    pub(super) fn position(&self, base: Option<ValueId>, offset: u32) -> Option<Span> {
        let base = base.map_or((0, 0), |base| self.values[base.0 as usize].unwrap_or(ALL));
        added(base, (offset, offset))
    }

    fn span(&self, graph: &Graph, value: Value, slots: &[Option<Span>]) -> Option<Span> {
        Some(match value {
            Value::Constant(number) => (number, number),
            Value::Load { width: Width::Byte, .. } => (0, 0xff),
            Value::Load { width: Width::Half, .. } => (0, 0xffff),
            Value::Load { width: Width::Word, .. } | Value::Length | Value::Meta(_) => ALL,
            Value::Slot(slot) => slots[usize::from(slot.0)]?,
            Value::Binary { operation, left, right } => {
                let at = |id: ValueId| self.values[id.0 as usize];
                combined(operation, at(left)?, at(right)?, graph.as_constant(right)).unwrap_or(ALL)
            }
        })
    }
}

/// Returns the range of a sum, if it either always or never wraps.
fn added(a: Span, b: Span) -> Option<Span> {
    let ((least, low_wraps), (most, high_wraps)) = (a.0.overflowing_add(b.0), a.1.overflowing_add(b.1));
    (low_wraps == high_wraps).then_some((least, most))
}

/// Returns the range of a result; `None` for the full range. `number` is the right operand, if known.
fn combined(operation: Operation, left: Span, right: Span, number: Option<u32>) -> Option<Span> {
    match (operation, number) {
        (Operation::Add, _) => added(left, right),
        (Operation::Multiply, Some(number)) => {
            Some((left.0.checked_mul(number)?, left.1.checked_mul(number)?))
        }
        (Operation::ShiftLeft, Some(number @ 0..32)) if number <= left.1.leading_zeros() => {
            Some((left.0 << number, left.1 << number))
        }
        (Operation::ShiftRight, Some(number @ 0..32)) => Some((left.0 >> number, left.1 >> number)),
        (Operation::And, _) => Some((0, left.1.min(right.1))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers at which something carries or wraps, in order.
    fn corners() -> Vec<u32> {
        let mut all: Vec<u32> = [0, 1 << 8, 1 << 16, 1 << 31, u32::MAX]
            .into_iter()
            .flat_map(|corner: u32| [-2, -1, 0, 1, 2].map(|by| corner.wrapping_add_signed(by)))
            .chain([3, 31, 32, 33])
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Every result lies in the range, and where no result wraps, the range is not wider than they are.
    #[test]
    fn a_range_has_every_result() {
        use Operation::*;
        let corners = corners();
        let spans: Vec<Span> = corners
            .iter()
            .flat_map(|&a| corners.iter().map(move |&b| (a, b)))
            .filter(|(a, b)| a <= b)
            .collect();
        let within =
            |span: Span| corners.iter().copied().filter(move |&number| span.0 <= number && number <= span.1);
        let exact = |operation, left: u32, right: u32| match operation {
            Add => Some(u64::from(left) + u64::from(right)),
            Multiply => Some(u64::from(left) * u64::from(right)),
            ShiftLeft if right < 32 => Some(u64::from(left) << right),
            ShiftRight if right < 32 => Some(u64::from(left >> right)),
            _ => None,
        };
        for operation in [Add, Subtract, Multiply, Divide, Remainder, And, Or, Xor, ShiftLeft, ShiftRight] {
            for &left in &spans {
                for &number in &corners {
                    let range = combined(operation, left, (number, number), Some(number));
                    let (least, most) = range.unwrap_or(ALL);
                    for value in within(left) {
                        let Some(result) = operation.apply(value, number) else { continue };
                        let case = format!("{value:#x} of {left:x?} {operation:?} {number:#x}");
                        assert!(least <= result && result <= most, "{case}: {least:#x} to {most:#x}");
                    }
                    let ends = [left.0, left.1].map(|end| exact(operation, end, number));
                    if let [Some(least), Some(most)] = ends
                        && most <= u32::MAX.into()
                    {
                        let range = range.map(|(least, most)| (u64::from(least), u64::from(most)));
                        assert_eq!(range, Some((least, most)), "{left:x?} {operation:?} {number:#x}");
                    }
                }
            }
            // A right operand that is not known either: every eleventh pair.
            for (&left, &right) in
                spans.iter().step_by(11).flat_map(|left| spans.iter().map(move |right| (left, right)))
            {
                let (least, most) = combined(operation, left, right, None).unwrap_or(ALL);
                for (a, b) in [(left.0, right.0), (left.0, right.1), (left.1, right.0), (left.1, right.1)] {
                    let Some(result) = operation.apply(a, b) else { continue };
                    assert!(
                        least <= result && result <= most,
                        "{a:#x} of {left:x?} {operation:?} {b:#x} of {right:x?}"
                    );
                }
            }
        }
    }
}
