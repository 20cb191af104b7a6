//! Merges blocks of identical instructions.
//!
//! Nodes that compare different values in the same way are identical once the values are in A: `tcp or udp` compares
//! both the protocol of an IPv4 header and that of an IPv6 header with 17.

use foldhash::HashMap;

use super::select::{Block, End};
use crate::cbpf::Instruction;
use crate::graph::NodeId;

/// Returns the distinct blocks of `layout` in order, with their nodes.
pub(super) fn share(layout: &[NodeId], blocks: Vec<Block>) -> (Vec<NodeId>, Vec<Block>) {
    let mut known: HashMap<(Vec<Instruction>, End), NodeId> = HashMap::default();
    let mut stands_for: HashMap<NodeId, NodeId> = HashMap::default();
    let mut shared = Vec::with_capacity(blocks.len());
    // From the last on: the block that stays comes after all references to its duplicates, so jumps still go forward.
    for (&id, Block { code, end }) in layout.iter().zip(blocks).rev() {
        let end = end.map(|next| stands_for[&next]);
        let kept = match end {
            // An empty block: its predecessors go directly to its successor.
            End::Goto(next) if code.is_empty() => next,
            _ => *known.entry((code.clone(), end)).or_insert(id),
        };
        stands_for.insert(id, kept);
        if kept == id {
            shared.push((id, Block { code, end }));
        }
    }
    shared.reverse();
    shared.into_iter().unzip()
}
