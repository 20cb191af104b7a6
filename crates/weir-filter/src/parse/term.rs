//! Parser for terms that begin with a keyword, and for qualifiers of ids.

use super::level::OperandStart;
use super::{IdKind, Parser, Qualifiers};
use crate::Error;
use crate::ast::words;
use crate::ast::{ByteOperator, Direction, Primitive, Protocol};
use crate::lex::{Kind, Token};

/// Limits of the number after a keyword.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Largest number.
    most: u32,
    /// Name of the number, for messages.
    what: &'static str,
}

impl Parser<'_, '_> {
    /// Parses what `word`, the current token, begins. Returns whether that is a complete operand rather than qualifiers
    /// of an id.
    pub(super) fn term(&mut self, word: &'static str) -> Result<bool, Error> {
        let start = self.token.start;
        if let Some(protocol) = words::protocol(word) {
            return self.protocol(protocol);
        }
        if let Some(qualifiers) = self.qualifiers(None)? {
            return self.head(qualifiers, start);
        }
        let primitive = match word {
            "vlan" => {
                self.take()?;
                if self.at_word("in") {
                    self.take()?;
                    self.vlan_members()?
                } else {
                    Primitive::Vlan(self.optional(Limit { most: 4095, what: "a VLAN ID" })?)
                }
            }
            "mpls" => Primitive::Mpls(self.numbered(Limit { most: 0xf_ffff, what: "an MPLS label" })?),
            "pppoes" => {
                Primitive::PppoeSession(self.numbered(Limit { most: 0xffff, what: "a PPPoE session ID" })?)
            }
            "geneve" => Primitive::Geneve(self.numbered(Limit { most: 0xff_ffff, what: "a Geneve VNI" })?),
            "vxlan" => Primitive::Vxlan(self.numbered(Limit { most: 0xff_ffff, what: "a VXLAN VNI" })?),
            "less" => Primitive::Less(self.with_number("a length")?),
            "greater" => Primitive::Greater(self.with_number("a length")?),
            "ifindex" => Primitive::IfIndex(self.with_number("an interface number")?),
            "byte" => self.byte()?,
            "tunnel" => self.alone(Primitive::Tunnel)?,
            "inbound" => self.alone(Primitive::Inbound)?,
            "outbound" => self.alone(Primitive::Outbound)?,
            "pppoed" => self.alone(Primitive::PppoeDiscovery)?,
            "broadcast" | "multicast" | "type" | "subtype" | "dir" | "direction" => self.link_term(None)?,
            "llc" => self.llc()?,
            "on" | "ifname" | "rset" | "ruleset" | "rnr" | "rulenum" | "srnr" | "subrulenum" | "reason"
            | "action" => {
                return Err(Error::new(
                    format!("`{word}` applies to packets logged by BSD's pf, which are not supported"),
                    self.token.span(),
                ));
            }
            _ => match self.signalling(word)? {
                Some(primitive) => primitive,
                None => return Err(self.expected("a term")),
            },
        };
        self.decide(OperandStart::Term)?;
        self.add_term(primitive, start, None)?;
        Ok(true)
    }

    /// Parses what a protocol begins: an accessor, qualifiers, or a term.
    fn protocol(&mut self, protocol: Protocol) -> Result<bool, Error> {
        let token = self.take()?;
        if self.at_sign("[") {
            self.accessor_relation(protocol, token)?;
            return Ok(true);
        }
        if let Some(qualifiers) = self.qualifiers(Some(protocol))? {
            return self.head(qualifiers, token.start);
        }
        let primitive = match self.token.kind {
            Kind::Word("broadcast" | "multicast" | "type" | "subtype" | "dir" | "direction") => {
                self.link_term(Some(protocol))?
            }
            _ => self.protocol_alone(protocol, token)?,
        };
        self.decide(OperandStart::Term)?;
        self.add_term(primitive, token.start, None)?;
        Ok(true)
    }

    /// Returns the term for a bare protocol.
    fn protocol_alone(&self, protocol: Protocol, token: Token<'_>) -> Result<Primitive, Error> {
        let name = self.source(token);
        let text = self.source(self.token);
        match (protocol, self.token.kind) {
            (_, Kind::Dotted(_) | Kind::Ipv6(_) | Kind::Mac(_)) => {
                let help = format!("write `{name} host {text}`");
                Err(self.expected(&format!("`host`, `net`, `src` or `dst` after `{name}`")).help(help))
            }
            (_, Kind::Number(_)) => Err(self.expected(&format!("`port`, `proto` or `host` after `{name}`"))),
            (Protocol::Link | Protocol::Radio, _) => {
                let message = format!("`{name}` is not a term by itself");
                Err(Error::new(message, token.span())
                    .help(format!("use it as a qualifier: `{name} host`, `{name}[0]`")))
            }
            _ => Ok(Primitive::Protocol(protocol)),
        }
    }

    /// Notes qualifiers. The operand is not complete: its id follows.
    fn head(&mut self, qualifiers: Qualifiers, start: usize) -> Result<bool, Error> {
        self.decide(OperandStart::Term)?;
        self.top().qualify(qualifiers, start);
        Ok(false)
    }

    /// Parses the direction and kind of an id, if there are any.
    fn qualifiers(&mut self, protocol: Option<Protocol>) -> Result<Option<Qualifiers>, Error> {
        let Kind::Word(word) = self.token.kind else { return Ok(None) };
        let direction = match word {
            "src" | "dst" => Some(self.both_ends(word)?),
            "addr1" | "address1" => Some(Direction::Address(1)),
            "addr2" | "address2" => Some(Direction::Address(2)),
            "addr3" | "address3" => Some(Direction::Address(3)),
            "addr4" | "address4" => Some(Direction::Address(4)),
            "ra" => Some(Direction::Receiver),
            "ta" => Some(Direction::Transmitter),
            _ => None,
        };
        if direction.is_some() && !matches!(word, "src" | "dst") {
            self.take()?;
        }
        let kind = match self.token.kind {
            Kind::Word("host") => Some(IdKind::Host),
            Kind::Word("net") => Some(IdKind::Net),
            Kind::Word("port") => Some(IdKind::Port),
            Kind::Word("portrange") => Some(IdKind::PortRange),
            Kind::Word("proto") if direction.is_none() => Some(IdKind::Proto),
            Kind::Word("protochain") if direction.is_none() => Some(IdKind::ProtoChain),
            Kind::Word("gateway") if direction.is_none() => Some(IdKind::Gateway),
            _ => None,
        };
        if kind.is_some() {
            self.take()?;
        }
        if direction.is_none() && kind.is_none() {
            return Ok(None);
        }
        let direction = direction.unwrap_or(Direction::Default);
        Ok(Some(Qualifiers { protocol, direction, kind: kind.unwrap_or(IdKind::Default) }))
    }

    /// Parses `src`, `src or dst`, `dst and src`, ...
    fn both_ends(&mut self, word: &str) -> Result<Direction, Error> {
        self.take()?;
        let direction = match self.token.kind {
            Kind::Word("or") => Direction::Or,
            Kind::Word("and") => Direction::And,
            _ if word == "src" => return Ok(Direction::Source),
            _ => return Ok(Direction::Destination),
        };
        self.take()?;
        let other = if word == "src" { "dst" } else { "src" };
        if !self.at_word(other) {
            return Err(self.expected(&format!("`{other}`")));
        }
        self.take()?;
        Ok(direction)
    }

    /// Parses a keyword that is a term by itself.
    pub(super) fn alone(&mut self, primitive: Primitive) -> Result<Primitive, Error> {
        self.take()?;
        Ok(primitive)
    }

    /// Parses a keyword and a number.
    fn with_number(&mut self, what: &str) -> Result<u32, Error> {
        self.take()?;
        self.demand_number(what)
    }

    /// Parses a keyword and an optional number.
    fn numbered(&mut self, limit: Limit) -> Result<Option<u32>, Error> {
        self.take()?;
        self.optional(limit)
    }

    /// Parses an optional number in any number of parentheses.
    fn optional(&mut self, limit: Limit) -> Result<Option<u32>, Error> {
        let begin = self.token;
        let mut open = 0_usize;
        while self.taken("(")? {
            open += 1;
        }
        let token = self.token;
        let number = match token.kind {
            Kind::Number(number) => {
                self.take()?;
                number
            }
            _ if open == 0 => return Ok(None),
            _ => return Err(self.expected("a number")),
        };
        while open > 0 {
            if self.token.kind == Kind::End {
                return Err(Error::new("unclosed parenthesis", begin.span()));
            }
            self.demand(")")?;
            open -= 1;
        }
        if number > limit.most {
            let message = format!("{} cannot exceed {}", limit.what, limit.most);
            return Err(Error::new(message, token.span()));
        }
        Ok(Some(number))
    }

    /// Parses `byte INDEX OPERATOR VALUE`.
    fn byte(&mut self) -> Result<Primitive, Error> {
        let index = self.with_number("a byte offset")?;
        let operator = match self.token.kind {
            Kind::Sign("=") => ByteOperator::Equal,
            Kind::Sign("<") => ByteOperator::Less,
            Kind::Sign(">") => ByteOperator::Greater,
            Kind::Sign("&") => ByteOperator::And,
            Kind::Sign("|") => ByteOperator::Or,
            _ => return Err(self.expected("`=`, `<`, `>`, `&` or `|`")),
        };
        let value = self.with_number("a number")?;
        Ok(Primitive::Byte { index, operator, value })
    }
}
