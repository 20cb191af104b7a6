//! Building and reading graphs.

use foldhash::HashMap;

use super::{
    Graph, KEY_WORDS, Meta, Node, NodeId, Operation, Relation, Slot, TermId, Test, Value, ValueId, Verdict,
    Width,
};
use crate::set::SetId;

/// The first nodes of each graph: [`Graph::REFUSE`] and [`Graph::ACCEPT`].
pub(super) const ENDS: [Node; 2] = [Node::End(Verdict::REFUSE), Node::End(Verdict::ACCEPT)];

impl Graph {
    /// Creates a graph that accepts every packet.
    pub fn new(snap_len: u32) -> Self {
        Self {
            values: Vec::new(),
            refusing: Vec::new(),
            known: HashMap::default(),
            nodes: ENDS.to_vec(),
            root: Self::ACCEPT,
            slots: 0,
            snap_len,
        }
    }

    /// Returns a graph with the same values and slots but no nodes.
    pub(crate) fn without_nodes(&self) -> Self {
        Self {
            values: self.values.clone(),
            refusing: self.refusing.clone(),
            known: self.known.clone(),
            nodes: ENDS.to_vec(),
            root: Self::REFUSE,
            ..*self
        }
    }

    /// Returns the node where the filter begins.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Sets the node where the filter begins.
    pub fn set_root(&mut self, root: NodeId) {
        self.root = root;
    }

    /// Returns the node at `id`.
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.0 as usize]
    }

    /// Returns all nodes, successors first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the value of `id`.
    pub fn get(&self, id: ValueId) -> Value {
        self.values[id.0 as usize]
    }

    /// Returns all values, operands first.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u16 {
        self.slots
    }

    /// Allocates a slot.
    pub fn slot(&mut self) -> Slot {
        self.slots += 1;
        Slot(self.slots - 1)
    }

    /// Returns the ID of `value`, simplified where that keeps its meaning. Adds it if it is new.
    pub fn value(&mut self, value: Value) -> ValueId {
        let value = self.simplified(value);
        if let Some(&id) = self.known.get(&value) {
            return id;
        }
        let id = ValueId(u32::try_from(self.values.len()).expect("values are counted in 32 bits"));
        self.refusing.push(self.refuses(value));
        self.values.push(value);
        self.known.insert(value, id);
        id
    }

    /// Returns the ID of `value`, if the graph has it.
    pub fn known(&self, value: Value) -> Option<ValueId> {
        self.known.get(&value).copied()
    }

    /// Adds a constant.
    pub fn constant(&mut self, number: u32) -> ValueId {
        self.value(Value::Constant(number))
    }

    /// Adds a load of the bytes at `base + offset`.
    pub fn load(&mut self, base: Option<ValueId>, offset: u32, width: Width) -> ValueId {
        self.value(Value::Load { base, offset, width })
    }

    /// Adds a metadata field.
    pub fn meta(&mut self, meta: Meta) -> ValueId {
        self.value(Value::Meta(meta))
    }

    /// Adds `left operation right`.
    pub fn binary(&mut self, operation: Operation, left: ValueId, right: ValueId) -> ValueId {
        self.value(Value::Binary { operation, left, right })
    }

    /// Adds `left operation number`.
    pub fn with(&mut self, operation: Operation, left: ValueId, number: u32) -> ValueId {
        let right = self.constant(number);
        self.binary(operation, left, right)
    }

    /// Returns the number, if `id` is a constant.
    pub fn as_constant(&self, id: ValueId) -> Option<u32> {
        match self.get(id) {
            Value::Constant(number) => Some(number),
            _ => None,
        }
    }

    /// Returns whether evaluating `id` can reject a packet.
    pub fn may_refuse(&self, id: ValueId) -> bool {
        self.refusing[id.0 as usize]
    }

    /// Adds a node. Its successors must already exist.
    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(u32::try_from(self.nodes.len() - 1).expect("nodes are counted in 32 bits"))
    }

    /// Returns a node that ends the filter with `verdict`. Adds it, unless each graph has it.
    pub fn end(&mut self, verdict: Verdict) -> NodeId {
        match verdict {
            Verdict::REFUSE => Self::REFUSE,
            Verdict::ACCEPT => Self::ACCEPT,
            other => self.push(Node::End(other)),
        }
    }

    /// Returns whether each node is reachable from the root.
    pub(crate) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        reached[self.root.0 as usize] = true;
        for index in (0..=self.root.0 as usize).rev() {
            if reached[index] {
                self.nodes[index].successors().for_each(|next| reached[next.0 as usize] = true);
            }
        }
        reached
    }

    /// Returns how many verdicts a receiver must know: one more than the greatest that the filter can reach, and no
    /// fewer than rejection and acceptance.
    pub fn verdicts(&self) -> usize {
        let reached = self.nodes.iter().zip(self.reached()).filter(|(_, reached)| *reached);
        let numbers =
            reached.filter_map(|(node, _)| node.verdict()).map(|verdict| usize::from(verdict.0) + 1);
        numbers.fold(ENDS.len(), usize::max)
    }

    /// Adds a branch on `test`.
    pub fn branch(&mut self, test: Test, then: NodeId, other: NodeId, term: TermId) -> NodeId {
        self.push(Node::Branch { test, then, other, term })
    }

    /// Adds a branch on `left relation right`.
    pub fn compare(
        &mut self,
        relation: Relation,
        left: ValueId,
        right: ValueId,
        (then, other): (NodeId, NodeId),
        term: TermId,
    ) -> NodeId {
        self.branch(Test::Compare { relation, left, right }, then, other, term)
    }

    /// Adds a branch on `left == number`.
    pub fn equals(&mut self, left: ValueId, number: u32, ways: (NodeId, NodeId), term: TermId) -> NodeId {
        let right = self.constant(number);
        self.compare(Relation::Equal, left, right, ways, term)
    }

    /// Adds a branch on whether `key` is in `set`.
    pub fn member(&mut self, set: SetId, key: &[ValueId], ways: (NodeId, NodeId), term: TermId) -> NodeId {
        let last = *key.last().expect("a key has a word");
        let mut words = [last; KEY_WORDS];
        words[..key.len()].copy_from_slice(key);
        self.branch(Test::Member { set, key: words }, ways.0, ways.1, term)
    }

    fn refuses(&self, value: Value) -> bool {
        match value {
            Value::Constant(_) | Value::Length | Value::Meta(_) | Value::Slot(_) => false,
            Value::Load { .. } => true,
            Value::Binary { operation, left, right } => {
                let by_zero =
                    operation.divides() && self.as_constant(right).is_none_or(|divisor| divisor == 0);
                by_zero || self.may_refuse(left) || self.may_refuse(right)
            }
        }
    }

    /// Returns an equal value in a simpler form, never one that rejects fewer packets.
    fn simplified(&self, value: Value) -> Value {
        match value {
            Value::Load { base: Some(base), offset, width } => match self.as_constant(base) {
                Some(number) => Value::Load { base: None, offset: offset.wrapping_add(number), width },
                None => value,
            },
            Value::Binary { operation, left, right } => self.folded(operation, left, right),
            _ => value,
        }
    }

    fn folded(&self, operation: Operation, left: ValueId, right: ValueId) -> Value {
        let kept = Value::Binary { operation, left, right };
        match (self.as_constant(left), self.as_constant(right)) {
            (Some(a), Some(b)) => operation.apply(a, b).map_or(kept, Value::Constant),
            (None, Some(0)) if operation.keeps_left_with_zero() => self.get(left),
            (None, Some(1)) if matches!(operation, Operation::Multiply | Operation::Divide) => self.get(left),
            (None, Some(u32::MAX)) if operation == Operation::And => self.get(left),
            (Some(0), None) if matches!(operation, Operation::Add | Operation::Or | Operation::Xor) => {
                self.get(right)
            }
            _ => kept,
        }
    }
}

impl Operation {
    /// Applies the operation to two numbers; returns `None` if it rejects the packet.
    pub fn apply(self, left: u32, right: u32) -> Option<u32> {
        Some(match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right)?,
            Self::Remainder => left.checked_rem(right)?,
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::ShiftLeft => left.checked_shl(right).unwrap_or(0),
            Self::ShiftRight => left.checked_shr(right).unwrap_or(0),
        })
    }

    /// Returns whether the operands may be swapped.
    pub fn commutes(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::And | Self::Or | Self::Xor)
    }

    /// Returns whether a right operand of zero rejects the packet.
    pub fn divides(self) -> bool {
        matches!(self, Self::Divide | Self::Remainder)
    }

    fn keeps_left_with_zero(self) -> bool {
        matches!(self, Self::Add | Self::Subtract | Self::Or | Self::Xor | Self::ShiftLeft | Self::ShiftRight)
    }
}

impl Relation {
    /// Returns whether the relation holds.
    pub fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
            Self::AnyBit => left & right != 0,
        }
    }

    /// Returns the relation to use with swapped operands, and whether to swap the branch targets too.
    pub fn exchanged(self) -> (Self, bool) {
        match self {
            Self::Equal | Self::AnyBit => (self, false),
            Self::Greater => (Self::AtLeast, true),
            Self::AtLeast => (Self::Greater, true),
        }
    }
}

impl Test {
    /// Returns the same test of other values.
    pub fn map(self, mut value: impl FnMut(ValueId) -> ValueId) -> Self {
        match self {
            Self::Compare { relation, left, right } => {
                Self::Compare { relation, left: value(left), right: value(right) }
            }
            Self::Member { set, key } => Self::Member { set, key: key.map(value) },
        }
    }
}

impl Value {
    /// Returns the same operation on other operands.
    pub fn map(self, mut operand: impl FnMut(ValueId) -> ValueId) -> Self {
        match self {
            Self::Load { base: Some(base), offset, width } => {
                Self::Load { base: Some(operand(base)), offset, width }
            }
            Self::Binary { operation, left, right } => {
                Self::Binary { operation, left: operand(left), right: operand(right) }
            }
            Self::Load { base: None, .. }
            | Self::Constant(_)
            | Self::Length
            | Self::Meta(_)
            | Self::Slot(_) => self,
        }
    }
}

impl Value {
    /// Returns the operands.
    pub fn operands(self) -> impl DoubleEndedIterator<Item = ValueId> {
        let (first, second) = match self {
            Self::Load { base, .. } => (base, None),
            Self::Binary { left, right, .. } => (Some(left), Some(right)),
            Self::Constant(_) | Self::Length | Self::Meta(_) | Self::Slot(_) => (None, None),
        };
        first.into_iter().chain(second)
    }
}

impl Node {
    /// Returns its verdict, if it ends the filter.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::End(verdict) => Some(verdict),
            Self::Branch { .. } | Self::Assign { .. } | Self::Read { .. } => None,
        }
    }

    /// Returns the values it evaluates, in order.
    pub fn values(self) -> impl DoubleEndedIterator<Item = ValueId> {
        let (values, count) = match self {
            Self::End(_) => ([ValueId(0); KEY_WORDS], 0),
            Self::Branch { test: Test::Compare { left, right, .. }, .. } => ([left, right, right, right], 2),
            Self::Branch { test: Test::Member { key, .. }, .. } => (key, KEY_WORDS),
            Self::Assign { value, .. } | Self::Read { value, .. } => ([value; KEY_WORDS], 1),
        };
        values.into_iter().take(count)
    }

    /// Returns the same node with other values and successors.
    pub fn map(
        self,
        mut value: impl FnMut(ValueId) -> ValueId,
        mut next: impl FnMut(NodeId) -> NodeId,
    ) -> Self {
        match self {
            Self::End(_) => self,
            Self::Branch { test, then, other, term } => {
                Self::Branch { test: test.map(value), then: next(then), other: next(other), term }
            }
            Self::Assign { slot, value: assigned, next: node } => {
                Self::Assign { slot, value: value(assigned), next: next(node) }
            }
            Self::Read { value: read, next: node } => Self::Read { value: value(read), next: next(node) },
        }
    }

    /// Returns the successors.
    pub fn successors(self) -> impl Iterator<Item = NodeId> {
        let (first, second) = match self {
            Self::End(_) => (None, None),
            Self::Branch { then, other, .. } => (Some(then), Some(other)),
            Self::Assign { next, .. } | Self::Read { next, .. } => (Some(next), None),
        };
        first.into_iter().chain(second)
    }
}
