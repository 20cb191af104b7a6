//! Programs of classic BPF that filter the packets of a handle.

use weir_filter::cbpf::{ANCILLARY, Flaw, Instruction, Opcode, Program, Rules, run};
use weir_filter::interpret::Packet as Seen;
use weir_native::Native;

/// A filter of a handle.
pub(crate) struct Filter {
    program: Program,
    /// The kernel's for programs that may ask for metadata, else libpcap's.
    rules: Rules,
    /// `None` if the program has no graph, such as one with backward jumps, or this process may not make code.
    native: Option<Native>,
}

impl Filter {
    /// Checks and compiles a program. `metadata`: whether packets have some, as those of devices do.
    pub(crate) fn new(program: Program, metadata: bool) -> Result<Self, Flaw> {
        program.check(Rules::Library)?;
        let rules =
            if metadata && program.check(Rules::Kernel).is_ok() { Rules::Kernel } else { Rules::Library };
        let native = match rules {
            Rules::Kernel => program.lift(rules).ok(),
            Rules::Library => without_metadata(&program).lift(rules).ok(),
        };
        let native = native.and_then(|graph| Native::new(&graph, &[]).ok());
        Ok(Self { program, rules, native })
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    #[inline]
    pub(crate) fn accepts(&self, seen: &Seen<'_>) -> bool {
        match &self.native {
            Some(native) => native.run(seen) != 0,
            None => {
                let fetch = |at: usize| self.program.instructions.get(at).copied();
                run(self.rules, fetch, seen) != 0
            }
        }
    }
}

/// Replaces loads of metadata, which packets of files do not have, by what they do: they reject the packet.
fn without_metadata(program: &Program) -> Program {
    let reject = Instruction::new(Opcode::ReturnConstant, 0);
    let instructions = program.instructions.iter();
    let instructions = instructions.map(|&one| if loads_metadata(one) { reject } else { one });
    Program { instructions: instructions.collect() }
}

fn loads_metadata(instruction: Instruction) -> bool {
    matches!(instruction.opcode(), Some(Opcode::LoadAbsolute(_))) && instruction.k >= ANCILLARY
}
