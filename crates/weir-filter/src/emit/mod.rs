//! Back ends: from graph to program.

pub mod cbpf;
pub mod ebpf;
