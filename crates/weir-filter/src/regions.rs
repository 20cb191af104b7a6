//! What an expression says about the fields of a packet that tables are asked for ([`weir_classify`]).
//!
//! ```text
//! src net 10.0.0.0/8 and tcp port 80      two regions, each exact: one for each port
//! inbound and vlan 5 and not tcp          one region, exact
//! tcp and tcp[13] = 2                     one region, TCP; within it the filter decides
//! greater 1000                            one region, everything
//! ```

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use weir_classify::{self as classify, Condition, Directions, Fields, Kind, Kinds, Prefix, Tags};
use weir_packet::protocol::{SCTP, TCP, UDP};

use crate::ast::{Ast, Direction, Expr, ExprId, Network, Primitive, Protocol};
use crate::interpret::Packet;
use crate::lower::weir::{over_ip, walks_chain};
use crate::set::{Contents, Set};
use crate::{Dialect, Options};

/// The most regions of an expression: beyond, there is one, which is everything.
const MOST: usize = 64;

/// Operators may be nested as deep before there is one region.
const DEEPEST: u32 = 100;

/// Packets with some fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The fields.
    pub condition: Condition,
    /// Whether the expression accepts all packets of the region. If not, it has to be asked.
    pub exact: bool,
}

impl Region {
    pub(crate) fn everything() -> Vec<Self> {
        vec![Self { condition: Condition::ALL, exact: false }]
    }

    /// Returns whether an Ethernet frame is in it.
    pub fn has(&self, packet: &Packet<'_>) -> bool {
        let direction = packet.meta.outgoing().map(direction_of);
        self.condition.holds(&Fields { direction, ..Fields::of(packet.data) })
    }
}

/// Returns regions of Ethernet frames in which all packets are that an expression of the dialect `weir` accepts. Regions may
/// overlap; there are none if it accepts no packet.
///
/// A packet that ends within its headers may be in an exact region, though the expression refuses it: another alternative
/// would need what is cut off.
pub fn regions(ast: &Ast) -> Vec<Region> {
    match ast.root {
        Some(root) => of(ast, root, 0).unwrap_or_else(Region::everything),
        None => vec![Region { condition: Condition::ALL, exact: true }],
    }
}

/// Returns whether regions say all of an expression: each of its terms is about fields, none of them refuses this link type, and the
/// regions are exact. Then no graph has to say more.
pub(crate) fn are_enough(regions: &[Region], ast: &Ast, options: &Options<'_>) -> bool {
    let is_of_fields = |term: &crate::ast::Term| {
        term_regions(ast, &term.primitive).iter().all(|region| region.exact)
            && crate::lower::weir::applies(ast, term, options)
    };
    options.dialect == Dialect::Weir
        && regions.iter().all(|region| region.exact)
        && !ast.nodes.iter().any(|node| matches!(node, Expr::Inner(_)))
        && ast.terms.iter().all(is_of_fields)
}

/// `None`: there are too many, or it is nested too deeply.
fn of(ast: &Ast, expr: ExprId, depth: u32) -> Option<Vec<Region>> {
    if depth > DEEPEST {
        return None;
    }
    let regions = match &ast.nodes[expr.0 as usize] {
        Expr::And(operands) => {
            let mut all = vec![Region { condition: Condition::ALL, exact: true }];
            for operand in operands {
                all = and(&all, &of(ast, *operand, depth + 1).unwrap_or_else(Region::everything));
                if all.len() > MOST {
                    return None;
                }
            }
            all
        }
        Expr::Or(operands) => {
            let mut any: Vec<Region> = Vec::new();
            for operand in operands {
                any.extend(of(ast, *operand, depth + 1)?);
                if any.len() > MOST {
                    return None;
                }
            }
            // A test that needs bytes beyond the packet refuses it, whatever the other alternatives say.
            let exact = any.iter().all(|region| region.exact);
            any.into_iter().map(|region| Region { exact, ..region }).collect()
        }
        Expr::Not(operand) => not(&of(ast, *operand, depth + 1)?),
        Expr::Inner(_) => Region::everything(),
        Expr::Term(term) => term_regions(ast, &ast.terms[*term as usize].primitive),
    };
    Some(regions)
}

fn and(left: &[Region], right: &[Region]) -> Vec<Region> {
    let pairs = left.iter().flat_map(|one| right.iter().map(move |other| (one, other)));
    let both = pairs.filter_map(|(one, other)| {
        let condition = one.condition.and(&other.condition)?;
        Some(Region { condition, exact: one.exact && other.exact && one.condition.agrees(&other.condition) })
    });
    both.collect()
}

/// Where none of the regions is.
fn not(regions: &[Region]) -> Vec<Region> {
    let mut others = vec![Region { condition: Condition::ALL, exact: true }];
    for region in regions {
        let complement = region.condition.complement().filter(|_| region.exact);
        let Some(complement) = complement else { return Region::everything() };
        let complement: Vec<Region> =
            complement.into_iter().map(|condition| Region { condition, exact: true }).collect();
        others = and(&others, &complement);
        if others.len() > MOST {
            return Region::everything();
        }
    }
    others
}

fn direction_of(outgoing: bool) -> classify::Direction {
    if outgoing { classify::Direction::Sent } else { classify::Direction::Received }
}

fn directed_to(outgoing: bool) -> Vec<Region> {
    let directions = Directions::of(direction_of(outgoing));
    vec![Region { condition: Condition { directions, ..Condition::ALL }, exact: true }]
}

fn of_kinds(kinds: Kinds, exact: bool) -> Vec<Region> {
    let region = Region { condition: Condition { kinds, ..Condition::ALL }, exact };
    if kinds.is_empty() { Vec::new() } else { vec![region] }
}

fn term_regions(ast: &Ast, primitive: &Primitive) -> Vec<Region> {
    match primitive {
        Primitive::Protocol(protocol) => match protocol {
            Protocol::Ip => of_kinds(Kinds::of(Kind::Ipv4), true),
            Protocol::Ip6 => of_kinds(Kinds::of(Kind::Ipv6), true),
            Protocol::Arp => of_kinds(Kinds::of(Kind::Arp), true),
            Protocol::Rarp => of_kinds(Kinds::of(Kind::ReverseArp), true),
            _ => match over_ip(*protocol).filter(|_| !walks_chain(primitive)) {
                Some((number, ip4, ip6)) => of_kinds(carried(number, ip4, ip6), true),
                None => Region::everything(),
            },
        },
        Primitive::Proto { protocol: protocol @ (None | Some(Protocol::Ip | Protocol::Ip6)), number }
            if !walks_chain(primitive) =>
        {
            let (ip4, ip6) = (*protocol != Some(Protocol::Ip6), *protocol != Some(Protocol::Ip));
            of_kinds(carried(*number, ip4, ip6), true)
        }
        Primitive::Host { protocol, direction, networks, .. } => {
            networks.iter().flat_map(|network| host(*protocol, *direction, network)).collect()
        }
        Primitive::Vlan(None) => tagged([Tags::Any]),
        Primitive::Vlan(Some(number)) => match u16::try_from(*number) {
            Ok(number) => tagged([Tags::Of(number..=number)]),
            Err(_) => Region::everything(),
        },
        Primitive::VlanIn { set } => tags_in(&ast.sets[set.0 as usize]),
        Primitive::Inbound => directed_to(false),
        Primitive::Outbound => directed_to(true),
        Primitive::Port { protocol, direction, first, last, .. } => {
            let kinds = match protocol.and_then(over_ip) {
                Some((number, ip4, ip6)) => carried(number, ip4, ip6),
                None => [TCP, UDP, SCTP].map(Kinds::of_protocol).into_iter().fold(Kinds::NONE, Kinds::or),
            };
            let from = Condition { kinds, source_ports: Some(*first..=*last), ..Condition::ALL };
            let to = Condition { kinds, destination_ports: Some(*first..=*last), ..Condition::ALL };
            directed(*direction, from, to, true)
        }
        _ => Region::everything(),
    }
}

fn tagged(tags: impl IntoIterator<Item = Tags>) -> Vec<Region> {
    let of = |tags| Region { condition: Condition { tags: Some(tags), ..Condition::ALL }, exact: true };
    tags.into_iter().map(of).collect()
}

/// Packets with a tag that is in a set. The members of one with a name may change.
fn tags_in(set: &Set) -> Vec<Region> {
    let Set { name: None, contents: Contents::Numbers(members) } = set else { return Region::everything() };
    let members: Result<BTreeSet<u16>, _> = members.iter().map(|&member| u16::try_from(member)).collect();
    let Ok(members) = members else { return Region::everything() };
    let mut runs: Vec<RangeInclusive<u16>> = Vec::new();
    for member in members {
        match runs.last_mut() {
            Some(run) if member == run.end() + 1 => *run = *run.start()..=member,
            _ => runs.push(member..=member),
        }
    }
    tagged(runs.into_iter().map(Tags::Of))
}

/// Packets of IP that carry a protocol.
fn carried(number: u32, ip4: bool, ip6: bool) -> Kinds {
    let Ok(number) = u8::try_from(number) else { return Kinds::NONE };
    let versions = [(ip4, Kind::Ipv4), (ip6, Kind::Ipv6)].into_iter().filter(|(carried, _)| *carried);
    let kinds = versions.fold(Kinds::NONE, |kinds, (_, kind)| kinds.or(Kinds::of(kind)));
    kinds.and(Kinds::of_protocol(number))
}

fn host(protocol: Option<Protocol>, direction: Direction, network: &Network) -> Vec<Region> {
    let wanted = |own: Protocol| protocol.is_none_or(|protocol| protocol == own);
    let (candidates, prefix) = match network {
        Network::V4(address, mask) => (
            &[(Protocol::Ip, Kind::Ipv4), (Protocol::Arp, Kind::Arp), (Protocol::Rarp, Kind::ReverseArp)][..],
            length(u128::from(*mask) << 96)
                .and_then(|length| Prefix::new(Ipv4Addr::from_bits(*address).into(), length)),
        ),
        Network::V6(address, mask) => {
            let number =
                |words: &[u32; 4]| words.iter().fold(0, |number, &word| number << 32 | u128::from(word));
            (
                &[(Protocol::Ip6, Kind::Ipv6)][..],
                length(number(mask))
                    .and_then(|length| Prefix::new(Ipv6Addr::from_bits(number(address)).into(), length)),
            )
        }
    };
    let kinds = candidates
        .iter()
        .filter(|(own, _)| wanted(*own))
        .fold(Kinds::NONE, |kinds, (_, kind)| kinds.or(Kinds::of(*kind)));
    let Some(prefix) = prefix else { return of_kinds(kinds, false) };
    if kinds.is_empty() {
        return Vec::new();
    }
    if prefix.is_all() {
        return of_kinds(kinds, true);
    }
    let from = Condition { kinds, source: Some(prefix), ..Condition::ALL };
    let to = Condition { kinds, destination: Some(prefix), ..Condition::ALL };
    directed(direction, from, to, true)
}

/// The number of bits of a mask, if they are the first ones.
fn length(mask: u128) -> Option<u8> {
    let length = mask.leading_ones();
    (length + mask.trailing_zeros() >= 128).then(|| u8::try_from(length).expect("128 bits at most"))
}

fn directed(direction: Direction, from: Condition, to: Condition, exact: bool) -> Vec<Region> {
    let region = |condition| Region { condition, exact };
    match direction {
        Direction::Source => vec![region(from)],
        Direction::Destination => vec![region(to)],
        Direction::And => from.and(&to).map(region).into_iter().collect(),
        _ => vec![region(from), region(to)],
    }
}
