//! `--load`: runs a filter many times on each packet, as WireCAP's `pkt_handler` does. The classic BPF interpreter
//! makes it a known and comparable amount of work.

use std::hint::black_box;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use weir::filter::Dialect;
use weir::{Filter, Interface, Packet};
use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::interpret;

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(next_help_heading = "Handlers")]
pub(crate) struct LoadArgs {
    /// Simulate work: run a filter X times on each packet in the classic BPF interpreter.
    #[arg(hide_short_help = true, long, value_name = "X")]
    load: Option<u32>,

    /// Filter for --load, in the pcap dialect.
    #[arg(hide_short_help = true, long, value_name = "EXPR", default_value = LOAD_FILTER, requires = "load")]
    load_filter: String,
}

/// The filter of WireCAP's `pkt_handler`.
const LOAD_FILTER: &str = "net 131.225.2 and udp";

impl LoadArgs {
    /// Returns the load for packets of `interfaces`, if requested.
    pub(super) fn on(&self, interfaces: &[Interface]) -> Result<Option<Load>, Failure> {
        self.load.map(|times| Load::new(times, &self.load_filter, interfaces)).transpose()
    }
}

/// The load and its result.
#[derive(Debug)]
pub(super) struct Load {
    /// By interface.
    programs: Arc<[Program]>,
    times: u32,
    matched: u64,
}

/// The result, which keeps the compiler from omitting the work.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct LoadFindings {
    /// Number of filter runs per packet.
    times: u32,
    /// Packets that matched.
    matched: u64,
}

impl Load {
    /// Prepares to run `filter` `times` times on each packet of `interfaces`.
    pub(super) fn new(times: u32, filter: &str, interfaces: &[Interface]) -> Result<Self, Failure> {
        let filter = Filter::new(filter).dialect(Dialect::Pcap);
        let program = |interface: &Interface| {
            let compiled = filter.compile_for_file(interface.link_type, false).map_err(weir::Error::from)?;
            emit(&compiled.graph, &compiled.ast.sets, Target::Kernel).map_err(Failure::new)
        };
        let programs = interfaces.iter().map(program).collect::<Result<_, Failure>>()?;
        Ok(Self { programs, times, matched: 0 })
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        let program = &self.programs[packet.interface as usize];
        let packet = interpret::Packet {
            data: packet.data,
            length: packet.original_len,
            ..interpret::Packet::default()
        };
        let mut answer = 0;
        for _ in 0..self.times {
            answer = black_box(program.run(black_box(&packet)));
        }
        self.matched += u64::from(answer > 0);
    }

    pub(super) fn finish(self) -> LoadFindings {
        LoadFindings { times: self.times, matched: self.matched }
    }
}

impl LoadFindings {
    /// Returns the sum of this result and another thread's.
    pub(super) fn and(self, other: Self) -> Self {
        Self { matched: self.matched + other.matched, ..self }
    }
}
