//! Allocation of stack cells to slots. Slots that are never live at the same time share a cell.

use crate::graph::{Graph, Node, Value};

/// Returns the cell of each slot, and the number of cells.
///
/// Nodes are executed from the highest number to the lowest. On each path a slot is assigned before it is read, so it
/// owns its cell from the highest node that assigns it to the lowest that reads or assigns it: even an assignment that
/// is never read must not overwrite another slot.
pub(super) fn cells(graph: &Graph) -> (Vec<usize>, usize) {
    let count = usize::from(graph.slots());
    let reads = last_reads(graph);
    let mut assigned: Vec<Option<usize>> = vec![None; count];
    let mut last: Vec<Option<usize>> = vec![None; count];
    for (index, node) in graph.nodes().iter().enumerate() {
        if let Node::Assign { slot, .. } = node {
            assigned[usize::from(slot.0)] = Some(index);
            last[usize::from(slot.0)].get_or_insert(index);
        }
    }
    let mut order: Vec<usize> = (0..count).filter(|&slot| assigned[slot].is_some()).collect();
    order.sort_by_key(|&slot| std::cmp::Reverse(assigned[slot]));
    // For each cell, the node below which it is free.
    let mut free_below: Vec<usize> = Vec::new();
    let mut cells = vec![0; count];
    for slot in order {
        let begin = assigned[slot].expect("only assigned slots are ordered");
        let end = reads[slot].into_iter().chain(last[slot]).min().unwrap_or(begin);
        let cell = free_below.iter().position(|&free| begin < free).unwrap_or_else(|| {
            free_below.push(0);
            free_below.len() - 1
        });
        free_below[cell] = end;
        cells[slot] = cell;
    }
    (cells, free_below.len())
}

/// Returns the lowest node that reads each slot.
fn last_reads(graph: &Graph) -> Vec<Option<usize>> {
    // The slots each value depends on. Few have any, so the lists are short.
    let mut made_of: Vec<Vec<u16>> = Vec::with_capacity(graph.values().len());
    for value in graph.values() {
        let mut slots: Vec<u16> = match value {
            Value::Slot(slot) => vec![slot.0],
            other => other.operands().flat_map(|id| made_of[id.0 as usize].clone()).collect(),
        };
        slots.sort_unstable();
        slots.dedup();
        made_of.push(slots);
    }
    let mut last = vec![None; graph.slots().into()];
    for (index, node) in graph.nodes().iter().enumerate() {
        for value in node.values() {
            for &slot in &made_of[value.0 as usize] {
                last[usize::from(slot)].get_or_insert(index);
            }
        }
    }
    last
}
