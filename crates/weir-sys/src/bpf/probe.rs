//! Probing kernel support by creating minimal maps and programs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::map::{self, MapKind};
use super::program::{ProgramKind, attempt};
use super::query;
use crate::CallError;

const BPF_MAP_TYPE_RINGBUF: u32 = 27;
const BPF_F_MMAPABLE: u32 = 1 << 10;
const BPF_FUNC_TAIL_CALL: u32 = 12;
const BPF_FUNC_KTIME_GET_TAI_NS: u32 = 208;

const XDP: ProgramKind = ProgramKind::Xdp { fragments: false, bound_to: None };

// `struct bpf_insn` as a word: code, registers, offset and immediate, from the lowest byte up.
/// `r0 = 0`
const ZERO: u64 = 0xb7;
/// `r0 = 1`
const ONE: u64 = 0x1_0000_00b7;
/// `return r0`
const EXIT: u64 = 0x95;
/// `r3 = 0`
const ZERO_THIRD: u64 = 0x03b7;

/// `call helper`
const fn call(helper: u32) -> u64 {
    0x85 | (helper as u64) << 32
}

/// `r2 = map`, in two words: `BPF_LD_IMM64` with `BPF_PSEUDO_MAP_FD`.
fn map_address(map: &OwnedFd) -> [u64; 2] {
    [0x1218 | u64::from(map.as_raw_fd().cast_unsigned()) << 32, 0]
}

/// A kernel feature that weir's programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// A map: `bpf(2)` exists and is permitted.
    Map,
    /// An array of this many bytes that a process can map into its memory.
    MappableArray(u32),
    /// A ring buffer to wake the process.
    RingBuffer,
    /// An XDP program.
    Xdp,
    /// A program for the traffic control hooks.
    Tc,
    /// The helper that reads `CLOCK_TAI` (Linux 6.1), in an XDP program.
    TaiClock,
    /// A call to another program.
    TailCall,
}

/// Creates the part and removes it again.
///
/// # Errors
///
/// `EPERM` without the capabilities, `EINVAL` if the kernel does not support it, `ENOSYS` on a kernel without eBPF.
pub fn make(feature: Feature) -> Result<(), CallError> {
    let failed = |error| CallError::new(format!("create eBPF {feature:?}"), error);
    let page = u32::try_from(rustix::param::page_size()).expect("a page is small");
    let array = MapKind::Array as u32;
    let made = match feature {
        Feature::Map => map::create(array, 4, 8, 1, 0),
        Feature::MappableArray(bytes) => map::create(array, 4, bytes, 1, BPF_F_MMAPABLE),
        Feature::RingBuffer => map::create(BPF_MAP_TYPE_RINGBUF, 0, 0, page, 0),
        Feature::Xdp => load(XDP, &[ZERO, EXIT]),
        Feature::Tc => load(ProgramKind::Tc, &[ZERO, EXIT]),
        Feature::TaiClock => load(XDP, &[call(BPF_FUNC_KTIME_GET_TAI_NS), ZERO, EXIT]),
        Feature::TailCall => map::create(MapKind::Programs as u32, 4, 4, 1, 0).and_then(|programs| {
            let [low, high] = map_address(&programs);
            load(XDP, &[low, high, ZERO_THIRD, call(BPF_FUNC_TAIL_CALL), ZERO, EXIT])
        }),
    };
    made.map(drop).map_err(failed)
}

/// Returns whether the kernel blinds the constants of programs that this process loads, as set by
/// `net.core.bpf_jit_harden` = 2 (1: only for processes without `CAP_BPF`).
///
/// The setting itself can only be read in the first network namespace and with `CAP_SYS_ADMIN`. This therefore loads a
/// program with a constant, and checks whether it became longer.
///
/// # Errors
///
/// `EPERM` without the capabilities to load it.
pub fn blinds_constants() -> Result<bool, CallError> {
    let program = [ONE, EXIT];
    let kept = load(XDP, &program).and_then(|loaded| query::instructions(loaded.as_fd()));
    let kept = kept.map_err(|error| CallError::new("test whether constants are blinded", error))?;
    Ok(kept > program.len())
}

fn load(kind: ProgramKind, program: &[u64]) -> io::Result<OwnedFd> {
    attempt(kind, "probe", program, &mut [])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_made_or_refused_for_want_of_privilege() {
        let parts = [
            Feature::Map,
            Feature::MappableArray(1 << 16),
            Feature::RingBuffer,
            Feature::Xdp,
            Feature::Tc,
            Feature::TaiClock,
            Feature::TailCall,
        ];
        for feature in parts {
            match make(feature) {
                Ok(()) => {}
                Err(error) => assert_eq!(error.errno(), libc::EPERM, "{feature:?}: {error}"),
            }
        }
    }

    /// Covers both answers only where the setting is changed. Never do that on a machine in use: see `leave_room` in
    /// stripped.h.
    #[test]
    fn blinding_is_seen_as_it_is_set() {
        let Ok(setting) = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_harden") else { return };
        match blinds_constants() {
            Ok(blinds) => assert_eq!(blinds, setting.trim() == "2", "{setting}"),
            Err(error) => assert_eq!(error.errno(), libc::EPERM, "{error}"),
        }
    }

    #[test]
    fn what_the_kernel_does_not_know_is_refused() {
        let Err(error) = load(XDP, &[call(9999), ZERO, EXIT]) else { panic!("no such helper") };
        assert!([libc::EINVAL, libc::EPERM].contains(&error.raw_os_error().unwrap_or(0)), "{error}");
    }
}
