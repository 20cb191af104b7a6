//! What a filter adds to an XDP program, a packet: test runs of the kernel, of a program that filters and one that does not.

use std::os::fd::{AsFd, OwnedFd};

use serde::Serialize;
use weir_filter::Dialect;
use weir_filter::emit::ebpf::{self, Context, Ending};
use weir_judge::packets;
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::testrun;

use super::{FilterArgs, compile};
use crate::bench::bars::{Bar, Wanted};
use crate::bench::spread::Spread;
use crate::failure::Failure;
use crate::style;

const TYPICAL: &str = "tcp port 443 and net 10.0.0.0/8";
/// `XDP_DROP` and `XDP_PASS` (linux/bpf.h).
const ENDING: Ending = Ending::Return { accept: 2, refuse: 1 };

/// One round over some packets.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    round: u32,
    /// Nanoseconds a packet.
    without: f64,
    with: f64,
}

/// Empty without the privilege to load programs.
pub(super) fn measure(args: &FilterArgs) -> Result<Vec<Sample>, Failure> {
    let (without, with) = match (load("")?, load(TYPICAL)?) {
        (Some(without), Some(with)) => (without, with),
        _ => return Ok(Vec::new()),
    };
    let packets: Vec<_> =
        packets::fixed(1, 60).into_iter().filter(|packet| packet.data.len() >= 60).collect();
    let repeat = if args.quick { 1000 } else { 200_000 };
    let mut samples = Vec::new();
    for round in 1..=args.rounds {
        let mean = |program: &OwnedFd| -> Result<f64, Failure> {
            let mut sum = 0.0;
            for packet in &packets {
                let answer = testrun::run(program.as_fd(), &packet.data, repeat).map_err(Failure::new)?;
                sum += f64::from(answer.duration);
            }
            Ok(sum / packets.len() as f64)
        };
        let sample = Sample { round, without: mean(&without)?, with: mean(&with)? };
        style::say(format_args!(
            "[{round}] XDP: {:.1} ns a packet without a filter, {:.1} with {TYPICAL}",
            sample.without, sample.with
        ));
        samples.push(sample);
    }
    Ok(samples)
}

fn load(text: &str) -> Result<Option<OwnedFd>, Failure> {
    let filter = compile(text, Dialect::Weir, 1).map_err(Failure::new)?;
    let context = Context::Xdp { fragments: true };
    let made = ebpf::emit(&filter.graph, &filter.ast.sets, context, ENDING).map_err(Failure::new)?;
    let kind = ProgramKind::Xdp { fragments: true, bound_to: None };
    match program::load(kind, "bench", &made.words(|_| unreachable!("it asks no set"))) {
        Ok(program) => Ok(Some(program)),
        Err(error) => {
            style::say(format_args!("XDP: {}", style::stderr().yellow(error)));
            Ok(None)
        }
    }
}

pub(super) fn bar(samples: &[Sample]) -> Bar {
    let added = samples.iter().map(|sample| sample.with - sample.without);
    Bar::new("XDP: a typical filter adds", None, Wanted::AtMost(5.0), "ns", Spread::of(added))
}
