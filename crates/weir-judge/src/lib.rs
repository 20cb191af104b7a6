//! The system's libpcap and the kernel's own filters, as judges for tests and benchmarks.
