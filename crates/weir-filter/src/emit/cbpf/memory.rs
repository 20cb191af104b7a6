//! Allocation of scratch memory to slots. Two slots share a word if no node needs both.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::EmitError;
use crate::cbpf::MEMORY_WORDS;
use crate::graph::{Graph, Node, NodeId, Slot, Value, ValueId};

/// The words of slots.
#[derive(Debug, Default)]
pub(super) struct Words {
    of: HashMap<Slot, u8>,
    /// First word not used by a slot.
    pub(super) free: u8,
}

impl Words {
    /// Returns the slot's word.
    pub(super) fn of(&self, slot: Slot) -> u8 {
        self.of[&slot]
    }
}

/// Allocates a word to each slot that is read.
pub(super) fn assign(graph: &Graph, layout: &[NodeId]) -> Result<Words, EmitError> {
    let mut words = Words::default();
    if graph.slots() == 0 {
        return Ok(words);
    }
    // For each slot, the slots that are live when it is assigned.
    let mut beside: HashMap<Slot, BTreeSet<Slot>> = HashMap::default();
    let mut reads = HashMap::default();
    let mut needed: Vec<BTreeSet<Slot>> = vec![BTreeSet::new(); graph.nodes().len()];
    for &id in layout.iter().rev() {
        let node = graph.node(id);
        let mut now: BTreeSet<Slot> =
            node.successors().flat_map(|next| needed[next.0 as usize].iter().copied()).collect();
        if let Node::Assign { slot, .. } = node {
            now.remove(&slot);
            for &other in &now {
                beside.entry(other).or_default().insert(slot);
            }
            beside.entry(slot).or_default().extend(&now);
        }
        for value in node.values() {
            now.extend(slots_of(graph, value, &mut reads)?);
        }
        // All of these are live at once. Give up here, as going on would take quadratic time.
        if now.len() > MEMORY_WORDS {
            return Err(EmitError::Memory);
        }
        needed[id.0 as usize] = now;
    }
    for &id in layout {
        let Node::Assign { slot, .. } = graph.node(id) else { continue };
        if words.of.contains_key(&slot) {
            continue;
        }
        let taken: Vec<u8> = beside[&slot].iter().filter_map(|other| words.of.get(other).copied()).collect();
        let mut all = 0..u8::try_from(MEMORY_WORDS).expect("there are 16");
        let word = all.find(|word| !taken.contains(word)).ok_or(EmitError::Memory)?;
        words.of.insert(slot, word);
        words.free = words.free.max(word + 1);
    }
    Ok(words)
}

/// Returns the slots that `id` depends on, if there is a word for each.
fn slots_of<'a>(
    graph: &Graph,
    id: ValueId,
    known: &'a mut HashMap<ValueId, Vec<Slot>>,
) -> Result<&'a [Slot], EmitError> {
    let mut pending = vec![id];
    while let Some(&value) = pending.last() {
        if known.contains_key(&value) {
            pending.pop();
            continue;
        }
        let operands = || graph.get(value).operands();
        let before = pending.len();
        pending.extend(operands().filter(|operand| !known.contains_key(operand)));
        if pending.len() > before {
            continue;
        }
        let mut slots: Vec<Slot> = operands().flat_map(|operand| known[&operand].iter().copied()).collect();
        slots.extend(match graph.get(value) {
            Value::Slot(slot) => Some(slot),
            _ => None,
        });
        slots.sort_unstable();
        slots.dedup();
        if slots.len() > MEMORY_WORDS {
            return Err(EmitError::Memory);
        }
        known.insert(value, slots);
    }
    Ok(&known[&id])
}
