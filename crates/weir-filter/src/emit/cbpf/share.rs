//! Blocks of the same instructions become one.
//!
//! Nodes that ask different values the same question are the same once the values are in A: `tcp or udp` asks for 17 what an
//! IPv4 header has said, and an IPv6 header.

use foldhash::HashMap;

use super::select::{Block, End};
use crate::cbpf::Instruction;
use crate::graph::NodeId;

/// The blocks of `layout` that differ, in their order, with their nodes.
pub(super) fn share(layout: &[NodeId], blocks: Vec<Block>) -> (Vec<NodeId>, Vec<Block>) {
    let mut known: HashMap<(Vec<Instruction>, End), NodeId> = HashMap::default();
    let mut stands_for: HashMap<NodeId, NodeId> = HashMap::default();
    let mut shared = Vec::with_capacity(blocks.len());
    // From the last on: who stays comes behind all that lead to those that go, so that jumps still go forward.
    for (&id, Block { code, end }) in layout.iter().zip(blocks).rev() {
        let end = end.map(|next| stands_for[&next]);
        let kept = match end {
            // Nothing at all: whoever comes here goes on at once.
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
