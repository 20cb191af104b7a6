//! Continuing a file that was written before.

use std::ffi::CStr;

use crate::abi::PCAP_TSTAMP_PRECISION_NANO;
use crate::file_header::{FILE_HEADER, MICROSECONDS, NANOSECONDS, VERSION, header, link_type, write_header};
use crate::handle::Handle;
use crate::stdio::{File, text_of};

/// Opens a file to continue it; `-` is standard output, which gets a new header.
pub(crate) fn open(handle: &Handle, name: &CStr) -> Result<File, String> {
    let shown = name.to_string_lossy();
    if link_type(handle).is_none() {
        // libpcap's text has the number of no link type here.
        return Err(format!("{shown}: link-layer type -1 isn't supported in savefiles"));
    }
    let new = header(handle, &shown)?;
    if name == c"-" {
        let file = File::standard_output().ok_or("The standard output is not open")?;
        return write_header(file, "standard output", &new).map(|()| file);
    }
    let failed = |error| format!("{shown}: {}", text_of(&error));
    // A file that is not there is made; one that is there is read first.
    let file = File::open(name, c"ab+").map_err(failed)?;
    let continued = file.seek(0).map_err(failed).and_then(|()| {
        let mut old = [0; FILE_HEADER];
        match file.read(&mut old) {
            0 if file.failed() => Err(failed(std::io::Error::last_os_error())),
            0 => write_header(file, &shown, &new),
            FILE_HEADER => {
                continues(handle, &shown, &old, &new).and_then(|()| file.seek_end().map_err(failed))
            }
            _ => Err(format!("{shown}: truncated pcap file header")),
        }
    });
    continued.map(|()| file).inspect_err(|_| file.close())
}

/// Checks that packets of the handle fit into a file with the header `old`.
fn continues(
    handle: &Handle,
    name: &str,
    old: &[u8; FILE_HEADER],
    new: &[u8; FILE_HEADER],
) -> Result<(), String> {
    let word = |bytes: &[u8; FILE_HEADER], at: usize| {
        u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let half = |at: usize| u16::from_ne_bytes([old[at], old[at + 1]]);
    let refused = |why: &str| Err(format!("{name}: {why}"));
    let nano = handle.precision == PCAP_TSTAMP_PRECISION_NANO;
    match word(old, 0) {
        MICROSECONDS if nano => return refused("different time stamp precision, cannot append to file"),
        NANOSECONDS if !nano => return refused("different time stamp precision, cannot append to file"),
        MICROSECONDS | NANOSECONDS => {}
        other if [MICROSECONDS, NANOSECONDS].contains(&other.swap_bytes()) => {
            return refused("different byte order, cannot append to file");
        }
        PATCHED => return refused("not a pcap file to which we can append"),
        other if other == PATCHED.swap_bytes() => return refused("not a pcap file to which we can append"),
        _ => return refused("not a pcap file"),
    }
    let version = (half(4), half(6));
    if version != VERSION {
        return refused(&format!("version is {}.{}, cannot append to file", version.0, version.1));
    }
    if word(old, 20) != word(new, 20) {
        return refused("different linktype, cannot append to file");
    }
    if word(old, 16) != word(new, 16) {
        return refused("different snaplen, cannot append to file");
    }
    Ok(())
}

/// The files of a patched libpcap.
const PATCHED: u32 = 0xa1b2_cd34;
