//! Numbers that a program shares with this process. Each is written once, in C: libbpf-cargo makes a Rust type of what clang
//! says about it (`layout.bpf.c`).

weir_bpf::skeleton!("layout");

pub(super) use skeleton::types::checked_frame;
