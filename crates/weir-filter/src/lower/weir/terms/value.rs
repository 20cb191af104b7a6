//! Arithmetic on packet bytes.

use foldhash::HashMap;

use super::{Site, accessors, over_ip};
use crate::ast::{Arith, ArithId, Comparison, Protocol};
use crate::graph::{Operation, Relation, Value, ValueId, Width};
use crate::lower::weir::formula::Formula;
use crate::lower::weir::place::Place;

impl Site<'_> {
    /// Tests a comparison of two expressions, if the packet has all the headers they refer to.
    pub(super) fn relation(&mut self, left: ArithId, comparison: Comparison, right: ArithId) -> Formula {
        let mut guards = Vec::new();
        let mut asked: Vec<Protocol> = Vec::new();
        for (protocol, _) in accessors(self.ast, [left, right]) {
            if !asked.contains(&protocol) {
                asked.push(protocol);
                guards.push(self.has_header(protocol));
            }
        }
        let guard = Formula::all(guards);
        if guard.known() == Some(false) {
            return guard;
        }
        let mut values = HashMap::default();
        let (left, right) = (self.evaluate(left, &mut values), self.evaluate(right, &mut values));
        let compare = |relation| Formula::compare(relation, left, right);
        let compared = match comparison {
            Comparison::Equal => compare(Relation::Equal),
            Comparison::NotEqual => compare(Relation::Equal).not(),
            Comparison::Less => compare(Relation::AtLeast).not(),
            Comparison::AtMost => compare(Relation::Greater).not(),
            Comparison::Greater => compare(Relation::Greater),
            Comparison::AtLeast => compare(Relation::AtLeast),
        };
        Formula::all(vec![guard, compared])
    }

    /// Tests whether the packet has the header that `protocol[...]` counts from.
    fn has_header(&mut self, protocol: Protocol) -> Formula {
        match protocol {
            Protocol::Link => self.frame().0,
            Protocol::Radio => Formula::Always,
            other if over_ip(other).is_some() => {
                Formula::all(vec![self.protocol(other), self.has_transport()])
            }
            other => self.protocol(other),
        }
    }

    /// Returns the start of that header.
    fn header(&mut self, protocol: Protocol) -> Place {
        match protocol {
            Protocol::Link => self.level.frame(self.graph),
            Protocol::Radio => Place::fixed(0),
            other if over_ip(other).is_some() => self.level.transport(self.graph, self.stage),
            _ => self.network(),
        }
    }

    /// Returns the value of an expression. Not recursive: it may be nested as deep as the text is long.
    fn evaluate(&mut self, root: ArithId, values: &mut HashMap<ArithId, ValueId>) -> ValueId {
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            if values.contains_key(&id) {
                open.pop();
                continue;
            }
            let arithmetic = self.ast.arithmetic[id.0 as usize];
            let operands = match arithmetic {
                Arith::Number(_) | Arith::Length => [None, None],
                Arith::Accessor { index, .. } => [Some(index), None],
                Arith::Negate(operand) => [Some(operand), None],
                Arith::Binary { left, right, .. } => [Some(left), Some(right)],
            };
            let missing = open.len();
            open.extend(operands.into_iter().flatten().filter(|operand| !values.contains_key(operand)));
            if open.len() == missing {
                open.pop();
                let value = self.combine(arithmetic, values);
                values.insert(id, value);
            }
        }
        values[&root]
    }

    fn combine(&mut self, arithmetic: Arith, values: &HashMap<ArithId, ValueId>) -> ValueId {
        match arithmetic {
            Arith::Number(number) => self.graph.constant(number),
            Arith::Length => self.graph.value(Value::Length),
            Arith::Negate(operand) => {
                let zero = self.graph.constant(0);
                self.graph.binary(Operation::Subtract, zero, values[&operand])
            }
            Arith::Binary { operation, left, right } => {
                self.graph.binary(operation, values[&left], values[&right])
            }
            Arith::Accessor { protocol, index, size } => {
                let width = match size {
                    1 => Width::Byte,
                    2 => Width::Half,
                    _ => Width::Word,
                };
                self.header(protocol).plus_value(self.graph, values[&index]).load(self.graph, 0, width)
            }
        }
    }
}
