//! Lays the chunks of a queue out by flow.

use std::sync::Arc;

use weir_ring::Piece;

use crate::chunk::Chunk;
use crate::live::flow::{FlowGroup, Sorter};

/// The flows of a queue.
#[derive(Debug)]
pub(super) struct Flows {
    link_type: u16,
    sorter: Sorter,
    /// Number of chunks sorted since one was skipped.
    sorted: u32,
}

/// Parts of a chunk per handler that may take one: a handler that is slower, or not running, takes fewer.
pub(super) const PARTS: usize = 4;
/// Number of chunks at the start of a division that may contain later fragments of datagrams whose first one was
/// missed. Further on, the first fragment is lost or late, which does not justify making others wait.
const MOST_WHOLE: u32 = 8;

impl Flows {
    pub(super) fn new(link_type: u16) -> Self {
        Self { link_type, sorter: Sorter::new(), sorted: 0 }
    }

    /// Notes that a chunk was taken without sorting.
    pub(super) fn skip(&mut self) {
        self.sorted = 0;
    }

    /// Finds the flow group of each packet of `chunk`.
    pub(super) fn sort(&mut self, chunk: Chunk) -> Piece<Arc<Chunk>> {
        if self.sorted == 0 {
            self.sorter.forget();
        }
        self.sorted = self.sorted.saturating_add(1);
        let mut has_orphans = false;
        let mut groups = Vec::with_capacity(chunk.len());
        for (begin, packet) in chunk.places() {
            let group = self.sorter.group_of(self.link_type, packet.data);
            has_orphans |= matches!(group, FlowGroup::Orphan(_));
            groups.push((begin, group.group()));
        }
        let chunk = Arc::new(chunk);
        if has_orphans && self.sorted <= MOST_WHOLE {
            Piece::whole(chunk)
        } else {
            Piece::new(chunk, &groups)
        }
    }
}
