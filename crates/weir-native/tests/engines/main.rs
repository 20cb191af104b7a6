//! One filter, every machine, one verdict: interpreter, native code, classic BPF here and in the kernel, eBPF in XDP, tc and
//! sockets; and libpcap as the judge of what a filter means.

mod cases;
mod dialect;
mod lifted;
mod verdicts;
