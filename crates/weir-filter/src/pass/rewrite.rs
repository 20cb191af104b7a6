//! Copies a graph for packets of another form, in which each value reads something else.

use foldhash::HashMap;

use super::bounds::Bounds;
use crate::graph::{Graph, MOST_SLOTS, Meta, Node, NodeId, Operation, Slot, Value, ValueId, Width};

/// A load of the original.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// The base, as it is in the copy.
    pub(super) base: Option<ValueId>,
    pub(super) offset: u32,
    pub(super) width: Width,
    /// The least and the greatest position, if they are known.
    pub(super) span: Option<(u32, u32)>,
}

impl Load {
    /// Adds this load, of bytes that are `farther` in the copy.
    pub(super) fn add(self, to: &mut Graph, farther: u32) -> ValueId {
        to.load(self.base, self.offset.wrapping_add(farther), self.width)
    }

    /// Returns whether all its bytes are before `end`.
    pub(super) fn is_before(self, end: u32) -> bool {
        self.span.is_some_and(|(_, most)| u64::from(most) + self.width as u64 <= end.into())
    }
}

/// Where the copied graph finds what the original reads: at the same place, unless a layout says otherwise.
pub(super) trait PacketLayout {
    /// Returns the equivalent of a metadata field.
    fn meta(&self, to: &mut Graph, meta: Meta) -> ValueId {
        to.meta(meta)
    }

    /// Returns the equivalent of the packet's length.
    fn length(&self, to: &mut Graph) -> ValueId {
        to.value(Value::Length)
    }

    /// Returns the equivalent of a load; `None` if each byte has to be looked for where the packet says.
    fn load(&self, to: &mut Graph, load: Load) -> Option<ValueId> {
        Some(load.add(to, 0))
    }

    /// Loads the byte that the original has at `at`, without a branch.
    fn byte_at(&self, to: &mut Graph, at: ValueId) -> ValueId {
        to.load(Some(at), 0, Width::Byte)
    }

    /// Returns where a node certainly continues in packets of this layout.
    fn shortcut(&self, _graph: &Graph, _node: Node) -> Option<NodeId> {
        None
    }
}

/// Adds a copy of `from`, whose values and slots `to` has, and returns its root. Returns `None` if that needs too many
/// slots, which are used for offsets computed from the packet.
pub(super) fn copy(from: &Graph, to: &mut Graph, layout: &impl PacketLayout) -> Option<NodeId> {
    let reached = reached(from, layout);
    let bounds = Bounds::of(from, &reached);
    let mut copy = Copy { bounds, from, to, layout, values: Vec::new() };
    for &value in from.values() {
        let translated = copy.translate(value, &HashMap::default());
        copy.values.push(translated);
    }
    copy.nodes(&reached)
}

/// Returns whether each node is reachable in packets of this layout.
fn reached(graph: &Graph, layout: &impl PacketLayout) -> Vec<bool> {
    let mut reached = vec![false; graph.nodes().len()];
    reached[graph.root().0 as usize] = true;
    for (index, &node) in graph.nodes().iter().enumerate().rev() {
        if reached[index] {
            match layout.shortcut(graph, node) {
                Some(next) => reached[next.0 as usize] = true,
                None => node.successors().for_each(|next| reached[next.0 as usize] = true),
            }
        }
    }
    reached
}

/// A copy under construction.
struct Copy<'a, F> {
    bounds: Bounds,
    from: &'a Graph,
    to: &'a mut Graph,
    layout: &'a F,
    /// For each value, its equivalent; `None` if it needs a slot at each node that evaluates it.
    values: Vec<Option<ValueId>>,
}

impl<F: PacketLayout> Copy<'_, F> {
    fn nodes(&mut self, reached: &[bool]) -> Option<NodeId> {
        let mut nodes: Vec<NodeId> = vec![Graph::REFUSE, Graph::ACCEPT];
        for (index, &node) in self.from.nodes().iter().enumerate().skip(2) {
            if !reached[index] {
                nodes.push(Graph::REFUSE);
                continue;
            }
            if let Some(next) = self.layout.shortcut(self.from, node) {
                nodes.push(nodes[next.0 as usize]);
                continue;
            }
            let mut own = HashMap::default();
            let mut notes = Vec::new();
            for value in node.values() {
                self.note(value, &mut own, &mut notes)?;
            }
            let value = |id| self.operand(id, &own).expect("what only the packet knows was noted");
            let node = node.map(value, |id| nodes[id.0 as usize]);
            let node = self.to.push(node);
            let node = notes
                .into_iter()
                .rev()
                .fold(node, |next, (slot, value)| self.to.push(Node::Assign { slot, value, next }));
            nodes.push(node);
        }
        Some(nodes[self.from.root().0 as usize])
    }

    /// Assigns slots to those parts of `root` that cannot be expressed as values; returns `None` if that takes too
    /// many. Not recursive: values are nested as deep as the text.
    fn note(
        &mut self,
        root: ValueId,
        own: &mut HashMap<ValueId, ValueId>,
        notes: &mut Vec<(Slot, ValueId)>,
    ) -> Option<()> {
        let mut open = vec![root];
        while let Some(&id) = open.last() {
            if own.contains_key(&id) || self.values[id.0 as usize].is_some() {
                open.pop();
                continue;
            }
            let value = self.from.get(id);
            let missing = open.len();
            let known =
                |operand: &ValueId| own.contains_key(operand) || self.values[operand.0 as usize].is_some();
            open.extend(value.operands().filter(|operand| !known(operand)));
            if open.len() > missing {
                continue;
            }
            open.pop();
            let here = match self.translate(value, own) {
                Some(here) => here,
                None if self.to.slots() > MOST_SLOTS => return None,
                None => self.by_position(value, own, notes),
            };
            own.insert(id, here);
        }
        Some(())
    }

    fn operand(&self, id: ValueId, own: &HashMap<ValueId, ValueId>) -> Option<ValueId> {
        own.get(&id).copied().or(self.values[id.0 as usize])
    }

    /// Returns the equivalent of `value`, if it can be expressed as a value.
    fn translate(&mut self, value: Value, own: &HashMap<ValueId, ValueId>) -> Option<ValueId> {
        Some(match value {
            Value::Constant(_) | Value::Slot(_) => self.to.value(value),
            Value::Meta(meta) => self.layout.meta(self.to, meta),
            Value::Length => self.layout.length(self.to),
            Value::Binary { operation, left, right } => {
                let (left, right) = (self.operand(left, own)?, self.operand(right, own)?);
                self.to.binary(operation, left, right)
            }
            Value::Load { base, offset, width } => {
                let span = self.bounds.position(base, offset);
                let base = match base {
                    Some(base) => Some(self.operand(base, own)?),
                    None => None,
                };
                return self.layout.load(self.to, Load { base, offset, width, span });
            }
        })
    }

    /// Loads bytes one by one, each from where its offset says.
    fn by_position(
        &mut self,
        value: Value,
        own: &HashMap<ValueId, ValueId>,
        notes: &mut Vec<(Slot, ValueId)>,
    ) -> ValueId {
        let Value::Load { base, offset, width } = value else { unreachable!("{value:?} is said in a value") };
        let first = match base {
            Some(base) => {
                let base = self.operand(base, own).expect("operands come first");
                let first = self.to.with(Operation::Add, base, offset);
                self.noted(first, notes)
            }
            None => self.to.constant(offset),
        };
        let mut number = None;
        for byte in 0..width as u32 {
            let at = self.to.with(Operation::Add, first, byte);
            let piece = self.layout.byte_at(self.to, at);
            number = Some(match number {
                None => piece,
                Some(before) => {
                    let shifted = self.to.with(Operation::ShiftLeft, before, 8);
                    self.to.binary(Operation::Or, shifted, piece)
                }
            });
        }
        let number = number.expect("a load has a byte");
        self.noted(number, notes)
    }

    /// Returns a slot that holds `value` from here on.
    fn noted(&mut self, value: ValueId, notes: &mut Vec<(Slot, ValueId)>) -> ValueId {
        let slot = self.to.slot();
        notes.push((slot, value));
        self.to.value(Value::Slot(slot))
    }
}
