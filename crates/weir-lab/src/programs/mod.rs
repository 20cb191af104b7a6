//! eBPF programs that do one thing, for tests and benchmarks (`bpf/`), and their loaders.

pub mod bare;
pub mod hooks;
pub mod inline;
mod layout;
mod limit;
pub mod tag;
pub mod xsk;
