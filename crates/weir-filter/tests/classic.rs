//! Classic BPF as the kernel and libpcap run, check and print it.

use proptest::prelude::*;
use weir_filter::cbpf::{Instruction, MEMORY_WORDS, Opcode, Operand, Program, Rules};
use weir_filter::graph::Operation::{ShiftLeft, ShiftRight};
use weir_filter::interpret::Packet;
use weir_judge::{KernelFilter, Libpcap};

fn opcodes() -> impl Strategy<Value = Opcode> {
    let known: Vec<Opcode> = (0..=u16::MAX).filter_map(Opcode::decode).collect();
    prop::sample::select(known)
}

/// What a program may say, with numbers such as programs have: offsets near the packet's end, few words of memory.
fn instruction() -> impl Strategy<Value = Instruction> {
    let numbers = prop_oneof![0..4u32, 0..40u32, Just(u32::MAX), Just(u32::MAX - 3), any::<u32>()];
    (opcodes(), 0..4u8, 0..4u8, numbers).prop_map(|(opcode, jt, jf, k)| {
        let branches = matches!(opcode, Opcode::Branch(..));
        let memory =
            matches!(opcode, Opcode::LoadMemory | Opcode::LoadXMemory | Opcode::Store | Opcode::StoreX);
        let (jt, jf) = if branches { (jt, jf) } else { (0, 0) };
        Instruction { code: opcode.code(), jt, jf, k: if memory { k % 4 } else { k } }
    })
}

/// A program that writes its memory before it reads it, and ends.
fn program() -> impl Strategy<Value = Program> {
    prop::collection::vec(instruction(), 1..24).prop_map(|body| {
        let begin = (0..4).map(|word| Instruction::new(Opcode::Store, word));
        let end = [Instruction::new(Opcode::ReturnA, 0), Instruction::new(Opcode::ReturnConstant, 7)];
        Program { instructions: begin.chain(body).chain(end).chain(end).collect() }
    })
}

fn raw(program: &Program) -> Vec<weir_judge::Instruction> {
    program.instructions.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
}

fn run(program: &Program, data: &[u8]) -> u32 {
    let length = data.len().try_into().expect("a small packet");
    program.run(&Packet { data, length, ..Packet::default() })
}

/// The program without what is not valid, and without that of which kernel, libpcap and we think otherwise on purpose: shifts
/// by X, of which the kernel takes the lowest five bits; what is known beside the bytes, which neither has here; for
/// libpcap, addresses that wrap.
fn common(mut program: Program, kernel: bool) -> Program {
    for instruction in &mut program.instructions {
        let common = match instruction.opcode() {
            Some(Opcode::Arithmetic(ShiftLeft | ShiftRight, Operand::X)) => !kernel,
            Some(Opcode::LoadAbsolute(_) | Opcode::LoadXHeaderLength) => instruction.k < 1 << 31,
            Some(Opcode::LoadIndirect(_)) => kernel || instruction.k == 0,
            _ => true,
        };
        if !common {
            *instruction = Instruction::new(Opcode::CopyToX, 0);
        }
    }
    while let Err(flaw) = program.check(Rules::Kernel) {
        program.instructions[flaw.at] = Instruction::new(Opcode::CopyToX, 0);
    }
    program
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_runs_it_the_same(program in program(), data in prop::collection::vec(any::<u8>(), 1..40)) {
        let program = common(program, true);
        let kernel = KernelFilter::attach(&raw(&program)).expect("the program is valid").run(&data).unwrap();
        let kept = (run(&program, &data) as usize).min(data.len());
        prop_assert_eq!(kernel.unwrap_or(0), kept, "{}", program.listing());
    }

    #[test]
    fn libpcap_runs_it_the_same(program in program(), data in prop::collection::vec(any::<u8>(), 1..40)) {
        let program = common(program, false);
        let libpcap = Libpcap::open().unwrap();
        let judge = libpcap.program(&raw(&program)).expect("the program is valid");
        let length = data.len().try_into().unwrap();
        prop_assert_eq!(libpcap.run(&judge, length, &data), run(&program, &data), "{}", program.listing());
    }

    #[test]
    fn the_kernel_takes_what_the_check_takes(body in prop::collection::vec(instruction(), 0..6), k in 0..20u32) {
        let mut instructions = body;
        let rest = [Opcode::Jump, Opcode::LoadMemory, Opcode::ReturnConstant];
        instructions.extend(rest.map(|opcode| Instruction::new(opcode, k)));
        for length in 0..=instructions.len() {
            let program = Program { instructions: instructions[..length].to_vec() };
            let kernel = KernelFilter::attach(&raw(&program)).is_ok();
            let check = program.check(Rules::Kernel);
            prop_assert_eq!(kernel, check.is_ok(), "{:?}\n{}", check, program.listing());
        }
    }

    #[test]
    fn whatever_it_is_it_runs_and_is_printed(
        codes in prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>()), 0..8),
        data in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let instructions = codes.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
        let program = Program { instructions };
        run(&program, &data);
        _ = (program.check(Rules::Library), program.check(Rules::Kernel), program.listing(), program.as_c());
        prop_assert_eq!(Program::from_numbers(&program.as_numbers()), Ok(program));
    }
}

#[test]
fn a_loop_without_end_refuses() {
    let back = Instruction::new(Opcode::Jump, u32::MAX);
    let program = Program { instructions: vec![back, Instruction::new(Opcode::ReturnConstant, 1)] };
    assert_eq!(program.check(Rules::Library), Ok(()));
    assert!(program.check(Rules::Kernel).is_err());
    assert_eq!(run(&program, &[]), 0);
}

#[test]
fn each_instruction_is_printed_as_libpcap_prints_it() {
    let libpcap = Libpcap::open().unwrap();
    let numbers =
        (0..80).map(|ancillary| 0xffff_f000 + ancillary).chain([0, 12, 0x800, 0x8000_0000, u32::MAX]);
    for k in numbers {
        for code in 0..0x200 {
            let instruction = Instruction { code, jt: 3, jf: 255, k };
            let at = u16::try_from(k & 0x7ff).unwrap();
            if instruction.opcode() == Some(Opcode::LoadXLength) {
                continue; // The kernel takes it, but libpcap has no word for it.
            }
            let theirs = libpcap.image((code, 3, 255, k), at);
            assert_eq!(instruction.image(at.into()), theirs, "{code:#x} {k:#x}");
        }
    }
}

#[test]
fn memory_has_as_many_words_as_the_kernel_says() {
    let store = |word: usize| {
        let word = word.try_into().unwrap();
        vec![Instruction::new(Opcode::Store, word), Instruction::new(Opcode::ReturnConstant, 1)]
    };
    for (word, taken) in [(MEMORY_WORDS - 1, true), (MEMORY_WORDS, false)] {
        let program = Program { instructions: store(word) };
        assert_eq!(program.check(Rules::Kernel).is_ok(), taken);
        assert_eq!(KernelFilter::attach(&raw(&program)).is_ok(), taken);
    }
}
