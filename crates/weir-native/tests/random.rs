//! Random graphs on random packets, and every truncation of these: native code answers as the interpreter does.

use proptest::prelude::*;
use weir_filter::interpret::{Interpreter, Packet};
use weir_judge::graphs::{Dice, bytes, graph, metadata, sets};
use weir_native::Native;

fn agree(seed: u64, nodes: usize) -> (u32, u32) {
    let mut dice = Dice::new(seed);
    let sets = sets(&mut dice);
    let graph = graph(Dice::new(seed ^ 0x5555), &sets, nodes);
    graph.check(&sets).unwrap();
    let native = Native::new(&graph, &sets).unwrap();
    let interpreter = Interpreter::new(&graph, &sets);
    let mut answers = (0, 0);
    for _ in 0..12 {
        let (data, meta, length) = (bytes(&mut dice), metadata(&mut dice), dice.number());
        for end in 0..=data.len() {
            let packet = Packet { data: &data[..end], length, meta };
            let expected = interpreter.run(&packet);
            assert_eq!(native.run(&packet), expected, "seed {seed}, {packet:?}\n{graph}");
            if expected == 0 { answers.0 += 1 } else { answers.1 += 1 }
        }
    }
    answers
}

proptest! {
    #[test]
    fn native_code_answers_as_the_interpreter(seed in any::<u64>(), nodes in 1..60_usize) {
        agree(seed, nodes);
    }
}

#[test]
fn random_graphs_say_yes_and_no() {
    let all = (0..100).map(|seed| agree(seed * 77, 30));
    let (no, yes) = all.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(no > 1000 && yes > 1000, "{no} {yes}");
}
