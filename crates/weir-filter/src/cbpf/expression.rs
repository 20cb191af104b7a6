//! Decompiler from a program to an equivalent expression, where pcap-filter(7) has words for it.
//!
//! The program is [lifted](Program::lift) and its graph written out from the root. Each test becomes the best wording
//! for what is known there: EtherTypes, protocols, addresses and ports, or else bytes, `ether[12:2] = 0x800`. A test
//! that several paths lead to is written once per path.

use super::{LiftError, Program, Rules};
use crate::graph::{Graph, Node, NodeId, Operation, Relation, Test, Value, ValueId, Width};
use crate::pass;

/// Longest expression. In a program that needs more, too many paths lead to the same tests.
const LONGEST: usize = 1 << 20;

/// A program that has no expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoExpression {
    /// It has no graph.
    #[error(transparent)]
    Lift(#[from] LiftError),
    /// It tests for something that the language cannot express.
    #[error("the language has no term for {what}")]
    Words {
        /// Description.
        what: &'static str,
    },
    /// Its expression would be too long.
    #[error("its expression would be longer than a megabyte")]
    Long,
}

impl Program {
    /// Returns an expression of the dialect `pcap` with the kernel's verdicts on Ethernet frames.
    pub fn expression(&self) -> Result<String, NoExpression> {
        let graph = pass::optimise(&self.lift(Rules::Kernel)?, &[]);
        match graph.root() {
            Graph::ACCEPT => return Ok(String::new()),
            Graph::REFUSE => return Err(NoExpression::Words { what: "rejecting every packet" }),
            _ => {}
        }
        let mut teller = Teller { graph: &graph, text: String::new() };
        teller.tell()?;
        Ok(teller.text)
    }
}

/// Facts established by the tests so far.
#[derive(Clone, Copy, Default)]
struct Known {
    ether_type: Option<u32>,
    protocol: Option<u32>,
    first_fragment: bool,
}

/// The connective between parts. Both bind equally, so a part with the other connective needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    And,
    Or,
}

enum Task {
    Node(NodeId, Known, Kind),
    Text(&'static str),
    Again(String),
}

struct Teller<'a> {
    graph: &'a Graph,
    text: String,
}

impl Teller<'_> {
    fn tell(&mut self) -> Result<(), NoExpression> {
        let mut tasks = vec![Task::Node(self.graph.root(), Known::default(), Kind::Whole)];
        while let Some(task) = tasks.pop() {
            if self.text.len() > LONGEST {
                return Err(NoExpression::Long);
            }
            match task {
                Task::Text(text) => self.text.push_str(text),
                Task::Again(question) => self.text.push_str(&question),
                Task::Node(id, known, kind) => self.node(id, known, kind, &mut tasks)?,
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        id: NodeId,
        known: Known,
        kind: Kind,
        tasks: &mut Vec<Task>,
    ) -> Result<(), NoExpression> {
        let (question, then, other, if_so) = match self.graph.node(id) {
            Node::Read { value, next } => {
                (format!("{} >= 0", self.value(value)?), next, Graph::REFUSE, known)
            }
            Node::Branch { test, then, other, .. } => {
                (self.question(test, known)?, then, other, self.learn(test, known, true))
            }
            _ => return Err(NoExpression::Words { what: "a value that depends on the path taken" }),
        };
        let if_not = match self.graph.node(id) {
            Node::Branch { test, .. } => self.learn(test, known, false),
            _ => known,
        };
        let no = format!("not ({question})");
        let (first, rest, own) = match (then, other) {
            (Graph::ACCEPT, Graph::REFUSE) => (question, None, kind),
            (Graph::REFUSE, Graph::ACCEPT) => (no, None, kind),
            (Graph::ACCEPT, _) => (question, Some((other, if_not)), Kind::Or),
            (_, Graph::ACCEPT) => (no, Some((then, if_so)), Kind::Or),
            (_, Graph::REFUSE) => (question, Some((then, if_so)), Kind::And),
            (Graph::REFUSE, _) => (no, Some((other, if_not)), Kind::And),
            _ => {
                // Written as two alternatives, which exclude each other.
                let close = if kind == Kind::Whole || kind == Kind::Or { ")" } else { "))" };
                self.text.push_str(if close == ")" { "(" } else { "((" });
                self.text.push_str(&question);
                self.text.push_str(" and ");
                tasks.push(Task::Text(close));
                tasks.push(Task::Node(other, if_not, Kind::And));
                tasks.push(Task::Text(" and "));
                tasks.push(Task::Again(no));
                tasks.push(Task::Text(") or ("));
                tasks.push(Task::Node(then, if_so, Kind::And));
                return Ok(());
            }
        };
        let parted = own != kind && kind != Kind::Whole;
        if parted {
            self.text.push('(');
            tasks.push(Task::Text(")"));
        }
        self.text.push_str(&first);
        if let Some((next, known)) = rest {
            tasks.push(Task::Node(next, known, own));
            tasks.push(Task::Text(if own == Kind::Or { " or " } else { " and " }));
        }
        Ok(())
    }

    /// Returns what is known after `answer` to `test`.
    fn learn(&self, test: Test, known: Known, answer: bool) -> Known {
        let Test::Compare { relation, left, right } = test else { return known };
        let (shape, number) = (self.graph.get(left), self.graph.as_constant(right));
        let at = |offset, width| shape == Value::Load { base: None, offset, width };
        match (relation, number, answer) {
            (Relation::Equal, ether_type, true) if at(12, Width::Half) => Known { ether_type, ..known },
            (Relation::Equal, protocol, true) if known.is_ip() && at(23, Width::Byte) => {
                Known { protocol, ..known }
            }
            (Relation::AnyBit, Some(0x1fff), false) if at(20, Width::Half) => {
                Known { first_fragment: true, ..known }
            }
            _ => known,
        }
    }

    fn question(&self, test: Test, known: Known) -> Result<String, NoExpression> {
        let Test::Compare { relation, left, right } = test else {
            return Err(NoExpression::Words { what: "a set" });
        };
        if relation == Relation::Equal
            && let Some(number) = self.graph.as_constant(right)
            && let Some(words) = self.in_words(left, number, known)
        {
            return Ok(words);
        }
        let (left, right) = (self.value(left)?, self.value(right)?);
        Ok(match relation {
            Relation::Equal => format!("{left} = {right}"),
            Relation::Greater => format!("{left} > {right}"),
            Relation::AtLeast => format!("{left} >= {right}"),
            Relation::AnyBit => format!("{left} & {right} != 0"),
        })
    }

    /// Returns the words for `value == number`, if there are any.
    fn in_words(&self, value: ValueId, number: u32, known: Known) -> Option<String> {
        match self.graph.get(value) {
            Value::Load { base: None, offset: 12, width: Width::Half } => match number {
                0x800 => Some("ip".to_owned()),
                0x806 => Some("arp".to_owned()),
                0x8035 => Some("rarp".to_owned()),
                0x86dd => Some("ip6".to_owned()),
                _ => None,
            },
            Value::Load { base: None, offset: 23, width: Width::Byte } if known.is_ip() => {
                Some(format!("ip proto {number}"))
            }
            Value::Load { base: None, offset, width: Width::Word } => match (known.ether_type?, offset) {
                (0x800, 26) => Some(format!("ip src host {}", address(number))),
                (0x800, 30) => Some(format!("ip dst host {}", address(number))),
                (0x806, 28) => Some(format!("arp src host {}", address(number))),
                (0x806, 38) => Some(format!("arp dst host {}", address(number))),
                _ => None,
            },
            Value::Load { base: Some(base), offset, width: Width::Half } if known.first_fragment => {
                let protocol =
                    match known.protocol.filter(|_| known.is_ip() && self.is_header_length(base))? {
                        6 => "tcp",
                        17 => "udp",
                        132 => "sctp",
                        _ => return None,
                    };
                let direction = match offset {
                    14 => "src",
                    16 => "dst",
                    _ => return None,
                };
                Some(format!("{protocol} {direction} port {number}")).filter(|_| number <= 0xffff)
            }
            _ => None,
        }
    }

    /// Returns whether `value` is the length of an IPv4 header after an Ethernet header.
    fn is_header_length(&self, value: ValueId) -> bool {
        let by = |value, wanted, number| match self.graph.get(value) {
            Value::Binary { operation, left, right } => {
                (operation == wanted && self.graph.as_constant(right) == Some(number)).then_some(left)
            }
            _ => None,
        };
        let byte = by(value, Operation::ShiftLeft, 2).and_then(|nibble| by(nibble, Operation::And, 0xf));
        byte.map(|byte| self.graph.get(byte))
            == Some(Value::Load { base: None, offset: 14, width: Width::Byte })
    }

    fn value(&self, value: ValueId) -> Result<String, NoExpression> {
        Ok(match self.graph.get(value) {
            Value::Constant(number) if number < 10 => number.to_string(),
            Value::Constant(number) => format!("{number:#x}"),
            Value::Length => "len".to_owned(),
            Value::Load { base: None, offset, width } => format!("ether[{offset}:{}]", width as u8),
            Value::Load { base: Some(base), offset, width } => {
                format!("ether[{} + {offset}:{}]", self.value(base)?, width as u8)
            }
            Value::Binary { operation, left, right } => {
                format!("({} {operation} {})", self.value(left)?, self.value(right)?)
            }
            Value::Meta(_) => return Err(NoExpression::Words { what: "data that is not in the packet" }),
            Value::Slot(_) => {
                return Err(NoExpression::Words { what: "a value that depends on the path taken" });
            }
        })
    }
}

impl Known {
    fn is_ip(self) -> bool {
        self.ether_type == Some(0x800)
    }
}

fn address(number: u32) -> std::net::Ipv4Addr {
    number.into()
}
