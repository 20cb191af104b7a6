//! The system's libpcap and the kernel's own filters as references for tests and benchmarks, and the expressions and
//! packets to compare on all filter engines.
//!
//! libpcap is loaded at run time ([`Libpcap::open`], by `weir_native`), so that no binary depends on it. The kernel runs
//! classic BPF without root and without a network ([`KernelFilter`]), and eBPF as root ([`ebpf`]); [`engines`] has all
//! filter engines, [`compiled`] both compilers. [`corpus`] has expressions, [`cases`] disputed ones, and
//! [`expressions`] generates more. [`packets`] generates packets with the values that the expressions test. [`graphs`]
//! generates the intermediate form between expressions and programs directly. [`mod@share`] selects how much of this a
//! test run uses.

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
pub use weir_native::libpcap::{Instruction, Libpcap, LibpcapError, Program, Setup};
