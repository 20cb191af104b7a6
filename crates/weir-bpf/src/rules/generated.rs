//! The program for XDP as libbpf-cargo has it, and the structs that it has in common with the one for tc.

skeleton!("rules_xdp");

pub(super) use skeleton::types;
