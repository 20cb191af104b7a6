//! Filters with more verdicts than acceptance and rejection: each engine that has them gives the same one.

use proptest::prelude::*;
use weir_filter::interpret::Packet;
use weir_judge::ebpf::can_load;
use weir_judge::graphs::{Dice, bytes, graph_of, metadata, sets};
use weir_judge::{Engines, Kernel, share};

fn agree(seed: u64, nodes: usize, verdicts: u16, kernel: Kernel) {
    let mut dice = Dice::new(seed);
    let sets = sets(&mut dice);
    let graph = graph_of(Dice::new(seed ^ 0x5555), &sets, nodes, verdicts);
    let engines = Engines::new(&graph, &sets, kernel);
    for _ in 0..6 {
        let (data, meta) = (bytes(&mut dice), metadata(&mut dice));
        let packet = Packet { data: &data, length: dice.number(), meta };
        engines.decide(&packet).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

proptest! {
    #[test]
    fn the_process_has_them(seed in any::<u64>(), nodes in 1..60_usize, verdicts in 3..=8_u16) {
        agree(seed, nodes, verdicts, Kernel::No);
    }
}

#[test]
fn root_the_kernel_has_them() {
    if !can_load("root_the_kernel_has_them") {
        return;
    }
    let config = ProptestConfig::with_cases(share::cases(24));
    proptest!(config, |(seed in any::<u64>(), nodes in 1..60_usize, verdicts in 3..=8_u16)| {
        agree(seed, nodes, verdicts, Kernel::Full);
    });
}
