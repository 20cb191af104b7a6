//! The system's libpcap and the kernel's own filters, as judges for tests and benchmarks, and what they judge: expressions
//! and packets.
//!
//! libpcap is loaded when it is asked for ([`Libpcap::open`]), so that nothing that is built here needs it. The kernel runs
//! classic BPF for anybody, without root and without a network ([`KernelFilter`]). [`corpus`] has expressions,
//! [`expressions`] makes more, and [`packets`] packets with the values that they ask for; [`graphs`] makes the form between
//! expression and program without either.

pub mod choices;
pub mod corpus;
pub mod expressions;
pub mod graphs;
pub mod kernel;
pub mod libpcap;
pub mod packets;

pub use choices::Choices;
pub use kernel::KernelFilter;
pub use libpcap::{Libpcap, LibpcapError, Program, Setup};

/// An instruction of classic BPF: `code`, `jt`, `jf` and `k` of `struct sock_filter` (linux/filter.h).
pub type Instruction = (u16, u8, u8, u32);

/// The same for the kernel and for libpcap, whose `struct bpf_insn` has the same layout.
fn raw(instructions: &[Instruction]) -> Vec<libc::sock_filter> {
    instructions.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect()
}
