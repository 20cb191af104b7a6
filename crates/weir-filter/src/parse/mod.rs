//! Parser from text to [`Ast`].
//!
//! The grammar is that of libpcap 1.10: `and` and `or` have equal precedence and associate to the left, and `not` binds
//! tightest. A bare address or port (an *id*) inherits the qualifiers of the operand before it, even across
//! parentheses: `port 80 and (udp) or 90`. Whether a parenthesis encloses terms, ids or arithmetic becomes clear only
//! later, so it is first opened as `Encloses::Unknown`. Nothing here is recursive, and each token is visited once.
//!
//! The dialect `weir` adds `let NAME = EXPRESSION;`, `inner(EXPRESSION)`, `tunnel`, and sets.

mod address;
mod arithmetic;
mod id;
mod level;
mod link;
mod network;
mod port;
mod protocol;
mod set;
mod signalling;
mod term;
mod unnamed;

pub use set::members;

use std::collections::HashMap;

use crate::ast::{Ast, Direction, Expr, ExprId, Primitive, Protocol, Term};
use crate::lex::{Kind, Lexer, Token};
use crate::set::{Holds, SetId};
use crate::{Dialect, Error, Options, spelling};
use arithmetic::Stack;
use level::{Encloses, Level, OperandStart};

/// Maximum number of terms in a filter, with named expressions expanded.
const MOST_TERMS: usize = 1 << 20;

/// Maximum number of parentheses that may be open at once.
const DEEPEST: usize = 1 << 17;

/// Parses `text`.
pub fn parse(text: &str, options: &Options<'_>) -> Result<Ast, Error> {
    let mut parser = Parser::new(text, options)?;
    parser.definitions()?;
    if parser.token.kind != Kind::End || !parser.named.is_empty() {
        parser.ast.root = Some(parser.expression()?);
    }
    if parser.token.kind != Kind::End {
        return Err(parser.expected("the end").help("`;` is allowed only after a `let` definition"));
    }
    Ok(parser.ast)
}

/// Qualifiers of an address, port or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Qualifiers {
    protocol: Option<Protocol>,
    direction: Direction,
    kind: IdKind,
}

/// The kind of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdKind {
    /// Only a direction is given: a host.
    Default,
    Host,
    Net,
    Port,
    PortRange,
    Proto,
    ProtoChain,
    Gateway,
}

/// A connective: `and` or `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connective {
    And,
    Or,
}

/// A named expression.
#[derive(Clone, Copy, Debug)]
struct Named {
    expr: ExprId,
    /// Number of terms in it.
    terms: usize,
}

struct Parser<'t, 'o> {
    text: &'t str,
    options: &'o Options<'o>,
    lexer: Lexer<'t>,
    /// Current token.
    token: Token<'t>,
    /// End of the previous token.
    behind: usize,
    ast: Ast,
    levels: Vec<Level>,
    named: HashMap<&'t str, Named>,
    /// Number of terms so far, with named expressions expanded.
    terms: usize,
    /// Named sets, by kind of members and name.
    sets: HashMap<(Holds, &'t str), Vec<SetId>>,
}

impl<'t, 'o> Parser<'t, 'o> {
    fn new(text: &'t str, options: &'o Options<'o>) -> Result<Self, Error> {
        let ast = Ast {
            nodes: Vec::new(),
            arithmetic: Vec::new(),
            terms: Vec::new(),
            sets: Vec::new(),
            root: None,
        };
        let mut lexer = Lexer::new(text, options.dialect);
        let token = lexer.next()?;
        let (named, sets) = (HashMap::new(), HashMap::new());
        Ok(Self { text, options, lexer, token, behind: 0, ast, levels: Vec::new(), named, terms: 0, sets })
    }

    /// Consumes the current token.
    fn take(&mut self) -> Result<Token<'t>, Error> {
        let next = self.lexer.next()?;
        self.behind = self.token.end;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Returns whether the current token is this keyword.
    fn at_word(&self, word: &str) -> bool {
        matches!(self.token.kind, Kind::Word(found) if found == word)
    }

    /// Returns whether the current token is this sign.
    fn at_sign(&self, sign: &str) -> bool {
        self.token.kind.is_sign(sign)
    }

    /// Consumes the sign if it is there.
    fn taken(&mut self, sign: &str) -> Result<bool, Error> {
        let there = self.at_sign(sign);
        if there {
            self.take()?;
        }
        Ok(there)
    }

    /// Consumes a required sign.
    fn demand(&mut self, sign: &str) -> Result<(), Error> {
        if self.taken(sign)? { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Consumes a required number.
    fn demand_number(&mut self, what: &str) -> Result<u32, Error> {
        let Kind::Number(number) = self.token.kind else { return Err(self.expected(what)) };
        self.take()?;
        Ok(number)
    }

    /// Returns the source of a token.
    fn source(&self, token: Token<'_>) -> &'t str {
        &self.text[token.span()]
    }

    /// Returns the error that something else was expected at the current token, with a suggestion.
    fn expected(&self, what: &str) -> Error {
        let found = match self.token.kind {
            Kind::End => "but the text ends here".to_owned(),
            _ => format!("not `{}`", spelling::shortened(self.source(self.token))),
        };
        let error = Error::new(format!("expected {what}, {found}"), self.token.span());
        Error { help: self.help(), ..error }
    }

    /// Returns a suggestion for an unexpected token.
    fn help(&self) -> Option<String> {
        let text = self.source(self.token);
        match self.token.kind {
            Kind::Name(name) => self.help_for(name),
            Kind::Word(word @ ("and" | "or" | "not")) if word == text => None,
            Kind::Word(word) if word == text && self.may_begin() == OperandStart::Id => {
                Some(format!("`{word}` is a keyword; to use it as a name, write `\\{word}`"))
            }
            _ => None,
        }
    }

    /// Returns a suggestion for an unexpected name.
    fn help_for(&self, name: &str) -> Option<String> {
        match self.meant(name) {
            Some(word) => Some(format!("did you mean `{word}`?")),
            None => joined(name).then(|| "write blanks around `-` to subtract".to_owned()),
        }
    }

    /// Returns the keyword or defined name that `name` was probably meant to be.
    fn meant(&self, name: &str) -> Option<&str> {
        let words = crate::ast::words::all(self.options.dialect).map(|word| -> &str { word });
        spelling::nearest(name, words.chain(self.named.keys().copied()))
    }

    /// Parses any number of `let NAME = EXPRESSION;`.
    fn definitions(&mut self) -> Result<(), Error> {
        while self.at_word("let") {
            self.take()?;
            let token = self.token;
            let Kind::Name(name) = token.kind else {
                return Err(self.expected("a name that is not a keyword"));
            };
            self.take()?;
            if self.named.contains_key(name) {
                return Err(Error::new(format!("`{name}` is already defined"), token.span()));
            }
            self.demand("=")?;
            let before = self.terms;
            let expr = self.expression()?;
            self.demand(";")?;
            self.named.insert(name, Named { expr, terms: self.terms - before });
        }
        Ok(())
    }

    /// Parses an expression, up to the end of the text or the `;` after a definition.
    fn expression(&mut self) -> Result<ExprId, Error> {
        self.levels.push(Level::new(Encloses::Terms, OperandStart::Term, None, self.token.start));
        loop {
            self.operand()?;
            while self.at_sign(")") {
                self.close()?;
            }
            if self.at_word("and") || self.at_word("or") {
                let connective = if self.at_word("and") { Connective::And } else { Connective::Or };
                self.take()?;
                self.connect(connective);
            } else if self.levels.len() > 1 {
                return Err(match self.token.kind {
                    Kind::End => self.unclosed(),
                    _ => self.expected("`and`, `or` or `)`"),
                });
            } else if self.token.kind == Kind::End || self.at_sign(";") {
                return Ok(self.end().0);
            } else {
                return Err(self.expected("`and`, `or` or the end"));
            }
        }
    }

    /// Parses a complete operand: any `not` and `(`, then a term or an id.
    fn operand(&mut self) -> Result<(), Error> {
        loop {
            let token = self.token;
            match token.kind {
                Kind::Word("not") => {
                    self.take()?;
                    self.top().turn();
                }
                Kind::Sign("(") => {
                    self.take()?;
                    self.open(Encloses::Unknown, token.start)?;
                }
                Kind::Word("inner") if self.may_begin() != OperandStart::Id => {
                    self.take()?;
                    self.demand("(")?;
                    self.decide(OperandStart::Term)?;
                    self.open(Encloses::Inner, token.start)?;
                }
                Kind::Number(number) => return self.number(number),
                Kind::Name(name) if self.names_expression(name) => {
                    let named = self.named[name];
                    self.decide(OperandStart::Term)?;
                    self.take()?;
                    self.count(named.terms, token)?;
                    let last = self.inherited();
                    self.add(named.expr, last);
                    return Ok(());
                }
                Kind::Name(_)
                | Kind::Dotted(_)
                | Kind::Ipv6(_)
                | Kind::Mac(_)
                | Kind::ArcNet(_)
                | Kind::Word("in") => return self.id(),
                Kind::Word("len" | "length") | Kind::Sign("-") if self.may_begin() != OperandStart::Id => {
                    return self.relation(Stack::default(), token.start);
                }
                Kind::Word(word) if self.may_begin() != OperandStart::Id => {
                    if self.term(word)? {
                        return Ok(());
                    }
                }
                _ => {
                    let what = match self.may_begin() {
                        OperandStart::Id => "an address, a port or a number",
                        OperandStart::Term | OperandStart::Either => "a term",
                    };
                    return Err(self.expected(what));
                }
            }
        }
    }

    /// Returns whether `name`, written without `\`, is a named expression and may be used here.
    fn names_expression(&self, name: &str) -> bool {
        self.may_begin() != OperandStart::Id
            && self.named.contains_key(name)
            && !self.source(self.token).starts_with('\\')
    }

    /// Adds a term that begins at `start` and ends before the current token.
    fn add_term(
        &mut self,
        primitive: Primitive,
        start: usize,
        last: Option<Qualifiers>,
    ) -> Result<(), Error> {
        let term = Term { span: start..self.behind, primitive };
        self.count(1, self.token)?;
        let index = u32::try_from(self.ast.terms.len()).expect("terms are counted in 32 bits");
        self.ast.terms.push(term);
        let expr = self.node(Expr::Term(index));
        self.add(expr, last);
        Ok(())
    }

    fn node(&mut self, expr: Expr) -> ExprId {
        let id = u32::try_from(self.ast.nodes.len()).expect("nodes are counted in 32 bits");
        self.ast.nodes.push(expr);
        ExprId(id)
    }

    /// Counts terms, so that names within names cannot make a filter grow without bounds.
    fn count(&mut self, terms: usize, at: Token<'_>) -> Result<(), Error> {
        self.terms += terms;
        if self.terms > MOST_TERMS {
            return Err(Error::new(format!("the expression has more than {MOST_TERMS} terms"), at.span()));
        }
        Ok(())
    }
}

impl Kind<'_> {
    /// Returns whether it is this sign.
    fn is_sign(&self, sign: &str) -> bool {
        matches!(self, Self::Sign(found) if *found == sign)
    }
}

/// Returns whether a name looks like a subtraction: `len-14`, `2-1`.
fn joined(name: &str) -> bool {
    let operand = |text: &str| crate::lex::number(text).is_some() || text == "len";
    name.split_once('-').is_some_and(|(left, _)| operand(left))
}

/// Returns whether `dialect` is libpcap's.
fn is_pcap(dialect: Dialect) -> bool {
    dialect == Dialect::Pcap
}
