//! Prints the compiled form of an expression.

use weir::filter::Compiled;
use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{self, Target};
use weir_filter::emit::ebpf::{self, Context, Ending};
use weir_native::Native;

use super::EmitFormat;
use crate::failure::Failure;

/// `XDP_DROP` and `XDP_PASS` (linux/bpf.h), for a program that only filters.
const ENDING: Ending<'static> = Ending::Return(&[1, 2]);

/// Returns the requested form. `plainly`: classic BPF as with `-O`.
pub(super) fn text(compiled: &Compiled, format: EmitFormat, plainly: bool) -> Result<String, Failure> {
    let (graph, sets) = (&compiled.graph, &compiled.ast.sets);
    match format {
        EmitFormat::Cbpf => classic(compiled, 1, plainly),
        EmitFormat::Ebpf => Ok(ebpf(compiled)?.to_string()),
        EmitFormat::Asm => Native::listing(graph, sets).map_err(Failure::new),
        EmitFormat::Ir => Ok(graph.to_string()),
        EmitFormat::Ast => Ok(compiled.ast.to_string()),
    }
}

/// Returns the output of `tcpdump -d`, `-dd` or `-ddd`.
pub(super) fn classic(compiled: &Compiled, times: u8, plainly: bool) -> Result<String, Failure> {
    let program = program(compiled, plainly)?;
    Ok(match times {
        0 | 1 => program.listing(),
        2 => program.as_c(),
        _ => program.as_numbers(),
    })
}

/// Compiles classic BPF for the kernel.
pub(super) fn program(compiled: &Compiled, plainly: bool) -> Result<Program, Failure> {
    let emit = if plainly { cbpf::emit_plainly } else { cbpf::emit };
    emit(&compiled.graph, &compiled.ast.sets, Target::Kernel).map_err(Failure::new)
}

/// Compiles eBPF for XDP.
pub(super) fn ebpf(compiled: &Compiled) -> Result<ebpf::Program, Failure> {
    let context = Context::Xdp { fragments: true, interface: None };
    ebpf::emit(&compiled.graph, &compiled.ast.sets, context, ENDING).map_err(Failure::new)
}
