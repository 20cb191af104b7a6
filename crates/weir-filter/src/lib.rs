//! Packet filter expressions, in the language of [pcap-filter(7)] and its extensions, and the back ends that run them.
//!
//! ```text
//! text -> lex, parse -> Ast -> lower::{weir, pcap} -> Graph -> pass/* -> Graph -> emit::cbpf   classic BPF
//!                                                                              -> emit::ebpf   eBPF for XDP, tc, sockets
//!                                                                              -> interpret    the reference semantics
//! ```
//!
//! The crate `weir-native` compiles the same graph to native code; it is separate because it needs unsafe code. This
//! crate does no I/O: it looks names up through [`names::Names`].
//!
//! [pcap-filter(7)]: https://www.tcpdump.org/manpages/pcap-filter.7.html

#![forbid(unsafe_code)]

pub mod ast;
pub mod cbpf;
pub mod emit;
pub mod error;
pub mod graph;
pub mod interpret;
pub mod names;
pub mod parse;
pub mod pass;
pub mod regions;
pub mod set;
pub mod spelling;

mod lex;
mod lower;

pub use error::Error;

use weir_classify::{Direction, Directions};

use crate::ast::{Ast, Expr, ExprId, Primitive, Protocol};
use crate::cbpf::{LiftError, Rules};
use crate::graph::Graph;
use crate::names::Names;
use crate::regions::Region;

/// The rules by which an expression is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The meaning users expect, identical for live capture and files.
    #[default]
    Weir,
    /// Exactly what libpcap's compiler generates, before its optimiser.
    Pcap,
}

/// The metadata that a receiver has for a packet, beyond its bytes ([`graph::Meta`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// None.
    Nothing,
    /// The direction of some packets, as files may record it ([`interpret::Metadata::of_direction`]).
    Direction,
    /// All metadata. The outer VLAN tag is there and not in the packet, as in the kernel.
    All,
}

/// Compilation options.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Dialect of the expression.
    pub dialect: Dialect,
    /// Link type of the packets: a `LINKTYPE_` number of <https://www.tcpdump.org/linktypes.html>.
    pub link_type: u16,
    /// Snap length: accepted packets are cut to this many bytes.
    pub snap_len: u32,
    /// Metadata that the receiver has for a packet.
    pub metadata: Beside,
    /// Whether headers that the link type defines in the capturing host's byte order (`LINKTYPE_NULL`) are in the
    /// opposite order.
    pub swapped: bool,
    /// Other link types that this filter is also compiled for. A term that applies only to those is false here;
    /// otherwise it would be an error.
    pub others: &'a [u16],
    /// Netmask of the interface's IPv4 network, for `ip broadcast`.
    pub netmask: Option<u32>,
    /// Name resolver.
    pub names: &'a dyn Names,
}

/// A compiled filter, up to the point where back ends differ.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Source text.
    pub text: String,
    /// Parsed expression.
    pub ast: Ast,
    /// Graph of the expression, before any pass.
    pub lowered: Graph,
    /// `lowered` after all passes that help every back end.
    pub graph: Graph,
}

/// An expression about Ethernet frames, where tables of their fields are asked before it ([`regions`]).
#[derive(Clone, Debug)]
pub struct BehindFields {
    /// Where its packets are.
    pub regions: Vec<Region>,
    /// What has to be asked in regions that are not exact; `None`: the regions say it all, or it is not asked.
    pub filter: Option<Filter>,
}

impl BehindFields {
    /// Returns whether a region or the filter tests for VLAN tags explicitly: see [`Filter::asks_for_tags`].
    pub fn asks_for_tags(&self) -> bool {
        let by_region = self.regions.iter().any(|region| region.condition.tags.is_some());
        by_region || self.filter.as_ref().is_some_and(Filter::asks_for_tags)
    }

    /// Returns whether it can accept packets, but no received ones.
    pub fn is_for_sent(&self) -> bool {
        let received = Directions::of(Direction::Received);
        let none = |region: &Region| region.condition.directions.and(received).is_empty();
        !self.regions.is_empty() && self.regions.iter().all(none)
    }
}

/// The link type whose VLAN tags are stripped.
const ETHERNET: u16 = 1;

impl Filter {
    /// Compiles a program in classic BPF that expects packets as a packet socket shows them, the outer VLAN tag in the
    /// metadata, for a receiver whose frames contain it. `beside`: the tag may also be in the metadata instead.
    ///
    /// # Errors
    ///
    /// The program has no graph.
    pub fn of_program(program: &cbpf::Program, link_type: u16, beside: bool) -> Result<Self, LiftError> {
        let lifted = program.lift(Rules::Kernel)?;
        let lowered = match link_type {
            ETHERNET => pass::inner_tag(&lifted, beside).ok_or(LiftError::Slots)?,
            _ => lifted,
        };
        let graph = pass::optimise(&lowered, &[]);
        Ok(Self { text: String::new(), ast: Ast::default(), lowered, graph })
    }

    /// Returns whether the filter is known to reject every packet.
    pub fn is_never(&self) -> bool {
        self.graph.root() == Graph::REFUSE
    }

    /// Returns whether libpcap's optimiser finds that the filter rejects every packet: it compares constants and equal
    /// values, and knows no ranges, so `ip proto 256` is a filter like others to it. Where headers have variable lengths, either may find more.
    pub fn is_never_to_libpcap(&self) -> bool {
        self.is_never() && pass::contradicts(&self.lowered)
    }

    /// Returns whether the filter tests for VLAN tags explicitly: `vlan 5`, `ether proto 0x8100`.
    pub fn asks_for_tags(&self) -> bool {
        let asks = |leaf: &Expr| match leaf {
            Expr::Term(term) => match self.ast.terms[*term as usize].primitive {
                Primitive::Vlan(_) | Primitive::VlanIn { .. } => true,
                Primitive::Proto { protocol: Some(Protocol::Link), number } => lower::weir::is_tag(number),
                _ => false,
            },
            _ => false,
        };
        lower::leaves(&self.ast).iter().any(asks)
    }

    /// Returns an error if the filter rejects every packet because a term can match Ethernet frames but never packets
    /// of this link type, such as ARP in raw IP.
    ///
    /// `options` are those that it was compiled with. Returns `None` if the filter is also for other link types and can
    /// match there.
    pub fn lacks(&self, options: &Options<'_>) -> Option<Error> {
        let can_match = |ast: &Ast, options: &Options<'_>| {
            let mut ast = ast.clone();
            let lowered = lower(&mut ast, &self.text, options);
            lowered.is_ok_and(|lowered| pass::optimise(&lowered, &ast.sets).root() != Graph::REFUSE)
        };
        let all = [options.others, &[options.link_type]].concat();
        let other = |&link_type| can_match(&self.ast, &Options { link_type, others: &all, ..*options });
        if !self.is_never() || options.link_type == ETHERNET || options.others.iter().any(other) {
            return None;
        }
        let mut alone = self.ast.clone();
        lower::leaves(&self.ast).into_iter().find_map(|leaf| {
            let Expr::Term(term) = leaf else { return None };
            alone.nodes.push(leaf);
            alone.root = Some(ExprId(u32::try_from(alone.nodes.len() - 1).ok()?));
            let on = |link_type| can_match(&alone, &Options { link_type, others: &[], ..*options });
            let span = self.ast.terms[term as usize].span.clone();
            let error = || Error::new("packets of this link type can never match this", span);
            (!on(options.link_type) && on(ETHERNET)).then(error)
        })
    }
}

/// Compiles `text`. An empty expression accepts every packet.
pub fn compile(text: &str, options: &Options<'_>) -> Result<Filter, Error> {
    let ast = parse::parse(text, options)?;
    optimised(text, ast, options)
}

/// Compiles `text` for Ethernet frames, but no further than needed: where fields decide everything, it gets no graph.
///
/// # Errors
///
/// Those of [`compile`].
pub fn compile_behind_fields(text: &str, options: &Options<'_>) -> Result<BehindFields, Error> {
    let ast = parse::parse(text, options)?;
    let regions = match options.dialect {
        Dialect::Weir => regions::regions(&ast),
        Dialect::Pcap => Region::everything(),
    };
    if regions::are_enough(&regions, &ast, options) {
        return Ok(BehindFields { regions, filter: None });
    }
    // A packet may be asked about it nowhere, and it be wrong all the same: `tcp and udp and ah[0] = 1`.
    let filter = optimised(text, ast, options)?;
    let asked = regions.iter().any(|region| !region.exact);
    Ok(BehindFields { regions, filter: asked.then_some(filter) })
}

fn optimised(text: &str, mut ast: Ast, options: &Options<'_>) -> Result<Filter, Error> {
    let lowered = lower(&mut ast, text, options)?;
    let graph = pass::optimise(&lowered, &ast.sets);
    Ok(Filter { text: text.to_owned(), ast, lowered, graph })
}

/// Lowers an expression to a graph, and adds the sets that the graph looks up to the expression.
fn lower(ast: &mut Ast, text: &str, options: &Options<'_>) -> Result<Graph, Error> {
    Ok(match options.dialect {
        Dialect::Weir => {
            let (lowered, sets) = lower::weir::lower(ast, options)?;
            ast.sets.extend(sets);
            let stripped = options.metadata == Beside::All && options.link_type == ETHERNET;
            if stripped {
                let message = "too many offsets are computed from the packet";
                pass::stripped_tag(&lowered).ok_or_else(|| Error::new(message, 0..text.len()))?
            } else {
                lowered
            }
        }
        Dialect::Pcap => lower::pcap::lower(ast, options)?,
    })
}
