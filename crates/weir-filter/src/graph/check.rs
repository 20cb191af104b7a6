//! Verifies the rules of a graph: run after each pass in tests and debug builds.

use foldhash::HashSet;

use super::build::ENDS;
use super::{Graph, Node, Slot, Test, Value};
use crate::set::Set;

/// The slots that are assigned when a node is reached.
#[derive(Clone, PartialEq, Eq)]
struct Assigned {
    surely: HashSet<Slot>,
    perhaps: HashSet<Slot>,
}

impl Graph {
    /// Checks the graph; the error describes the first rule it breaks.
    pub fn check(&self, sets: &[Set]) -> Result<(), String> {
        self.check_values()?;
        self.check_nodes(sets)?;
        self.check_slots()
    }

    fn check_values(&self) -> Result<(), String> {
        let mut known = HashSet::default();
        for (index, value) in self.values.iter().enumerate() {
            if value.operands().any(|id| id.0 as usize >= index) {
                return Err(format!("G2: value {index} has an operand that comes after it"));
            }
            if !known.insert(value) {
                return Err(format!("G3: value {index} is there twice"));
            }
        }
        Ok(())
    }

    fn check_nodes(&self, sets: &[Set]) -> Result<(), String> {
        if self.nodes[..ENDS.len()] != ENDS {
            return Err("G1: the first nodes are not refuse and accept".to_owned());
        }
        if let Some(index) = self.nodes[ENDS.len()..].iter().position(|node| ENDS.contains(node)) {
            return Err(format!("G1: node {} is refuse or accept once more", index + ENDS.len()));
        }
        if self.root.0 as usize >= self.nodes.len() {
            return Err("G1: the root is not there".to_owned());
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if node.successors().any(|next| next.0 as usize >= index) {
                return Err(format!("G1: node {index} has a successor that comes after it"));
            }
            if let Node::Branch { test: Test::Member { set, key }, .. } = node {
                let words = sets.get(set.0 as usize).map(Set::words);
                let words =
                    words.ok_or_else(|| format!("G5: node {index} asks for a set that is not there"))?;
                if key[words..].iter().any(|word| *word != key[words - 1]) {
                    return Err(format!("G5: node {index} has a key of more than {words} words"));
                }
            }
        }
        Ok(())
    }

    fn check_slots(&self) -> Result<(), String> {
        if self.slots == 0 {
            return Ok(());
        }
        let reads = self.slots_read();
        let mut at: Vec<Option<Assigned>> = vec![None; self.nodes.len()];
        at[self.root.0 as usize] = Some(Assigned { surely: HashSet::default(), perhaps: HashSet::default() });
        for index in (0..=self.root.0 as usize).rev() {
            let Some(mut assigned) = at[index].take() else { continue };
            let node = self.nodes[index];
            for value in node.values() {
                if let Some(slot) = reads[value.0 as usize].difference(&assigned.surely).next() {
                    return Err(format!("G4: node {index} reads slot {} that may not be assigned", slot.0));
                }
            }
            if let Node::Assign { slot, .. } = node {
                if !assigned.perhaps.insert(slot) {
                    return Err(format!("G4: node {index} assigns slot {} once more", slot.0));
                }
                assigned.surely.insert(slot);
            }
            for next in node.successors() {
                match &mut at[next.0 as usize] {
                    Some(there) => {
                        there.surely.retain(|slot| assigned.surely.contains(slot));
                        there.perhaps.extend(&assigned.perhaps);
                    }
                    empty => *empty = Some(assigned.clone()),
                }
            }
        }
        Ok(())
    }

    /// Returns the slots that each value depends on.
    fn slots_read(&self) -> Vec<HashSet<Slot>> {
        let mut reads: Vec<HashSet<Slot>> = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let mut slots: HashSet<Slot> = HashSet::default();
            if let Value::Slot(slot) = value {
                slots.insert(*slot);
            }
            for operand in value.operands() {
                slots.extend(&reads[operand.0 as usize]);
            }
            reads.push(slots);
        }
        reads
    }
}
