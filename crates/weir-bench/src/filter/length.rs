//! How long programs of classic BPF are, ours and libpcap's, over the corpus.

use std::fmt;

use serde::Serialize;
use weir_filter::Dialect;
use weir_filter::emit::cbpf::{Target, emit};
use weir_judge::{Libpcap, Program, Setup, corpus};

use super::compile;
use crate::bars::{Bar, Wanted};
use crate::spread::Spread;

/// One more instruction in ten is the most that an expression may have.
const LONGEST: f64 = 1.1;

/// The dialect `pcap` against libpcap's optimised code.
#[derive(Debug, Serialize)]
pub(super) struct Lengths {
    expressions: usize,
    /// That one of both has no program for: what can never match (libpcap), what classic BPF has no room for, or names that
    /// nobody knows.
    left_out: usize,
    /// Of which libpcap's program has a loop, so that the kernel does not take it; ours has none (`protochain`).
    loops: usize,
    instructions: usize,
    libpcap_instructions: usize,
    /// Expressions of which ours is longer by more than a tenth.
    longer: Vec<Longer>,
}

#[derive(Debug, Serialize)]
struct Longer {
    link_type: u16,
    expression: &'static str,
    instructions: usize,
    libpcap_instructions: usize,
}

impl Longer {
    fn ratio(&self) -> f64 {
        self.instructions as f64 / self.libpcap_instructions as f64
    }
}

pub(super) fn measure(libpcap: &Libpcap) -> Lengths {
    let mut lengths = Lengths {
        expressions: 0,
        left_out: 0,
        loops: 0,
        instructions: 0,
        libpcap_instructions: 0,
        longer: Vec::new(),
    };
    for entry in corpus::pcap() {
        let setup = Setup { optimise: true, ..Setup::new(entry.link_type) };
        let theirs = libpcap.compile(entry.text, &setup).ok();
        if theirs.as_ref().is_some_and(Program::may_loop) {
            lengths.loops += 1;
            continue;
        }
        let theirs = theirs.map(|program| program.instructions().len());
        let ours = compile(entry.text, Dialect::Pcap, entry.link_type).ok();
        let ours = ours.and_then(|filter| emit(&filter.graph, &filter.ast.sets, Target::Kernel).ok());
        let (Some(theirs), Some(ours)) = (theirs, ours.map(|program| program.len())) else {
            lengths.left_out += 1;
            continue;
        };
        lengths.expressions += 1;
        lengths.instructions += ours;
        lengths.libpcap_instructions += theirs;
        if ours as f64 > theirs as f64 * LONGEST {
            let (link_type, expression) = (entry.link_type, entry.text);
            lengths.longer.push(Longer {
                link_type,
                expression,
                instructions: ours,
                libpcap_instructions: theirs,
            });
        }
    }
    lengths.longer.sort_by(|one, other| other.ratio().total_cmp(&one.ratio()));
    lengths
}

impl Lengths {
    pub(super) fn bars(&self) -> Vec<Bar> {
        let total = self.instructions as f64 / self.libpcap_instructions as f64;
        let longer = self.longer.len() as f64;
        vec![
            Bar::new(
                "classic BPF over the corpus / libpcap, optimised",
                None,
                Wanted::AtMost(1.0),
                "times",
                Spread::of([total]),
            ),
            Bar::new(
                "expressions longer by over a tenth",
                None,
                Wanted::AtMost(0.0),
                "of them",
                Spread::of([longer]),
            ),
        ]
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} expressions: {} instructions, libpcap {}; {} skipped, {} of them because libpcap's program has loops",
            self.expressions,
            self.instructions,
            self.libpcap_instructions,
            self.left_out + self.loops,
            self.loops
        )?;
        for longer in &self.longer {
            let Longer { link_type, expression, instructions, libpcap_instructions } = longer;
            writeln!(
                f,
                "  {instructions:>4} for {libpcap_instructions:>4}  {expression} (link type {link_type})"
            )?;
        }
        Ok(())
    }
}
