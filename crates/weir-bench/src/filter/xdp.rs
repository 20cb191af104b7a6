//! What the place for a filter, and a filter in it, add to an XDP program, a packet.
//!
//! The kernel runs three programs on the same packets (`BPF_PROG_TEST_RUN`): one that returns at once, one with a place where no
//! filter is, and the same with a filter, which goes on with another program, as in a capture. The differences
//! between them are the costs; the loop around them cancels out. The programs take turns packet by packet, and only the processor
//! time of this thread counts, so neither a change of the clock rate nor other load on the processor is measured.

use std::fmt::Display;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use weir_filter::Dialect;
use weir_judge::packets::{self, Captured};
use weir_lab::programs::bare::Bare;
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::testrun;

use super::compile;
use crate::experiment::{Judged, Outcome};
use crate::failure::Failure;
use crate::process::thread_time;
use crate::spread::median;
use crate::wanted::Wanted;

const TYPICAL: &str = "tcp port 443 and net 10.0.0.0/8";
/// `r0 = 10; exit`, as struct bpf_insn.
const RETURNS: [u64; 2] = [0x0000_000a_0000_00b7, 0x95];
/// Turns a round.
const TURNS: u32 = 9;
/// Packets of mixed traffic.
const PACKETS: usize = 20;

/// What is added by one to the one before.
pub(super) const SERIES: [&str; 2] = ["XDP: an empty place", "XDP: tcp port 443 and net 10.0.0.0/8"];

/// The three programs: one that returns, one with an empty place in front, and the same with a filter in it.
pub(super) struct Xdp {
    nothing: OwnedFd,
    empty: Bare,
    typical: Bare,
    packets: Vec<Captured>,
}

impl Xdp {
    pub(super) fn load() -> Result<Self, Failure> {
        let kind = ProgramKind::Xdp { fragments: false, bound_to: None };
        let nothing = program::load(kind, "bench", &RETURNS).map_err(Failure::new)?;
        let (empty, typical) = (Bare::load().map_err(Failure::new)?, Bare::load().map_err(Failure::new)?);
        let filter = compile(TYPICAL, Dialect::Weir, 1).map_err(Failure::new)?;
        let loader = typical.gate().loader().map_err(Failure::new)?.expect("its place is there");
        let loaded = loader.load(&filter.graph, &filter.ast.sets).map_err(Failure::new)?;
        typical.gate().set(Some(&loaded)).map_err(Failure::new)?;
        let packets = packets::fixed(1, 100).into_iter().filter(|packet| packet.data.len() >= 60);
        Ok(Self { nothing, empty, typical, packets: packets.take(PACKETS).collect() })
    }

    /// Nanoseconds of a packet that an empty place adds, and a filter in it: medians of several turns.
    pub(super) fn measure(&self, quick: bool) -> Result<[f64; 2], Failure> {
        // A call takes the kernel as long as ten thousand packets.
        let (repeat, turns) = if quick { (10_000, 3) } else { (200_000, TURNS) };
        let mut added = [Vec::new(), Vec::new()];
        for _ in 0..turns {
            let mut sums = [Duration::ZERO; 3];
            for packet in &self.packets {
                let data = &packet.data;
                sums[0] += time(|| testrun::run(self.nothing.as_fd(), data, repeat).map(drop))?;
                sums[1] += time(|| self.empty.run(data, repeat).map(drop))?;
                sums[2] += time(|| self.typical.run(data, repeat).map(drop))?;
            }
            let runs = self.packets.len() as f64 * f64::from(repeat);
            let times = sums.map(|sum| sum.as_secs_f64() * 1e9 / runs);
            for (added, both) in added.iter_mut().zip(times.windows(2)) {
                added.push(both[1] - both[0]);
            }
        }
        Ok(added.map(median))
    }
}

/// Processor time that it takes.
fn time<E: Display>(run: impl FnOnce() -> Result<(), E>) -> Result<Duration, Failure> {
    let before = thread_time();
    run().map_err(Failure::new)?;
    Ok(thread_time() - before)
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let bar = |name, most, series| {
        let added = outcome.values_of(series, "added", None);
        Judged::new(name, Wanted::AtMost(most), "ns", added)
    };
    vec![bar("XDP: an empty place adds", 1.0, SERIES[0]), bar("XDP: a typical filter adds", 5.0, SERIES[1])]
}
