//! Loading programs from instructions.

use std::os::fd::{FromRawFd, OwnedFd};

use super::bpf;
use crate::{CallError, kernel};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
const BPF_F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;
const BPF_XDP: u32 = 37;

/// The type of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// A socket filter.
    Socket,
    /// tc and tcx.
    Tc,
    /// XDP.
    Xdp {
        /// It accepts packets in several buffers (`BPF_F_XDP_HAS_FRAGS`).
        fragments: bool,
        /// The index of the interface that it is bound to, if any (`BPF_F_XDP_DEV_BOUND_ONLY`).
        bound_to: Option<u32>,
    },
}

/// A program that the kernel rejected.
#[derive(Debug, thiserror::Error)]
#[error("{}", said(source, log))]
pub struct Refused {
    /// The error of the call.
    pub source: CallError,
    /// The end of the verifier's log; empty if the verifier did not run.
    pub log: String,
}

fn said(source: &CallError, log: &str) -> String {
    match last_words(log) {
        Some(words) => format!("{source}: Linux {} says: {words}\n{log}", kernel::release()),
        None => source.to_string(),
    }
}

/// Returns the verifier's complaint, which is at the end of its log; `None`: it did not run, or logged nothing.
pub fn last_words(log: &str) -> Option<&str> {
    // The complaint is followed by statistics, and by the origin of a register (Linux 6.8).
    const TRAILERS: [&str; 5] =
        ["processed ", "verification time ", "stack depth ", "max_states_", "peak_states "];
    let lines = log.lines().rev().map(str::trim);
    lines
        .into_iter()
        .find(|line| !line.is_empty() && !TRAILERS.iter().any(|trailer| line.starts_with(trailer)))
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

/// Loads a program of `instructions` (`struct bpf_insn` as words) with a `name` of up to 15 characters.
///
/// # Errors
///
/// `EPERM` without the capabilities. `EINVAL`, `EACCES`, `E2BIG`: the verifier rejects it, and logs why. `EFAULT`: also if
/// too many branches are pending (seen on Linux 6.18).
pub fn load(kind: ProgramKind, name: &str, instructions: &[u64]) -> Result<OwnedFd, Refused> {
    match insist(kind, name, instructions, &mut []) {
        Ok(program) => Ok(program),
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EINVAL | libc::EACCES | libc::E2BIG | libc::EFAULT)
            ) =>
        {
            let mut log = vec![0; LOG_BYTES];
            match insist(kind, name, instructions, &mut log) {
                Ok(program) => Ok(program),
                Err(_) => Err(refused(name, error, &log)),
            }
        }
        Err(error) => Err(refused(name, error, &[])),
    }
}

/// Room for the verifier's log. Of a longer log, it keeps the end (Linux 6.4), or nothing.
const LOG_BYTES: usize = 1 << 16;

fn refused(name: &str, error: std::io::Error, log: &[u8]) -> Refused {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let log = String::from_utf8_lossy(&log[..end]).trim_end().to_owned();
    Refused { source: CallError::new(format!("load eBPF program `{name}`"), error), log }
}

/// Does what [`attempt`] does, and starts over if the verifier gave up because of a signal (`EAGAIN`). It does not do so
/// forever: signals may arrive all the time.
fn insist(
    kind: ProgramKind,
    name: &str,
    instructions: &[u64],
    log: &mut [u8],
) -> Result<OwnedFd, std::io::Error> {
    const ATTEMPTS: usize = 5;
    let mut result = attempt(kind, name, instructions, log);
    for _ in 1..ATTEMPTS {
        match &result {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                result = attempt(kind, name, instructions, log);
            }
            _ => break,
        }
    }
    result
}

/// Calls `BPF_PROG_LOAD`. The verifier's log goes to `log`, unless that is empty.
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
    // SAFETY: `attr` begins like union bpf_attr for this command; the kernel reads no more than its size. Instructions
    // and licence are live and have the given lengths; the kernel writes no more than its size to `log`.
    let fd = unsafe { bpf(BPF_PROG_LOAD, &raw const attr) }?;
    // SAFETY: a descriptor that the kernel has just created for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_words_stand_before_its_costs() {
        let log =
            "0: (61) r0 = *(u32 *)(r1 +0)\nR4 unbounded memory access\nprocessed 9 insns (limit 1000000)\n\n";
        assert_eq!(last_words(log), Some("R4 unbounded memory access"));
        assert_eq!(last_words("processed 0 insns\n"), None);
        assert_eq!(last_words(""), None);
    }

    #[test]
    fn a_refusal_says_why_and_on_which_kernel() {
        // `return r0`, although r0 was never set.
        let error =
            load(ProgramKind::Xdp { fragments: false, bound_to: None }, "answer", &[0x95]).unwrap_err();
        let first = error.to_string().lines().next().map(str::to_owned).unwrap_or_default();
        assert!(first.contains("eBPF program `answer`"), "{first}");
        if error.source.errno() != libc::EPERM {
            assert!(first.ends_with(&format!("Linux {} says: R0 !read_ok", kernel::release())), "{first}");
        }
    }
}
