//! One filter, every machine, one verdict: interpreter, native code, classic BPF here and in the kernel, eBPF in XDP and tc;
//! and libpcap as the judge of what a filter means.

mod dialect;
mod engines;
mod lifted;
