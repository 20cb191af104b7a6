//! Removes slots that are constant or never read.
//!
//! Reason: once the paths that the expression does not need are gone, often only one path to each header remains.

use foldhash::{HashMap, HashSet};

use crate::graph::{Graph, Node, Operation, Slot, Value, ValueId};

/// Returns the graph with only the slots that it needs, renumbered.
pub fn slots(graph: &Graph) -> Graph {
    if graph.slots() == 0 {
        return graph.clone();
    }
    let reached = graph.reached();
    let nodes = || graph.nodes().iter().zip(&reached).filter(|(_, reached)| **reached).map(|(node, _)| *node);
    let constant = always_the_same(graph, nodes());
    let read = read(graph, nodes());
    let mut slotted = Graph::new(graph.snap_len);
    let mut numbers: HashMap<Slot, Slot> = HashMap::default();
    let mut values: Vec<ValueId> = Vec::with_capacity(graph.values().len());
    for &value in graph.values() {
        let same = match value {
            Value::Slot(slot) => constant.get(&slot).copied(),
            _ => None,
        };
        if let Some(same) = same {
            values.push(copied(graph, same, &mut slotted));
            continue;
        }
        let value = match value {
            Value::Slot(slot) => Value::Slot(*numbers.entry(slot).or_insert_with(|| slotted.slot())),
            value => value.map(|operand| values[operand.0 as usize]),
        };
        values.push(slotted.value(value));
    }
    let mut ids = vec![Graph::REFUSE; graph.nodes().len()];
    ids[Graph::ACCEPT.0 as usize] = Graph::ACCEPT;
    for (index, node) in graph.nodes().iter().enumerate().skip(2).filter(|(index, _)| reached[*index]) {
        let mapped = node.map(|value| values[value.0 as usize], |next| ids[next.0 as usize]);
        ids[index] = match mapped {
            Node::Assign { slot, value, next } if constant.contains_key(&slot) || !read.contains(&slot) => {
                if slotted.may_refuse(value) {
                    slotted.push(Node::Read { value, next })
                } else {
                    next
                }
            }
            Node::Assign { slot, value, next } => {
                let slot = *numbers.entry(slot).or_insert_with(|| slotted.slot());
                slotted.push(Node::Assign { slot, value, next })
            }
            node => slotted.push(node),
        };
    }
    slotted.set_root(ids[graph.root().0 as usize]);
    slotted
}

/// Returns the slots that are always assigned the same value, where it is no more expensive than a slot: a constant, or
/// bytes at a fixed offset.
fn always_the_same(graph: &Graph, nodes: impl Iterator<Item = Node>) -> HashMap<Slot, ValueId> {
    let mut assigned: HashMap<Slot, Option<ValueId>> = HashMap::default();
    for node in nodes {
        if let Node::Assign { slot, value, .. } = node {
            assigned
                .entry(slot)
                .and_modify(|before| *before = before.filter(|other| *other == value))
                .or_insert(Some(value));
        }
    }
    let cheap = |value: ValueId| {
        matches!(
            graph.get(value),
            Value::Constant(_) | Value::Load { base: None, .. } | Value::Length | Value::Meta(_)
        ) || is_header_length(graph, value)
    };
    assigned
        .into_iter()
        .filter_map(|(slot, value)| Some((slot, value.filter(|value| cheap(*value))?)))
        .collect()
}

/// Copies `id` to another graph. It is [cheap](always_the_same), so it has few operands.
fn copied(graph: &Graph, id: ValueId, to: &mut Graph) -> ValueId {
    let value = graph.get(id).map(|operand| copied(graph, operand, to));
    to.value(value)
}

/// Returns the slots that `nodes` read.
fn read(graph: &Graph, nodes: impl Iterator<Item = Node>) -> HashSet<Slot> {
    let mut slots = HashSet::default();
    let mut seen = vec![false; graph.values().len()];
    let mut pending: Vec<ValueId> = nodes.flat_map(Node::values).collect();
    while let Some(value) = pending.pop() {
        if std::mem::replace(&mut seen[value.0 as usize], true) {
            continue;
        }
        let shape = graph.get(value);
        if let Value::Slot(slot) = shape {
            slots.insert(slot);
        }
        pending.extend(shape.operands());
    }
    slots
}

/// Returns whether `value` is four times the lower half of a byte at a fixed offset, for which classic BPF has an
/// instruction.
fn is_header_length(graph: &Graph, value: ValueId) -> bool {
    let Value::Binary { operation: Operation::ShiftLeft, left, right } = graph.get(value) else {
        return false;
    };
    let Value::Binary { operation: Operation::And, left, .. } = graph.get(left) else { return false };
    matches!(graph.get(left), Value::Load { base: None, .. }) && graph.as_constant(right) == Some(2)
}
