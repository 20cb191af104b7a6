//! Turns long alternatives into sets.
//!
//! `host a or host b or ...` tests whether the source is a, the destination is a, the source is b, and so on, each
//! leading to the same node if true. Once both addresses are known to be in the packet, order does not matter, so one
//! set look-up per address is enough. A thousand hosts are then as fast as ten, and the code stays small and compiles
//! quickly.

use weir_filter::graph::{Graph, Node, NodeId, Relation, Test, ValueId};
use weir_filter::set::{Contents, Set, SetId};

/// Minimum number of tests to turn into a set.
const FEWEST: usize = 8;

/// Maximum number of distinct values in an alternative.
const MOST_VALUES: usize = 4;

/// Consecutive tests of values for equality, all with the same successor if true.
struct Chain {
    /// Value, and number to compare it with.
    questions: Vec<(ValueId, u32)>,
    first: NodeId,
    yes: NodeId,
    no: NodeId,
}

/// Returns the graph with sets in place of long alternatives, and these sets, numbered from `sets`; `None` if there are
/// none.
pub(crate) fn grouped(graph: &Graph, sets: usize) -> Option<(Graph, Vec<Set>)> {
    let callers = callers(graph);
    let mut chains: Vec<Option<Chain>> = Vec::new();
    chains.resize_with(graph.nodes().len(), || None);
    let mut seen = vec![false; graph.nodes().len()];
    for index in (2..=graph.root().0).rev() {
        let place = index as usize;
        if callers[place] > 0
            && !seen[place]
            && let Some(chain) = chain(graph, NodeId(index), &callers, &mut seen)
        {
            let first = chain.first.0 as usize;
            chains[first] = Some(chain);
        }
    }
    chains.iter().any(Option::is_some).then(|| rebuilt(graph, &callers, &chains, sets))
}

/// Counts, for each node, the reachable edges to it. The root has one more.
pub(crate) fn callers(graph: &Graph) -> Vec<u32> {
    let mut callers = vec![0; graph.nodes().len()];
    callers[graph.root().0 as usize] = 1;
    for index in (2..=graph.root().0 as usize).rev() {
        if callers[index] > 0 {
            graph.nodes()[index].successors().for_each(|next| callers[next.0 as usize] += 1);
        }
    }
    callers
}

/// Finds a chain that starts at `start`, or later if values that may reject the packet first appear there. Marks its
/// nodes in `seen`.
fn chain(graph: &Graph, start: NodeId, callers: &[u32], seen: &mut [bool]) -> Option<Chain> {
    let (mut questions, mut nodes) = (Vec::new(), Vec::new());
    let mut values: Vec<ValueId> = Vec::new();
    // The first test at which all values are known.
    let mut complete = 0;
    let (mut at, mut yes) = (start, None);
    while let Node::Branch {
        test: Test::Compare { relation: Relation::Equal, left, right },
        then,
        other,
        ..
    } = graph.node(at)
    {
        let Some(number) = graph.as_constant(right) else { break };
        if *yes.get_or_insert(then) != then || (at != start && callers[at.0 as usize] != 1) {
            break;
        }
        if !values.contains(&left) {
            // Keep a chain that is long enough rather than add a value, so that no test is visited many times.
            if values.len() == MOST_VALUES || questions.len() - complete >= FEWEST {
                break;
            }
            values.push(left);
            complete = questions.len();
        }
        questions.push((left, number));
        nodes.push(at);
        at = other;
    }
    let questions = questions.split_off(complete);
    if questions.len() < FEWEST {
        return None;
    }
    nodes.iter().for_each(|node| seen[node.0 as usize] = true);
    Some(Chain { questions, first: nodes[complete], yes: yes?, no: at })
}

fn rebuilt(graph: &Graph, callers: &[u32], chains: &[Option<Chain>], sets: usize) -> (Graph, Vec<Set>) {
    let (mut new, mut added) = (graph.clone(), Vec::new());
    let mut places: Vec<NodeId> = (0..=graph.root().0).map(NodeId).collect();
    for index in 2..=graph.root().0 as usize {
        if callers[index] == 0 {
            continue;
        }
        let place = |next: NodeId| places[next.0 as usize];
        let node = graph.nodes()[index];
        places[index] = match (&chains[index], node) {
            (Some(chain), _) => {
                let (yes, no) = (place(chain.yes), place(chain.no));
                members(chain, (yes, no), sets, &mut new, &mut added)
            }
            (None, Node::Branch { test, then, other, term }) => {
                new.branch(test, place(then), place(other), term)
            }
            (None, Node::Assign { slot, value, next }) => {
                new.push(Node::Assign { slot, value, next: place(next) })
            }
            (None, Node::Read { value, next }) => new.push(Node::Read { value, next: place(next) }),
            (None, Node::End(_)) => continue,
        };
    }
    new.set_root(places[graph.root().0 as usize]);
    (new, added)
}

/// Adds a test for each value of the chain, beginning with the value tested first, which may be the first to need it.
fn members(
    chain: &Chain,
    (yes, no): (NodeId, NodeId),
    sets: usize,
    graph: &mut Graph,
    added: &mut Vec<Set>,
) -> NodeId {
    let Node::Branch { term, .. } = graph.node(chain.first) else { unreachable!("it asks something") };
    let mut values: Vec<ValueId> = Vec::new();
    for (value, _) in &chain.questions {
        if !values.contains(value) {
            values.push(*value);
        }
    }
    values.iter().rev().fold(no, |next, value| {
        let numbers = chain.questions.iter().filter(|(asked, _)| asked == value).map(|(_, number)| *number);
        let mut contents = Contents::Numbers(numbers.collect());
        contents.normalise();
        added.push(Set { name: None, contents });
        let set = SetId(u32::try_from(sets + added.len() - 1).expect("fewer sets than nodes"));
        graph.member(set, &[*value], (yes, next), term)
    })
}

#[cfg(test)]
mod tests {
    use weir_filter::graph::{TermId, Width};

    use super::*;

    /// A chain of tests of words, each with its number.
    fn chain_of(tests: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::new(1);
        let mut next = Graph::REFUSE;
        for &(word, number) in tests.iter().rev() {
            let value = graph.load(None, word * 4, Width::Word);
            next = graph.equals(value, number, (Graph::ACCEPT, next), TermId(0));
        }
        graph.set_root(next);
        graph
    }

    fn numbers(set: &Set) -> &[u32] {
        let Contents::Numbers(numbers) = &set.contents else { panic!("{set:?}") };
        numbers
    }

    /// Tests that are asked on the way from the root to rejection.
    fn tests(graph: &Graph) -> Vec<Test> {
        let (mut at, mut tests) = (graph.root(), Vec::new());
        while let Node::Branch { test, other, .. } = graph.node(at) {
            tests.push(test);
            at = other;
        }
        tests
    }

    #[test]
    fn eight_of_a_kind_are_a_set() {
        let chain = |count: u32| chain_of(&(0..count).map(|number| (0, 90 - number)).collect::<Vec<_>>());
        assert!(grouped(&chain(7), 0).is_none());
        for count in [8, 9] {
            let (graph, sets) = grouped(&chain(count), 5).unwrap();
            let [Test::Member { set: SetId(5), .. }] = tests(&graph)[..] else { panic!("{graph}") };
            assert_eq!(numbers(&sets[0]), (91 - count..=90).collect::<Vec<_>>());
        }
    }

    /// Values that come late begin a set once there are enough tests behind them; the tests before stay.
    #[test]
    fn a_set_begins_where_all_values_are_known() {
        let turns = |values: u32, count: u32| (0..count).map(|n| (n % values, n)).collect::<Vec<_>>();
        // The last new value is the fourth, so three tests stay.
        for (tests_in_all, sets_made) in [(10, 0), (11, 4)] {
            let made = grouped(&chain_of(&turns(4, tests_in_all)), 0);
            assert_eq!(made.as_ref().map_or(0, |(_, sets)| sets.len()), sets_made, "{tests_in_all}");
            if let Some((graph, sets)) = made {
                assert_eq!(tests(&graph).len(), 3 + 4, "{graph}");
                // The fourth value is asked for first.
                assert_eq!(sets.iter().map(|set| numbers(set)[0]).collect::<Vec<_>>(), [6, 5, 4, 3]);
            }
        }
        // A fifth value ends the chain, and what is behind it is one of its own.
        let five = [turns(4, 6), (0..9).map(|number| (4, number)).collect()].concat();
        let (graph, sets) = grouped(&chain_of(&five), 0).unwrap();
        assert_eq!((tests(&graph).len(), numbers(&sets[0]).len(), sets.len()), (7, 9, 1), "{graph}");
        // So does a second value behind enough tests of the first.
        let two = [(0..8).map(|number| (0, number)).collect(), vec![(1, 1)]].concat();
        let (graph, sets) = grouped(&chain_of(&two), 0).unwrap();
        assert_eq!((tests(&graph).len(), sets.len()), (2, 1), "{graph}");
    }

    /// What another way leads to, too, is no part of a chain, unless it is its first test.
    #[test]
    fn a_test_with_two_callers_begins_a_chain() {
        for (place, sets_made) in [(0, 1), (1, 1), (4, 0)] {
            let mut graph = chain_of(&[]);
            let value = graph.load(None, 0, Width::Word);
            let (mut next, mut entry) = (Graph::REFUSE, Graph::REFUSE);
            for number in (0..9).rev() {
                next = graph.equals(value, number, (Graph::ACCEPT, next), TermId(0));
                if number == place {
                    entry = next;
                }
            }
            let other = graph.load(None, 4, Width::Word);
            let root = graph.equals(other, 1, (entry, next), TermId(0));
            graph.set_root(root);
            let made = grouped(&graph, 0).map_or(0, |(_, sets)| sets.len());
            assert_eq!(made, sets_made, "entered at {place}\n{graph}");
        }
    }
}
