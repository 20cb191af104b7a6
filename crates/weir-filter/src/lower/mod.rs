//! Lowering of expressions to graphs: the byte-level meaning of terms. Each dialect has a module; this one connects
//! terms.

pub(crate) mod pcap;
pub(crate) mod weir;

use crate::ast::{Ast, Expr, ExprId};
use crate::graph::{Graph, NodeId};
use crate::{Dialect, Options};

/// Where to continue if a test is true, and if it is false.
pub(crate) type Ways<At = NodeId> = (At, At);

/// An `and` or `or` in progress. Its operands are lowered from the last to the first, since each needs to know where to
/// continue.
struct Frame<'a, At> {
    operands: &'a [ExprId],
    all: bool,
    remaining: usize,
    ways: Ways<At>,
}

/// Lowers `expr` with the targets `ways`, calling `leaf` for each [`Expr::Term`] and [`Expr::Inner`]; returns where it
/// begins. Not recursive: an expression may be nested as deep as its text is long.
pub(crate) fn connect<At: Copy>(
    ast: &Ast,
    expr: ExprId,
    ways: Ways<At>,
    mut leaf: impl FnMut(&Expr, Ways<At>) -> At,
) -> At {
    let mut frames: Vec<Frame<'_, At>> = Vec::new();
    let (mut expr, mut ways) = (expr, ways);
    loop {
        let begin = match &ast.nodes[expr.0 as usize] {
            Expr::Not(operand) => {
                (expr, ways) = (*operand, (ways.1, ways.0));
                continue;
            }
            node @ (Expr::And(operands) | Expr::Or(operands)) => {
                let remaining = operands.len() - 1;
                frames.push(Frame { operands, all: matches!(node, Expr::And(_)), remaining, ways });
                expr = operands[remaining];
                continue;
            }
            leaf_node => leaf(leaf_node, ways),
        };
        while frames.last().is_some_and(|frame| frame.remaining == 0) {
            frames.pop();
        }
        let Some(frame) = frames.last_mut() else { return begin };
        frame.remaining -= 1;
        expr = frame.operands[frame.remaining];
        ways = if frame.all { (begin, frame.ways.1) } else { (frame.ways.0, begin) };
    }
}

/// Returns the leaves in source order.
pub(crate) fn leaves(ast: &Ast) -> Vec<Expr> {
    let mut leaves = Vec::new();
    if let Some(root) = ast.root {
        connect(ast, root, (Graph::ACCEPT, Graph::REFUSE), |leaf, ways| {
            leaves.push(leaf.clone());
            ways.0
        });
    }
    leaves.reverse();
    leaves
}

/// Returns whether `leaf`, which is an error for this link type, applies to another one that the filter is for. It is
/// then false here.
pub(crate) fn is_asked_elsewhere(ast: &Ast, leaf: &Expr, options: &Options<'_>) -> bool {
    let can_ask = match options.dialect {
        Dialect::Weir => weir::can_ask,
        Dialect::Pcap => pcap::can_ask,
    };
    options.others.iter().any(|&link_type| can_ask(ast, leaf, &Options { link_type, ..*options }))
}
