//! Parser for arithmetic and relations: `ip[0] & 0xf != 5`.

use super::level::OperandStart;
use super::{Parser, is_pcap};
use crate::Error;
use crate::ast::words;
use crate::ast::{Arith, ArithId, Comparison, Primitive, Protocol};
use crate::graph::Operation;
use crate::lex::{Kind, Token};

/// An operator waiting for its right operand, or an open bracket.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Binary(Operation),
    Negate,
    /// An open parenthesis, and its position.
    Parenthesis(usize),
    /// `protocol[`, and its position.
    Accessor(Protocol, usize),
}

/// Operands and operators of an expression being parsed.
#[derive(Debug, Default)]
pub(super) struct Stack {
    operands: Vec<ArithId>,
    /// Pending operators, each with the position of its sign.
    pending: Vec<(Pending, usize)>,
    /// Number of parentheses and brackets in `pending`.
    open: usize,
}

impl Parser<'_, '_> {
    /// Parses a number at the start of an operand: an id, or the beginning of a relation.
    pub(super) fn number(&mut self, number: u32) -> Result<(), Error> {
        let mut token = self.take()?;
        while self.at_sign(")") && self.top().is_fresh() {
            token.start = self.levels.pop().expect("more than one level is open").open;
            self.take()?;
        }
        if self.operation().is_some() || self.comparison().is_some() {
            let mut stack = Stack::default();
            stack.operands.push(self.arith(Arith::Number(number)));
            return self.relation(stack, token.start);
        }
        self.number_id(number, token)
    }

    /// Parses a relation that begins with bytes of `protocol`, which has been consumed.
    pub(super) fn accessor_relation(&mut self, protocol: Protocol, token: Token<'_>) -> Result<(), Error> {
        let mut stack = Stack::default();
        self.accessor(protocol, token, &mut stack)?;
        self.relation(stack, token.start)
    }

    /// Parses a relation that begins at `start`, part of which has been consumed.
    pub(super) fn relation(&mut self, taken: Stack, mut start: usize) -> Result<(), Error> {
        if self.may_begin() == OperandStart::Id {
            let error = self.expected("an address, a port or a number");
            let net = self.at_sign("/");
            return Err(if net { error.help("write networks with dots: `net 10.0.0.0/8`") } else { error });
        }
        let left = self.arithmetic(taken, Some(&mut start))?;
        let Some(comparison) = self.comparison() else {
            return Err(self.expected("a comparison (`=`, `!=`, `<`, `<=`, `>`, `>=`) or an operator"));
        };
        self.take()?;
        self.decide(OperandStart::Term)?;
        let right = self.arithmetic(Stack::default(), None)?;
        self.add_term(Primitive::Relation { left, comparison, right }, start, None)
    }

    /// Parses an arithmetic expression. On the left of a relation that begins at `start`, parentheses opened earlier
    /// may turn out to belong to it; `start` then moves to the first of them.
    fn arithmetic(&mut self, mut stack: Stack, mut start: Option<&mut usize>) -> Result<ArithId, Error> {
        if stack.operands.is_empty() {
            self.arithmetic_operand(&mut stack)?;
        }
        loop {
            if let Some(operation) = self.operation() {
                while stack.pending.last().is_some_and(|(before, _)| self.comes_first(*before, operation)) {
                    self.reduce(&mut stack)?;
                }
                let sign = self.take()?;
                stack.pending.push((Pending::Binary(operation), sign.start));
                self.arithmetic_operand(&mut stack)?;
                continue;
            }
            if stack.open > 0 {
                self.close_arithmetic(&mut stack)?;
                continue;
            }
            while !stack.pending.is_empty() {
                self.reduce(&mut stack)?;
            }
            match &mut start {
                Some(start) if self.at_sign(")") && self.top().is_fresh() => {
                    **start = self.levels.pop().expect("the level is fresh").open;
                    self.take()?;
                }
                _ => return Ok(stack.operands.pop().expect("an operand was read")),
            }
        }
    }

    /// Parses an operand with everything in front of it.
    fn arithmetic_operand(&mut self, stack: &mut Stack) -> Result<(), Error> {
        loop {
            let token = self.token;
            match token.kind {
                Kind::Number(number) => {
                    self.take()?;
                    let operand = self.arith(Arith::Number(number));
                    stack.operands.push(operand);
                    return Ok(());
                }
                Kind::Word("len" | "length") => {
                    self.take()?;
                    let operand = self.arith(Arith::Length);
                    stack.operands.push(operand);
                    return Ok(());
                }
                Kind::Sign("-") => stack.pending.push((Pending::Negate, token.start)),
                Kind::Sign("(") => {
                    stack.pending.push((Pending::Parenthesis(token.start), token.start));
                    stack.open += 1;
                }
                Kind::Word(word) if words::protocol(word).is_some() => {
                    let protocol = words::protocol(word).expect("it is one");
                    self.take()?;
                    self.accessor(protocol, token, stack)?;
                    continue;
                }
                _ => {
                    return Err(self.expected("a number, `len`, or packet bytes such as `ip[0]`"));
                }
            }
            self.take()?;
        }
    }

    /// Parses `[` after `protocol`, which has been consumed.
    fn accessor(&mut self, protocol: Protocol, token: Token<'_>, stack: &mut Stack) -> Result<(), Error> {
        self.indexable(protocol, token)?;
        if !self.taken("[")? {
            let word = self.source(token);
            return Err(self.expected(&format!("`[`, as in `{word}[0]`")));
        }
        stack.pending.push((Pending::Accessor(protocol, token.start), token.start));
        stack.open += 1;
        Ok(())
    }

    /// Closes the innermost parenthesis or bracket.
    fn close_arithmetic(&mut self, stack: &mut Stack) -> Result<(), Error> {
        let opener = loop {
            match stack.pending.last() {
                Some((opener @ (Pending::Parenthesis(_) | Pending::Accessor(..)), _)) => break *opener,
                _ => self.reduce(stack)?,
            }
        };
        match opener {
            Pending::Parenthesis(open) if self.token.kind == Kind::End => {
                return Err(Error::new("unclosed parenthesis", open..open + 1));
            }
            Pending::Accessor(protocol, open) => {
                let size = if self.taken(":")? { self.size()? } else { 1 };
                if self.token.kind == Kind::End {
                    return Err(Error::new("unclosed bracket", open..self.behind));
                }
                if !self.at_sign("]") {
                    return Err(self.expected("an operator, `:` and a size, or `]`"));
                }
                let index = stack.operands.pop().expect("an index was read");
                let accessor = self.arith(Arith::Accessor { protocol, index, size });
                stack.operands.push(accessor);
            }
            _ if !self.at_sign(")") => {
                return Err(self.expected("an operator or `)`"));
            }
            _ => {}
        }
        self.take()?;
        stack.pending.pop();
        stack.open -= 1;
        Ok(())
    }

    /// Parses the number of bytes after `:`.
    fn size(&mut self) -> Result<u8, Error> {
        let token = self.token;
        match self.demand_number("1, 2 or 4")? {
            size @ (1 | 2 | 4) => Ok(u8::try_from(size).expect("it is small")),
            _ => Err(Error::new("only 1, 2 or 4 bytes can be read at once", token.span())),
        }
    }

    /// Applies the operator on top of the stack.
    fn reduce(&mut self, stack: &mut Stack) -> Result<(), Error> {
        let (pending, sign) = stack.pending.pop().expect("an operation is pending");
        let right = stack.operands.pop().expect("its operand was read");
        let result = match pending {
            Pending::Negate => self.arith(Arith::Negate(right)),
            Pending::Binary(operation) => {
                let left = stack.operands.pop().expect("its left operand was read");
                self.calculable(operation, right, sign)?;
                self.arith(Arith::Binary { operation, left, right })
            }
            Pending::Parenthesis(_) | Pending::Accessor(..) => unreachable!("closed, not applied"),
        };
        stack.operands.push(result);
        Ok(())
    }

    /// Returns whether the pending operator `before` applies before `operation`, which follows its operand.
    ///
    /// libpcap's grammar gives `%` and `^` no precedence: each takes everything after it as its right operand, and
    /// operators before it wait. In the dialect `weir` they have the same precedence as in C.
    fn comes_first(&self, before: Pending, operation: Operation) -> bool {
        let rank = |operation| match operation {
            Operation::Or => Some(1),
            Operation::Xor if is_pcap(self.options.dialect) => None,
            Operation::Xor => Some(2),
            Operation::And => Some(3),
            Operation::ShiftLeft | Operation::ShiftRight => Some(4),
            Operation::Add | Operation::Subtract => Some(5),
            Operation::Remainder if is_pcap(self.options.dialect) => None,
            Operation::Multiply | Operation::Divide | Operation::Remainder => Some(6),
        };
        let before = match before {
            Pending::Binary(before) => rank(before),
            Pending::Negate => Some(7),
            Pending::Parenthesis(_) | Pending::Accessor(..) => None,
        };
        before.zip(rank(operation)).is_some_and(|(before, operation)| before >= operation)
    }

    /// Rejects operations that fail for every packet.
    fn calculable(&self, operation: Operation, right: ArithId, sign: usize) -> Result<(), Error> {
        let operand = if is_pcap(self.options.dialect) { self.leftmost(right) } else { right };
        let Arith::Number(number) = self.ast.arithmetic[operand.0 as usize] else { return Ok(()) };
        let message = match operation {
            Operation::Divide if number == 0 => "division by zero",
            Operation::Remainder if number == 0 => "remainder of a division by zero",
            Operation::ShiftLeft | Operation::ShiftRight if number > 31 => "shift by more than 31 bits",
            _ => return Ok(()),
        };
        let error = Error::new(message, sign..self.behind);
        Err(if operand == right {
            error
        } else {
            error.help("libpcap takes the first number after the operator as the whole operand")
        })
    }

    /// Returns the first number of an operand, which libpcap takes for all of it.
    fn leftmost(&self, mut operand: ArithId) -> ArithId {
        loop {
            operand = match self.ast.arithmetic[operand.0 as usize] {
                Arith::Number(_) | Arith::Length => return operand,
                Arith::Accessor { index, .. } => index,
                Arith::Negate(inner) => inner,
                Arith::Binary { left, .. } => left,
            };
        }
    }

    /// Rejects protocols whose bytes are not accessible.
    fn indexable(&self, protocol: Protocol, token: Token<'_>) -> Result<(), Error> {
        let known = matches!(
            protocol,
            Protocol::Link
                | Protocol::Ip
                | Protocol::Ip6
                | Protocol::Arp
                | Protocol::Rarp
                | Protocol::Tcp
                | Protocol::Udp
                | Protocol::Sctp
                | Protocol::Icmp
                | Protocol::Icmp6
                | Protocol::Igmp
                | Protocol::Igrp
                | Protocol::Pim
                | Protocol::Vrrp
                | Protocol::Carp
                | Protocol::AppleTalk
                | Protocol::DecNet
                | Protocol::Lat
                | Protocol::Sca
                | Protocol::Moprc
                | Protocol::Mopdl
                | Protocol::Radio
        );
        let message = || format!("bytes of `{}` cannot be accessed", self.source(token));
        if known { Ok(()) } else { Err(Error::new(message(), token.span())) }
    }

    /// Returns the current token as an operator.
    fn operation(&self) -> Option<Operation> {
        let Kind::Sign(sign) = self.token.kind else { return None };
        Some(match sign {
            "+" => Operation::Add,
            "-" => Operation::Subtract,
            "*" => Operation::Multiply,
            "/" => Operation::Divide,
            "%" => Operation::Remainder,
            "&" => Operation::And,
            "|" => Operation::Or,
            "^" => Operation::Xor,
            "<<" => Operation::ShiftLeft,
            ">>" => Operation::ShiftRight,
            _ => return None,
        })
    }

    /// Returns the current token as a comparison.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        let Kind::Sign(sign) = self.token.kind else { return None };
        Some(match sign {
            "=" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Greater,
            ">=" => Comparison::AtLeast,
            _ => return None,
        })
    }

    fn arith(&mut self, arith: Arith) -> ArithId {
        let id = u32::try_from(self.ast.arithmetic.len()).expect("arithmetic is counted in 32 bits");
        self.ast.arithmetic.push(arith);
        ArithId(id)
    }
}
