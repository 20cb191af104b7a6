//! Random graphs on random packets, and every truncation of these: native code answers as the interpreter does.

use proptest::prelude::*;
use weir_filter::graph::Verdict;
use weir_filter::interpret::{Interpreter, Packet};
use weir_judge::graphs::{Dice, bytes, graph_of, metadata, sets};
use weir_native::Native;

/// Returns how often there was each of this many verdicts.
fn agree(seed: u64, nodes: usize, verdicts: u16) -> Vec<u32> {
    let mut dice = Dice::new(seed);
    let sets = sets(&mut dice);
    let graph = graph_of(Dice::new(seed ^ 0x5555), &sets, nodes, verdicts);
    graph.check(&sets).unwrap();
    let native = Native::new(&graph, &sets).unwrap();
    let interpreter = Interpreter::new(&graph, &sets);
    let mut answers = vec![0; verdicts.into()];
    for _ in 0..12 {
        let (data, meta, length) = (bytes(&mut dice), metadata(&mut dice), dice.number());
        for end in 0..=data.len() {
            let packet = Packet { data: &data[..end], length, meta };
            let expected = (interpreter.verdict(&packet), interpreter.run(&packet));
            let found = (native.verdict(&packet), native.run(&packet));
            assert_eq!(found, expected, "seed {seed}, {packet:?}\n{graph}");
            let Verdict(number) = expected.0;
            answers[usize::from(number)] += 1;
        }
    }
    answers
}

proptest! {
    #[test]
    fn native_code_answers_as_the_interpreter(seed in any::<u64>(), nodes in 1..60_usize, verdicts in 2..6_u16) {
        agree(seed, nodes, verdicts);
    }
}

#[test]
fn random_graphs_say_yes_and_no() {
    let answers = sum((0..100).map(|seed| agree(seed * 77, 30, 2)));
    assert!(answers.iter().all(|&count| count > 1000), "{answers:?}");
}

#[test]
fn random_graphs_have_each_verdict() {
    let answers = sum((0..100).map(|seed| agree(seed * 77, 30, 4)));
    assert!(answers.iter().all(|&count| count > 500), "{answers:?}");
}

fn sum(all: impl Iterator<Item = Vec<u32>>) -> Vec<u32> {
    all.reduce(|all, one| all.iter().zip(one).map(|(all, one)| all + one).collect()).unwrap_or_default()
}
