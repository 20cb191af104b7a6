//! Facts that hold at a node because a dominator has established them.

use std::collections::HashMap;

use cranelift_codegen::ir;
use weir_filter::graph::ValueId;

/// Facts with an undo log.
pub(crate) struct Scope {
    /// Computed numbers.
    values: Vec<Option<ir::Value>>,
    /// Loaded bytes, in memory byte order.
    raws: HashMap<ValueId, ir::Value>,
    /// Bytes after a load's base that are known to be in the packet.
    reached: HashMap<ValueId, u64>,
    /// Minimum length of the packet.
    length: u64,
    /// Undo log, newest last.
    undo: Vec<Undo>,
}

enum Undo {
    Value(ValueId),
    Raw(ValueId),
    Reached(ValueId, Option<u64>),
    Length(u64),
}

impl Scope {
    pub(crate) fn new(values: usize) -> Self {
        let (raws, reached) = (HashMap::new(), HashMap::new());
        Self { values: vec![None; values], raws, reached, length: 0, undo: Vec::new() }
    }

    /// Returns a mark to which [`forget`](Self::forget) rolls back.
    pub(crate) fn mark(&self) -> usize {
        self.undo.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        for undo in self.undo.drain(mark..).rev() {
            match undo {
                Undo::Value(id) => self.values[id.0 as usize] = None,
                Undo::Raw(id) => _ = self.raws.remove(&id),
                Undo::Reached(id, Some(before)) => _ = self.reached.insert(id, before),
                Undo::Reached(id, None) => _ = self.reached.remove(&id),
                Undo::Length(before) => self.length = before,
            }
        }
    }

    pub(crate) fn value(&self, id: ValueId) -> Option<ir::Value> {
        self.values[id.0 as usize]
    }

    pub(crate) fn note(&mut self, id: ValueId, value: ir::Value) {
        self.values[id.0 as usize] = Some(value);
        self.undo.push(Undo::Value(id));
    }

    pub(crate) fn raw(&self, id: ValueId) -> Option<ir::Value> {
        self.raws.get(&id).copied()
    }

    pub(crate) fn note_raw(&mut self, id: ValueId, raw: ir::Value) {
        self.raws.insert(id, raw);
        self.undo.push(Undo::Raw(id));
    }

    pub(crate) fn reached(&self, base: ValueId) -> u64 {
        self.reached.get(&base).copied().unwrap_or(0)
    }

    pub(crate) fn note_reached(&mut self, base: ValueId, end: u64) {
        let before = self.reached.insert(base, end);
        self.undo.push(Undo::Reached(base, before));
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn note_length(&mut self, bytes: u64) {
        self.undo.push(Undo::Length(self.length));
        self.length = bytes;
    }
}
