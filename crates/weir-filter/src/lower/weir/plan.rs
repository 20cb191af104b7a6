//! The order of terms, and the stages in which each is reached.

use foldhash::HashMap;
use weir_packet::most;

use super::find::Search;
use super::link::Link;
use super::place::{Level, Slots};
use super::stage::{Find, Kind, Layer, Stage, Stages};
use super::tunnel::{Door, Entry};
use crate::ast::{Ast, Expr, ExprId};
use crate::error::Error;
use crate::graph::{Graph, NodeId};
use crate::lower::{Ways, connect};

/// Deepest nesting of `inner(...)` and `tunnel`.
const DEEPEST: u16 = most::TUNNELS as u16;

/// Maximum number of `inner(...)` and `tunnel` in an expression: each needs slots of its own.
const MOST_LEVELS: usize = 100;

/// A position in the expression: an index into [`Plan::steps`]. Successors have smaller indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Position(pub(super) u32);

impl Position {
    /// The packet is rejected.
    pub(super) const REFUSE: Self = Self(0);
    /// The packet is accepted.
    pub(super) const ACCEPT: Self = Self(1);
}

/// The action at a position.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Accepts or rejects the packet.
    End,
    /// Tests a term.
    Term(u32),
    /// A term that packets of this link type never match.
    Lacking,
    /// Looks for the inner packet.
    Enter {
        /// Position at which the inner packet is tested.
        entry: Position,
        /// Level of the inner packet.
        within: u16,
    },
}

/// A position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) what: What,
    pub(super) ways: Ways<Position>,
    /// Level of the packet it tests.
    pub(super) level: u16,
    /// Stages in which it may be reached.
    pub(super) stages: Stages,
}

/// An expression laid out as positions.
pub(super) struct Plan<'a> {
    ast: &'a Ast,
    pub(super) steps: Vec<Step>,
    /// The captured packet, then the packet of each `inner(...)`.
    pub(super) levels: Vec<Level>,
    pub(super) root: Position,
    /// Kinds of network header to distinguish.
    pub(super) asked: Vec<Kind>,
    failed: Option<Error>,
}

/// The stages that a search may lead to, by level and stage: cached, as terms share them.
type Outcomes = HashMap<(u16, Stage), Stages>;

impl<'a> Plan<'a> {
    /// Lays out `ast` for packets of `link`.
    pub(super) fn new(ast: &'a Ast, root: ExprId, link: Link, asked: Vec<Kind>) -> Result<Self, Error> {
        let end = Step {
            what: What::End,
            ways: (Position::REFUSE, Position::REFUSE),
            level: 0,
            stages: Stages::default(),
        };
        let levels = vec![Level::outermost(link, Slots::NONE)];
        let mut plan = Self { ast, steps: vec![end; 2], levels, root: Position::REFUSE, asked, failed: None };
        plan.root = plan.lay(root, (Position::ACCEPT, Position::REFUSE), 0, 0);
        match plan.failed.take() {
            Some(error) => Err(error),
            None => Ok(plan),
        }
    }

    /// Lays out `expr` with the targets `ways`. Recursive for inner packets, up to [`DEEPEST`].
    fn lay(&mut self, expr: ExprId, ways: Ways<Position>, level: u16, depth: u16) -> Position {
        let ast = self.ast;
        connect(ast, expr, ways, |leaf, ways| {
            let what = match leaf {
                Expr::Term(term) if self.is_tunnel(*term) => {
                    let Some(within) = self.within(depth) else { return Position::REFUSE };
                    What::Enter { entry: ways.0, within }
                }
                Expr::Term(term) => What::Term(*term),
                Expr::Inner(inside) => {
                    let Some(within) = self.within(depth) else { return Position::REFUSE };
                    let entry = self.lay(*inside, ways, within, depth + 1);
                    What::Enter { entry, within }
                }
                Expr::And(_) | Expr::Or(_) | Expr::Not(_) => unreachable!("no leaf"),
            };
            self.steps.push(Step { what, ways, level, stages: Stages::default() });
            Position(u32::try_from(self.steps.len() - 1).expect("positions are counted in 32 bits"))
        })
    }

    fn is_tunnel(&self, term: u32) -> bool {
        matches!(self.ast.terms[term as usize].primitive, crate::ast::Primitive::Tunnel)
    }

    /// Adds a level inside one at `depth`.
    fn within(&mut self, depth: u16) -> Option<u16> {
        let message = if depth >= DEEPEST {
            format!("tunnels nested more than {DEEPEST} deep")
        } else if self.levels.len() > MOST_LEVELS {
            format!("more than {MOST_LEVELS} uses of `inner` or `tunnel`")
        } else {
            self.levels.push(Level::within(Slots::NONE));
            return u16::try_from(self.levels.len() - 1).ok();
        };
        self.failed.get_or_insert_with(|| Error::new(message, 0..0));
        None
    }

    /// Returns the stage at the first term.
    pub(super) fn begin(&self) -> Stage {
        if self.levels[0].link.wlan.is_some() { Stage::Bare } else { Stage::Unknown }
    }

    /// Returns the stage at which `to` is reached from `level`. On return to an outer packet, everything is in slots.
    pub(super) fn arrival(&self, level: u16, to: Position, stage: Stage) -> Stage {
        if self.steps[to.0 as usize].level == level { stage } else { Stage::Kept }
    }

    /// Computes the stages of each position, and allocates the slots that levels need. `layer` returns the headers that
    /// a term needs, `answer` its answer at a stage if that is constant.
    pub(super) fn reach(
        &mut self,
        graph: &mut Graph,
        layer: impl Fn(u32) -> Layer,
        mut answer: impl FnMut(u32, &Level, Stage) -> Option<bool>,
    ) {
        let mut finds: HashMap<Find, Outcomes> = HashMap::default();
        let mut seen: Vec<Stages> = vec![Stages::default(); self.levels.len()];
        let begin = self.begin();
        self.steps[self.root.0 as usize].stages.insert(begin);
        for index in (2..=self.root.0).rev() {
            let position = Position(index);
            for stage in Stage::ALL {
                let step = self.steps[index as usize];
                if !step.stages.contains(stage) {
                    continue;
                }
                seen[usize::from(step.level)].insert(stage);
                let level = self.levels[usize::from(step.level)];
                let need = match step.what {
                    What::End => continue,
                    What::Term(term) => layer(term),
                    What::Lacking => Layer::Frame,
                    What::Enter { .. } => Layer::Transport,
                };
                if let Some(find) = stage.need(need, level.link.has_tags()) {
                    let outcomes = finds.entry(find).or_default();
                    let outcomes = *outcomes
                        .entry((step.level, stage))
                        .or_insert_with(|| self.outcomes(&level, find, stage));
                    self.steps[index as usize].stages.extend(outcomes);
                } else if let What::Enter { entry, within } = step.what {
                    let (again, inside) = self.doors(&level, stage, within);
                    self.steps[index as usize].stages.extend(again);
                    for stage in inside.iter() {
                        let stage = self.arrival(within, entry, stage);
                        self.steps[entry.0 as usize].stages.insert(stage);
                    }
                    self.note(position, step.ways.1, stage);
                } else if let What::Lacking = step.what {
                    self.note(position, step.ways.1, stage);
                } else if let What::Term(term) = step.what {
                    let answer = answer(term, &level, stage);
                    if answer != Some(false) {
                        self.note(position, step.ways.0, stage);
                    }
                    if answer != Some(true) {
                        self.note(position, step.ways.1, stage);
                    }
                }
            }
        }
        self.give_slots(graph, &seen);
    }

    fn note(&mut self, from: Position, to: Position, stage: Stage) {
        let stage = self.arrival(self.steps[from.0 as usize].level, to, stage);
        self.steps[to.0 as usize].stages.insert(stage);
    }

    /// Returns the stages that `find` may lead to, by building its nodes in a temporary graph.
    fn outcomes(&self, level: &Level, find: Find, stage: Stage) -> Stages {
        let mut stages = Stages::default();
        let mut graph = Graph::new(0);
        Search::new(&mut graph, level, &self.asked).find(find, stage, &mut |stage| {
            stages.insert(stage);
            Graph::REFUSE
        });
        stages
    }

    /// Returns the stages from which to look for the inner packet again, and those at which it is reached.
    fn doors(&self, level: &Level, stage: Stage, within: u16) -> (Stages, Stages) {
        let (mut again, mut inside) = (Stages::default(), Stages::default());
        let mut graph = Graph::new(0);
        let search = Search::new(&mut graph, level, &self.asked);
        let within = &self.levels[usize::from(within)];
        Entry { search, stage, within }.enter(&mut |door| {
            match door {
                Door::None => {}
                Door::Again(stage) => again.insert(stage),
                Door::Inside(stage) => inside.insert(stage),
            }
            Graph::REFUSE
        });
        (again, inside)
    }

    fn give_slots(&mut self, graph: &mut Graph, seen: &[Stages]) {
        let mut enclosing = vec![false; self.levels.len()];
        for step in &self.steps {
            enclosing[usize::from(step.level)] |= matches!(step.what, What::Enter { .. });
        }
        for ((level, stages), enclosing) in self.levels.iter_mut().zip(seen).zip(enclosing) {
            let walked = enclosing || stages.contains(Stage::Chained) || stages.contains(Stage::Later);
            let noted =
                stages.iter().any(|stage| matches!(stage, Stage::Kept | Stage::Moved(_) | Stage::Held(_)));
            if level.is_noted() || walked || noted {
                level.slots = Slots::new(graph, walked, level.inside, level.link.wlan.is_some());
            }
        }
    }
}

/// The nodes of each position, by stage.
pub(super) struct Nodes(Vec<[NodeId; Stage::ALL.len()]>);

impl Nodes {
    /// Creates an empty table.
    pub(super) fn new(positions: usize) -> Self {
        let mut nodes = vec![[Graph::REFUSE; Stage::ALL.len()]; positions];
        nodes[Position::ACCEPT.0 as usize] = [Graph::ACCEPT; Stage::ALL.len()];
        Self(nodes)
    }

    /// Returns where `position` begins at `stage`.
    pub(super) fn get(&self, position: Position, stage: Stage) -> NodeId {
        self.0[position.0 as usize][stage.index()]
    }

    /// Sets where `position` begins at `stage`.
    pub(super) fn set(&mut self, position: Position, stage: Stage, node: NodeId) {
        self.0[position.0 as usize][stage.index()] = node;
    }
}
