//! What holds at a place in the graph because something that dominates it saw to it.

use std::collections::HashMap;

use cranelift_codegen::ir;
use weir_filter::graph::ValueId;

/// Tables with a memory of what they were.
pub(crate) struct Scope {
    /// Numbers that are computed.
    values: Vec<Option<ir::Value>>,
    /// Bytes that are loaded, as they lie in memory.
    raws: HashMap<ValueId, ir::Value>,
    /// How many bytes from a load's base on are within the packet.
    reached: HashMap<ValueId, u64>,
    /// How many bytes the packet has at least.
    length: u64,
    /// What was there before, newest last.
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

    /// To [`forget`](Self::forget) what is noted from now on.
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
