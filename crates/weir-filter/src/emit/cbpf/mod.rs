//! Code generation for classic BPF.
//!
//! ```text
//! Graph -> expand sets -> guard: semantics that the machine lacks -> passes
//!       -> layout: nodes in an order in which jumps go forward -> memory: a word for each slot
//!       -> select: instructions for each node, reusing what A and X hold
//!       -> share: merge identical blocks -> assemble: jumps, returns
//! ```

mod assemble;
mod guard;
mod layout;
mod memory;
mod select;
mod share;

use crate::cbpf::{MEMORY_WORDS, MOST_INSTRUCTIONS, Program};
use crate::graph::Graph;
use crate::pass;
use crate::set::Set;

/// The machine that runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The kernel, which limits programs to 4096 instructions and does not take offsets from 2^31 on as bytes of the
    /// packet.
    Kernel,
    /// [`Program::run`], or libpcap.
    Library,
}

/// A graph that does not fit into classic BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// More than 4096 instructions, the kernel's limit.
    #[error(
        "the filter needs {instructions} classic BPF instructions, but the kernel accepts at most \
         {MOST_INSTRUCTIONS}: use sets; eBPF (sources `xdp` and `tc`) has room for more, and a filter that \
         runs in the process (source `af_packet`) has no limit"
    )]
    TooLong {
        /// Number of instructions.
        instructions: usize,
    },
    /// A jump is longer than the kernel allows.
    #[error(
        "the filter needs {instructions} classic BPF instructions, which the kernel expands beyond the \
         reach of its jumps: use sets; eBPF (sources `xdp` and `tc`) has room for more, and a filter that \
         runs in the process (source `af_packet`) has no limit"
    )]
    TooFar {
        /// Number of instructions.
        instructions: usize,
    },
    /// Arithmetic is nested too deeply, or too many headers are at varying offsets.
    #[error(
        "the filter needs more than the {MEMORY_WORDS} memory words of classic BPF; eBPF (sources `xdp` and \
         `tc`) has more, and a filter that runs in the process (source `af_packet`) has no limit"
    )]
    Memory,
    /// A program in classic BPF can only accept or reject.
    #[error("the filter has {verdicts} verdicts, but classic BPF only accepts or rejects: use eBPF")]
    Verdicts {
        /// Number of verdicts ([`Graph::verdicts`]).
        verdicts: usize,
    },
}

/// Generates a program.
pub fn emit(graph: &Graph, sets: &[Set], target: Target) -> Result<Program, EmitError> {
    let expanded = pass::expand_sets(graph, sets);
    let guarded = guard::guard(&expanded, target);
    assembled(&pass::optimise(&guarded, &[]), target)
}

/// Generates a program that asks again what earlier tests have answered, as libpcap's does without its optimiser: tests
/// only have the form that the machine needs.
pub fn emit_plainly(graph: &Graph, sets: &[Set], target: Target) -> Result<Program, EmitError> {
    let expanded = pass::expand_sets(graph, sets);
    let guarded = guard::guard(&pass::simplify(&expanded), target);
    assembled(&pass::certain(&pass::simplify(&guarded)), target)
}

fn assembled(graph: &Graph, target: Target) -> Result<Program, EmitError> {
    if let verdicts @ 3.. = graph.verdicts() {
        return Err(EmitError::Verdicts { verdicts });
    }
    let layout = layout::layout(graph);
    let words = memory::assign(graph, &layout)?;
    let blocks = select::select(graph, &layout, &words)?;
    let (layout, blocks) = share::share(&layout, blocks);
    let program = assemble::assemble(graph, &layout, blocks);
    match program.len() {
        instructions if target == Target::Kernel && instructions > MOST_INSTRUCTIONS => {
            Err(EmitError::TooLong { instructions })
        }
        instructions if target == Target::Kernel && program.goes_too_far().is_some() => {
            Err(EmitError::TooFar { instructions })
        }
        _ => Ok(program),
    }
}
