//! From text to [`Ast`].
//!
//! The grammar is that of libpcap 1.10: `and` and `or` bind equally and from the left, `not` binds tightest, and a bare
//! address or port (an *id*) stands for the qualifiers in front of the operand before it, across parentheses: `port 80 and
//! (udp) or 90`. What a parenthesis encloses (terms, ids, arithmetic) shows only later, so one is first opened as
//! `Encloses::Unknown`. Nothing here is recursive, and each token is looked at once.
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

pub use set::members;

use std::collections::HashMap;

use crate::ast::{Ast, Direction, Expr, ExprId, Primitive, Protocol, Term};
use crate::lex::{Kind, Lexer, Token};
use crate::set::{Holds, SetId};
use crate::{Dialect, Error, Options, spelling};
use arithmetic::Stack;
use level::{Encloses, Level, Place};

/// Terms that a filter may have with all named expressions put in place.
const MOST_TERMS: usize = 1 << 20;

/// Parentheses that may be open at once.
const DEEPEST: usize = 1 << 17;

/// Understands `text`.
pub fn parse(text: &str, options: &Options<'_>) -> Result<Ast, Error> {
    let mut parser = Parser::new(text, options)?;
    parser.definitions()?;
    if parser.token.kind != Kind::End || !parser.named.is_empty() {
        parser.ast.root = Some(parser.expression()?);
    }
    if parser.token.kind != Kind::End {
        return Err(parser.expected("the end").help("`;` ends what begins with `let`"));
    }
    Ok(parser.ast)
}

/// What stands in front of an address, port or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Qualifiers {
    protocol: Option<Protocol>,
    direction: Direction,
    kind: IdKind,
}

/// What an id is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdKind {
    /// Only a direction was given: a host.
    Default,
    Host,
    Net,
    Port,
    PortRange,
    Proto,
    ProtoChain,
    Gateway,
}

/// `and` or `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connective {
    And,
    Or,
}

/// An expression with a name.
#[derive(Clone, Copy, Debug)]
struct Named {
    expr: ExprId,
    /// Terms that it stands for.
    terms: usize,
}

struct Parser<'t, 'o> {
    text: &'t str,
    options: &'o Options<'o>,
    lexer: Lexer<'t>,
    /// The token to be looked at.
    token: Token<'t>,
    /// Where the token before it ends.
    behind: usize,
    ast: Ast,
    levels: Vec<Level>,
    named: HashMap<&'t str, Named>,
    /// Terms so far, with those that names stand for.
    terms: usize,
    /// Sets that have a name, by what they hold and that name.
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

    /// Takes the token and looks at the next.
    fn take(&mut self) -> Result<Token<'t>, Error> {
        let next = self.lexer.next()?;
        self.behind = self.token.end;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Whether the token is this word.
    fn at_word(&self, word: &str) -> bool {
        matches!(self.token.kind, Kind::Word(found) if found == word)
    }

    /// Whether the token is this sign.
    fn at_sign(&self, sign: &str) -> bool {
        self.token.kind.is_sign(sign)
    }

    /// Takes the sign if it is there.
    fn taken(&mut self, sign: &str) -> Result<bool, Error> {
        let there = self.at_sign(sign);
        if there {
            self.take()?;
        }
        Ok(there)
    }

    /// Takes the sign, which has to be there.
    fn demand(&mut self, sign: &str) -> Result<(), Error> {
        if self.taken(sign)? { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Takes a number, which has to be there.
    fn demand_number(&mut self, what: &str) -> Result<u32, Error> {
        let Kind::Number(number) = self.token.kind else { return Err(self.expected(what)) };
        self.take()?;
        Ok(number)
    }

    /// The text of a token.
    fn source(&self, token: Token<'_>) -> &'t str {
        &self.text[token.span()]
    }

    /// The error that something else should stand where the token is, with a word that may have been meant.
    fn expected(&self, what: &str) -> Error {
        let found = match self.token.kind {
            Kind::End => "the text ends here".to_owned(),
            _ => format!("not `{}`", spelling::shortened(self.source(self.token))),
        };
        let error = Error::new(format!("expected {what}, {found}"), self.token.span());
        Error { help: self.help(), ..error }
    }

    /// What may mend it that the token should be another.
    fn help(&self) -> Option<String> {
        let text = self.source(self.token);
        match self.token.kind {
            Kind::Name(name) => self.help_for(name),
            Kind::Word(word @ ("and" | "or" | "not")) if word == text => None,
            Kind::Word(word) if word == text && self.place() == Place::Id => {
                Some(format!("`{word}` is a word of the language; as a name it is written `\\{word}`"))
            }
            _ => None,
        }
    }

    /// The same where the token is a name.
    fn help_for(&self, name: &str) -> Option<String> {
        match self.meant(name) {
            Some(word) => Some(format!("did you mean `{word}`?")),
            None => joined(name).then(|| "between numbers, `-` needs blanks around it".to_owned()),
        }
    }

    /// The word, of the language or defined in the text, that `name` may have been meant for.
    fn meant(&self, name: &str) -> Option<&str> {
        let words = crate::words::all(self.options.dialect).map(|word| -> &str { word });
        spelling::nearest(name, words.chain(self.named.keys().copied()))
    }

    /// `let NAME = EXPRESSION;`, again and again.
    fn definitions(&mut self) -> Result<(), Error> {
        while self.at_word("let") {
            self.take()?;
            let token = self.token;
            let Kind::Name(name) = token.kind else {
                return Err(self.expected("a name that is not a keyword"));
            };
            self.take()?;
            if self.named.contains_key(name) {
                return Err(Error::new(format!("`{name}` has a meaning already"), token.span()));
            }
            self.demand("=")?;
            let before = self.terms;
            let expr = self.expression()?;
            self.demand(";")?;
            self.named.insert(name, Named { expr, terms: self.terms - before });
        }
        Ok(())
    }

    /// An expression, up to the end of the text or a `;` behind a definition.
    fn expression(&mut self) -> Result<ExprId, Error> {
        self.levels.push(Level::new(Encloses::Terms, Place::Term, None, self.token.start));
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

    /// Everything up to a whole operand: `not`, `(`, a term, an id.
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
                Kind::Word("inner") if self.place() != Place::Id => {
                    self.take()?;
                    self.demand("(")?;
                    self.decide(Place::Term)?;
                    self.open(Encloses::Inner, token.start)?;
                }
                Kind::Number(number) => return self.number(number),
                Kind::Name(name) if self.names_expression(name) => {
                    let named = self.named[name];
                    self.decide(Place::Term)?;
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
                Kind::Word("len" | "length") | Kind::Sign("-") if self.place() != Place::Id => {
                    return self.relation(Stack::default(), token.start);
                }
                Kind::Word(word) if self.place() != Place::Id => {
                    if self.term(word)? {
                        return Ok(());
                    }
                }
                _ => {
                    let what = match self.place() {
                        Place::Id => "an address, a port or a number",
                        Place::Term | Place::Either => "a term",
                    };
                    return Err(self.expected(what));
                }
            }
        }
    }

    /// Whether `name`, written without `\`, is that of an expression, and one may stand here.
    fn names_expression(&self, name: &str) -> bool {
        self.place() != Place::Id
            && self.named.contains_key(name)
            && !self.source(self.token).starts_with('\\')
    }

    /// Adds a term, which began at `start` and ends before the token.
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

    /// Counts terms, so that names within names cannot make a filter out of all bounds.
    fn count(&mut self, terms: usize, at: Token<'_>) -> Result<(), Error> {
        self.terms += terms;
        if self.terms > MOST_TERMS {
            return Err(Error::new(format!("the expression has more than {MOST_TERMS} terms"), at.span()));
        }
        Ok(())
    }
}

impl Kind<'_> {
    /// Whether it is this sign.
    fn is_sign(&self, sign: &str) -> bool {
        matches!(self, Self::Sign(found) if *found == sign)
    }
}

/// Whether a name looks like a subtraction: `len-14`, `2-1`.
fn joined(name: &str) -> bool {
    let operand = |text: &str| crate::lex::number(text).is_some() || text == "len";
    name.split_once('-').is_some_and(|(left, _)| operand(left))
}

/// Whether `dialect` is libpcap's.
fn is_pcap(dialect: Dialect) -> bool {
    dialect == Dialect::Pcap
}
