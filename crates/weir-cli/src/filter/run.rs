//! Counts the packets of a file that match, and how often each term decided.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use weir::Direction;
use weir::filter::{Compiled, Filter};
use weir::reader::{ByteOrder, Item, Reader};
use weir_filter::graph::{TermId, Verdict};
use weir_filter::interpret::{Interpreter, Metadata, Outcome, Packet};

use super::{print, print_json, terms, wrong};
use crate::failure::Failure;
use crate::read::failure;
use crate::style;
use crate::units::grouped;

/// Numbers of packets by result.
#[derive(Debug, Default, Serialize)]
struct MatchCounts {
    packets: u64,
    matched: u64,
    terms: Vec<Decided>,
    /// Packets for which no term was evaluated.
    without_term: u64,
}

/// Packets for which a term was decisive.
#[derive(Debug, Serialize)]
struct Decided {
    text: String,
    accepted: u64,
    refused: u64,
}

pub(super) fn run(filter: &Filter, path: &Path, json: bool) -> Result<(), Failure> {
    let mut reader = Reader::open(path).map_err(failure)?;
    let swapped = reader.format().byte_order != ByteOrder::NATIVE;
    let mut counts = MatchCounts::default();
    let mut compiled: HashMap<u16, (Compiled, Interpreter<'static>)> = HashMap::new();
    let mut link_types: Vec<u16> = Vec::new();
    loop {
        // The packet borrows from the reader, so its interfaces are read first.
        link_types
            .extend(reader.interfaces()[link_types.len()..].iter().map(|interface| interface.link_type));
        let filter = filter.clone().among(link_types.iter().copied());
        for link_type in &link_types {
            if !compiled.contains_key(link_type) {
                let made = filter.compile_for_file(*link_type, swapped).map_err(|error| wrong(&error))?;
                counts.know(&made);
                let interpreter = Interpreter::owning(made.lowered.clone(), &made.ast.sets);
                compiled.insert(*link_type, (made, interpreter));
            }
        }
        match reader.next().map_err(failure)? {
            None => break,
            Some(Item::Packet(packet)) => {
                let (_, interpreter) = &compiled[&link_types[packet.interface as usize]];
                let outgoing = packet.direction.map(|direction| direction == Direction::Out);
                let meta = Metadata::of_direction(outgoing);
                let packet = Packet { data: packet.data, length: packet.original_len, meta };
                counts.count(interpreter.trace(&packet));
            }
            Some(_) => {}
        }
    }
    if json { print_json(&counts) } else { print(&counts.text()) }
}

impl MatchCounts {
    /// Adds the terms, which are the same for each link type.
    fn know(&mut self, compiled: &Compiled) {
        if self.terms.is_empty() {
            let decided = |text: &str| Decided { text: text.to_owned(), accepted: 0, refused: 0 };
            self.terms = terms(compiled).into_iter().map(decided).collect();
        }
    }

    fn count(&mut self, outcome: Outcome) {
        let accepted = outcome.verdict == Verdict::ACCEPT;
        self.packets += 1;
        self.matched += u64::from(accepted);
        match outcome.decided_by {
            TermId::NONE => self.without_term += 1,
            TermId(index) => {
                let term = &mut self.terms[index as usize];
                *if accepted { &mut term.accepted } else { &mut term.refused } += 1;
            }
        }
    }

    fn text(&self) -> String {
        let paint = style::stdout();
        let share = if self.packets == 0 { 0.0 } else { self.matched as f64 * 100.0 / self.packets as f64 };
        let (packets, matched) = (grouped(self.packets), grouped(self.matched));
        let mut lines = vec![format!("{} of {packets} packets match ({share:.1} %)", paint.bold(matched))];
        if !self.terms.is_empty() {
            lines.push(String::new());
            lines.push(paint.dim(format!("{:>14} {:>14}  decided by", "accepted", "refused")));
        }
        for Decided { text, accepted, refused } in &self.terms {
            lines.push(format!("{:>14} {:>14}  {text}", grouped(*accepted), grouped(*refused)));
        }
        if self.without_term > 0 && !self.terms.is_empty() {
            let matched: u64 = self.terms.iter().map(|term| term.accepted).sum();
            let accepted = self.matched - matched;
            let refused = self.without_term - accepted;
            lines.push(format!("{:>14} {:>14}  the headers", grouped(accepted), grouped(refused)));
        }
        lines.join("\n") + "\n"
    }
}
