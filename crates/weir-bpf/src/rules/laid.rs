//! Rules as tables have them: each is several conditions.

use weir_classify::Condition;
use weir_filter::emit::ebpf::Candidate;

use super::{Rule, number};

/// Rules as tables have them.
pub(super) struct Laid<'a> {
    /// The conditions of all rules, in order.
    pub(super) conditions: Vec<Condition>,
    /// Those that are not enough.
    pub(super) rest: Vec<usize>,
    /// The rule of each condition.
    pub(super) numbers: Vec<u32>,
    /// The filters of those that are not enough.
    pub(super) asked: Vec<Candidate<'a>>,
}

impl<'a> Laid<'a> {
    pub(super) fn of(rules: &[Rule<'a>]) -> Self {
        let mut laid =
            Self { conditions: Vec::new(), rest: Vec::new(), numbers: Vec::new(), asked: Vec::new() };
        for (index, &Rule { filter: (graph, sets), regions, .. }) in rules.iter().enumerate() {
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
