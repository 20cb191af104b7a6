//! Programs, from their instructions.

use std::os::fd::{FromRawFd, OwnedFd};

use super::bpf;
use crate::CallError;

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
const BPF_F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;
const BPF_XDP: u32 = 37;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// A socket filter.
    Socket,
    /// tc and tcx.
    Tc,
    /// XDP.
    Xdp {
        /// It takes packets of several buffers (`BPF_F_XDP_HAS_FRAGS`).
        fragments: bool,
        /// The index of the interface that it is bound to, if it is (`BPF_F_XDP_DEV_BOUND_ONLY`).
        bound_to: Option<u32>,
    },
}

/// A program that the kernel does not take.
#[derive(Debug, thiserror::Error)]
#[error("{source}{}", if log.is_empty() { String::new() } else { format!(":\n{log}") })]
pub struct Refused {
    /// The call's answer.
    pub source: CallError,
    /// The end of what the verifier said; empty if it was not asked.
    pub log: String,
}

/// `struct { ... }` of `union bpf_attr` for `BPF_PROG_LOAD`, up to the type of attachment.
#[repr(C)]
struct Load {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

const _: () = assert!(size_of::<Load>() == 72);

/// Loads a program of `instructions` (`struct bpf_insn` as words) under a `name` of up to 15 letters.
///
/// # Errors
///
/// `EPERM` without the capabilities; `EINVAL`, `EACCES`, `E2BIG`: the verifier does not take it, and says why.
pub fn load(kind: ProgramKind, name: &str, instructions: &[u64]) -> Result<OwnedFd, Refused> {
    match attempt(kind, name, instructions, &mut []) {
        Ok(program) => Ok(program),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES | libc::E2BIG)) => {
            let mut log = vec![0; LOG_BYTES];
            match attempt(kind, name, instructions, &mut log) {
                Ok(program) => Ok(program),
                Err(_) => Err(refused(name, error, &log)),
            }
        }
        Err(error) => Err(refused(name, error, &[])),
    }
}

/// Room for what the verifier says; of more it keeps the end (Linux 6.4), or none.
const LOG_BYTES: usize = 1 << 16;

fn refused(name: &str, error: std::io::Error, log: &[u8]) -> Refused {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let log = String::from_utf8_lossy(&log[..end]).trim_end().to_owned();
    Refused { source: CallError::new(format!("load eBPF program `{name}`"), error), log }
}

/// `BPF_PROG_LOAD`. What the verifier says goes into `log`, unless that is empty.
pub(super) fn attempt(
    kind: ProgramKind,
    name: &str,
    instructions: &[u64],
    log: &mut [u8],
) -> Result<OwnedFd, std::io::Error> {
    let (prog_type, prog_flags, prog_ifindex, expected_attach_type) = match kind {
        ProgramKind::Socket => (1, 0, 0, 0),
        ProgramKind::Tc => (3, 0, 0, 0),
        ProgramKind::Xdp { fragments, bound_to } => {
            let fragments = if fragments { BPF_F_XDP_HAS_FRAGS } else { 0 };
            let bound = if bound_to.is_some() { BPF_F_XDP_DEV_BOUND_ONLY } else { 0 };
            (6, fragments | bound, bound_to.unwrap_or(0), BPF_XDP)
        }
    };
    let mut prog_name = [0; 16];
    for (to, &from) in prog_name[..15].iter_mut().zip(name.as_bytes()) {
        *to = from;
    }
    let attr = Load {
        prog_type,
        insn_cnt: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
        insns: instructions.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
        log_level: u32::from(!log.is_empty()),
        log_size: u32::try_from(log.len()).unwrap_or(0),
        log_buf: if log.is_empty() { 0 } else { log.as_mut_ptr().expose_provenance() as u64 },
        kern_version: 0,
        prog_flags,
        prog_name,
        prog_ifindex,
        expected_attach_type,
    };
    // SAFETY: `attr` begins as union bpf_attr does for this command; the kernel reads only its size. Instructions and licence
    // are live and have the lengths that are given; the kernel writes to `log` no more than its size.
    let fd = unsafe { bpf(BPF_PROG_LOAD, &raw const attr) }?;
    // SAFETY: a descriptor that the kernel has just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
