//! Text form of a graph, for `weir filter --emit ir`.

use std::fmt;

use super::{Graph, Node, NodeId, Operation, Relation, Test, Value, ValueId, Verdict};

impl fmt::Display for Graph {
    /// Writes one node per line in execution order, without unreachable nodes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = self.reached();
        for index in (0..=self.root.0).rev().filter(|index| reached[*index as usize]) {
            writeln!(f, "{:>6}  {}", format!("n{index}:"), Shown(self, self.node(NodeId(index))))?;
        }
        Ok(())
    }
}

struct Shown<'a>(&'a Graph, Node);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(graph, node) = *self;
        match node {
            Node::End(Verdict::REFUSE) => write!(f, "refuse"),
            Node::End(Verdict::ACCEPT) => write!(f, "accept {}", graph.snap_len),
            Node::End(Verdict(number)) => write!(f, "verdict {number}"),
            Node::Read { value, next } => write!(f, "read {}; n{}", graph.shown(value), next.0),
            Node::Assign { slot, value, next } => {
                write!(f, "s{} = {}; n{}", slot.0, graph.shown(value), next.0)
            }
            Node::Branch { test: Test::Compare { relation, left, right }, then, other, .. } => {
                let (left, right) = (graph.shown(left), graph.shown(right));
                write!(f, "if {left} {relation} {right} then n{} else n{}", then.0, other.0)
            }
            Node::Branch { test: Test::Member { set, key }, then, other, .. } => {
                write!(f, "if {}", graph.shown(key[0]))?;
                for (before, word) in key.iter().zip(&key[1..]).take_while(|(before, word)| before != word) {
                    debug_assert_ne!(before, word, "the last word is repeated");
                    write!(f, " {}", graph.shown(*word))?;
                }
                write!(f, " in set{} then n{} else n{}", set.0, then.0, other.0)
            }
        }
    }
}

impl Graph {
    /// Formats a value in the notation of pcap-filter(7) where possible. Not recursive: it may be nested as deep as the
    /// text is long.
    pub fn shown(&self, id: ValueId) -> String {
        enum Task {
            Show(ValueId),
            Write(String),
        }
        let mut text = String::new();
        let mut tasks = vec![Task::Show(id)];
        while let Some(task) = tasks.pop() {
            let id = match task {
                Task::Show(id) => id,
                Task::Write(part) => {
                    text.push_str(&part);
                    continue;
                }
            };
            match self.get(id) {
                Value::Constant(number) if number < 10 => text.push_str(&number.to_string()),
                Value::Constant(number) => text.push_str(&format!("{number:#x}")),
                Value::Load { base: None, offset, width } => {
                    text.push_str(&format!("[{offset}:{}]", width as u8));
                }
                Value::Load { base: Some(base), offset, width } => {
                    text.push('[');
                    // An address before the base: the sum wraps.
                    let (sign, distance) = match offset.cast_signed() {
                        before @ ..0 => ('-', before.unsigned_abs()),
                        _ => ('+', offset),
                    };
                    let rest = format!(" {sign} {distance}:{}]", width as u8);
                    tasks.extend([Task::Write(rest), Task::Show(base)]);
                }
                Value::Length => text.push_str("len"),
                Value::Meta(meta) => text.push_str(&format!("{meta:?}").to_lowercase()),
                Value::Slot(slot) => text.push_str(&format!("s{}", slot.0)),
                Value::Binary { operation, left, right } => {
                    text.push('(');
                    let sign = Task::Write(format!(" {operation} "));
                    let close = Task::Write(")".to_owned());
                    tasks.extend([close, Task::Show(right), sign, Task::Show(left)]);
                }
            }
        }
        text
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "==",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::AnyBit => "&",
        })
    }
}
