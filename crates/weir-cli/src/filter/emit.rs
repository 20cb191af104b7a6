//! What an expression becomes, as text.

use weir::filter::Compiled;
use weir_filter::ast::{Ast, Expr, ExprId};
use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{self, Target};
use weir_filter::emit::ebpf::{self, Context, Ending};
use weir_native::Native;

use super::Form;
use crate::failure::Failure;

/// `XDP_DROP` and `XDP_PASS` (linux/bpf.h): a program that filters and does nothing else.
const ENDING: Ending = Ending::Return { accept: 2, refuse: 1 };

/// In the form that is asked for.
pub(super) fn text(compiled: &Compiled, form: Form) -> Result<String, Failure> {
    let (graph, sets) = (&compiled.graph, &compiled.ast.sets);
    match form {
        Form::Cbpf => classic(compiled, 1),
        Form::Ebpf => Ok(ebpf(compiled)?.to_string()),
        Form::Asm => Native::listing(graph, sets).map_err(Failure::new),
        Form::Ir => Ok(graph.to_string()),
        Form::Ast => Ok(tree(&compiled.ast)),
    }
}

/// What was understood, a node a line, what belongs to it further in.
fn tree(ast: &Ast) -> String {
    let mut text = String::new();
    let mut open: Vec<(ExprId, usize)> = ast.root.map(|root| (root, 0)).into_iter().collect();
    while let Some((id, depth)) = open.pop() {
        let indent = "  ".repeat(depth.min(40));
        let (word, operands) = match &ast.nodes[id.0 as usize] {
            Expr::And(operands) => ("and".to_owned(), operands.as_slice()),
            Expr::Or(operands) => ("or".to_owned(), operands.as_slice()),
            Expr::Not(operand) => ("not".to_owned(), std::slice::from_ref(operand)),
            Expr::Inner(operand) => ("inner".to_owned(), std::slice::from_ref(operand)),
            Expr::Term(index) => (format!("{:?}", ast.terms[*index as usize].primitive), [].as_slice()),
        };
        text += &format!("{indent}{word}\n");
        open.extend(operands.iter().rev().map(|&operand| (operand, depth + 1)));
    }
    if text.is_empty() { "everything\n".to_owned() } else { text }
}

/// As `tcpdump -d`, `-dd` or `-ddd` prints it.
pub(super) fn classic(compiled: &Compiled, times: u8) -> Result<String, Failure> {
    let program = program(compiled)?;
    Ok(match times {
        0 | 1 => program.listing(),
        2 => program.as_c(),
        _ => program.as_numbers(),
    })
}

/// Classic BPF for the kernel.
pub(super) fn program(compiled: &Compiled) -> Result<Program, Failure> {
    cbpf::emit(&compiled.graph, &compiled.ast.sets, Target::Kernel).map_err(Failure::new)
}

/// For XDP.
pub(super) fn ebpf(compiled: &Compiled) -> Result<ebpf::Program, Failure> {
    let context = Context::Xdp { fragments: true };
    ebpf::emit(&compiled.graph, &compiled.ast.sets, context, ENDING).map_err(Failure::new)
}
