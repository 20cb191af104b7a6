//! Filters of a handle: programs of classic BPF, and expressions in weir's dialect.

use weir::filter::{Compiled, Matcher};
use weir_filter::cbpf::{ANCILLARY, Flaw, Instruction, Opcode, Program, Rules, ancillary_meta, run};
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::graph::Meta;
use weir_filter::interpret::Packet as Seen;
use weir_native::Native;

/// A filter of a handle.
pub(crate) enum Filter {
    Program(Box<Classic>),
    Expression(Box<Expression>),
}

/// A program of C's.
pub(crate) struct Classic {
    program: Program,
    /// The kernel's for programs that may ask for metadata, else libpcap's.
    rules: Rules,
    /// `None` if the program has no graph, such as one with backward jumps, or this process may not make code.
    native: Option<Native>,
}

/// An expression in weir's dialect.
pub(crate) struct Expression {
    /// What to compile for a place that knows sets.
    pub(crate) filter: weir::Filter,
    matcher: Matcher,
    /// The same in classic BPF, unless it is too long for the kernel.
    program: Option<Program>,
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
        Ok(Self::Program(Box::new(Classic { program, rules, native })))
    }

    /// Creates a filter of an expression that was compiled for the handle.
    pub(crate) fn of_expression(filter: weir::Filter, compiled: &Compiled) -> Self {
        let program = emit(&compiled.graph, &compiled.ast.sets, Target::Kernel).ok();
        Self::Expression(Box::new(Expression { filter, matcher: Matcher::new(compiled), program }))
    }

    /// Returns the filter as a program, if it has that form.
    pub(crate) fn program(&self) -> Option<&Program> {
        match self {
            Self::Program(classic) => Some(&classic.program),
            Self::Expression(expression) => expression.program.as_ref(),
        }
    }

    #[inline]
    pub(crate) fn accepts(&self, seen: &Seen<'_>) -> bool {
        match self {
            Self::Program(classic) => classic.accepts(seen),
            Self::Expression(expression) => expression.matcher.matches(seen),
        }
    }
}

impl Classic {
    #[inline]
    fn accepts(&self, seen: &Seen<'_>) -> bool {
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

/// Returns whether a program asks for a VLAN tag beside the frame.
pub(crate) fn loads_tags(program: &Program) -> bool {
    let tag = |k| matches!(ancillary_meta(k), Some(Meta::VlanTag | Meta::VlanPresent | Meta::VlanProtocol));
    program.instructions.iter().any(|&one| loads_metadata(one) && tag(one.k))
}

fn loads_metadata(instruction: Instruction) -> bool {
    matches!(instruction.opcode(), Some(Opcode::LoadAbsolute(_))) && instruction.k >= ANCILLARY
}

#[cfg(test)]
mod tests {
    use weir_filter::graph::Width;

    use super::*;

    #[test]
    fn programs_that_ask_for_a_tag_beside_the_frame_are_known() {
        let load = |k| Instruction::new(Opcode::LoadAbsolute(Width::Byte), k);
        let asks = |instruction| loads_tags(&Program { instructions: vec![instruction] });
        for meta in [Meta::VlanTag, Meta::VlanPresent, Meta::VlanProtocol] {
            assert!(asks(load(meta.offset())), "{meta:?}");
            assert!(!asks(Instruction::new(Opcode::LoadConstant, meta.offset())), "{meta:?}");
        }
        assert!(!asks(load(Meta::Protocol.offset())) && !asks(load(12)));
    }
}
