//! Parentheses, and how operands are connected within them.

use super::{Connective, DEEPEST, Parser, Qualifiers, is_pcap};
use crate::Error;
use crate::ast::{Expr, ExprId};

/// What may stand where an operand begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A term.
    Term,
    /// A bare address, port or number.
    Id,
    /// Either of them.
    Either,
}

/// What stands in a parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encloses {
    /// It has yet to show, and the place where the parenthesis stands bounds what it may be.
    Unknown,
    /// Terms, and ids behind them.
    Terms,
    /// Ids alone: `port (80 or 443)`.
    Ids,
    /// Terms about the packet inside: `inner(...)`.
    Inner,
}

/// A parenthesis that is open, or the whole.
#[derive(Debug)]
pub(super) struct Level {
    encloses: Encloses,
    /// Where it stands.
    place: Place,
    /// Opened right behind another one.
    directly: bool,
    /// Where the text of it begins.
    pub(super) open: usize,
    /// Qualifiers that an id at its beginning takes over.
    inherits: Option<Qualifiers>,
    /// Qualifiers of the last operand.
    last: Option<Qualifiers>,
    /// Qualifiers that stand before the operand to come.
    head: Option<Qualifiers>,
    /// Where they begin, if nothing is between them and the operand.
    begin: Option<usize>,
    /// An odd number of `not` stands before the operand to come.
    negated: bool,
    /// Nothing of the operand to come has been seen.
    untouched: bool,
    operands: Vec<ExprId>,
    connective: Connective,
}

impl Level {
    pub(super) fn new(encloses: Encloses, place: Place, inherits: Option<Qualifiers>, open: usize) -> Self {
        Self {
            encloses,
            place,
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

    /// A `not` before the operand.
    pub(super) fn turn(&mut self) {
        self.negated = !self.negated;
        (self.untouched, self.begin) = (false, None);
    }

    /// Qualifiers, which begin at `start`, before the operand.
    pub(super) fn qualify(&mut self, qualifiers: Qualifiers, start: usize) {
        (self.head, self.begin) = (Some(qualifiers), Some(start));
    }

    /// Where the operand to come begins if it is an id right behind its qualifiers.
    pub(super) fn begin(&self) -> Option<usize> {
        self.begin
    }

    /// Nothing is in it yet, and it may be anything.
    pub(super) fn is_fresh(&self) -> bool {
        self.encloses == Encloses::Unknown && self.untouched
    }
}

impl Parser<'_, '_> {
    /// The innermost level.
    pub(super) fn top(&mut self) -> &mut Level {
        self.levels.last_mut().expect("there is an outermost level")
    }

    /// What may stand at the token.
    pub(super) fn place(&self) -> Place {
        // Between definitions nothing is open yet.
        let Some(level) = self.levels.last() else { return Place::Term };
        match level.encloses {
            _ if level.head.is_some() => Place::Id,
            Encloses::Ids => Place::Id,
            Encloses::Unknown => level.place,
            Encloses::Terms | Encloses::Inner if level.operands.is_empty() => Place::Term,
            Encloses::Terms | Encloses::Inner => Place::Either,
        }
    }

    /// The qualifiers that an id at the token takes over.
    pub(super) fn inherited(&self) -> Option<Qualifiers> {
        let level = self.levels.last().expect("there is an outermost level");
        level.head.or(level.last)
    }

    /// Opens a parenthesis at `open`.
    pub(super) fn open(&mut self, encloses: Encloses, open: usize) -> Result<(), Error> {
        if self.levels.len() > DEEPEST {
            let message = format!("more than {DEEPEST} parentheses are open");
            return Err(Error::new(message, open..open + 1));
        }
        let (place, inherits) = (self.place(), self.inherited());
        let inherits = if encloses == Encloses::Inner { None } else { inherits };
        let directly = self.top().is_fresh();
        let mut level = Level::new(encloses, place, inherits, open);
        level.directly = directly;
        self.levels.push(level);
        Ok(())
    }

    /// Settles what open parentheses enclose: a term was found, or an id.
    pub(super) fn decide(&mut self, found: Place) -> Result<(), Error> {
        let what = if found == Place::Id { Encloses::Ids } else { Encloses::Terms };
        let pcap = is_pcap(self.options.dialect);
        let error = (self.place() != found && self.place() != Place::Either).then(|| match found {
            Place::Id => self.expected("a term").help("say what it is: `host`, `net`, `port`, `proto`"),
            Place::Term | Place::Either => self.expected("an address, a port or a number"),
        });
        if let Some(error) = error {
            return Err(error);
        }
        for level in self.levels.iter_mut().rev() {
            if level.encloses != Encloses::Unknown {
                break;
            }
            if pcap && found == Place::Id && level.directly {
                let open = level.open;
                return Err(Error::new(
                    "libpcap takes no parenthesis at the beginning of another one here",
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

    /// Takes note of what connects the operands so far with the next.
    pub(super) fn connect(&mut self, connective: Connective) {
        if self.top().connective != connective {
            let operands = std::mem::take(&mut self.top().operands);
            let folded = self.fold(operands);
            self.top().operands.push(folded);
        }
        self.top().connective = connective;
    }

    /// The expression that operands of the innermost level make.
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

    /// Ends the innermost level.
    pub(super) fn end(&mut self) -> (ExprId, Level) {
        let operands = std::mem::take(&mut self.top().operands);
        let expr = self.fold(operands);
        (expr, self.levels.pop().expect("a level is open"))
    }

    /// The error that the innermost level has no end.
    pub(super) fn unclosed(&mut self) -> Error {
        let open = self.top().open;
        Error::new("the parenthesis is not closed", open..open + 1)
    }

    /// Takes the `)` behind an operand.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        if self.levels.len() == 1 {
            return Err(Error::new("no parenthesis is open here", self.token.span()));
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
