//! Packet filter expressions: the language of [pcap-filter(7)] and more, compiled to every machine that weir filters on.
//!
//! ```text
//! text -> lex, parse -> Ast -> lower::{weir, pcap} -> Graph -> pass/* -> Graph -> emit::cbpf   classic BPF
//!                                                                              -> emit::ebpf   eBPF for XDP, tc, sockets
//!                                                                              -> interpret    the meaning of all
//! ```
//!
//! Native code is made of the same graph by the crate `weir-native`, which needs unsafe code. Nothing here does I/O; names are
//! looked up through [`names::Names`].
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
pub mod set;

mod lex;
mod lower;
mod spelling;
mod words;

pub use error::Error;

use crate::ast::{Ast, Expr, ExprId, Primitive, Protocol};
use crate::graph::Graph;
use crate::names::Names;

/// What the words of an expression mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// What users expect, the same live and from a file.
    #[default]
    Weir,
    /// What libpcap's compiler makes of them, to the letter, its optimiser aside.
    Pcap,
}

/// What a receiver knows of packets beside their bytes ([`graph::Meta`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Of some packets the direction, as files may ([`interpret::Metadata::of_direction`]).
    Direction,
    /// All, and the outer VLAN tag is there and not in the packet: the kernel.
    All,
}

/// What to compile for.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// What the words mean.
    pub dialect: Dialect,
    /// Link type of the packets: a `LINKTYPE_` number of <https://www.tcpdump.org/linktypes.html>.
    pub link_type: u16,
    /// Bytes that an accepted packet is cut to.
    pub snap_len: u32,
    /// What the receiver knows of packets beside their bytes.
    pub metadata: Beside,
    /// Headers that the link type has in the byte order of the capturing host are in the other order (`LINKTYPE_NULL`).
    pub swapped: bool,
    /// Link types of other packets that the same filter is for: a term that can be asked of those alone is false here, where
    /// it would be refused.
    pub others: &'a [u16],
    /// Mask of the interface's IPv4 network, for `ip broadcast`.
    pub netmask: Option<u32>,
    /// Who knows names.
    pub names: &'a dyn Names,
}

/// A filter, compiled as far as all back ends have in common.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The expression as it was written.
    pub text: String,
    /// What was understood.
    pub ast: Ast,
    /// What it means in bytes, term by term, before any pass.
    pub lowered: Graph,
    /// The same after all passes that every back end gains from.
    pub graph: Graph,
}

/// The link type of which VLAN tags are taken off.
const ETHERNET: u16 = 1;

impl Filter {
    /// It is known that no packet is wanted.
    pub fn is_never(&self) -> bool {
        self.graph.root() == Graph::REFUSE
    }

    /// It asks for VLAN tags of the packet itself: `vlan 5`, `ether proto 0x8100`.
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

    /// Where no packet is wanted because of a term that asks for what packets of this link type never are, and those of Ethernet
    /// may be: ARP in raw IP. `None`, too, where the filter is for others besides that can match; `options` are those that
    /// it was compiled with.
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
            let error = || Error::new("packets of this link type are never this, so none can match", span);
            (!on(options.link_type) && on(ETHERNET)).then(error)
        })
    }
}

/// Compiles `text`. An empty one accepts everything.
pub fn compile(text: &str, options: &Options<'_>) -> Result<Filter, Error> {
    let mut ast = parse::parse(text, options)?;
    let lowered = lower(&mut ast, text, options)?;
    let graph = pass::optimise(&lowered, &ast.sets);
    Ok(Filter { text: text.to_owned(), ast, lowered, graph })
}

/// What the expression means in bytes. Sets that it is asked by are added to it.
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
