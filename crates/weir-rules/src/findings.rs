//! Rules that do nothing, found by asking whether a filter can match at all.
//!
//! A filter rejects a packet that ends before what it asks for, so an answer is about whole packets: one that is cut short may
//! still get past the earlier rules. Not everything that can never match is found.

use weir_filter::ast::Expr;
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_filter::{Filter, Options, parse, pass};

use crate::rule_set::{Compiled, Rule, RuleSet};

/// Up to so many earlier rules are asked one by one; that takes longer the more there are.
const ONE_BY_ONE: usize = 32;

/// So many earlier rules are asked together: of more, the nearest.
const TOGETHER: usize = 64;

/// Most members of sets that are compared one by one.
const COMPARED: usize = 4096;

/// Why a rule, or what it learns, is of no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// No packet matches the expression.
    Never,
    /// No whole packet gets this far: these earlier rules decide on all that match.
    Covered {
        /// Their numbers.
        by: Vec<usize>,
    },
    /// It learns nothing: its packets are not IP, and belong to no flow.
    NoFlow,
    /// It learns nothing: an earlier rule has learned from all of its packets.
    Moot {
        /// The number of that rule.
        by: usize,
    },
}

/// Returns what was found, with the number of the rule. `compiled` is what `options` made of the rules.
pub fn findings(set: &RuleSet, compiled: &Compiled, options: &Options<'_>) -> Vec<(usize, Finding)> {
    let question = Question { rules: &set.rules, filters: &compiled.filters, options };
    let mut found = Vec::new();
    for number in 0..set.rules.len() {
        if compiled.filters[number].is_never() {
            found.push((number, Finding::Never));
        } else if let Some(by) = question.covered(number) {
            found.push((number, Finding::Covered { by }));
        } else if set.rules[number].actions.learn.is_some() {
            let why = if question.is_without_flow(number) {
                Some(Finding::NoFlow)
            } else {
                question.taught_before(number).map(|by| Finding::Moot { by })
            };
            found.extend(why.map(|why| (number, why)));
        }
    }
    found
}

struct Question<'a> {
    rules: &'a [Rule],
    filters: &'a [Filter],
    options: &'a Options<'a>,
}

impl Question<'_> {
    /// Returns the earlier rules that decide on all packets of a rule: as few as are found one by one.
    fn covered(&self, number: usize) -> Option<Vec<usize>> {
        let words = |rule: usize| self.rules[rule].expression.split_whitespace();
        let decides = |rule: &usize| !self.rules[*rule].actions.continues;
        let earlier: Vec<usize> = (0..number).filter(decides).collect();
        let is_same = |rule: &&usize| words(**rule).next().is_none() || words(**rule).eq(words(number));
        if let Some(one) = earlier.iter().find(is_same) {
            return Some(vec![*one]);
        }
        let nearest = &earlier[earlier.len().saturating_sub(TOGETHER)..];
        let by_one =
            || nearest.iter().find(|one| self.has_none_beside(number, &[**one])).map(|one| vec![*one]);
        // The answer about one rule is more often found than the answer about several together.
        if nearest.len() < ONE_BY_ONE
            && let Some(one) = by_one()
        {
            return Some(one);
        }
        if !self.has_none_beside(number, nearest) {
            return None;
        }
        if let Some(one) = by_one() {
            return Some(one);
        }
        let mut needed = nearest.to_vec();
        for rule in nearest {
            let others: Vec<usize> = needed.iter().copied().filter(|other| other != rule).collect();
            if self.has_none_beside(number, &others) {
                needed = others;
            }
        }
        Some(needed)
    }

    /// Returns an earlier rule that learns from all packets of a rule, which go on to it.
    fn taught_before(&self, number: usize) -> Option<usize> {
        let teaches = |rule: &usize| {
            let actions = &self.rules[*rule].actions;
            actions.continues && actions.learn.as_ref().is_some_and(|learn| learn.over.is_none())
        };
        (0..number).rev().filter(teaches).take(ONE_BY_ONE).find(|rule| self.has_none_beside(number, &[*rule]))
    }

    /// Returns whether no whole packet matches a rule without matching one of the others.
    fn has_none_beside(&self, number: usize, others: &[usize]) -> bool {
        let expression = |rule: &usize| self.rules[*rule].expression.as_str();
        if others.iter().any(|other| expression(other).is_empty()) {
            return true;
        }
        let others: Vec<String> = others.iter().map(|other| format!("({})", expression(other))).collect();
        !others.is_empty() && self.is_never(number, &format!("not ({})", others.join(" or ")))
    }

    fn is_without_flow(&self, number: usize) -> bool {
        // Other packets may have IP somewhere inside.
        self.is_never(number, "not (arp or rarp or stp or ether proto 0x88cc)")
    }

    /// Returns whether no whole packet matches both a rule and `also`; `false` if that is not found.
    ///
    /// It is asked in both orders, and of each term of a conjunction alone, since an answer may be found for one of them only; of terms
    /// while there are few rules.
    fn is_never(&self, number: usize, also: &str) -> bool {
        let expression = self.rules[number].expression.as_str();
        if expression.is_empty() {
            return self.rejects_all(also);
        }
        let terms = self.required_terms(number).filter(|_| number <= TOGETHER);
        std::iter::once(expression).chain(terms).any(|part| {
            self.rejects_all(&format!("({part}) and {also}"))
                || self.rejects_all(&format!("{also} and ({part})"))
        })
    }

    /// Returns the terms that a packet must match all to match a rule, as far as they mean the same alone.
    fn required_terms(&self, number: usize) -> impl Iterator<Item = &str> {
        let Filter { text, ast, .. } = &self.filters[number];
        let operands = match ast.root.map(|root| &ast.nodes[root.0 as usize]) {
            Some(Expr::And(operands)) => operands.as_slice(),
            _ => &[],
        };
        operands.iter().filter_map(|operand| {
            let Expr::Term(term) = ast.nodes[operand.0 as usize] else { return None };
            let term = &ast.terms[term as usize];
            let alone = text.get(term.span.clone())?;
            let is_same = parse::parse(alone, self.options).is_ok_and(|other| {
                other.sets.is_empty()
                    && matches!(other.terms.as_slice(), [one] if one.primitive == term.primitive)
            });
            is_same.then_some(alone)
        })
    }

    /// Returns whether it is known that an expression rejects every whole packet. `let` cannot stand in parentheses, so that nothing
    /// is known of it.
    fn rejects_all(&self, expression: &str) -> bool {
        weir_filter::compile(expression, self.options).is_ok_and(|filter| {
            let members: usize = filter.ast.sets.iter().map(Set::len).sum();
            // What is compared is understood better than what is looked up, such as the many ports of many rules.
            filter.is_never()
                || members > 0 && members <= COMPARED && {
                    let compared = pass::expand_sets(&filter.lowered, &filter.ast.sets);
                    pass::optimise(&compared, &[]).root() == Graph::REFUSE
                }
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_filter::names::NoNames;
    use weir_filter::{Beside, Dialect};

    use super::*;

    fn find(text: &str) -> Vec<(usize, Finding)> {
        let options = Options {
            dialect: Dialect::Weir,
            link_type: 1,
            snap_len: 262_144,
            metadata: Beside::Direction,
            swapped: false,
            others: &[],
            netmask: None,
            names: &NoNames,
        };
        let set = RuleSet::parse(text).expect("rules");
        let compiled = set.compile(&options).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        findings(&set, &compiled, &options)
    }

    #[test]
    fn rules_behind_others() {
        let covered = |by: &[usize]| Finding::Covered { by: by.to_vec() };
        let table = [
            ("port 53 -> capture\ntcp -> block\n-> ignore", vec![]),
            ("-> ignore\ntcp -> block", vec![(1, covered(&[0]))]),
            ("-> ignore\n-> block", vec![(1, covered(&[0]))]),
            ("port 53 -> ignore\nudp port 53 -> block", vec![(1, covered(&[0]))]),
            ("udp port 53 -> ignore\nport 53 -> block", vec![]),
            ("arp -> log\ntcp -> log\nudp -> log\ntcp or udp -> block", vec![(3, covered(&[1, 2]))]),
            ("port 53 -> ignore\nudp port 53 and host 10.0.0.1 -> block", vec![(1, covered(&[0]))]),
            ("tcp port 1 -> log\ntcp port 2 -> log\ntcp port 2 and ip -> log", vec![(2, covered(&[1]))]),
            // Inherited words do not make a term that stands alone.
            (
                "host 0.0.0.6 -> ignore\nip proto 17 or 6 -> block\nudp and ip proto 17 and 6 -> log",
                vec![(2, Finding::Never)],
            ),
            ("net 10.0.0.0/8 -> ignore\nhost 10.1.2.3 -> block", vec![(1, covered(&[0]))]),
            ("ip -> continue\nip -> continue\ntcp -> block", vec![]),
            (
                "not tcp -> log\ntcp -> log\nip -> log\n-> log",
                vec![(2, covered(&[0, 1])), (3, covered(&[0, 1]))],
            ),
            ("ip proto 300 -> ignore\nip -> block", vec![(0, Finding::Never)]),
            ("tcp and udp -> ignore", vec![(0, Finding::Never)]),
            ("let a = tcp; a -> ignore\ntcp -> block", vec![]),
        ];
        for (text, expected) in table {
            assert_eq!(find(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_never_learned() {
        let moot = |by| Finding::Moot { by };
        let table = [
            ("tcp -> continue, learn block for 1s\ntcp port 22 -> learn pass for 1m", vec![(1, moot(0))]),
            ("tcp -> continue, learn block for 1s if over 1/s by src\ntcp -> learn pass for 1m", vec![]),
            ("tcp port 22 -> continue, learn block for 1s\ntcp -> learn pass for 1m", vec![]),
            ("tcp port 22 -> learn block for 1s\ntcp -> learn pass for 1m", vec![]),
            ("arp -> learn block for 1s", vec![(0, Finding::NoFlow)]),
            ("arp and host 10.0.0.1 -> capture, learn block for 1s", vec![(0, Finding::NoFlow)]),
            ("-> learn block for 1s", vec![]),
            ("mpls -> learn block for 1s", vec![]),
            ("ether multicast -> learn block for 1s", vec![]),
        ];
        for (text, expected) in table {
            assert_eq!(find(text), expected, "{text}");
        }
    }

    #[test]
    fn many_rules_are_looked_at() {
        let rules: String = (1..41).map(|port| format!("tcp port {port} -> capture\n")).collect();
        assert_eq!(find(&format!("{rules}tcp port 37 -> block")), [(40, Finding::Covered { by: vec![36] })]);
        // Far away, only the same words are found.
        let rules: String = (1..80).map(|port| format!("tcp port {port} -> capture\n")).collect();
        let rules = format!("{rules}ip and tcp port 3 -> block\ntcp  port 3 -> block");
        assert_eq!(find(&rules), [(80, Finding::Covered { by: vec![2] })]);
    }
}
