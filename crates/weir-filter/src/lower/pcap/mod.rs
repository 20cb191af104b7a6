//! The dialect `pcap`: expressions as libpcap 1.10 compiles them, before its optimiser, plus `vxlan` of 1.11.
//!
//! Two properties shape it. Terms may move the headers for all later terms ([`layers`]), so terms are turned into
//! [`Condition`]s in source order and then added to the graph from the last to the first. And a load past the end
//! rejects the packet, so each condition loads what libpcap's code loads, in the same order.

mod address;
mod arithmetic;
mod atm;
mod chain;
mod condition;
mod direction;
mod encapsulation;
mod kind;
mod layers;
mod link;
mod llc;
mod mtp;
mod port;
mod protocol;
mod tunnel;
mod wlan;

use foldhash::{HashMap, HashSet};
use std::ops::Range;

use self::condition::Condition;
use self::layers::Link;
use self::layers::{From, Layers};
use self::port::Ports;
use super::{Ways, connect, is_asked_elsewhere, leaves};
use crate::ast::{Ast, ByteOperator, Expr, ExprId, Primitive};
use crate::graph::{Graph, MOST_SLOTS, Node, NodeId, Operation, Relation, Slot, TermId, Value, Width};
use crate::{Error, Options};

/// Why a term cannot be tested: one sentence without a full stop.
type Refusal = String;

/// The condition of a term.
type Lowered = Result<Condition, Refusal>;

/// State while terms are lowered.
struct Lowering<'a> {
    ast: &'a Ast,
    options: &'a Options<'a>,
    graph: Graph,
    layers: Layers,
    /// Outermost link type.
    outermost: Link,
    /// Bytes before the header of the message transfer part.
    mtp_header: u32,
    /// Slots that their term assigns whether or not it is true. Other slots are assigned only if it is.
    assigned_always: HashSet<Slot>,
}

/// A term at its place in the text.
struct Occurrence {
    term: TermId,
    condition: Condition,
    /// Slots that places count from at that place.
    before: Vec<Slot>,
}

/// Lowers `ast` to a graph.
pub(crate) fn lower(ast: &Ast, options: &Options<'_>) -> Result<Graph, Error> {
    let Some(root) = ast.root else { return Ok(Graph::new(options.snap_len)) };
    let leaves = leaves(ast);
    let Some(layers) = link::layers(options.link_type) else {
        let span = first_span(ast, &leaves);
        return Err(Error::new(format!("unknown link type {}", options.link_type), span));
    };
    let mut lowering = Lowering::new(ast, options, layers);
    let prefix = lowering.find_prefix();
    let (occurrences, owners) = lowering.understand(&leaves)?;
    let prefix = prefix.map(|prefix| lowering.note_prefix(prefix));

    let root = lowering.put_together(root, &occurrences, &owners);
    let ways = (root, Graph::REFUSE);
    let root = prefix.map_or(root, |prefix| prefix.place(&mut lowering.graph, ways, TermId::NONE));
    let root = lowering.check_ppi(root);
    lowering.graph.set_root(root);
    Ok(lowering.graph)
}

/// Returns whether `leaf`, as the first term, applies to the link type in `options`.
pub(crate) fn can_ask(ast: &Ast, leaf: &Expr, options: &Options<'_>) -> bool {
    let (Some(layers), Expr::Term(term)) = (link::layers(options.link_type), leaf) else { return false };
    Lowering::new(ast, options, layers).term(&ast.terms[*term as usize].primitive).is_ok()
}

fn first_span(ast: &Ast, leaves: &[Expr]) -> Range<usize> {
    match leaves.first() {
        Some(Expr::Term(term)) => ast.terms[*term as usize].span.clone(),
        _ => 0..0,
    }
}

impl<'a> Lowering<'a> {
    fn new(ast: &'a Ast, options: &'a Options<'a>, layers: Layers) -> Self {
        Self {
            ast,
            options,
            graph: Graph::new(options.snap_len),
            layers,
            outermost: layers.link,
            mtp_header: match options.link_type {
                139 => 4,
                197 => 20,
                _ => 0,
            },
            assigned_always: HashSet::default(),
        }
    }

    /// Turns terms into conditions, in source order. Also returns, for each slot that places count from, the term that
    /// assigns it.
    fn understand(&mut self, leaves: &[Expr]) -> Result<(Vec<Occurrence>, HashMap<Slot, usize>), Error> {
        let mut occurrences = Vec::with_capacity(leaves.len());
        let mut owners = HashMap::default();
        let mut known: HashSet<Slot> = self.layers.slots().collect();
        for leaf in leaves {
            let Expr::Term(term) = leaf else {
                if is_asked_elsewhere(self.ast, leaf, self.options) {
                    let condition = Condition::Always(false);
                    occurrences.push(Occurrence { term: TermId::NONE, condition, before: Vec::new() });
                    continue;
                }
                return Err(Error::new("`inner` exists only in the dialect `weir`", 0..0));
            };
            let before = self.layers.slots().collect();
            let asked = &self.ast.terms[*term as usize];
            if self.graph.slots() > MOST_SLOTS {
                let message = "too many terms before this one search for headers at variable offsets";
                return Err(Error::new(message, asked.span.clone()));
            }
            let condition = match self.term(&asked.primitive) {
                Ok(condition) => condition,
                Err(_) if is_asked_elsewhere(self.ast, leaf, self.options) => Condition::Always(false),
                Err(message) => return Err(Error::new(message, asked.span.clone())),
            };
            for slot in self.layers.slots() {
                if known.insert(slot) {
                    owners.insert(slot, occurrences.len());
                }
            }
            occurrences.push(Occurrence { term: TermId(*term), condition, before });
        }
        Ok((occurrences, owners))
    }

    /// Adds the conditions to the graph, from the last to the first.
    fn put_together(
        &mut self,
        root: ExprId,
        occurrences: &[Occurrence],
        owners: &HashMap<Slot, usize>,
    ) -> NodeId {
        let graph = &mut self.graph;
        let assigned_always = &self.assigned_always;
        let mut begins: HashMap<NodeId, usize> = HashMap::default();
        let mut index = occurrences.len();
        connect(self.ast, root, (Graph::ACCEPT, Graph::REFUSE), |_, ways| {
            index -= 1;
            let occurrence = &occurrences[index];
            let mut way = |to: NodeId, answer: bool| {
                let Some(&next) = begins.get(&to) else { return to };
                // Slots of a skipped term are zero: libpcap reads a register that nothing has set.
                let unset = |slot: &Slot| {
                    owners.get(slot).is_some_and(|&owner| {
                        let own = owner == index && !answer && !assigned_always.contains(slot);
                        own || (index < owner && owner < next)
                    })
                };
                let mut slots: Vec<Slot> = occurrences[next].before.iter().copied().filter(unset).collect();
                slots.sort_unstable();
                slots.dedup();
                slots.into_iter().fold(to, |next, slot| {
                    let value = graph.constant(0);
                    graph.push(Node::Assign { slot, value, next })
                })
            };
            let ways: Ways = (way(ways.0, true), way(ways.1, false));
            let begin = occurrence.condition.place(graph, ways, occurrence.term);
            begins.entry(begin).or_insert(index);
            begin
        })
    }

    /// Tests that a PPI header, which can precede any link type, precedes 802.11, unless `pppoes` or a tunnel has entered
    /// another layer.
    fn check_ppi(&mut self, root: NodeId) -> NodeId {
        if self.layers.link != Link::Ppi {
            return root;
        }
        let link_type = self.graph.load(None, 4, Width::Word);
        self.graph.equals(link_type, 105u32.swap_bytes(), (root, Graph::REFUSE), TermId::NONE)
    }

    /// Returns a message saying that `what` cannot be tested here.
    fn cannot(&self, what: &str) -> Refusal {
        let link_type = self.options.link_type;
        if self.layers.link == self.outermost {
            format!("{what} cannot be tested with link type {link_type}")
        } else {
            format!("{what} cannot be tested after the preceding terms, with link type {link_type}")
        }
    }

    fn term(&mut self, primitive: &Primitive) -> Lowered {
        match primitive {
            Primitive::Host { protocol, direction, networks, .. } => {
                self.host(*protocol, *direction, networks)
            }
            Primitive::Mac { direction, addresses } => self.mac(*direction, addresses),
            Primitive::ArcNet { direction, address } => self.arcnet(*direction, *address),
            Primitive::DecNetHost { direction, address } => self.decnet_host(*direction, *address),
            Primitive::Port { protocol, direction, first, last, range } => {
                let ports = if *range { Ports::Range(*first, *last) } else { Ports::One(*first) };
                self.port(*protocol, *direction, ports)
            }
            Primitive::Proto { protocol, number } => self.number_in(*protocol, *number),
            Primitive::ProtoChain { protocol, number } => self.chain(*protocol, *number),
            Primitive::Protocol(protocol) => self.protocol(*protocol),
            Primitive::Gateway { protocol, macs, addresses } => self.gateway(*protocol, macs, addresses),
            Primitive::Broadcast(protocol) => self.broadcast(*protocol),
            Primitive::Multicast(protocol) => self.multicast(*protocol),
            Primitive::Less(length) => {
                let is_longer = self.length(Relation::Greater, *length);
                Ok(is_longer.negated())
            }
            Primitive::Greater(length) => Ok(self.length(Relation::AtLeast, *length)),
            Primitive::Byte { index, operator, value } => Ok(self.byte(*index, *operator, *value)),
            Primitive::Inbound => self.is_outbound(false),
            Primitive::Outbound => self.is_outbound(true),
            Primitive::IfIndex(index) => self.interface(*index),
            Primitive::Vlan(number) => self.vlan(*number),
            Primitive::Mpls(label) => self.mpls(*label),
            Primitive::PppoeDiscovery => self.carries(kind::PPPOE_DISCOVERY),
            Primitive::PppoeSession(session) => self.pppoe_session(*session),
            Primitive::Geneve(network) => self.geneve(*network),
            Primitive::Vxlan(network) => self.vxlan(*network),
            Primitive::Llc(kind) => self.llc(*kind),
            Primitive::WlanType { value, mask } => self.wlan_type(*value, *mask),
            Primitive::WlanDirection(direction) => self.wlan_direction(*direction),
            Primitive::Atm(kind) => self.atm(kind),
            Primitive::Mtp(kind) => self.mtp(kind),
            Primitive::Relation { left, comparison, right } => self.relation(*left, *comparison, *right),
            Primitive::HostIn { .. }
            | Primitive::MacIn { .. }
            | Primitive::PortIn { .. }
            | Primitive::VlanIn { .. }
            | Primitive::Tunnel => Err("this exists only in the dialect `weir`".to_owned()),
        }
    }

    fn length(&mut self, relation: Relation, number: u32) -> Condition {
        let length = self.graph.value(Value::Length);
        self.compare(relation, length, number)
    }

    /// Lowers `byte`: `&` and `|` test whether the result is not zero. libpcap 1.10 forgets to load the byte for them;
    /// 1.11 does not.
    fn byte(&mut self, index: u32, operator: ByteOperator, number: u32) -> Condition {
        let byte = self.load(From::Link, index, Width::Byte);
        match operator {
            ByteOperator::Equal => self.compare(Relation::Equal, byte, number),
            ByteOperator::Less => self.compare(Relation::AtLeast, byte, number).negated(),
            ByteOperator::Greater => self.compare(Relation::Greater, byte, number),
            ByteOperator::And | ByteOperator::Or => {
                let operation = if operator == ByteOperator::And { Operation::And } else { Operation::Or };
                let result = self.graph.with(operation, byte, number);
                self.compare(Relation::Equal, result, 0).negated()
            }
        }
    }
}
