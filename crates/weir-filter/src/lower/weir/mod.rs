//! The dialect `weir`: the meaning users expect, identical for live capture and files.
//!
//! ```text
//! collect   turns long lists of hosts or ports into sets
//! plan      positions (terms, in source order) x stages (what is known of the headers there)
//! find      steps between stages: 802.11 payload (wlan), tags, network header, IPv6 extension headers (chain), tunnels
//! terms     formulas that terms test at a stage
//! ```
//!
//! The first term that needs a header locates it, and no other term does so again. A term that needs no header loads
//! none.

mod chain;
mod check;
mod collect;
mod extension;
mod find;
mod formula;
mod link;
mod place;
mod plan;
mod stage;
mod terms;
mod tunnel;
mod wlan;

use foldhash::HashMap;

use self::find::Search;
use self::link::Link;
use self::place::{Level, MOST_EXTENSIONS, Slots};
use self::plan::{Nodes, Plan, Position, What};
use self::stage::{Kind, Layer, Stage};
pub(crate) use self::terms::walks_chain;
use self::terms::{Site, asks, layer};
use self::tunnel::{Door, Entry};
use crate::ast::{Ast, Expr, Protocol, Term};
use crate::graph::{Graph, NodeId, Slot, TermId};
use crate::lower::{Ways, is_asked_elsewhere, pcap};
use crate::set::Set;
use crate::{Error, Options};

/// Maximum number of terms that walk a chain of headers themselves.
const MOST_CHAINS: usize = 1000;

/// Lowers `ast` to a graph. Also returns the sets to add to those of `ast`, which the graph looks up.
///
/// Link types that this dialect does not know are left to the dialect `pcap`, if that has all the words.
pub(crate) fn lower(ast: &Ast, options: &Options<'_>) -> Result<(Graph, Vec<Set>), Error> {
    let Some(root) = ast.root else { return Ok((Graph::new(options.snap_len), Vec::new())) };
    let Some(link) = Link::of(options.link_type, options.swapped) else {
        if check::is_of_pcap(ast) || options.others.iter().any(|&other| Link::of(other, false).is_some()) {
            return Ok((pcap::lower(ast, options)?, Vec::new()));
        }
        return Err(Error::new("sets, `inner` and `tunnel` are not supported for this link type", 0..0));
    };
    let collected = collect::collect(ast);
    let ast = collected.ast.as_ref();
    let term_of = |term: u32| collected.terms.get(&term).copied().unwrap_or(term);

    let mut plan = Plan::new(ast, root, link, asked(ast))?;
    let mut chains = 0;
    for step in &mut plan.steps {
        if let What::Term(number) = step.what {
            let term = &ast.terms[number as usize];
            if let Err(error) = check::check(ast, term, &plan.levels[usize::from(step.level)], options) {
                if step.level > 0 || !is_asked_elsewhere(ast, &Expr::Term(number), options) {
                    return Err(error);
                }
                step.what = What::Lacking;
            }
            chains += usize::from(walks_chain(&term.primitive));
            if chains > MOST_CHAINS {
                let message = format!("more than {MOST_CHAINS} terms search header chains");
                return Err(Error::new(message, term.span.clone()));
            }
        }
    }

    let mut graph = Graph::new(options.snap_len);
    let layers: Vec<Layer> = ast.terms.iter().map(|term| layer(ast, &term.primitive)).collect();
    let kinds = plan.asked.clone();
    plan.reach(
        &mut graph,
        |term| layers[term as usize],
        |term, level, stage| {
            let primitive = &ast.terms[term as usize].primitive;
            let mut scratch = Graph::new(0);
            let mut site = Site { graph: &mut scratch, ast, options, level, stage, asked: &kinds };
            if site.chain(primitive).is_some() { None } else { site.formula(primitive).known() }
        },
    );
    let mut builder =
        Builder { graph, ast, options, plan: &plan, term_of: &term_of, steps: HashMap::default() };
    let root = builder.build(&layers);
    let mut graph = builder.graph;
    graph.set_root(root);
    Ok((graph, collected.sets))
}

/// Returns whether this is the EtherType of a VLAN tag.
pub(crate) fn is_tag(number: u32) -> bool {
    link::TAGS.contains(&number)
}

/// Returns the number of the protocol over IP that a keyword stands for, if any, and whether IPv4 and IPv6 carry it.
pub(crate) fn over_ip(protocol: Protocol) -> Option<(u32, bool, bool)> {
    terms::over_ip(protocol).map(|over| (over.number, over.ip4, over.ip6))
}

/// Returns whether `leaf` applies to the link type in `options`.
pub(crate) fn can_ask(ast: &Ast, leaf: &Expr, options: &Options<'_>) -> bool {
    match (Link::of(options.link_type, options.swapped), leaf) {
        (None, _) => pcap::can_ask(ast, leaf, options),
        (Some(_), Expr::Term(term)) => applies(ast, &ast.terms[*term as usize], options),
        (Some(_), _) => true,
    }
}

/// Returns whether a term applies to the link type in `options`, if this dialect knows that.
pub(crate) fn applies(ast: &Ast, term: &Term, options: &Options<'_>) -> bool {
    Link::of(options.link_type, options.swapped)
        .is_some_and(|link| check::check(ast, term, &Level::outermost(link, Slots::NONE), options).is_ok())
}

/// Returns the kinds of network header that the terms distinguish.
fn asked(ast: &Ast) -> Vec<Kind> {
    let inner = ast.nodes.iter().any(|node| matches!(node, Expr::Inner(_)));
    let mut kinds: Vec<Kind> = ast.terms.iter().flat_map(|term| asks(ast, &term.primitive)).collect();
    if inner {
        kinds.extend([Kind::Ip4, Kind::Ip6]);
    }
    Kind::ASKED.into_iter().filter(|kind| kinds.contains(kind)).collect()
}

/// Builds the nodes of a plan.
struct Builder<'a, TermOf: Fn(u32) -> u32> {
    graph: Graph,
    ast: &'a Ast,
    options: &'a Options<'a>,
    plan: &'a Plan<'a>,
    term_of: TermOf,
    /// Slots for each position that walks a chain of headers itself.
    steps: HashMap<Position, [(Slot, Slot); MOST_EXTENSIONS]>,
}

impl<TermOf: Fn(u32) -> u32> Builder<'_, TermOf> {
    /// Builds positions from the last to the first, and at each the latest stage first, so that successors always
    /// exist.
    fn build(&mut self, layers: &[Layer]) -> NodeId {
        let plan = self.plan;
        let mut nodes = Nodes::new(plan.steps.len());
        for index in 2..=plan.root.0 {
            let position = Position(index);
            let step = plan.steps[index as usize];
            for stage in step.stages.iter().rev() {
                let level = &plan.levels[usize::from(step.level)];
                let layer = match step.what {
                    What::Term(term) => layers[term as usize],
                    What::Lacking => Layer::Frame,
                    What::Enter { .. } | What::End => Layer::Transport,
                };
                let go = |to, stage| nodes.get(to, plan.arrival(step.level, to, stage));
                let ways = (go(step.ways.0, stage), go(step.ways.1, stage));
                let mut search = Search::new(&mut self.graph, level, &plan.asked);
                let node = if let Some(find) = stage.need(layer, level.link.has_tags()) {
                    search.find(find, stage, &mut |stage| nodes.get(position, stage))
                } else {
                    match step.what {
                        What::End => unreachable!("the ends are no positions to build"),
                        What::Lacking => ways.1,
                        What::Term(term) => self.term(position, term, level, stage, ways),
                        What::Enter { entry, within } => {
                            let enter = &mut |door: Door| match door {
                                Door::None => ways.1,
                                Door::Again(stage) => nodes.get(position, stage),
                                Door::Inside(stage) => nodes.get(entry, plan.arrival(within, entry, stage)),
                            };
                            let within = &plan.levels[usize::from(within)];
                            Entry { search, stage, within }.enter(enter)
                        }
                    }
                };
                nodes.set(position, stage, node);
            }
        }
        let root = nodes.get(plan.root, plan.begin());
        Search::new(&mut self.graph, &plan.levels[0], &plan.asked).radio(root)
    }

    fn term(&mut self, position: Position, term: u32, level: &Level, stage: Stage, ways: Ways) -> NodeId {
        let primitive = &self.ast.terms[term as usize].primitive;
        let asked = &self.plan.asked;
        let mut site =
            Site { graph: &mut self.graph, ast: self.ast, options: self.options, level, stage, asked };
        let number = TermId((self.term_of)(term));
        if let Some(chain) = site.chain(primitive) {
            let graph = &mut self.graph;
            let steps = self.steps.entry(position).or_insert_with(|| Slots::steps(graph));
            return Search::new(graph, level, asked).contains(chain, steps, ways, number);
        }
        site.formula(primitive).build(&mut self.graph, ways, number)
    }
}
