//! Programs of classic BPF: checking, running and printing them.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::{ptr, slice};

use weir_filter::cbpf::{Instruction, Program, Rules, run};
use weir_filter::interpret::Packet;

use crate::abi::{BpfInsn, BpfProgram};
use crate::guard::guard;
use crate::kept::Kept;

unsafe extern "C" {
    /// C's standard output.
    static stdout: *mut libc::FILE;
}

thread_local! {
    static IMAGE: Kept = const { Kept::new() };
}

/// Runs a program on a packet of `wirelen` bytes, of which `buflen` are at `packet`. Returns the number of bytes to
/// keep, 0 for none; without a program, all.
///
/// Instructions that are not valid reject the packet, as do loads from beside the bytes.
///
/// # Safety
///
/// C1. No jump of the program leaves it: `bpf_validate` accepts it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bpf_filter(
    program: *const BpfInsn,
    packet: *const u8,
    wirelen: c_uint,
    buflen: c_uint,
) -> c_uint {
    guard(0, || {
        if program.is_null() {
            return c_uint::MAX;
        }
        let data: &[u8] = if packet.is_null() {
            &[]
        } else {
            // SAFETY: C1.
            unsafe { slice::from_raw_parts(packet, buflen as usize) }
        };
        let fetch = |at: usize| {
            // SAFETY: the program has an instruction wherever it jumps or goes on to.
            let at = unsafe { program.add(at) };
            // SAFETY: as above.
            Some(instruction(unsafe { at.read() }))
        };
        run(Rules::Library, fetch, &Packet { data, length: wirelen, ..Packet::default() })
    })
}

/// Returns 1 if [`bpf_filter`] can run the `length` instructions, otherwise 0.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bpf_validate(instructions: *const BpfInsn, length: c_int) -> c_int {
    guard(0, || {
        // SAFETY: C1.
        let program = unsafe { program(instructions, usize::try_from(length).unwrap_or(0)) };
        program.check(Rules::Library).is_ok().into()
    })
}

/// Returns an instruction, at index `at` of its program, in words; valid until the thread's next call.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bpf_image(code: *const BpfInsn, at: c_int) -> *mut c_char {
    guard(ptr::null_mut(), || {
        // SAFETY: C1.
        let Some(code) = (unsafe { code.as_ref() }) else { return ptr::null_mut() };
        let image = instruction(*code).image(at);
        IMAGE.with(|kept| kept.set(&image))
    })
}

/// Prints a program on C's standard output: in words, with option 2 as a fragment of C, with 3 as numbers.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bpf_dump(code: *const BpfProgram, option: c_int) {
    guard((), || {
        // SAFETY: C1.
        let Some(code) = (unsafe { code.as_ref() }) else { return };
        // SAFETY: C1.
        let program = unsafe { program(code.bf_insns, code.bf_len as usize) };
        let text = match option {
            ..=1 => program.listing(),
            2 => program.as_c(),
            3.. => program.as_numbers(),
        };
        // SAFETY: C sets the variable before the program starts.
        let to = unsafe { stdout };
        // SAFETY: standard output is open or refuses; the bytes are those of the text.
        unsafe { libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), to) };
    });
}

/// Copies a program; none of null.
///
/// # Safety
///
/// `instructions` is null or points to `length` of them.
pub(crate) unsafe fn program(instructions: *const BpfInsn, length: usize) -> Program {
    if instructions.is_null() {
        return Program::default();
    }
    // SAFETY: the caller's promise.
    let all = unsafe { slice::from_raw_parts(instructions, length) };
    Program { instructions: all.iter().copied().map(instruction).collect() }
}

fn instruction(BpfInsn { code, jt, jf, k }: BpfInsn) -> Instruction {
    Instruction { code, jt, jf, k }
}
