//! The system's libpcap and the kernel's own filters, as judges for tests and benchmarks, and what they judge: expressions
//! and packets, on every machine that runs filters.
//!
//! libpcap is loaded when it is asked for ([`Libpcap::open`], by `weir_sys`), so that nothing that is built here needs it. The
//! kernel runs classic BPF for anybody, without root and without a network ([`KernelFilter`]), and eBPF for root ([`ebpf`]);
//! [`engines`] has all machines, [`compiled`] both compilers. [`corpus`] has expressions, [`cases`] those that were disputed,
//! [`expressions`] makes more, and [`packets`] packets with the values that they ask for; [`graphs`] makes the form between
//! expression and program without either. [`mod@share`] says how much of it a run takes.

#![forbid(unsafe_code)]

pub mod cases;
pub mod choices;
pub mod compiled;
pub mod corpus;
pub mod ebpf;
pub mod engines;
pub mod expressions;
pub mod graphs;
pub mod kernel;
pub mod packets;
pub mod share;

pub use choices::Choices;
pub use engines::{Engines, Kernel};
pub use kernel::KernelFilter;
pub use share::share;
pub use weir_sys::libpcap::{Instruction, Libpcap, LibpcapError, Program, Setup};
