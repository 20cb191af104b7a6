//! Reduces values and tests to their simplest form, so that equivalent ones become equal and tests with only one
//! possible answer are dropped.

use foldhash::HashSet;

use super::range::{Ranges, bits_below};
use crate::graph::{Graph, Node, NodeId, Operation, Relation, Test, Value, ValueId};

/// Maximum number of steps in reducing a test; each removes an operation.
const MOST_STEPS: usize = 64;

/// Returns the graph with all values and tests simplified.
pub fn simplify(graph: &Graph) -> Graph {
    let mut simple = Graph::new(graph.snap_len);
    (0..graph.slots()).for_each(|_| _ = simple.slot());
    let mut simplifier = Simplifier { ranges: Ranges::with_slots(graph).for_other_values(), graph: simple };
    let mut values: Vec<ValueId> = Vec::with_capacity(graph.values().len());
    for value in graph.values() {
        let value = value.map(|operand| values[operand.0 as usize]);
        values.push(simplifier.value(value));
    }
    let mut nodes = vec![Graph::REFUSE, Graph::ACCEPT];
    for node in &graph.nodes()[2..] {
        let node = node.map(|value| values[value.0 as usize], |next| nodes[next.0 as usize]);
        nodes.push(simplifier.node(node));
    }
    simplifier.graph.set_root(nodes[graph.root().0 as usize]);
    simplifier.graph
}

struct Simplifier {
    graph: Graph,
    ranges: Ranges,
}

/// The result of reducing a test.
enum Asked {
    /// The same or an equivalent test.
    Still(Relation, ValueId, ValueId),
    /// A test with the opposite answer.
    Opposite(Relation, ValueId, ValueId),
    /// The only possible answer.
    Decided(bool),
}

impl Simplifier {
    fn most(&mut self, id: ValueId) -> u32 {
        self.ranges.most(&self.graph, id)
    }

    /// Returns the operation that computes `id`, if its right operand is a constant.
    fn by_number(&self, id: ValueId) -> Option<(Operation, ValueId, u32)> {
        match self.graph.get(id) {
            Value::Binary { operation, left, right } => {
                Some((operation, left, self.graph.as_constant(right)?))
            }
            _ => None,
        }
    }

    fn value(&mut self, value: Value) -> ValueId {
        match value {
            Value::Load { base: Some(base), offset, width } => match self.by_number(base) {
                Some((Operation::Add, rest, number)) => {
                    self.graph.load(Some(rest), offset.wrapping_add(number), width)
                }
                Some((Operation::Subtract, rest, number)) => {
                    self.graph.load(Some(rest), offset.wrapping_sub(number), width)
                }
                _ => self.graph.value(value),
            },
            Value::Binary { operation, left, right } => match self.graph.as_constant(right) {
                Some(number) => self.with(operation, left, number),
                None if operation.commutes() && self.graph.as_constant(left).is_some() => {
                    self.value(Value::Binary { operation, left: right, right: left })
                }
                None => self.graph.value(value),
            },
            _ => self.graph.value(value),
        }
    }

    fn with(&mut self, operation: Operation, left: ValueId, number: u32) -> ValueId {
        let before = self.by_number(left);
        match (operation, before) {
            (Operation::Multiply, _) if number.is_power_of_two() => {
                self.with(Operation::ShiftLeft, left, number.trailing_zeros())
            }
            (Operation::Divide, _) if number.is_power_of_two() => {
                self.with(Operation::ShiftRight, left, number.trailing_zeros())
            }
            (Operation::Remainder, _) if number.is_power_of_two() => {
                self.with(Operation::And, left, number - 1)
            }
            (Operation::ShiftLeft | Operation::ShiftRight, _) if number >= 32 => {
                self.with(Operation::And, left, 0)
            }
            (Operation::Subtract, _) => self.with(Operation::Add, left, number.wrapping_neg()),
            (Operation::Add, Some((Operation::Add, rest, more))) => {
                self.with(Operation::Add, rest, number.wrapping_add(more))
            }
            (Operation::And, Some((Operation::And, rest, more))) => {
                self.with(Operation::And, rest, number & more)
            }
            (Operation::And, _) => {
                let possible = bits_below(self.most(left));
                if number & possible == possible {
                    return left;
                }
                self.graph.with(operation, left, number & possible)
            }
            _ => self.graph.with(operation, left, number),
        }
    }

    fn node(&mut self, node: Node) -> NodeId {
        let (relation, left, right, then, other, term) = match node {
            Node::Branch { test: Test::Compare { relation, left, right }, then, other, term } => {
                (relation, left, right, then, other, term)
            }
            Node::Read { value, next } => return self.read(vec![value], next),
            node => return self.graph.push(node),
        };
        let evaluated = vec![left, right];
        let (mut test, mut ways) = ((relation, left, right), (then, other));
        for _ in 0..MOST_STEPS {
            let before = (test, ways);
            match self.asked(test) {
                Asked::Still(relation, left, right) => test = (relation, left, right),
                Asked::Opposite(relation, left, right) => {
                    test = (relation, left, right);
                    ways = (ways.1, ways.0);
                }
                Asked::Decided(answer) => return self.read(evaluated, if answer { ways.0 } else { ways.1 }),
            }
            if before == (test, ways) {
                break;
            }
        }
        if ways.0 == ways.1 {
            return self.read(evaluated, ways.0);
        }
        let (relation, left, right) = test;
        self.graph.compare(relation, left, right, ways, term)
    }

    /// Continues at `next`, still evaluating the values that may reject.
    fn read(&mut self, mut values: Vec<ValueId>, mut next: NodeId) -> NodeId {
        let mut seen = HashSet::default();
        while let Some(value) = values.pop() {
            if !self.graph.may_refuse(value) || !seen.insert(value) {
                continue;
            }
            match self.graph.get(value) {
                Value::Binary { operation, left, right }
                    if !operation.divides()
                        || self.graph.as_constant(right).is_some_and(|number| number != 0) =>
                {
                    values.extend([left, right]);
                }
                _ => next = self.graph.push(Node::Read { value, next }),
            }
        }
        next
    }

    /// Takes one step towards the simplest test. It changes nothing that is evaluated, except operations that cannot
    /// reject.
    fn asked(&mut self, (relation, left, right): (Relation, ValueId, ValueId)) -> Asked {
        let as_it_is = Asked::Still(relation, left, right);
        match (self.graph.as_constant(left), self.graph.as_constant(right)) {
            (Some(left), Some(right)) => return Asked::Decided(relation.holds(left, right)),
            (Some(_), None) => {
                let (relation, opposite) = relation.exchanged();
                return if opposite {
                    Asked::Opposite(relation, right, left)
                } else {
                    Asked::Still(relation, right, left)
                };
            }
            (None, None) => return as_it_is,
            (None, Some(_)) => {}
        }
        let number = self.graph.as_constant(right).expect("it was looked at");
        match relation {
            Relation::Equal => self.equal(left, number).unwrap_or(as_it_is),
            Relation::Greater => self.greater(left, number).unwrap_or(as_it_is),
            Relation::AtLeast => match number.checked_sub(1) {
                Some(below) => self.still(Relation::Greater, left, below),
                None => Asked::Decided(true),
            },
            Relation::AnyBit => self.any_bit(left, number).unwrap_or(as_it_is),
        }
    }

    fn still(&mut self, relation: Relation, left: ValueId, number: u32) -> Asked {
        Asked::Still(relation, left, self.graph.constant(number))
    }

    fn opposite(&mut self, relation: Relation, left: ValueId, number: u32) -> Asked {
        Asked::Opposite(relation, left, self.graph.constant(number))
    }

    fn equal(&mut self, left: ValueId, number: u32) -> Option<Asked> {
        if number > self.most(left) {
            return Some(Asked::Decided(false));
        }
        if number == 0
            && let Value::Binary { operation: Operation::Subtract, left, right } = self.graph.get(left)
        {
            return Some(Asked::Still(Relation::Equal, left, right));
        }
        let (operation, rest, by) = self.by_number(left)?;
        match operation {
            Operation::And if number & !by != 0 => Some(Asked::Decided(false)),
            Operation::And if number == 0 => Some(self.opposite(Relation::AnyBit, rest, by)),
            Operation::And if number == by && by.is_power_of_two() => {
                Some(self.still(Relation::AnyBit, rest, by))
            }
            Operation::Add => Some(self.still(Relation::Equal, rest, number.wrapping_sub(by))),
            Operation::Xor => Some(self.still(Relation::Equal, rest, number ^ by)),
            Operation::ShiftRight if by < 32 && number == 0 => {
                Some(self.opposite(Relation::Greater, rest, (1 << by) - 1))
            }
            Operation::ShiftLeft if by < 32 && by <= self.most(rest).leading_zeros() => {
                let possible = number >> by << by == number;
                Some(if possible {
                    self.still(Relation::Equal, rest, number >> by)
                } else {
                    Asked::Decided(false)
                })
            }
            _ => None,
        }
    }

    fn greater(&mut self, left: ValueId, number: u32) -> Option<Asked> {
        let most = self.most(left);
        if number >= most {
            return Some(Asked::Decided(false));
        }
        if number == 0 {
            return Some(self.opposite(Relation::Equal, left, 0));
        }
        if number == most - 1 {
            return Some(self.still(Relation::Equal, left, most));
        }
        let (operation, rest, by) = self.by_number(left)?;
        match operation {
            Operation::Add if self.most(rest).checked_add(by).is_some() => match number.checked_sub(by) {
                Some(less) => Some(self.still(Relation::Greater, rest, less)),
                None => Some(Asked::Decided(true)),
            },
            Operation::ShiftRight if by < 32 => {
                let beyond = (u64::from(number) + 1) << by;
                Some(self.still(Relation::Greater, rest, u32::try_from(beyond - 1).ok()?))
            }
            Operation::ShiftLeft if by < 32 && by <= self.most(rest).leading_zeros() => {
                Some(self.still(Relation::Greater, rest, number >> by))
            }
            _ => None,
        }
    }

    fn any_bit(&mut self, left: ValueId, mask: u32) -> Option<Asked> {
        let possible = bits_below(self.most(left));
        if mask & possible == 0 {
            return Some(Asked::Decided(false));
        }
        if mask & possible == possible {
            return Some(self.opposite(Relation::Equal, left, 0));
        }
        if mask & possible != mask {
            return Some(self.still(Relation::AnyBit, left, mask & possible));
        }
        match self.by_number(left)? {
            (Operation::And, rest, by) => Some(self.still(Relation::AnyBit, rest, mask & by)),
            (Operation::ShiftRight, rest, by) if by <= mask.leading_zeros() && by < 32 => {
                Some(self.still(Relation::AnyBit, rest, mask << by))
            }
            (Operation::ShiftLeft, rest, by) if by < 32 => {
                Some(self.still(Relation::AnyBit, rest, mask >> by))
            }
            _ => None,
        }
    }
}
