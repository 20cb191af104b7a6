//! Comparisons of arithmetic expressions.
//!
//! An accessor implies that its protocol is present. libpcap tests this before it computes anything, and only for the
//! leftmost accessors of either side: `1 + tcp[0]` does not test for TCP.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::condition::Condition;
use super::layers::From;
use super::layers::Link;
use super::{Lowered, Lowering, Refusal};
use crate::ast::{Arith, ArithId, Comparison, Protocol};
use crate::graph::{Operation, Relation, Value, ValueId, Width};

impl Lowering<'_> {
    /// Lowers `left comparison right`.
    pub(super) fn relation(&mut self, left: ArithId, comparison: Comparison, right: ArithId) -> Lowered {
        let mut parts = self.implied(left)?;
        parts.extend(self.implied(right)?);
        let (left, right) = (self.arithmetic(left)?, self.arithmetic(right)?);
        let (relation, negated) = relation(comparison);
        let compared = Condition::Compare(relation, left, right);
        parts.push(if negated { compared.negated() } else { compared });
        Ok(Condition::All(parts))
    }

    /// Returns the value of an expression. Not recursive: expressions can be nested as deep as their text is long.
    fn arithmetic(&mut self, root: ArithId) -> Result<ValueId, Refusal> {
        let ast = self.ast;
        let node = |id: ArithId| &ast.arithmetic[id.0 as usize];
        // Operands have smaller numbers, so computing values in numerical order works.
        let mut needed = BTreeSet::new();
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            if needed.insert(id) {
                match node(id) {
                    Arith::Number(_) | Arith::Length => {}
                    Arith::Accessor { index: operand, .. } | Arith::Negate(operand) => pending.push(*operand),
                    Arith::Binary { left, right, .. } => pending.extend([*left, *right]),
                }
            }
        }
        let mut values: HashMap<ArithId, ValueId> = HashMap::default();
        for id in needed {
            let value = match *node(id) {
                Arith::Number(number) => self.graph.constant(number),
                Arith::Length => self.graph.value(Value::Length),
                Arith::Accessor { protocol, index, size } => self.accessor(protocol, values[&index], size)?,
                Arith::Negate(operand) => {
                    let zero = self.graph.constant(0);
                    self.graph.binary(Operation::Subtract, zero, values[&operand])
                }
                Arith::Binary { operation, left, right } => {
                    self.graph.binary(operation, values[&left], values[&right])
                }
            };
            values.insert(id, value);
        }
        Ok(values[&root])
    }

    /// Loads bytes of a header at `index`.
    fn accessor(&mut self, protocol: Protocol, index: ValueId, size: u8) -> Result<ValueId, Refusal> {
        use Protocol as P;
        // The implied test must be possible, even where libpcap omits it.
        let _ = self.implied_by(protocol)?;
        let width = match size {
            1 => Width::Byte,
            2 => Width::Half,
            _ => Width::Word,
        };
        let (base, constant) = match protocol {
            P::Radio => {
                if !matches!(self.layers.link, Link::Radiotap | Link::Prism | Link::Avs) {
                    return Err("the link type has no radio header".to_owned());
                }
                (None, 0)
            }
            P::Link => (self.base(self.layers.link_header), self.layers.link_header.constant),
            P::Icmp6 => (self.base(self.layers.payload), self.network().plus(40).constant),
            _ if is_transport(protocol) => (Some(self.behind_ipv4()), self.network().constant),
            _ if is_network(protocol) => (self.base(self.layers.payload), self.network().constant),
            _ => return Err("the bytes of this protocol cannot be accessed".to_owned()),
        };
        let base = match base {
            Some(base) => self.graph.binary(Operation::Add, index, base),
            None => index,
        };
        Ok(self.graph.load(Some(base), constant, width))
    }

    /// Returns the tests implied by the leftmost accessors, in their order.
    fn implied(&mut self, root: ArithId) -> Result<Vec<Condition>, Refusal> {
        let ast = self.ast;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut at = root;
        loop {
            at = match &ast.arithmetic[at.0 as usize] {
                Arith::Number(_) | Arith::Length => break,
                Arith::Negate(operand) | Arith::Binary { left: operand, .. } => *operand,
                Arith::Accessor { protocol, index, .. } => {
                    let mut implied = self.implied_by(*protocol)?;
                    // The tests implied by the index come in between.
                    if is_transport(*protocol) {
                        before.push(implied.remove(0));
                    }
                    after.push(Condition::All(implied));
                    *index
                }
            };
        }
        before.extend(after.into_iter().rev());
        Ok(before)
    }

    /// Returns the tests implied by an accessor.
    fn implied_by(&mut self, protocol: Protocol) -> Result<Vec<Condition>, Refusal> {
        Ok(match protocol {
            Protocol::Link | Protocol::Radio => Vec::new(),
            Protocol::Icmp6 => {
                vec![self.protocol(Protocol::Ip6)?, self.field(From::Network, 6, Width::Byte, 58)]
            }
            _ if is_transport(protocol) => {
                vec![self.protocol(Protocol::Ip)?, self.protocol(protocol)?, self.is_first_fragment()]
            }
            _ => vec![self.protocol(protocol)?],
        })
    }
}

/// Returns whether accessors of the protocol count from the end of the IPv4 header.
fn is_transport(protocol: Protocol) -> bool {
    use Protocol as P;
    matches!(protocol, P::Sctp | P::Tcp | P::Udp | P::Icmp | P::Igmp | P::Igrp | P::Pim | P::Vrrp | P::Carp)
}

/// Returns whether accessors of the protocol count from the network header.
fn is_network(protocol: Protocol) -> bool {
    use Protocol as P;
    matches!(
        protocol,
        P::Ip | P::Ip6 | P::Arp | P::Rarp | P::AppleTalk | P::DecNet | P::Sca | P::Lat | P::Moprc | P::Mopdl
    )
}

/// Returns the graph's relation for a comparison, and whether to negate it.
pub(super) fn relation(comparison: Comparison) -> (Relation, bool) {
    match comparison {
        Comparison::Equal => (Relation::Equal, false),
        Comparison::NotEqual => (Relation::Equal, true),
        Comparison::Greater => (Relation::Greater, false),
        Comparison::AtMost => (Relation::Greater, true),
        Comparison::AtLeast => (Relation::AtLeast, false),
        Comparison::Less => (Relation::AtLeast, true),
    }
}
