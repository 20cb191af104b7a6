//! The header of a file that is written.

use std::io;

use crate::abi::PCAP_TSTAMP_PRECISION_NANO;
use crate::handle::{Handle, Source};
use crate::link_types;
use crate::stdio::{File, text_of};

pub(crate) const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub(crate) const NANOSECONDS: u32 = 0xa1b2_3c4d;
pub(crate) const FILE_HEADER: usize = 24;
pub(crate) const VERSION: (u16, u16) = (2, 4);

/// Text for a handle that is not active.
pub(crate) const NOT_YET: &str = "not-yet-activated pcap_t passed to pcap_dump_open";

/// Returns the header of a file for the handle's packets.
pub(crate) fn header(handle: &Handle, name: &str) -> Result<[u8; FILE_HEADER], String> {
    if let Source::Created(_) = handle.source {
        return Err(format!("{name}: {NOT_YET}"));
    }
    let Some(link_type) = link_type(handle) else {
        return Err(format!("{name}: link-layer type {} isn't supported in savefiles", handle.link_type));
    };
    let nano = handle.precision == PCAP_TSTAMP_PRECISION_NANO;
    let magic = if nano { NANOSECONDS } else { MICROSECONDS };
    let mut header = [0; FILE_HEADER];
    header[..4].copy_from_slice(&magic.to_ne_bytes());
    header[4..6].copy_from_slice(&VERSION.0.to_ne_bytes());
    header[6..8].copy_from_slice(&VERSION.1.to_ne_bytes());
    // 8..16: time zone and accuracy, always 0.
    header[16..20].copy_from_slice(&handle.snapshot.to_ne_bytes());
    header[20..].copy_from_slice(&(link_type | handle.link_type_ext).to_ne_bytes());
    Ok(header)
}

/// Returns the number of the handle's link type in files, if it has one.
pub(crate) fn link_type(handle: &Handle) -> Option<u32> {
    link_types::in_files(handle.link_type)
}

pub(crate) fn write_header(file: File, name: &str, header: &[u8; FILE_HEADER]) -> Result<(), String> {
    if file.write(header) {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(format!("Can't write to {name}: {}", text_of(&error)))
}
