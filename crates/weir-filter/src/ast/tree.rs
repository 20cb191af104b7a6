//! Printing a tree, one node per line.

use std::fmt::{self, Display, Formatter};

use super::{Ast, Expr, ExprId};

/// Deepest level to indent; otherwise, the output for a deep tree would be mostly blanks.
const INDENTED: usize = 40;

impl Display for Ast {
    /// Writes connectives with their operands indented below them, and terms as understood, with their numbers.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(root) = self.root else { return writeln!(f, "everything") };
        let mut nodes: Vec<(ExprId, usize)> = vec![(root, 0)];
        while let Some((id, depth)) = nodes.pop() {
            write!(f, "{:1$}", "", 2 * depth.min(INDENTED))?;
            let operands: &[ExprId] = match &self.nodes[id.0 as usize] {
                Expr::And(operands) => {
                    writeln!(f, "and")?;
                    operands
                }
                Expr::Or(operands) => {
                    writeln!(f, "or")?;
                    operands
                }
                Expr::Not(operand) => {
                    writeln!(f, "not")?;
                    std::slice::from_ref(operand)
                }
                Expr::Inner(operand) => {
                    writeln!(f, "inner")?;
                    std::slice::from_ref(operand)
                }
                Expr::Term(index) => {
                    let term = &self.terms[*index as usize];
                    writeln!(f, "t{index} {}", self.notation(&term.primitive))?;
                    &[]
                }
            };
            nodes.extend(operands.iter().rev().map(|&operand| (operand, depth + 1)));
        }
        Ok(())
    }
}
