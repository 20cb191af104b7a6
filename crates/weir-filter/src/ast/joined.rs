//! The expression as understood, in one line.

use std::fmt::{self, Display, Formatter};

use super::{Ast, Expr, ExprId};

/// An expression in the language again, with all qualifiers, and parentheses wherever connectives meet.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a>(&'a Ast);

impl Ast {
    /// Returns the expression as it was understood. In the alternate form (`{:#}`) sets have all their members, so that
    /// parsing it gives the same tree.
    pub fn joined(&self) -> Joined<'_> {
        Joined(self)
    }
}

impl Display for Joined<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        enum Task {
            /// A node, and whether it is an operand.
            Show(ExprId, bool),
            Write(&'static str),
        }
        let Self(ast) = self;
        let mut tasks: Vec<Task> = ast.root.map(|root| Task::Show(root, false)).into_iter().collect();
        while let Some(task) = tasks.pop() {
            let (id, is_operand) = match task {
                Task::Show(id, is_operand) => (id, is_operand),
                Task::Write(text) => {
                    f.write_str(text)?;
                    continue;
                }
            };
            let (operands, word) = match &ast.nodes[id.0 as usize] {
                Expr::And(operands) => (operands, " and "),
                Expr::Or(operands) => (operands, " or "),
                Expr::Not(operand) => {
                    // The parser makes one of several in a row.
                    let is_again = matches!(ast.nodes[operand.0 as usize], Expr::Not(_));
                    let (open, close) = if is_again { ("not (", ")") } else { ("not ", "") };
                    f.write_str(open)?;
                    tasks.extend([Task::Write(close), Task::Show(*operand, true)]);
                    continue;
                }
                Expr::Inner(operand) => {
                    f.write_str("inner(")?;
                    tasks.extend([Task::Write(")"), Task::Show(*operand, false)]);
                    continue;
                }
                Expr::Term(index) => {
                    ast.notation(&ast.terms[*index as usize].primitive).fmt(f)?;
                    continue;
                }
            };
            if is_operand {
                f.write_str("(")?;
                tasks.push(Task::Write(")"));
            }
            for (place, operand) in operands.iter().enumerate().rev() {
                tasks.push(Task::Show(*operand, true));
                if place > 0 {
                    tasks.push(Task::Write(word));
                }
            }
        }
        Ok(())
    }
}
