//! Maps and programs of the smallest kind, made to see whether the kernel makes them.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::bpf;
use crate::CallError;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_PROG_ARRAY: u32 = 3;
const BPF_MAP_TYPE_RINGBUF: u32 = 27;
const BPF_F_MMAPABLE: u32 = 1 << 10;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_FUNC_TAIL_CALL: i32 = 12;
const BPF_FUNC_KTIME_GET_TAI_NS: i32 = 208;

/// `struct { ... }` of `union bpf_attr` for `BPF_MAP_CREATE`, up to the flags.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

/// `struct { ... }` of `union bpf_attr` for `BPF_PROG_LOAD`, up to the kernel version.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8 && size_of::<ProgLoad>() == 48);

/// `r0 = 0`
const ZERO: Instruction = Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 0 };
/// `return r0`
const EXIT: Instruction = Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 };

/// What programs of weir are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A map: `bpf(2)` is there and permitted.
    Map,
    /// An array that a process can map into its memory, of this many bytes.
    MappableArray(u32),
    /// A ring buffer for waking the process.
    RingBuffer,
    /// An XDP program.
    Xdp,
    /// A program of the traffic control hooks.
    Tc,
    /// The helper that reads `CLOCK_TAI` (Linux 6.1), in an XDP program.
    TaiClock,
    /// A call of another program.
    TailCall,
}

/// Makes the part and lets it go again.
///
/// # Errors
///
/// `EPERM` without the capabilities, `EINVAL` where the kernel does not know it, `ENOSYS` on a kernel without eBPF.
pub fn make(part: Part) -> Result<(), CallError> {
    let failed = |error| CallError::new(format!("make eBPF {part:?}"), error);
    let page = u32::try_from(rustix::param::page_size()).expect("a page is small");
    let made = match part {
        Part::Map => map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0),
        Part::MappableArray(bytes) => map(BPF_MAP_TYPE_ARRAY, 4, bytes, 1, BPF_F_MMAPABLE),
        Part::RingBuffer => map(BPF_MAP_TYPE_RINGBUF, 0, 0, page, 0),
        Part::Xdp => load(BPF_PROG_TYPE_XDP, &[ZERO, EXIT]),
        Part::Tc => load(BPF_PROG_TYPE_SCHED_CLS, &[ZERO, EXIT]),
        Part::TaiClock => load(BPF_PROG_TYPE_XDP, &[call(BPF_FUNC_KTIME_GET_TAI_NS), ZERO, EXIT]),
        Part::TailCall => map(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0).and_then(|programs| {
            let [low, high] = map_address(&programs);
            // r2 = programs; r3 = 0; tail call
            let index = Instruction { code: 0xb7, registers: 3, offset: 0, immediate: 0 };
            load(BPF_PROG_TYPE_XDP, &[low, high, index, call(BPF_FUNC_TAIL_CALL), ZERO, EXIT])
        }),
    };
    made.map(drop).map_err(failed)
}

fn call(helper: i32) -> Instruction {
    Instruction { code: 0x85, registers: 0, offset: 0, immediate: helper }
}

/// `r2 = map`, in two words: `BPF_LD_IMM64` with `BPF_PSEUDO_MAP_FD`.
fn map_address(map: &OwnedFd) -> [Instruction; 2] {
    let low =
        Instruction { code: 0x18, registers: 1 << 4 | 2, offset: 0, immediate: map.as_fd().as_raw_fd() };
    [low, Instruction { code: 0, registers: 0, offset: 0, immediate: 0 }]
}

fn map(kind: u32, key: u32, value: u32, entries: u32, flags: u32) -> std::io::Result<OwnedFd> {
    let attr = MapCreate {
        map_type: kind,
        key_size: key,
        value_size: value,
        max_entries: entries,
        map_flags: flags,
    };
    // SAFETY: `attr` begins as union bpf_attr does for this command; the kernel reads only its size.
    let fd = unsafe { bpf(BPF_MAP_CREATE, &raw const attr) }?;
    // SAFETY: a descriptor that the kernel has just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn load(kind: u32, program: &[Instruction]) -> std::io::Result<OwnedFd> {
    let attr = ProgLoad {
        prog_type: kind,
        insn_cnt: u32::try_from(program.len()).expect("a few instructions"),
        insns: program.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: 0,
    };
    // SAFETY: as in `map`; the program and the licence are live and have the lengths that are given.
    let fd = unsafe { bpf(BPF_PROG_LOAD, &raw const attr) }?;
    // SAFETY: a descriptor that the kernel has just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_made_or_refused_for_want_of_privilege() {
        let parts = [
            Part::Map,
            Part::MappableArray(1 << 16),
            Part::RingBuffer,
            Part::Xdp,
            Part::Tc,
            Part::TaiClock,
            Part::TailCall,
        ];
        for part in parts {
            match make(part) {
                Ok(()) => {}
                Err(error) => assert_eq!(error.errno(), libc::EPERM, "{part:?}: {error}"),
            }
        }
    }

    #[test]
    fn what_the_kernel_does_not_know_is_refused() {
        let Err(error) = load(BPF_PROG_TYPE_XDP, &[call(9999), ZERO, EXIT]) else { panic!("no such helper") };
        assert!([libc::EINVAL, libc::EPERM].contains(&error.raw_os_error().unwrap_or(0)), "{error}");
    }
}
