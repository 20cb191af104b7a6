//! Packets that have what a program asks for.

use weir_filter::cbpf::{Opcode, Program};
use weir_filter::graph::{Relation, Width};

/// The same numbers each time (Knuth's MMIX generator).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256).try_into().expect("a byte")).collect()
    }
}

/// Writes over `data`, here and there, what `program` compares with.
pub(crate) fn answer(program: &Program, data: &mut [u8], random: &mut Random) {
    let asked: Vec<(usize, usize, u32)> = program
        .instructions
        .windows(2)
        .filter(|pair| matches!(pair[1].opcode(), Some(Opcode::Branch(Relation::Equal, _))))
        .filter_map(|pair| match pair[0].opcode() {
            Some(Opcode::LoadAbsolute(width)) => Some((pair[0].k as usize, width as usize, pair[1].k)),
            Some(Opcode::LoadIndirect(width)) => Some((pair[0].k as usize + 20, width as usize, pair[1].k)),
            _ => None,
        })
        .collect();
    for _ in 0..asked.len().min(8) {
        let (offset, width, number) = asked[random.below(asked.len())];
        if let Some(place) = data.get_mut(offset..).and_then(|rest| rest.get_mut(..width)) {
            place.copy_from_slice(&number.to_be_bytes()[Width::Word as usize - width..]);
        }
    }
}
