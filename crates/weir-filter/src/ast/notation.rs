//! Text form of a term, with all qualifiers spelt out. It parses back to the same term.

use std::fmt::{self, Display, Formatter, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{
    Arith, ArithId, Ast, AtmKind, ByteOperator, Comparison, Direction, LlcKind, MtpField, MtpKind, Network,
    Primitive, Protocol,
};
use crate::ast::words;
use crate::graph::Operation;
use crate::set::{Contents, SetId};

/// Maximum number of members of a set to list.
const LISTED: usize = 8;

/// A term as text.
#[derive(Clone, Copy, Debug)]
pub struct Notation<'a> {
    ast: &'a Ast,
    primitive: &'a Primitive,
}

impl Ast {
    /// Returns the text form of a term of this tree.
    pub fn notation<'a>(&'a self, primitive: &'a Primitive) -> Notation<'a> {
        Notation { ast: self, primitive }
    }
}

impl Display for Notation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.primitive {
            Primitive::Host { protocol, direction, net, networks } => any(f, networks, |f, network| {
                qualified(f, *protocol, *direction)?;
                match network {
                    Network::V4(address, u32::MAX) => {
                        write!(f, "{} {}", if *net { "net" } else { "host" }, Ipv4Addr::from(*address))
                    }
                    Network::V6(address, [u32::MAX, u32::MAX, u32::MAX, u32::MAX]) => {
                        write!(f, "{} {}", if *net { "net" } else { "host" }, ipv6(*address))
                    }
                    _ => write!(f, "net {network}"),
                }
            }),
            Primitive::Mac { direction, addresses } => any(f, addresses, |f, address| {
                qualified(f, Some(Protocol::Link), *direction)?;
                write!(f, "host {}", mac(*address))
            }),
            Primitive::ArcNet { direction, address } => {
                qualified(f, Some(Protocol::Link), *direction)?;
                write!(f, "host ${address:02x}")
            }
            Primitive::DecNetHost { direction, address } => {
                qualified(f, Some(Protocol::DecNet), *direction)?;
                write!(f, "host {}.{}", address >> 10, address & 1023)
            }
            Primitive::HostIn { protocol, direction, ipv4, ipv6 } => {
                qualified(f, *protocol, *direction)?;
                f.write_str("host in ")?;
                self.set(f, &[*ipv4, *ipv6])
            }
            Primitive::MacIn { direction, set } => {
                qualified(f, Some(Protocol::Link), *direction)?;
                f.write_str("host in ")?;
                self.set(f, &[*set])
            }
            Primitive::PortIn { protocol, direction, set } => {
                qualified(f, *protocol, *direction)?;
                f.write_str("port in ")?;
                self.set(f, &[*set])
            }
            Primitive::VlanIn { set } => {
                f.write_str("vlan in ")?;
                self.set(f, &[*set])
            }
            Primitive::Port { protocol, direction, first, last, range } => {
                qualified(f, *protocol, *direction)?;
                if *range { write!(f, "portrange {first}-{last}") } else { write!(f, "port {first}") }
            }
            Primitive::Proto { protocol, number } => {
                qualified(f, *protocol, Direction::Default)?;
                write!(f, "proto {number:#x}")
            }
            Primitive::ProtoChain { protocol, number } => {
                qualified(f, *protocol, Direction::Default)?;
                write!(f, "protochain {number}")
            }
            Primitive::Protocol(protocol) => f.write_str(word(*protocol)),
            Primitive::Gateway { .. } => f.write_str("gateway"),
            Primitive::Broadcast(protocol) => {
                qualified(f, *protocol, Direction::Default)?;
                f.write_str("broadcast")
            }
            Primitive::Multicast(protocol) => {
                qualified(f, *protocol, Direction::Default)?;
                f.write_str("multicast")
            }
            Primitive::Less(length) => write!(f, "less {length}"),
            Primitive::Greater(length) => write!(f, "greater {length}"),
            Primitive::Byte { index, operator, value } => {
                let operator = match operator {
                    ByteOperator::Equal => '=',
                    ByteOperator::Less => '<',
                    ByteOperator::Greater => '>',
                    ByteOperator::And => '&',
                    ByteOperator::Or => '|',
                };
                write!(f, "byte {index} {operator} {value}")
            }
            Primitive::Inbound => f.write_str("inbound"),
            Primitive::Outbound => f.write_str("outbound"),
            Primitive::IfIndex(number) => write!(f, "ifindex {number}"),
            Primitive::Vlan(number) => numbered(f, "vlan", *number),
            Primitive::Mpls(number) => numbered(f, "mpls", *number),
            Primitive::PppoeDiscovery => f.write_str("pppoed"),
            Primitive::PppoeSession(number) => numbered(f, "pppoes", *number),
            Primitive::Geneve(number) => numbered(f, "geneve", *number),
            Primitive::Vxlan(number) => numbered(f, "vxlan", *number),
            Primitive::Tunnel => f.write_str("tunnel"),
            Primitive::Llc(kind) => llc(f, *kind),
            Primitive::WlanType { value, mask: 0x0c } => write!(f, "type {value:#04x}"),
            Primitive::WlanType { value, .. } => {
                write!(f, "type {:#04x} subtype {:#04x}", value & 0x0c, value & 0xf0)
            }
            Primitive::WlanDirection(number) => write!(f, "dir {number}"),
            Primitive::Atm(kind) => atm(f, kind),
            Primitive::Mtp(kind) => mtp(f, kind),
            Primitive::Relation { left, comparison, right } => {
                self.arithmetic(f, *left)?;
                write!(f, " {} ", sign(*comparison))?;
                self.arithmetic(f, *right)
            }
        }
    }
}

impl Notation<'_> {
    /// Writes a set as its name, or its first members, in the alternate form all.
    fn set(&self, f: &mut Formatter<'_>, sets: &[SetId]) -> fmt::Result {
        let sets = || sets.iter().map(|set| &self.ast.sets[set.0 as usize]);
        if let Some(name) = sets().find_map(|set| set.name.as_ref()) {
            return write!(f, "@{name}");
        }
        let mut members = sets().flat_map(|set| members(&set.contents));
        let listed: Vec<String> =
            members.by_ref().take(if f.alternate() { usize::MAX } else { LISTED }).collect();
        let rest = members.count();
        write!(f, "{{{}", listed.join(", "))?;
        if rest > 0 {
            write!(f, ", and {rest} more")?;
        }
        f.write_char('}')
    }

    /// Writes an arithmetic expression with all parentheses. Not recursive: it may be nested as deep as its text is
    /// long.
    fn arithmetic(&self, f: &mut Formatter<'_>, whole: ArithId) -> fmt::Result {
        enum Task {
            Show(ArithId),
            Write(&'static str),
            Operation(Operation),
            Size(u8),
        }
        let mut tasks = vec![Task::Show(whole)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Write(text) => f.write_str(text)?,
                Task::Operation(operation) => write!(f, " {operation} ")?,
                Task::Size(1) => f.write_char(']')?,
                Task::Size(size) => write!(f, ":{size}]")?,
                Task::Show(id) => match self.ast.arithmetic[id.0 as usize] {
                    Arith::Number(number) if number < 10 => write!(f, "{number}")?,
                    Arith::Number(number) => write!(f, "{number:#x}")?,
                    Arith::Length => f.write_str("len")?,
                    Arith::Accessor { protocol, index, size } => {
                        write!(f, "{}[", word(protocol))?;
                        tasks.push(Task::Size(size));
                        // Offsets are easiest to read in decimal, other numbers in hexadecimal.
                        match self.ast.arithmetic[index.0 as usize] {
                            Arith::Number(offset) => write!(f, "{offset}")?,
                            _ => tasks.push(Task::Show(index)),
                        }
                    }
                    Arith::Negate(operand) => {
                        let (open, close) = if id == whole { ("-", "") } else { ("(-", ")") };
                        f.write_str(open)?;
                        tasks.extend([Task::Write(close), Task::Show(operand)]);
                    }
                    Arith::Binary { operation, left, right } => {
                        let (open, close) = if id == whole { ("", "") } else { ("(", ")") };
                        f.write_str(open)?;
                        tasks.extend([
                            Task::Write(close),
                            Task::Show(right),
                            Task::Operation(operation),
                            Task::Show(left),
                        ]);
                    }
                },
            }
        }
        Ok(())
    }
}

/// Writes alternatives, in parentheses if there are several.
fn any<T>(
    f: &mut Formatter<'_>,
    things: &[T],
    show: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(if things.len() > 1 { "(" } else { "" })?;
    for (index, thing) in things.iter().enumerate() {
        f.write_str(if index > 0 { " or " } else { "" })?;
        show(f, thing)?;
    }
    f.write_str(if things.len() > 1 { ")" } else { "" })
}

/// Writes qualifiers, each followed by a blank.
fn qualified(f: &mut Formatter<'_>, protocol: Option<Protocol>, direction: Direction) -> fmt::Result {
    if let Some(protocol) = protocol {
        write!(f, "{} ", word(protocol))?;
    }
    match direction {
        Direction::Default => Ok(()),
        Direction::Source => f.write_str("src "),
        Direction::Destination => f.write_str("dst "),
        Direction::Or => f.write_str("src or dst "),
        Direction::And => f.write_str("src and dst "),
        Direction::Address(number) => write!(f, "addr{number} "),
        Direction::Receiver => f.write_str("ra "),
        Direction::Transmitter => f.write_str("ta "),
    }
}

fn numbered(f: &mut Formatter<'_>, word: &str, number: Option<u32>) -> fmt::Result {
    f.write_str(word)?;
    number.map_or(Ok(()), |number| write!(f, " {number}"))
}

fn llc(f: &mut Formatter<'_>, kind: LlcKind) -> fmt::Result {
    let word = match kind {
        LlcKind::Any => return f.write_str("llc"),
        LlcKind::Information => "i",
        LlcKind::Supervisory => "s",
        LlcKind::Unnumbered => "u",
        LlcKind::SupervisoryKind(function) => words::name_of(words::SUPERVISORY, function.into()),
        LlcKind::UnnumberedKind(function) => words::name_of(words::UNNUMBERED, function.into()),
    };
    write!(f, "llc {word}")
}

fn atm(f: &mut Formatter<'_>, kind: &AtmKind) -> fmt::Result {
    f.write_str(match kind {
        AtmKind::Vpi(values) => return field(f, "vpi", values),
        AtmKind::Vci(values) => return field(f, "vci", values),
        AtmKind::Lane => "lane",
        AtmKind::Llc => "llc",
        AtmKind::Metac => "metac",
        AtmKind::Bcc => "bcc",
        AtmKind::Oam => "oam",
        AtmKind::Oamf4 => "oamf4",
        AtmKind::Oamf4sc => "oamf4sc",
        AtmKind::Oamf4ec => "oamf4ec",
        AtmKind::Sc => "sc",
        AtmKind::Ilmic => "ilmic",
        AtmKind::Connectmsg => "connectmsg",
        AtmKind::Metaconnect => "metaconnect",
    })
}

fn mtp(f: &mut Formatter<'_>, kind: &MtpKind) -> fmt::Result {
    let high = |high_speed: bool| if high_speed { "h" } else { "" };
    match kind {
        MtpKind::Fisu { high_speed } => write!(f, "{}fisu", high(*high_speed)),
        MtpKind::Lssu { high_speed } => write!(f, "{}lssu", high(*high_speed)),
        MtpKind::Msu { high_speed } => write!(f, "{}msu", high(*high_speed)),
        MtpKind::Field { field: name, high_speed, values } => {
            let name = match name {
                MtpField::Sio => "sio",
                MtpField::Opc => "opc",
                MtpField::Dpc => "dpc",
                MtpField::Sls => "sls",
            };
            field(f, &format!("{}{name}", high(*high_speed)), values)
        }
    }
}

/// Writes a field and its possible values.
fn field(f: &mut Formatter<'_>, name: &str, values: &[(Comparison, u32)]) -> fmt::Result {
    match values {
        [(comparison, value)] => write!(f, "{name} {} {value}", sign(*comparison)),
        _ => {
            write!(f, "{name} ")?;
            any(f, values, |f, (_, value)| write!(f, "{value}"))
        }
    }
}

/// Returns the operator of a comparison.
fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::AtMost => "<=",
        Comparison::Greater => ">",
        Comparison::AtLeast => ">=",
    }
}

/// Returns the keyword of a protocol.
fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Link => "ether",
        _ => words::PROTOCOLS.iter().find(|entry| entry.1 == protocol).map_or("?", |entry| entry.0),
    }
}

/// Iterates over the members of a set.
fn members(contents: &Contents) -> Box<dyn Iterator<Item = String> + '_> {
    match contents {
        Contents::Numbers(numbers) => Box::new(numbers.iter().map(u32::to_string)),
        Contents::Macs(macs) => Box::new(macs.iter().map(|[high, low]| {
            let ([_, _, a, b], [c, d, e, g]) = (high.to_be_bytes(), low.to_be_bytes());
            mac([a, b, c, d, e, g])
        })),
        Contents::Ipv4(members) => Box::new(members.iter().map(|member| {
            let address = Ipv4Addr::from(member.key[0]);
            if member.bits == 32 { address.to_string() } else { format!("{address}/{}", member.bits) }
        })),
        Contents::Ipv6(members) => Box::new(members.iter().map(|member| {
            let address = ipv6(member.key);
            if member.bits == 128 { address.to_string() } else { format!("{address}/{}", member.bits) }
        })),
    }
}

fn ipv6(words: [u32; 4]) -> Ipv6Addr {
    Ipv6Addr::from_bits(words.into_iter().fold(0, |bits, word| bits << 32 | u128::from(word)))
}

pub(super) fn mac(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

impl Display for Network {
    /// Writes the notation of pcap-filter(7): a bare address, with a prefix length, or with a mask.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4(address, u32::MAX) => Ipv4Addr::from(address).fmt(f),
            Self::V4(address, mask) if mask.leading_ones() == mask.count_ones() => {
                write!(f, "{}/{}", Ipv4Addr::from(address), mask.leading_ones())
            }
            Self::V4(address, mask) => write!(f, "{} mask {}", Ipv4Addr::from(address), Ipv4Addr::from(mask)),
            Self::V6(address, mask) => match ipv6(mask).to_bits().leading_ones() {
                128 => ipv6(address).fmt(f),
                bits => write!(f, "{}/{bits}", ipv6(address)),
            },
        }
    }
}
