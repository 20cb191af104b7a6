//! Facts about a packet at a place in the graph, in scopes: what was learned in a scope is forgotten at its end.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use foldhash::HashMap;

use super::range::{Ranges, bits_below};
use crate::graph::{Graph, Operation, Relation, Test, Value, ValueId};

/// Larger than any packet.
const LONGEST: u32 = 1 << 30;
/// Depth to which a value is examined.
const DEPTH: usize = 4;

/// What is concluded from the tests on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insight {
    /// All that ranges of values say.
    Ranges,
    /// That a test has the same answer again, that a value equals one number, and results of constants: what libpcap's
    /// optimiser knows.
    Equalities,
}

/// The known facts.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    graph: &'a Graph,
    insight: Insight,
    ranges: Ranges,
    answers: HashMap<Test, bool>,
    /// Learned range of each value.
    bounds: Vec<Option<(u32, u32)>>,
    /// Learned lists of possible values.
    members: HashMap<ValueId, Rc<[u32]>>,
    /// For each value, whether it was evaluated without rejecting the packet.
    evaluated: Vec<bool>,
    /// Bytes known to be in the packet, after its start and after each value as a base.
    ends: Vec<u64>,
    log: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Answer(Test),
    Bounds(ValueId, Option<(u32, u32)>),
    Members(ValueId, Option<Rc<[u32]>>),
    Evaluated(ValueId),
    End(Option<ValueId>, u64),
}

/// A mark in the undo log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope(usize);

impl<'a> Facts<'a> {
    /// Creates an empty set of facts.
    pub(super) fn new(graph: &'a Graph, insight: Insight) -> Self {
        Self {
            graph,
            insight,
            ranges: Ranges::with_slots(graph),
            answers: HashMap::default(),
            bounds: vec![None; graph.values().len()],
            members: HashMap::default(),
            evaluated: vec![false; graph.values().len()],
            ends: vec![0; graph.values().len() + 1],
            log: Vec::new(),
        }
    }

    /// Begins a scope.
    pub(super) fn scope(&self) -> Scope {
        Scope(self.log.len())
    }

    /// Ends a scope.
    pub(super) fn forget(&mut self, scope: Scope) {
        while self.log.len() > scope.0 {
            match self.log.pop().expect("there are more") {
                Undo::Answer(test) => _ = self.answers.remove(&test),
                Undo::Bounds(value, before) => self.bounds[value.0 as usize] = before,
                Undo::Members(value, Some(before)) => _ = self.members.insert(value, before),
                Undo::Members(value, None) => _ = self.members.remove(&value),
                Undo::Evaluated(value) => self.evaluated[value.0 as usize] = false,
                Undo::End(base, before) => *self.end_mut(base) = before,
            }
        }
    }

    /// Notes that `value`, and thus all its operands, did not reject.
    pub(super) fn evaluated(&mut self, value: ValueId) {
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            if !self.graph.may_refuse(value) || std::mem::replace(&mut self.evaluated[value.0 as usize], true)
            {
                continue;
            }
            self.log.push(Undo::Evaluated(value));
            let shape = self.graph.get(value);
            pending.extend(shape.operands());
            if let Value::Load { base, offset, width } = shape {
                let most = base.map_or(0, |base| self.ranges.most(self.graph, base));
                let end = u64::from(offset) + width as u64;
                if let (Some(base), 0) = (base, offset) {
                    self.bound(base, 0, LONGEST);
                }
                // The bytes before `end` are there too, but only if no address wraps.
                if u64::from(most) + end <= u32::MAX.into() && self.end(base) < end {
                    let before = std::mem::replace(self.end_mut(base), end);
                    self.log.push(Undo::End(base, before));
                }
            }
        }
    }

    fn end(&self, base: Option<ValueId>) -> u64 {
        self.ends[base.map_or(0, |base| base.0 as usize + 1)]
    }

    fn end_mut(&mut self, base: Option<ValueId>) -> &mut u64 {
        &mut self.ends[base.map_or(0, |base| base.0 as usize + 1)]
    }

    /// Returns whether `value` is known not to reject.
    pub(super) fn is_evaluated(&self, value: ValueId) -> bool {
        let mut pending = vec![(value, DEPTH)];
        while let Some((value, depth)) = pending.pop() {
            if !self.graph.may_refuse(value) || self.evaluated[value.0 as usize] {
                continue;
            }
            if depth == 0 {
                return false;
            }
            let shape = self.graph.get(value);
            match shape {
                Value::Load { base, offset, width } if self.end(base) >= u64::from(offset) + width as u64 => {
                }
                Value::Binary { operation, right, .. }
                    if self
                        .graph
                        .as_constant(right)
                        .is_some_and(|right| operation.apply(1, right).is_some())
                        || !operation.divides() => {}
                _ => return false,
            }
            pending.extend(shape.operands().map(|operand| (operand, depth - 1)));
        }
        true
    }

    /// Returns the range of `value`.
    fn bounds(&mut self, value: ValueId) -> (u32, u32) {
        match self.bounds[value.0 as usize] {
            Some(bounds) => bounds,
            None => self.sum_bounds(value).unwrap_or_else(|| {
                (self.graph.as_constant(value).unwrap_or(0), self.ranges.most(self.graph, value))
            }),
        }
    }

    /// Returns the range of a sum with a constant, if the other operand's range was learned and the sum does not wrap.
    fn sum_bounds(&self, value: ValueId) -> Option<(u32, u32)> {
        let Value::Binary { operation: Operation::Add, left, right } = self.graph.get(value) else {
            return None;
        };
        let number = self.graph.as_constant(right)?;
        let (least, most) = self.bounds[left.0 as usize]?;
        Some((least.checked_add(number)?, most.checked_add(number)?))
    }

    /// Returns the number that `value` equals, if known.
    fn exact(&mut self, value: ValueId) -> Option<u32> {
        // Descend to an operand whose value is known, and apply the operations on the way back.
        let mut operations: Vec<(Operation, u32)> = Vec::new();
        let mut at = value;
        for _ in 0..DEPTH {
            let (least, most) = self.bounds(at);
            if least == most {
                let mut up = operations.into_iter().rev();
                return up.try_fold(least, |number, (operation, by)| operation.apply(number, by));
            }
            let Value::Binary { operation, left, right } = self.graph.get(at) else { return None };
            operations.push((operation, self.graph.as_constant(right)?));
            at = left;
        }
        None
    }

    fn bound(&mut self, value: ValueId, least: u32, most: u32) {
        let before = self.bounds(value);
        let now = (before.0.max(least), before.1.min(most));
        // A contradiction is on a path that no packet takes.
        if now != before && now.0 <= now.1 {
            self.set_bounds(value, now.0, now.1);
        }
    }

    fn set_bounds(&mut self, value: ValueId, least: u32, most: u32) {
        let before = self.bounds[value.0 as usize].replace((least, most));
        self.log.push(Undo::Bounds(value, before));
    }

    /// Returns the number that `value` is for each packet, as far as constants say it.
    fn computed(&self, value: ValueId) -> Option<u32> {
        let is_zero = |operand: ValueId| self.graph.as_constant(operand) == Some(0);
        match self.graph.get(value) {
            Value::Constant(number) => Some(number),
            Value::Binary { operation: Operation::And | Operation::Multiply, left, right } => {
                (is_zero(left) || is_zero(right)).then_some(0)
            }
            _ => None,
        }
    }

    /// Notes that `value` is one of `members`.
    pub(super) fn is_one_of(&mut self, value: ValueId, members: Rc<[u32]>) {
        let least = members.iter().min().copied().unwrap_or(0);
        let most = members.iter().max().copied().unwrap_or(u32::MAX);
        self.bound(value, least, most);
        let before = self.members.insert(value, members);
        self.log.push(Undo::Members(value, before));
    }

    /// Returns all possible values of `value`, if known.
    pub(super) fn members(&self, value: ValueId) -> Option<Rc<[u32]>> {
        self.members.get(&value).map(Rc::clone)
    }

    /// Notes that `to` equals `from`.
    pub(super) fn same(&mut self, to: ValueId, from: ValueId) {
        let (least, most) = self.bounds(from);
        self.bound(to, least, most);
    }

    /// Notes the answer to `test`.
    pub(super) fn answered(&mut self, test: Test, answer: bool) {
        // A contradiction is on a path that no packet takes. Keep the first answer, so that undo stays exact.
        if let Entry::Vacant(place) = self.answers.entry(test) {
            place.insert(answer);
            self.log.push(Undo::Answer(test));
        }
        let Test::Compare { relation, left, right } = test else { return };
        let Some(number) = self.graph.as_constant(right) else { return };
        if self.insight == Insight::Equalities {
            if (relation, answer) == (Relation::Equal, true) {
                self.set_bounds(left, number, number);
            }
            return;
        }
        let (least, most) = self.bounds(left);
        match (relation, answer) {
            (Relation::Equal, true) => {
                self.bound(left, number, number);
                self.masked(left, number);
            }
            (Relation::Equal, false) if number == least => self.bound(left, least.saturating_add(1), most),
            (Relation::Equal, false) if number == most => self.bound(left, least, most.saturating_sub(1)),
            (Relation::Greater, true) => self.bound(left, number.saturating_add(1), most),
            (Relation::Greater, false) => self.bound(left, least, number),
            (Relation::AtLeast, true) => self.bound(left, number, most),
            (Relation::AtLeast, false) => self.bound(left, least, number.saturating_sub(1)),
            (Relation::AnyBit, true) => self.bound(left, 1 << number.trailing_zeros().min(31), most),
            (Relation::AnyBit, false) => self.bound(left, least, bits_below(most) & !number),
            (Relation::Equal, false) => {}
        }
    }

    /// Derives a range of the unmasked value from `masked == number`.
    fn masked(&mut self, masked: ValueId, number: u32) {
        let Value::Binary { operation: Operation::And, left, right } = self.graph.get(masked) else {
            return;
        };
        let Some(mask) = self.graph.as_constant(right) else { return };
        let possible = bits_below(self.bounds(left).1);
        self.bound(left, number, number | possible & !mask);
    }

    /// Returns the answer to `test`, if only one is possible.
    pub(super) fn decide(&mut self, test: Test) -> Option<bool> {
        if let Some(&answer) = self.answers.get(&test) {
            return Some(answer);
        }
        let Test::Compare { relation, left, right } = test else { return None };
        if self.insight == Insight::Equalities {
            let learned = self.bounds[left.0 as usize].filter(|(least, most)| least == most);
            let learned = learned.filter(|_| relation == Relation::Equal).map(|(number, _)| number);
            let number = self.computed(right)?;
            return Some(relation.holds(self.computed(left).or(learned)?, number));
        }
        if left == right && relation != Relation::AnyBit {
            return Some(relation != Relation::Greater);
        }
        let number = self.exact(right)?;
        if let Some(left) = self.exact(left) {
            return Some(relation.holds(left, number));
        }
        let (least, most) = self.bounds(left);
        match relation {
            Relation::Equal => (number < least || number > most).then_some(false),
            Relation::Greater if least > number => Some(true),
            Relation::Greater => (most <= number).then_some(false),
            Relation::AtLeast if least >= number => Some(true),
            Relation::AtLeast => (most < number).then_some(false),
            Relation::AnyBit => (bits_below(most) & number == 0).then_some(false),
        }
    }
}
