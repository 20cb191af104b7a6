//! How long programs of classic BPF are, ours and libpcap's, over the corpus.

use weir_filter::Dialect;
use weir_filter::emit::cbpf::{Target, emit};
use weir_judge::{Libpcap, Program, Setup, corpus};

use super::{CORPUS, compile};
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::style;
use crate::wanted::Wanted;

/// One more instruction in ten is the most that an expression may have.
const LONGEST: f64 = 1.1;

/// The dialect `pcap` against libpcap's optimised code. Left out is what one of both has no program for: what can never match
/// (libpcap), what classic BPF has no room for, or names that nobody knows; and what libpcap makes a loop of, which the kernel does
/// not take (`protochain`).
pub(super) fn measure(libpcap: &Libpcap, turn: &Turn, round: u32) -> Taken {
    let (mut ours, mut theirs, mut longer) = (0, 0, Vec::new());
    for entry in corpus::pcap() {
        let setup = Setup { optimise: true, ..Setup::new(entry.link_type) };
        let of_libpcap =
            libpcap.compile(entry.text, &setup).ok().filter(|program| !Program::may_loop(program));
        let filter = compile(entry.text, Dialect::Pcap, entry.link_type).ok();
        let of_weir = filter.and_then(|filter| emit(&filter.graph, &filter.ast.sets, Target::Kernel).ok());
        let (Some(of_weir), Some(of_libpcap)) = (of_weir, of_libpcap) else { continue };
        let lengths = [of_weir.len(), of_libpcap.instructions().len()];
        ours += lengths[0];
        theirs += lengths[1];
        if lengths[0] as f64 > lengths[1] as f64 * LONGEST {
            longer.push((lengths, entry));
        }
    }
    longer.sort_by(|([a, b], _), ([c, d], _)| (c * b).cmp(&(a * d)));
    for ([ours, theirs], entry) in longer.iter().filter(|_| round == 1) {
        let (text, link_type) = (entry.text, entry.link_type);
        style::say(format_args!("  {ours:>4} for {theirs:>4}  {text} (link type {link_type})"));
    }
    let mut taken = Taken::default();
    for (measure, count) in [("instructions", ours), ("libpcap", theirs), ("longer", longer.len())] {
        taken.add(turn, measure, count as f64);
    }
    taken
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let of = |measure| outcome.values_of(CORPUS, measure, None);
    let total = of("instructions").into_iter().zip(of("libpcap")).map(|(ours, theirs)| ours / theirs);
    vec![
        Judged::new("classic BPF over the corpus / libpcap, optimised", Wanted::AtMost(1.0), "times", total),
        Judged::new("expressions longer by over a tenth", Wanted::AtMost(0.0), "of them", of("longer")),
    ]
}
