//! Work of a known size: the classic-BPF interpreter runs a filter many times on each packet, as WireCAP's
//! `pkt_handler` does.

use std::hint::black_box;

use weir::filter::Dialect;
use weir::{Filter, Interface, Packet};
use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::interpret;

use crate::failure::Failure;

/// That of WireCAP's `pkt_handler`.
const FILTER: &str = "net 131.225.2 and udp";

/// The work.
#[derive(Debug)]
pub(super) struct Load {
    program: Program,
    times: u32,
}

impl Load {
    /// Runs the filter `times` times on each packet of `interface`.
    pub(super) fn new(times: u32, interface: &Interface) -> Result<Self, Failure> {
        let filter = Filter::new(FILTER).dialect(Dialect::Pcap);
        let compiled = filter.compile_for_file(interface.link_type, false).map_err(weir::Error::from)?;
        let program = emit(&compiled.graph, &compiled.ast.sets, Target::Kernel).map_err(Failure::new)?;
        Ok(Self { program, times })
    }

    pub(super) fn packet(&self, packet: &Packet<'_>) {
        let packet = interpret::Packet {
            data: packet.data,
            length: packet.original_len,
            ..interpret::Packet::default()
        };
        for _ in 0..self.times {
            black_box(self.program.run(black_box(&packet)));
        }
    }
}
