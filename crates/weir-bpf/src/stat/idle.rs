//! The program that takes the place of one that counts, while that is switched off.

use std::os::fd::OwnedFd;

use weir_sys::bpf::program::{self, ProgramKind, Refused};

/// `struct bpf_insn` (linux/bpf.h): code, registers, offset, immediate value.
const fn instruction(code: u8, value: i32) -> u64 {
    let [a, b, c, d] = value.to_ne_bytes();
    u64::from_ne_bytes([code, 0, 0, 0, a, b, c, d])
}

const MOVE: u8 = 0xb7; // BPF_ALU64 | BPF_MOV | BPF_K
const EXIT: u8 = 0x95; // BPF_JMP | BPF_EXIT
const TC_ACT_UNSPEC: i32 = -1;

/// Loads a program for tc that leaves packets alone.
///
/// # Errors
///
/// Privileges are missing.
pub fn idle() -> Result<OwnedFd, Refused> {
    program::load(ProgramKind::Tc, "weir_stat_off", &[instruction(MOVE, TC_ACT_UNSPEC), instruction(EXIT, 0)])
}
