//! Which bytes of a packet each term reads.

use std::collections::{BTreeMap, HashSet};

use weir_filter::graph::{Graph, Node, NodeId, TermId, Test, Value, ValueId};

/// Returns what each term reads, in order of evaluation and in the notation of expressions: `[12:2]`, relative to the
/// start of the frame. What finds the headers for all terms is under [`TermId::NONE`].
pub(crate) fn of_terms(graph: &Graph) -> BTreeMap<TermId, Vec<String>> {
    let mut reads: BTreeMap<TermId, Vec<String>> = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut reached = vec![false; graph.nodes().len()];
    reached[graph.root().0 as usize] = true;
    for index in (0..=graph.root().0).rev() {
        if !reached[index as usize] {
            continue;
        }
        let node = graph.node(NodeId(index));
        node.successors().for_each(|next| reached[next.0 as usize] = true);
        let (term, values) = match node {
            Node::End(_) => continue,
            Node::Branch { test: Test::Compare { left, right, .. }, term, .. } => (term, vec![left, right]),
            Node::Branch { test: Test::Member { key, .. }, term, .. } => (term, key.to_vec()),
            Node::Assign { value, .. } | Node::Read { value, .. } => (TermId::NONE, vec![value]),
        };
        let term = if term.is_some() { term } else { TermId::NONE };
        for text in values.into_iter().flat_map(|value| parts(graph, value)) {
            if seen.insert((term, text.clone())) {
                reads.entry(term).or_default().push(text);
            }
        }
    }
    reads
}

/// Returns the parts of the packet or its metadata on which a value depends.
fn parts(graph: &Graph, value: ValueId) -> Vec<String> {
    let mut texts = Vec::new();
    let mut values = vec![value];
    while let Some(id) = values.pop() {
        match graph.get(id) {
            Value::Constant(_) | Value::Slot(_) => {}
            Value::Load { .. } => texts.push(without_slots(&graph.shown(id))),
            Value::Length => texts.push("the length".to_owned()),
            Value::Meta(meta) => texts.push(format!("{meta:?} of the receiver").to_lowercase()),
            Value::Binary { left, right, .. } => values.extend([right, left]),
        }
    }
    texts
}

/// Replaces slots, which hold the position or type of a header, because their numbers mean nothing to users.
fn without_slots(text: &str) -> String {
    let mut rest = text;
    let mut shown = String::new();
    while let Some(at) = rest.find('s') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        shown += &rest[..at];
        shown += if digits > 0 { "header" } else { "s" };
        rest = &rest[at + 1 + digits..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use weir_filter::graph::Width;

    use super::*;

    #[test]
    fn slots_are_called_what_they_are() {
        assert_eq!(
            without_slots("[(s12 + ([s3 + 0:1] & 0xf)) + 2:2]"),
            "[(header + ([header + 0:1] & 0xf)) + 2:2]"
        );
        assert_eq!(without_slots("the rest"), "the rest");
    }

    #[test]
    fn each_term_has_its_own() {
        let mut graph = Graph::new(1);
        let (kind, protocol) = (graph.load(None, 12, Width::Half), graph.load(None, 23, Width::Byte));
        let second = graph.equals(protocol, 6, (Graph::ACCEPT, Graph::REFUSE), TermId(1));
        let first = graph.equals(kind, 0x800, (second, Graph::REFUSE), TermId(0));
        graph.set_root(first);
        let expected =
            BTreeMap::from([(TermId(0), vec!["[12:2]".to_owned()]), (TermId(1), vec!["[23:1]".to_owned()])]);
        assert_eq!(of_terms(&graph), expected);
    }
}
