//! The programs for kernels that do not describe their types (`who_plain.bpf.c`).

skeleton!("who_plain");
