//! What the place for a filter, and a filter in it, add to an XDP program, a packet.
//!
//! The kernel runs three programs on the same packets (`BPF_PROG_TEST_RUN`): one that returns at once, one with a place where no
//! filter is, and the same with a filter, which goes on with another program, as in a capture. Between two of them lies what is
//! to be known; the loop around them falls out. They have their turns packet by packet, and it is the processor time of
//! this thread that counts, so that neither a clock that changes its pace nor somebody else on the processor is measured.

use std::fmt::Display;
use std::os::fd::AsFd;
use std::time::Duration;

use serde::Serialize;
use weir_bpf::bare::Bare;
use weir_filter::Dialect;
use weir_judge::packets::{self, Captured};
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::testrun;

use super::{FilterArgs, compile};
use crate::bars::{Bar, Wanted};
use crate::failure::Failure;
use crate::process::thread_time;
use crate::spread::Spread;
use crate::style;

const TYPICAL: &str = "tcp port 443 and net 10.0.0.0/8";
/// `r0 = 10; exit`, as struct bpf_insn.
const RETURNS: [u64; 2] = [0x0000_000a_0000_00b7, 0x95];
/// Turns a round.
const TURNS: u32 = 9;
/// Packets of mixed traffic.
const PACKETS: usize = 20;

/// One turn over all packets. Nanoseconds a packet.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    round: u32,
    /// The kernel's loop and a program that returns.
    nothing: f64,
    /// The same with an empty place in front.
    empty: f64,
    /// With the filter in it.
    typical: f64,
}

/// Empty without the privilege to load programs.
pub(super) fn measure(args: &FilterArgs) -> Result<Vec<Sample>, Failure> {
    let kind = ProgramKind::Xdp { fragments: false, bound_to: None };
    let nothing = match program::load(kind, "bench", &RETURNS) {
        Ok(program) => program,
        Err(error) => {
            style::say(format_args!("XDP: {}", style::stderr().yellow(error)));
            return Ok(Vec::new());
        }
    };
    let (empty, typical) = (Bare::load().map_err(Failure::new)?, Bare::load().map_err(Failure::new)?);
    let filter = compile(TYPICAL, Dialect::Weir, 1).map_err(Failure::new)?;
    let loader = typical.gate().loader().map_err(Failure::new)?.expect("its place is there");
    let loaded = loader.load(&filter.graph, &filter.ast.sets).map_err(Failure::new)?;
    typical.gate().set(Some(&loaded)).map_err(Failure::new)?;
    let packets = packets::fixed(1, 100).into_iter().filter(|packet| packet.data.len() >= 60);
    let packets: Vec<Captured> = packets.take(PACKETS).collect();
    // A call takes the kernel as long as ten thousand packets.
    let (repeat, turns) = if args.quick { (10_000, 3) } else { (200_000, TURNS) };
    let mut samples = Vec::new();
    for round in 1..=args.rounds {
        let before = samples.len();
        for _ in 0..turns {
            let mut sums = [Duration::ZERO; 3];
            for packet in &packets {
                let data = &packet.data;
                sums[0] += time(|| testrun::run(nothing.as_fd(), data, repeat).map(drop))?;
                sums[1] += time(|| empty.run(data, repeat).map(drop))?;
                sums[2] += time(|| typical.run(data, repeat).map(drop))?;
            }
            let runs = packets.len() as f64 * f64::from(repeat);
            let [nothing, empty, typical] = sums.map(|sum| sum.as_secs_f64() * 1e9 / runs);
            samples.push(Sample { round, nothing, empty, typical });
        }
        let median = |value: fn(&Sample) -> f64| {
            Spread::of(samples[before..].iter().map(value)).map_or(f64::NAN, |spread| spread.median)
        };
        style::say(format_args!(
            "[{round}] XDP: {:.2} ns per packet without a filter slot, {:.2} more for an empty slot, {:.2} more for {TYPICAL}",
            median(|sample| sample.nothing),
            median(Sample::place),
            median(Sample::filter),
        ));
    }
    Ok(samples)
}

/// Processor time that it takes.
fn time<E: Display>(run: impl FnOnce() -> Result<(), E>) -> Result<Duration, Failure> {
    let before = thread_time();
    run().map_err(Failure::new)?;
    Ok(thread_time() - before)
}

impl Sample {
    /// What an empty place adds.
    fn place(&self) -> f64 {
        self.empty - self.nothing
    }

    /// What a filter in it adds.
    fn filter(&self) -> f64 {
        self.typical - self.empty
    }
}

pub(super) fn bars(samples: &[Sample]) -> [Bar; 2] {
    let bar = |name, most, value: fn(&Sample) -> f64| {
        Bar::new(name, None, Wanted::AtMost(most), "ns", Spread::of(samples.iter().map(value)))
    };
    [
        bar("XDP: an empty place adds", 1.0, Sample::place),
        bar("XDP: a typical filter adds", 5.0, Sample::filter),
    ]
}
