//! Nesting levels of parentheses, and the connectives of operands within them.

use super::{Connective, DEEPEST, Parser, Qualifiers, is_pcap};
use crate::Error;
use crate::ast::{Expr, ExprId};

/// What may begin an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandStart {
    /// A term.
    Term,
    /// A bare address, port or number.
    Id,
    /// A term or an id.
    Either,
}

/// The content of a parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encloses {
    /// Not known yet; limited by where the parenthesis is.
    Unknown,
    /// Terms, each perhaps followed by ids.
    Terms,
    /// Only ids: `port (80 or 443)`.
    Ids,
    /// Terms about the inner packet: `inner(...)`.
    Inner,
}

/// An open parenthesis, or the whole expression.
#[derive(Debug)]
pub(super) struct Level {
    encloses: Encloses,
    /// What was allowed where it was opened.
    may_begin: OperandStart,
    /// Whether it directly follows another opening parenthesis.
    directly: bool,
    /// Start in the source.
    pub(super) open: usize,
    /// Qualifiers that an id at its start inherits.
    inherits: Option<Qualifiers>,
    /// Qualifiers of the last operand.
    last: Option<Qualifiers>,
    /// Qualifiers before the next operand.
    head: Option<Qualifiers>,
    /// Start of these qualifiers, if nothing is between them and the operand.
    begin: Option<usize>,
    /// Whether an odd number of `not` precedes the next operand.
    negated: bool,
    /// Whether no part of the next operand has been seen.
    untouched: bool,
    operands: Vec<ExprId>,
    connective: Connective,
}

impl Level {
    pub(super) fn new(
        encloses: Encloses,
        may_begin: OperandStart,
        inherits: Option<Qualifiers>,
        open: usize,
    ) -> Self {
        Self {
            encloses,
            may_begin,
            directly: false,
            open,
            inherits,
            last: inherits,
            head: None,
            begin: None,
            negated: false,
            untouched: true,
            operands: Vec::new(),
            connective: Connective::And,
        }
    }

    /// Notes a `not` before the next operand.
    pub(super) fn turn(&mut self) {
        self.negated = !self.negated;
        (self.untouched, self.begin) = (false, None);
    }

    /// Notes qualifiers at `start` before the next operand.
    pub(super) fn qualify(&mut self, qualifiers: Qualifiers, start: usize) {
        (self.head, self.begin) = (Some(qualifiers), Some(start));
    }

    /// Returns the start of the next operand if it is an id that directly follows its qualifiers.
    pub(super) fn begin(&self) -> Option<usize> {
        self.begin
    }

    /// Returns whether it is still empty and its content is unknown.
    pub(super) fn is_fresh(&self) -> bool {
        self.encloses == Encloses::Unknown && self.untouched
    }
}

impl Parser<'_, '_> {
    /// Returns the innermost level.
    pub(super) fn top(&mut self) -> &mut Level {
        self.levels.last_mut().expect("there is an outermost level")
    }

    /// Returns what may begin at the current token.
    pub(super) fn may_begin(&self) -> OperandStart {
        // Between definitions, no level is open.
        let Some(level) = self.levels.last() else { return OperandStart::Term };
        match level.encloses {
            _ if level.head.is_some() => OperandStart::Id,
            Encloses::Ids => OperandStart::Id,
            Encloses::Unknown => level.may_begin,
            Encloses::Terms | Encloses::Inner if level.operands.is_empty() => OperandStart::Term,
            Encloses::Terms | Encloses::Inner => OperandStart::Either,
        }
    }

    /// Returns the qualifiers that an id at the current token inherits.
    pub(super) fn inherited(&self) -> Option<Qualifiers> {
        let level = self.levels.last().expect("there is an outermost level");
        level.head.or(level.last)
    }

    /// Opens a parenthesis at `open`.
    pub(super) fn open(&mut self, encloses: Encloses, open: usize) -> Result<(), Error> {
        if self.levels.len() > DEEPEST {
            let message = format!("parentheses nested more than {DEEPEST} deep");
            return Err(Error::new(message, open..open + 1));
        }
        let (may_begin, inherits) = (self.may_begin(), self.inherited());
        let inherits = if encloses == Encloses::Inner { None } else { inherits };
        let directly = self.top().is_fresh();
        let mut level = Level::new(encloses, may_begin, inherits, open);
        level.directly = directly;
        self.levels.push(level);
        Ok(())
    }

    /// Fixes the content of open parentheses once a term or an id is found.
    pub(super) fn decide(&mut self, found: OperandStart) -> Result<(), Error> {
        let what = if found == OperandStart::Id { Encloses::Ids } else { Encloses::Terms };
        let pcap = is_pcap(self.options.dialect);
        let error =
            (self.may_begin() != found && self.may_begin() != OperandStart::Either).then(|| match found {
                OperandStart::Id => {
                    self.expected("a term").help("say what it is with `host`, `net`, `port` or `proto`")
                }
                OperandStart::Term | OperandStart::Either => self.expected("an address, a port or a number"),
            });
        if let Some(error) = error {
            return Err(error);
        }
        for level in self.levels.iter_mut().rev() {
            if level.encloses != Encloses::Unknown {
                break;
            }
            if pcap && found == OperandStart::Id && level.directly {
                let open = level.open;
                return Err(Error::new(
                    "libpcap does not accept a parenthesis right after another one here",
                    open..open + 1,
                ));
            }
            level.encloses = what;
        }
        Ok(())
    }

    /// Adds an operand to the innermost level.
    pub(super) fn add(&mut self, expr: ExprId, last: Option<Qualifiers>) {
        let level = self.top();
        let negated = std::mem::take(&mut level.negated);
        (level.head, level.begin, level.last, level.untouched) = (None, None, last, false);
        let expr = if negated { self.node(Expr::Not(expr)) } else { expr };
        self.top().operands.push(expr);
    }

    /// Notes the connective between the operands so far and the next one.
    pub(super) fn connect(&mut self, connective: Connective) {
        if self.top().connective != connective {
            let operands = std::mem::take(&mut self.top().operands);
            let folded = self.fold(operands);
            self.top().operands.push(folded);
        }
        self.top().connective = connective;
    }

    /// Returns the expression that connects the operands of the innermost level.
    pub(super) fn fold(&mut self, operands: Vec<ExprId>) -> ExprId {
        if let [operand] = operands[..] {
            return operand;
        }
        let expr = match self.top().connective {
            Connective::And => Expr::And(operands),
            Connective::Or => Expr::Or(operands),
        };
        self.node(expr)
    }

    /// Closes the innermost level.
    pub(super) fn end(&mut self) -> (ExprId, Level) {
        let operands = std::mem::take(&mut self.top().operands);
        let expr = self.fold(operands);
        (expr, self.levels.pop().expect("a level is open"))
    }

    /// Returns the error for an innermost level that is not closed.
    pub(super) fn unclosed(&mut self) -> Error {
        let open = self.top().open;
        Error::new("unclosed parenthesis", open..open + 1)
    }

    /// Parses the `)` after an operand.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        if self.levels.len() == 1 {
            return Err(Error::new("unmatched `)`", self.token.span()));
        }
        self.take()?;
        let (expr, level) = self.end();
        if level.encloses == Encloses::Inner {
            let expr = self.node(Expr::Inner(expr));
            let last = self.inherited();
            self.add(expr, last);
        } else {
            self.add(expr, level.inherits);
        }
        Ok(())
    }
}
