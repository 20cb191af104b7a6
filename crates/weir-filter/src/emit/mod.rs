//! Back ends: from graph to program.

pub mod ebpf;
