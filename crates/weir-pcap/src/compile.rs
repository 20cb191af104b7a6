//! Expressions of pcap-filter(7), and the programs made of them.

use std::ffi::{c_char, c_int};
use std::ptr;

use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{Target, emit, emit_plainly};
use weir_filter::{Beside, Dialect, Error, Options};

use weir::filter::SystemNames;

use crate::abi::*;
use crate::allocate;
use crate::bpf::{self, bpf_filter};
use crate::filter::{Filter, loads_tags};
use crate::guard::{guard, word};
use crate::handle::{
    DUMPING, Handle, NOT_ACTIVATED, Pcap, Source, forward, pcap_close, pcap_open_dead, with,
};
use crate::link_types;
use crate::live::Live;

/// Compiles an expression for the handle's packets.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_compile(
    pcap: *mut Pcap,
    to: *mut BpfProgram,
    text: *const c_char,
    optimise: c_int,
    netmask: BpfU32,
) -> c_int {
    // SAFETY: C1.
    let text = unsafe { word(text) }.unwrap_or_default();
    let made = |pcap: &Pcap, handle: &mut Handle| {
        let made = compile(handle, &text.to_string_lossy(), optimise != 0, netmask);
        made.and_then(for_c).map_err(|text| pcap.fail(PCAP_ERROR, &text))
    };
    // SAFETY: C1.
    match unsafe { with(pcap, Err(PCAP_ERROR), made) } {
        Ok((bf_len, bf_insns)) if !to.is_null() => {
            // SAFETY: C1.
            unsafe { to.write(BpfProgram { bf_len, bf_insns }) };
            0
        }
        Ok((_, instructions)) => {
            // SAFETY: it was allocated with malloc, and nobody has it.
            unsafe { libc::free(instructions.cast()) };
            PCAP_ERROR
        }
        Err(code) => code,
    }
}

/// Compiles an expression without a handle.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_compile_nopcap(
    snapshot: c_int,
    link_type: c_int,
    to: *mut BpfProgram,
    text: *const c_char,
    optimise: c_int,
    netmask: BpfU32,
) -> c_int {
    let pcap = pcap_open_dead(link_type, snapshot);
    // SAFETY: C1, and a new handle.
    let status = unsafe { pcap_compile(pcap, to, text, optimise, netmask) };
    // SAFETY: nobody has this handle.
    unsafe { pcap_close(pcap) };
    status
}

/// Releases the instructions of `pcap_compile`.
///
/// # Safety
///
/// C1; nothing uses the instructions afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_freecode(program: *mut BpfProgram) {
    // SAFETY: C1.
    let Some(program) = (unsafe { program.as_mut() }) else { return };
    program.bf_len = 0;
    let instructions = std::mem::replace(&mut program.bf_insns, ptr::null_mut());
    // SAFETY: they were allocated with malloc (C3); free takes null.
    unsafe { libc::free(instructions.cast()) };
}

/// Sets the filter of a handle, a copy of `program`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_setfilter(pcap: *mut Pcap, program: *const BpfProgram) -> c_int {
    forward!(pcap_setfilter(pcap, program));
    let set = |pcap: &Pcap, handle: &mut Handle| match handle.source {
        Source::Created(_) => pcap.fail(PCAP_ERROR_NOT_ACTIVATED, NOT_ACTIVATED),
        Source::Dead | Source::Foreign => {
            pcap.fail(PCAP_ERROR, "A filter cannot be set on a pcap_open_dead pcap_t")
        }
        Source::Dumping(_) => pcap.fail(PCAP_ERROR, DUMPING),
        Source::File(_) | Source::Live(_) => {
            let metadata = matches!(handle.source, Source::Live(_));
            // SAFETY: C1.
            let program = unsafe { copy(program) };
            if let Some(text) = handle.live().filter(|_| loads_tags(&program)).and_then(Live::without_tags) {
                return pcap.fail(PCAP_ERROR, &text);
            }
            let Ok(filter) = Filter::new(program, metadata) else {
                return pcap.fail(PCAP_ERROR, "BPF program is not valid");
            };
            if let Source::Live(live) = &mut handle.source {
                live.set_filter(&filter);
            }
            handle.filter = Some(Box::new(filter));
            0
        }
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, set) }
}

/// Runs a program on a packet; returns 0 if it rejects the packet.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_offline_filter(
    program: *const BpfProgram,
    header: *const PcapPkthdr,
    data: *const u8,
) -> c_int {
    guard(0, || {
        // SAFETY: C1.
        let Some(program) = (unsafe { program.as_ref() }) else { return 0 };
        // SAFETY: C1.
        let Some(header) = (unsafe { header.as_ref() }) else { return 0 };
        if program.bf_insns.is_null() {
            return 0;
        }
        // SAFETY: C1. The program was checked, or is `pcap_compile`'s, so it does not leave itself.
        unsafe { bpf_filter(program.bf_insns, data, header.len, header.caplen) }.cast_signed()
    })
}

/// Copies a program of C's; an empty one, which is not valid, for null.
///
/// # Safety
///
/// C1.
unsafe fn copy(program: *const BpfProgram) -> Program {
    // SAFETY: C1.
    let Some(program) = (unsafe { program.as_ref() }) else { return Program::default() };
    // SAFETY: C1.
    unsafe { bpf::program(program.bf_insns, program.bf_len as usize) }
}

/// Compiles an expression; the error is a text for `pcap_geterr`.
fn compile(handle: &Handle, text: &str, optimise: bool, netmask: BpfU32) -> Result<Program, String> {
    if let Source::Created(_) = handle.source {
        return Err("not-yet-activated pcap_t passed to pcap_compile".to_owned());
    }
    if handle.snapshot == 0 {
        return Err("snaplen of 0 rejects all packets".to_owned());
    }
    let link_type = link_types::in_files(handle.link_type).and_then(|number| u16::try_from(number).ok());
    // Networks that libpcap has never filtered.
    let link_type = link_type.filter(|number| !matches!(number, 2..=5));
    let Some(link_type) = link_type else {
        return Err(format!("unknown data link type {} (min 104, max 289)", handle.link_type));
    };
    let names = SystemNames::new();
    let options = |metadata| Options {
        dialect: Dialect::Pcap,
        link_type,
        snap_len: handle.snapshot.cast_unsigned(),
        metadata,
        swapped: handle.file().is_some_and(|file| file.swapped()),
        others: &[],
        netmask: (netmask != PCAP_NETMASK_UNKNOWN).then_some(netmask),
        names: &names,
    };
    let beside = match &handle.source {
        // The kernel strips VLAN tags, and its filters know them.
        Source::Live(live) if live.has_metadata() => Beside::All,
        // Without a file, address families are those of this host, as in live packets.
        Source::Dead if FAMILIES.contains(&link_type) => Beside::All,
        _ => Beside::Nothing,
    };
    let mut compiled = weir_filter::compile(text, &options(beside));
    if let (Err(_), Source::Dead) = (&compiled, &handle.source) {
        // Whoever runs the program may know more of a packet than its bytes.
        let knowing = weir_filter::compile(text, &options(Beside::All));
        compiled = knowing.or(compiled);
    }
    let compiled = compiled.map_err(|error| told(&error))?;
    if compiled.asks_for_tags() {
        handle.live().and_then(Live::without_tags).map_or(Ok(()), Err)?;
    }
    if optimise && compiled.is_never_to_libpcap() {
        return Err("expression rejects all packets".to_owned());
    }
    let sets = &compiled.ast.sets;
    let made = |target| match optimise {
        true => emit(&compiled.graph, sets, target),
        // Programs may show what the optimiser does, and libpcap's is the longer one without it.
        false => emit_plainly(&compiled.lowered, sets, target),
    };
    // Programs get programs from libpcap for their own sockets, so one that the kernel takes is better.
    made(Target::Kernel).or_else(|_| made(Target::Library)).map_err(|error| error.to_string())
}

/// Link types whose packets begin with an address family, by number in files: null, loopback, OpenBSD's enc.
const FAMILIES: [u16; 3] = [0, 108, 109];

/// Returns the text for an error, in libpcap's words where it has the same.
fn told(error: &Error) -> String {
    let text = error.to_string().replace('`', "'");
    // libpcap says only that the grammar is wrong, and ours begins so.
    if ["expected ", "unclosed "].iter().any(|start| text.starts_with(start)) {
        return format!("can't parse filter expression: syntax error: {text}");
    }
    text
}

/// Copies a program for C.
fn for_c(program: Program) -> Result<(u32, *mut BpfInsn), String> {
    let theirs = program.instructions.iter();
    let theirs = theirs.map(|one| BpfInsn { code: one.code, jt: one.jt, jf: one.jf, k: one.k });
    let theirs: Vec<BpfInsn> = theirs.collect();
    let length = u32::try_from(theirs.len()).map_err(|error| error.to_string())?;
    let instructions = allocate::copy(&theirs);
    if instructions.is_null() {
        return Err("malloc: Cannot allocate memory".to_owned());
    }
    Ok((length, instructions))
}
