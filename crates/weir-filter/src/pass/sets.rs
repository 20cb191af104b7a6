//! Expands sets into comparisons, for machines without look-ups.
//!
//! Each test becomes a binary search, whose longest path grows with the logarithm of the number of members.

use crate::graph::{Graph, KEY_WORDS, Node, NodeId, Relation, TermId, Test, ValueId};
use crate::set::{Contents, Member, Set, prefix_mask};

/// An inclusive range of keys.
type Interval = ([u32; KEY_WORDS], [u32; KEY_WORDS]);

/// Maximum number of intervals to compare one by one.
const FEW: usize = 2;

/// Returns the graph without [`Test::Member`].
pub fn expand_sets(graph: &Graph, sets: &[Set]) -> Graph {
    let intervals: Vec<Vec<Interval>> = sets.iter().map(intervals).collect();
    let mut expanded = graph.without_nodes();
    let mut nodes = vec![Graph::REFUSE, Graph::ACCEPT];
    for node in &graph.nodes()[2..] {
        let node = node.map(|value| value, |next| nodes[next.0 as usize]);
        nodes.push(match node {
            Node::Branch { test: Test::Member { set, key }, then, other, term } => {
                let words = sets[set.0 as usize].words();
                let mut search =
                    Search { graph: &mut expanded, key: &key[..words], ways: (then, other), term };
                let begin = search.among(&intervals[set.0 as usize]);
                // All words of the key are evaluated, even those that the search does not compare.
                key[..words].iter().rev().fold(begin, |next, &value| {
                    if expanded.may_refuse(value) { expanded.push(Node::Read { value, next }) } else { next }
                })
            }
            node => expanded.push(node),
        });
    }
    expanded.set_root(nodes[graph.root().0 as usize]);
    expanded
}

/// Returns the members of `set` as sorted intervals that neither overlap nor touch.
fn intervals(set: &Set) -> Vec<Interval> {
    let mut all: Vec<Interval> = match &set.contents {
        Contents::Numbers(members) => members.iter().map(|&number| exact(&[number])).collect(),
        Contents::Macs(members) => members.iter().map(|mac| exact(mac)).collect(),
        Contents::Ipv4(members) => members.iter().map(prefix).collect(),
        Contents::Ipv6(members) => members.iter().map(prefix).collect(),
    };
    all.sort_unstable();
    let words = set.words();
    let mut joined: Vec<Interval> = Vec::with_capacity(all.len());
    for interval in all {
        match joined.last_mut() {
            Some(last) if next_of(last.1, words).is_none_or(|next| interval.0 <= next) => {
                last.1 = last.1.max(interval.1);
            }
            _ => joined.push(interval),
        }
    }
    joined
}

fn exact(key: &[u32]) -> Interval {
    let mut words = [0; KEY_WORDS];
    words[..key.len()].copy_from_slice(key);
    (words, words)
}

fn prefix<const WORDS: usize>(member: &Member<WORDS>) -> Interval {
    let (mut first, mut last) = exact(&member.key);
    for (index, (low, high)) in first.iter_mut().zip(&mut last).enumerate().take(WORDS) {
        let bits =
            u32::from(member.bits).saturating_sub(32 * u32::try_from(index).expect("a key has few words"));
        *low &= prefix_mask(bits);
        *high = *low | !prefix_mask(bits);
    }
    (first, last)
}

/// Returns the next key; `None` after the last.
fn next_of(mut key: [u32; KEY_WORDS], words: usize) -> Option<[u32; KEY_WORDS]> {
    for word in key[..words].iter_mut().rev() {
        *word = word.wrapping_add(1);
        if *word != 0 {
            return Some(key);
        }
    }
    None
}

/// The search for one test.
struct Search<'a> {
    graph: &'a mut Graph,
    key: &'a [ValueId],
    /// Targets for members and for others.
    ways: (NodeId, NodeId),
    term: TermId,
}

impl Search<'_> {
    /// Returns the start of the search among `intervals`. Its depth is the logarithm of their number.
    fn among(&mut self, intervals: &[Interval]) -> NodeId {
        if intervals.len() <= FEW {
            let (yes, no) = self.ways;
            return intervals.iter().rev().fold(no, |other, interval| self.within(interval, (yes, other)));
        }
        let (low, high) = intervals.split_at(intervals.len() / 2);
        let (below, above) = (self.among(low), self.among(high));
        self.at_least(&high[0].0, (above, below))
    }

    /// Tests whether the key is in one interval.
    fn within(&mut self, (first, last): &Interval, ways: (NodeId, NodeId)) -> NodeId {
        let words = self.key.len();
        if first == last {
            return (0..words).rev().fold(ways.0, |then, word| {
                self.graph.equals(self.key[word], first[word], (then, ways.1), self.term)
            });
        }
        let up = match next_of(*last, words) {
            Some(behind) => self.at_least(&behind, (ways.1, ways.0)),
            None => ways.0,
        };
        if first[..words].iter().all(|word| *word == 0) { up } else { self.at_least(first, (up, ways.1)) }
    }

    /// Tests whether the key is at least `bound`.
    fn at_least(&mut self, bound: &[u32; KEY_WORDS], (yes, no): (NodeId, NodeId)) -> NodeId {
        let words = self.key.len();
        let mut begin = yes;
        for word in (0..words).rev() {
            let (left, number) = (self.key[word], bound[word]);
            let right = self.graph.constant(number);
            let rest_is_zero = bound[word + 1..words].iter().all(|number| *number == 0);
            if word + 1 == words || rest_is_zero {
                // Equal is enough.
                begin = self.graph.compare(Relation::AtLeast, left, right, (yes, no), self.term);
                continue;
            }
            let equal = self.graph.compare(Relation::Equal, left, right, (begin, no), self.term);
            begin = self.graph.compare(Relation::Greater, left, right, (yes, equal), self.term);
        }
        begin
    }
}
