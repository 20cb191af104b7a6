//! Turns long alternatives of hosts, MAC addresses or ports, `host a or host b or ...`, into one test of set
//! membership. Also turns `inner(a) or inner(b)` into `inner(a or b)`, and likewise for `and`: a packet carries at most
//! one other packet.

use foldhash::HashMap;
use std::borrow::Cow;

use crate::ast::{Ast, Direction, Expr, ExprId, Network, Primitive, Protocol, Term};
use crate::set::{Contents, Member, Set, SetId};

/// Minimum number of alternatives to turn into a set.
const FEWEST: usize = 8;

/// An expression with sets in place of long alternatives.
pub(super) struct Collected<'a> {
    pub(super) ast: Cow<'a, Ast>,
    /// For each term that replaces several, the first of them.
    pub(super) terms: HashMap<u32, u32>,
    /// The new sets, numbered after those of the expression.
    pub(super) sets: Vec<Set>,
}

/// The property that alternatives must share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Host(Option<Protocol>, Direction),
    Mac(Direction),
    Port(Option<Protocol>, Direction),
}

/// Collects alternatives in `ast`.
pub(super) fn collect(ast: &Ast) -> Collected<'_> {
    let mut collected = Collected { ast: Cow::Borrowed(ast), terms: HashMap::default(), sets: Vec::new() };
    for (index, node) in ast.nodes.iter().enumerate() {
        let (operands, connect): (_, fn(Vec<ExprId>) -> Expr) = match node {
            Expr::Or(operands) => (operands, Expr::Or),
            Expr::And(operands) => (operands, Expr::And),
            Expr::Not(_) | Expr::Inner(_) | Expr::Term(_) => continue,
        };
        let mut kept = Vec::new();
        for run in operands.chunk_by(|a, b| alike(ast, *a, *b)) {
            match (sort(ast, run[0]), inside(ast, run[0])) {
                (Some(sort), _) if run.len() >= FEWEST && matches!(node, Expr::Or(_)) => {
                    kept.push(collected.replace(ast, sort, run));
                }
                (_, Some(_)) if run.len() > 1 => {
                    let operands = run.iter().filter_map(|operand| inside(ast, *operand)).collect();
                    let operand = collected.push(connect(operands));
                    kept.push(collected.push(Expr::Inner(operand)));
                }
                _ => kept.extend_from_slice(run),
            }
        }
        if kept.len() < operands.len() {
            let one = kept[0];
            let node =
                if kept.len() == 1 { collected.ast.nodes[one.0 as usize].clone() } else { connect(kept) };
            collected.ast.to_mut().nodes[index] = node;
        }
    }
    collected
}

/// Returns whether neighbours can be merged.
fn alike(ast: &Ast, a: ExprId, b: ExprId) -> bool {
    let of_a_sort = sort(ast, a).is_some_and(|of_a| Some(of_a) == sort(ast, b));
    of_a_sort || (inside(ast, a).is_some() && inside(ast, b).is_some())
}

/// Returns the condition on the inner packet, if the operand is one.
fn inside(ast: &Ast, operand: ExprId) -> Option<ExprId> {
    match ast.nodes[operand.0 as usize] {
        Expr::Inner(inside) => Some(inside),
        _ => None,
    }
}

/// Returns the property that an operand must share with its neighbours, if it can be collected.
fn sort(ast: &Ast, operand: ExprId) -> Option<Sort> {
    let Expr::Term(term) = ast.nodes[operand.0 as usize] else { return None };
    let one_of_two = |direction: Direction| {
        use Direction::{Default, Destination, Or, Source};
        matches!(direction, Default | Source | Destination | Or)
    };
    match &ast.terms[term as usize].primitive {
        Primitive::Host { protocol, direction, networks, .. }
            if one_of_two(*direction) && networks.iter().all(|network| prefix(network).is_some()) =>
        {
            Some(Sort::Host(*protocol, *direction))
        }
        Primitive::Mac { direction, .. } if one_of_two(*direction) => Some(Sort::Mac(*direction)),
        Primitive::Port { protocol, direction, first, last, .. }
            if one_of_two(*direction) && first == last =>
        {
            Some(Sort::Port(*protocol, *direction))
        }
        _ => None,
    }
}

/// Returns the prefix length of a network, if its mask is contiguous.
fn prefix(network: &Network) -> Option<u8> {
    let words: &[u32] = match network {
        Network::V4(_, mask) => &[*mask],
        Network::V6(_, mask) => mask,
    };
    let bits: u32 = words.iter().map(|word| word.leading_ones()).sum();
    let all = words
        .iter()
        .zip(0u32..)
        .all(|(word, index)| *word == crate::set::prefix_mask(bits.saturating_sub(32 * index)));
    if all { u8::try_from(bits).ok() } else { None }
}

impl Collected<'_> {
    /// Adds a term that replaces `run`.
    fn replace(&mut self, ast: &Ast, sort: Sort, run: &[ExprId]) -> ExprId {
        let mut terms = run.iter().filter_map(|operand| match ast.nodes[operand.0 as usize] {
            Expr::Term(term) => Some(term),
            _ => None,
        });
        let primitives = terms.clone().map(|term| &ast.terms[term as usize].primitive);
        let primitive = match sort {
            Sort::Host(protocol, direction) => {
                let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
                for primitive in primitives {
                    let Primitive::Host { networks, .. } = primitive else { continue };
                    for network in networks {
                        let Some(bits) = prefix(network) else { continue };
                        match network {
                            Network::V4(key, _) => ipv4.push(Member { key: [*key], bits }),
                            Network::V6(key, _) => ipv6.push(Member { key: *key, bits }),
                        }
                    }
                }
                let ipv4 = self.add(ast, Contents::Ipv4(ipv4));
                let ipv6 = self.add(ast, Contents::Ipv6(ipv6));
                Primitive::HostIn { protocol, direction, ipv4, ipv6 }
            }
            Sort::Mac(direction) => {
                let words = |[a, b, c, d, e, f]: &[u8; 6]| {
                    [u32::from_be_bytes([0, 0, *a, *b]), u32::from_be_bytes([*c, *d, *e, *f])]
                };
                let macs = primitives.filter_map(|primitive| match primitive {
                    Primitive::Mac { addresses, .. } => Some(addresses.iter().map(words)),
                    _ => None,
                });
                let macs = macs.flatten().collect();
                Primitive::MacIn { direction, set: self.add(ast, Contents::Macs(macs)) }
            }
            Sort::Port(protocol, direction) => {
                let ports = primitives.filter_map(|primitive| match primitive {
                    Primitive::Port { first, .. } => Some(u32::from(*first)),
                    _ => None,
                });
                let ports = ports.collect();
                Primitive::PortIn { protocol, direction, set: self.add(ast, Contents::Numbers(ports)) }
            }
        };
        let first = terms.next().expect("a run has a first term");
        let span = ast.terms[first as usize].span.clone();
        let own = self.ast.to_mut();
        let number = u32::try_from(own.terms.len()).expect("terms are counted in 32 bits");
        own.terms.push(Term { span, primitive });
        self.terms.insert(number, first);
        self.push(Expr::Term(number))
    }

    fn push(&mut self, node: Expr) -> ExprId {
        let nodes = &mut self.ast.to_mut().nodes;
        nodes.push(node);
        ExprId(u32::try_from(nodes.len() - 1).expect("nodes are counted in 32 bits"))
    }

    fn add(&mut self, ast: &Ast, mut contents: Contents) -> SetId {
        contents.normalise();
        self.sets.push(Set { name: None, contents });
        let number = ast.sets.len() + self.sets.len() - 1;
        SetId(u32::try_from(number).expect("sets are counted in 32 bits"))
    }
}
