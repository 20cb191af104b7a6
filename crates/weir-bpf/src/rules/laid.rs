//! Rules as tables have them: each is several conditions.

use weir_classify::Condition;
use weir_filter::emit::ebpf::Candidate;
use weir_filter::graph::Graph;
use weir_filter::set::Set;

use super::{Rule, number};

/// Rules as tables have them.
#[derive(Default)]
pub(super) struct Laid<'a> {
    /// The conditions of all rules, in order.
    pub(super) conditions: Vec<Condition>,
    /// Those that are not enough.
    pub(super) rest: Vec<usize>,
    /// The rule of each condition.
    pub(super) numbers: Vec<u32>,
    /// The filters of those that are not enough.
    pub(super) asked: Vec<Candidate<'a>>,
    /// The rules that continue, and are in no table.
    pub(super) continuing: Vec<u32>,
    /// Their filters.
    pub(super) continued: Vec<(&'a Graph, &'a [Set])>,
}

impl<'a> Laid<'a> {
    pub(super) fn of(rules: &[Rule<'a>]) -> Self {
        let mut laid = Self::default();
        for (index, &Rule { filter: (graph, sets), regions, besides, .. }) in rules.iter().enumerate() {
            if besides.continues {
                laid.continuing.push(number(index));
                laid.continued.push((graph, sets));
                continue;
            }
            let (exact, rest): (Vec<_>, Vec<_>) = regions.iter().partition(|region| region.exact);
            let begin = laid.conditions.len() + exact.len();
            laid.conditions.extend(exact.iter().chain(&rest).map(|region| region.condition.clone()));
            laid.numbers.resize(laid.conditions.len(), number(index));
            if !rest.is_empty() {
                laid.rest.extend(begin..laid.conditions.len());
                laid.asked.push(Candidate { graph, sets, bits: (number(begin), number(rest.len())) });
            }
        }
        laid
    }
}
