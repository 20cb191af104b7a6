//! Writing files of packets. `pcap_dumper_t` is the `FILE`, as in libpcap: programs use it as one.

use std::ffi::{CStr, c_char, c_int, c_long};
use std::ptr;

use libc::FILE;

use crate::abi::*;
use crate::append;
use crate::file_header::{NOT_YET, header, write_header};
use crate::guard::word;
use crate::handle::{Handle, Pcap, Source, with};
use crate::stdio::{File, text_of};

/// Begins a file; `-` is standard output.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_open(pcap: *mut Pcap, name: *const c_char) -> *mut PcapDumper {
    // SAFETY: C1.
    unsafe { opened(pcap, name, begin) }
}

/// Continues a file, or begins one that is not there or empty.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_open_append(
    pcap: *mut Pcap,
    name: *const c_char,
) -> *mut PcapDumper {
    // SAFETY: C1.
    unsafe { opened(pcap, name, append::open) }
}

/// Begins a file that is already open.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_fopen(pcap: *mut Pcap, file: *mut FILE) -> *mut PcapDumper {
    // SAFETY: C1.
    let file = unsafe { File::new(file) };
    let begun = |_: &Pcap, handle: &mut Handle| {
        let file = file.ok_or("A null pointer was supplied as the file")?;
        let header = header(handle, "stream")?;
        write_header(file, "stream", &header)?;
        Ok(file)
    };
    // SAFETY: C1.
    unsafe { dumper(pcap, begun) }
}

/// Opens a file by `open`, unless its name is missing.
///
/// # Safety
///
/// C1.
unsafe fn opened(
    pcap: *mut Pcap,
    name: *const c_char,
    open: impl FnOnce(&Handle, &CStr) -> Result<File, String>,
) -> *mut PcapDumper {
    // SAFETY: C1.
    let name = unsafe { word(name) };
    let opened = |_: &Pcap, handle: &mut Handle| {
        if let (Some(name), Source::Created(_)) = (name, &handle.source) {
            return Err(format!("{}: {NOT_YET}", name.to_string_lossy()));
        }
        let name = name.ok_or("A null pointer was supplied as the file name")?;
        open(handle, name)
    };
    // SAFETY: C1.
    unsafe { dumper(pcap, opened) }
}

/// Gives C a file, or null and a text in the handle.
///
/// # Safety
///
/// See [`with`].
unsafe fn dumper(
    pcap: *mut Pcap,
    open: impl FnOnce(&Pcap, &mut Handle) -> Result<File, String>,
) -> *mut PcapDumper {
    let opened = |pcap: &Pcap, handle: &mut Handle| match open(pcap, handle) {
        Ok(file) => file.as_ptr().cast(),
        Err(text) => {
            pcap.fail(PCAP_ERROR, &text);
            ptr::null_mut()
        }
    };
    // SAFETY: the caller's promise.
    unsafe { with(pcap, ptr::null_mut(), opened) }
}

fn begin(handle: &Handle, name: &CStr) -> Result<File, String> {
    let shown = name.to_string_lossy();
    let header = header(handle, &shown)?;
    if name == c"-" {
        let file = File::standard_output().ok_or("The standard output is not open")?;
        write_header(file, "standard output", &header)?;
        return Ok(file);
    }
    let file = File::open(name, c"wb").map_err(|error| format!("{shown}: {}", text_of(&error)))?;
    write_header(file, &shown, &header).inspect_err(|_| file.close())?;
    Ok(file)
}

/// Writes a packet. It has the form of a callback, so `file` is the dumper. An error is in the `FILE`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump(file: *mut u8, header: *const PcapPkthdr, data: *const u8) {
    // SAFETY: C1.
    let Some(file) = (unsafe { File::new(file.cast()) }) else { return };
    // SAFETY: C1.
    let Some(header) = (unsafe { header.as_ref() }) else { return };
    // Nothing follows half a record: a disk that is full may have room again.
    if file.failed() || !file.write(&record(header)) || data.is_null() {
        return;
    }
    // SAFETY: C1: the packet has as many bytes.
    file.write(unsafe { std::slice::from_raw_parts(data, header.caplen as usize) });
}

/// Returns what precedes a packet in a file.
pub(crate) fn record(header: &PcapPkthdr) -> [u8; 16] {
    // The file holds 32 bits of each.
    let [seconds, fraction] = [header.ts.tv_sec, header.ts.tv_usec].map(|part| part.to_le_bytes());
    let mut record = [0; 16];
    record[..4].copy_from_slice(&low(seconds).to_ne_bytes());
    record[4..8].copy_from_slice(&low(fraction).to_ne_bytes());
    record[8..12].copy_from_slice(&header.caplen.to_ne_bytes());
    record[12..].copy_from_slice(&header.len.to_ne_bytes());
    record
}

fn low([a, b, c, d, ..]: [u8; 8]) -> u32 {
    u32::from_le_bytes([a, b, c, d])
}

/// Returns the `FILE`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_dump_file(dumper: *mut PcapDumper) -> *mut FILE {
    dumper.cast()
}

/// Returns the position in the file, or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_ftell(dumper: *mut PcapDumper) -> c_long {
    // SAFETY: C1.
    unsafe { pcap_dump_ftell64(dumper) }
}

/// Returns the position in the file, or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_ftell64(dumper: *mut PcapDumper) -> i64 {
    // SAFETY: C1.
    unsafe { File::new(dumper.cast()) }.map_or(-1, File::position)
}

/// Passes on what stdio holds back; returns 0, or -1 after an error.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_flush(dumper: *mut PcapDumper) -> c_int {
    // SAFETY: C1.
    let file = unsafe { File::new(dumper.cast()) };
    if file.is_some_and(File::flush) { 0 } else { PCAP_ERROR }
}

/// Closes the file.
///
/// # Safety
///
/// C1; nothing uses the file afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dump_close(dumper: *mut PcapDumper) {
    // SAFETY: C1.
    if let Some(file) = unsafe { File::new(dumper.cast()) } {
        file.close();
    }
}
