//! Classic BPF as the kernel and libpcap run, check and print it.

use proptest::prelude::*;
use weir_filter::cbpf::{
    self, ANCILLARY, Instruction, LiftError, MEMORY_WORDS, Opcode, Operand, Program, Rules,
};
use weir_filter::graph::Operation::{ShiftLeft, ShiftRight};
use weir_filter::graph::{Relation, Width};
use weir_filter::interpret::{Interpreter, Packet};
use weir_judge::{KernelFilter, Libpcap, share};

/// Where the kernel begins to count from its link-layer header (`SKF_LL_OFF`), and from its network header (`SKF_NET_OFF`).
const LINK_LAYER: u32 = 0xffe0_0000;
const NETWORK: u32 = 0xfff0_0000;

fn opcodes() -> impl Strategy<Value = Opcode> {
    let known: Vec<Opcode> = (0..=u16::MAX).filter_map(Opcode::decode).collect();
    prop::sample::select(known)
}

/// Numbers such as programs have: offsets near the packet's end.
fn numbers() -> impl Strategy<Value = u32> {
    prop_oneof![0..4u32, 0..40u32, Just(u32::MAX), Just(u32::MAX - 3), any::<u32>()]
}

/// Those too that the kernel takes for offsets from its headers.
fn negative_numbers() -> impl Strategy<Value = u32> {
    let negative = prop::sample::select(vec![1 << 31, LINK_LAYER - 1, LINK_LAYER, NETWORK, NETWORK + 9]);
    prop_oneof![5 => numbers(), 1 => negative]
}

/// What a program may say, with few words of memory.
fn instruction(numbers: impl Strategy<Value = u32>) -> impl Strategy<Value = Instruction> {
    (opcodes(), 0..4u8, 0..4u8, numbers).prop_map(|(opcode, jt, jf, k)| {
        let branches = matches!(opcode, Opcode::Branch(..));
        let memory =
            matches!(opcode, Opcode::LoadMemory | Opcode::LoadXMemory | Opcode::Store | Opcode::StoreX);
        let (jt, jf) = if branches { (jt, jf) } else { (0, 0) };
        Instruction { code: opcode.code(), jt, jf, k: if memory { k % 4 } else { k } }
    })
}

/// A program that writes its memory before it reads it, and ends.
fn program(numbers: impl Strategy<Value = u32>) -> impl Strategy<Value = Program> {
    prop::collection::vec(instruction(numbers), 1..24).prop_map(|body| {
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

/// The program without what is not valid, and without that of which the kernel and we think otherwise on purpose: shifts
/// by X, of which the kernel takes the lowest five bits; what is known beside the bytes, which is not there here.
fn common(mut program: Program) -> Program {
    for instruction in &mut program.instructions {
        let common = match instruction.opcode() {
            Some(Opcode::Arithmetic(ShiftLeft | ShiftRight, Operand::X)) => false,
            Some(Opcode::LoadAbsolute(_) | Opcode::LoadXHeaderLength) => instruction.k < 1 << 31,
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

/// The program without what no graph has: another answer than 7 or nothing, and what lies beside the bytes.
fn liftable(mut program: Program) -> Program {
    for instruction in &mut program.instructions {
        *instruction = match instruction.opcode() {
            Some(Opcode::LoadAbsolute(_)) if instruction.k >= ANCILLARY => {
                Instruction::new(Opcode::CopyToX, 0)
            }
            Some(Opcode::ReturnA) => Instruction::new(Opcode::ReturnConstant, 7),
            Some(Opcode::ReturnConstant) => Instruction { k: instruction.k % 2 * 7, ..*instruction },
            _ => *instruction,
        };
    }
    while let Err(flaw) = program.check(Rules::Kernel) {
        program.instructions[flaw.at] = Instruction::new(Opcode::CopyToX, 0);
    }
    program
}

/// What the graph that `program` is lifted to answers, if there is one.
fn lifted(program: &Program, rules: Rules, data: &[u8]) -> Result<u32, LiftError> {
    let graph = program.lift(rules)?;
    let length = data.len().try_into().expect("a small packet");
    Ok(Interpreter::new(&graph, &[]).run(&Packet { data, length, ..Packet::default() }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(2000)))]

    #[test]
    fn the_kernel_runs_it_the_same(program in program(numbers()), data in prop::collection::vec(any::<u8>(), 1..40)) {
        let program = common(program);
        let kernel = KernelFilter::attach(&raw(&program)).expect("the program is valid").run(&data).unwrap();
        let kept = (run(&program, &data) as usize).min(data.len());
        prop_assert_eq!(kernel.unwrap_or(0), kept, "{}", program.listing());
    }

    #[test]
    fn libpcap_runs_it_the_same(
        mut program in program(negative_numbers()),
        data in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        // It may go on for ever with those.
        for jump in program.instructions.iter_mut().filter(|one| one.opcode() == Some(Opcode::Jump)) {
            jump.k &= 0x7fff_ffff;
        }
        while let Err(flaw) = program.check(Rules::Library) {
            program.instructions[flaw.at] = Instruction::new(Opcode::CopyToX, 0);
        }
        let libpcap = Libpcap::open().unwrap();
        let judge = libpcap.program(&raw(&program)).expect("the program is valid");
        let length = data.len().try_into().unwrap();
        let packet = Packet { data: &data, length, ..Packet::default() };
        let ours = cbpf::run(Rules::Library, |at| program.instructions.get(at).copied(), &packet);
        prop_assert_eq!(libpcap.run(&judge, length, &data), ours, "{}", program.listing());
    }

    #[test]
    fn lifted_for_the_kernel_it_answers_as_there(
        program in program(negative_numbers()),
        data in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let program = liftable(program);
        match lifted(&program, Rules::Kernel, &data) {
            Ok(answer) => {
                let kernel = KernelFilter::attach(&raw(&program)).expect("the program is valid");
                let kernel = kernel.run(&data).unwrap().is_some();
                prop_assert_eq!(kernel, answer != 0, "{}", program.listing());
            }
            // It may count from headers.
            Err(LiftError::Offset { .. }) => {}
            Err(error) => prop_assert!(false, "{}\n{}", error, program.listing()),
        }
    }

    #[test]
    fn lifted_for_libpcap_it_answers_as_there(
        program in program(negative_numbers()),
        data in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let program = liftable(program);
        let answer = lifted(&program, Rules::Library, &data);
        let libpcap = Libpcap::open().unwrap();
        let judge = libpcap.program(&raw(&program)).expect("the program is valid");
        let theirs = libpcap.run(&judge, data.len().try_into().unwrap(), &data);
        if !matches!(answer, Err(LiftError::Wraps { .. })) {
            prop_assert_eq!(answer, Ok(theirs), "{}", program.listing());
        }
    }

    #[test]
    fn the_kernel_takes_what_the_check_takes(body in prop::collection::vec(instruction(numbers()), 0..6), k in 0..20u32) {
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

/// Shifts by X, of which the kernel takes the lowest five bits.
#[test]
fn shifts_by_much_are_lifted_as_they_are_run() {
    let libpcap = Libpcap::open().unwrap();
    for operation in [ShiftLeft, ShiftRight] {
        for distance in [0, 1, 31, 32, 33, 63, 64, 255] {
            let program = Program {
                instructions: vec![
                    Instruction::new(Opcode::LoadAbsolute(Width::Byte), 0),
                    Instruction::new(Opcode::CopyToX, 0),
                    Instruction::new(Opcode::LoadConstant, 6),
                    Instruction::new(Opcode::Arithmetic(operation, Operand::X), 0),
                    Instruction {
                        jt: 0,
                        jf: 1,
                        ..Instruction::new(Opcode::Branch(Relation::Equal, Operand::Constant), 6)
                    },
                    Instruction::new(Opcode::ReturnConstant, 7),
                    Instruction::new(Opcode::ReturnConstant, 0),
                ],
            };
            let data = [distance];
            let kernel =
                KernelFilter::attach(&raw(&program)).expect("the program is valid").run(&data).unwrap();
            assert_eq!(kernel.is_some(), distance % 32 == 0, "{operation:?} by {distance} in the kernel");
            let judge = libpcap.program(&raw(&program)).expect("the program is valid");
            let theirs = libpcap.run(&judge, 1, &data);
            assert_eq!(theirs != 0, distance == 0, "{operation:?} by {distance} in libpcap");
            let [in_kernel, in_library] =
                [Rules::Kernel, Rules::Library].map(|rules| lifted(&program, rules, &data));
            assert_eq!(
                in_kernel.map(|answer| answer != 0),
                Ok(kernel.is_some()),
                "{operation:?} by {distance}"
            );
            assert_eq!(in_library, Ok(theirs), "{operation:?} by {distance}");
        }
    }
}

/// The kernel counts from headers there; libpcap refuses the packet.
#[test]
fn negative_offsets_are_lifted_for_libpcap_alone() {
    let libpcap = Libpcap::open().unwrap();
    let ending = |first: Vec<Instruction>| Program {
        instructions: [first, vec![Instruction::new(Opcode::ReturnConstant, 7)]].concat(),
    };
    let data = [4; 40];
    let at = |k: u32| {
        let x = Instruction::new(Opcode::LoadXConstant, k & !0xff);
        [
            (0, ending(vec![Instruction::new(Opcode::LoadAbsolute(Width::Byte), k)])),
            (0, ending(vec![Instruction::new(Opcode::LoadXHeaderLength, k)])),
            (1, ending(vec![x, Instruction::new(Opcode::LoadIndirect(Width::Byte), k & 0xff)])),
        ]
    };
    let mut found = 0;
    for (k, counts_from_headers) in
        [(1 << 31, false), (LINK_LAYER - 1, false), (LINK_LAYER, true), (NETWORK, true), (NETWORK + 9, true)]
    {
        for (place, program) in at(k) {
            let listing = program.listing();
            let judge = libpcap.program(&raw(&program)).expect("the program is valid");
            assert_eq!(libpcap.run(&judge, 40, &data), 0, "{listing}");
            assert_eq!(lifted(&program, Rules::Library, &data), Ok(0), "{listing}");
            let kernel =
                KernelFilter::attach(&raw(&program)).expect("the program is valid").run(&data).unwrap();
            found += u32::from(kernel.is_some());
            let expected = if counts_from_headers { Err(LiftError::Offset { at: place }) } else { Ok(0) };
            assert_eq!(lifted(&program, Rules::Kernel, &data), expected, "{listing}");
            assert!(counts_from_headers || kernel.is_none(), "{listing}");
        }
    }
    assert_ne!(found, 0, "the kernel found nothing before the packet, so nothing was compared");
    // What is known to be small is no negative offset.
    let near = ending(vec![
        Instruction::new(Opcode::LoadXHeaderLength, 0),
        Instruction::new(Opcode::LoadIndirect(Width::Byte), 9),
    ]);
    assert_eq!(lifted(&near, Rules::Kernel, &data), Ok(7));
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

/// The kernel makes eBPF of a program, in which a jump goes 32767 instructions at most.
#[test]
fn a_jump_goes_as_far_as_the_kernel_says() {
    let one = |opcode, k| Instruction::new(opcode, k);
    let branch =
        |relation, k, jt, jf| Instruction { jt, jf, ..one(Opcode::Branch(relation, Operand::Constant), k) };
    let loads = [
        one(Opcode::LoadAbsolute(Width::Byte), 0),
        one(Opcode::LoadAbsolute(Width::Half), 12),
        one(Opcode::LoadAbsolute(Width::Word), 0x8000),
        one(Opcode::LoadIndirect(Width::Word), 14),
        one(Opcode::LoadXHeaderLength, 14),
    ];
    let fillers = [
        one(Opcode::LoadConstant, 1),
        one(Opcode::LoadAbsolute(Width::Half), LINK_LAYER),
        one(Opcode::LoadIndirect(Width::Byte), 0),
        one(Opcode::Arithmetic(weir_filter::graph::Operation::Divide, Operand::X), 0),
        branch(Relation::Equal, 5, 0, 1),
        branch(Relation::AnyBit, 5, 0, 1),
        branch(Relation::AtLeast, u32::MAX, 1, 1),
        one(Opcode::ReturnConstant, 0),
        one(Opcode::ReturnA, 0),
    ];
    const BETWEEN: u32 = 4092;
    for load in loads {
        for filler in fillers {
            let program = |loads: u32| {
                let between = (0..BETWEEN).map(|at| if at < loads { load } else { filler });
                let end = [one(Opcode::ReturnConstant, 7); 3];
                let jump = [one(Opcode::Jump, BETWEEN)];
                Program { instructions: jump.into_iter().chain(between).chain(end).collect() }
            };
            let invalid = |loads| {
                let judged = KernelFilter::attach(&raw(&program(loads)));
                // `ENOMEM` is another matter: a valid one, but more than a socket has room for.
                matches!(judged.map_err(|error| error.raw_os_error()), Err(Some(22)))
            };
            let all: Vec<u32> = (0..=BETWEEN).collect();
            let edge = u32::try_from(all.partition_point(|&loads| !invalid(loads))).expect("few");
            assert!(edge > 0 && edge <= BETWEEN, "{load:?} {filler:?}: {edge}");
            assert_eq!(
                program(edge.saturating_sub(9)).check(Rules::Kernel),
                Ok(()),
                "{edge} {load:?} {filler:?}"
            );
            assert!(program(edge).check(Rules::Kernel).is_err(), "{edge} {load:?} {filler:?}");
        }
    }
}
