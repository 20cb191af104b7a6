//! Files of packets: classic pcap and pcapng, as libpcap reads them.
//!
//! `weir::reader` reads the same formats with other goals: it repairs, and keeps what pcapng knows of interfaces. Here
//! the refusals and texts are libpcap's, and a file that the program shares is read byte by byte as libpcap would.

mod bytes;
mod classic;
mod ng;
mod open;
mod pseudo;
mod time;

use std::ffi::c_int;
use std::io;
use std::slice;

use std::ptr;
use weir_filter::interpret::{Metadata, Packet as Seen};

use self::bytes::Bytes;
use self::classic::Classic;
use self::ng::Ng;
pub(crate) use self::open::{given, open};
use crate::abi::{PCAP_TSTAMP_PRECISION_MICRO, PCAP_TSTAMP_PRECISION_NANO, PcapPkthdr};
use crate::cancel::Wait;
use crate::stdio::{File, text_of};

/// The smallest buffer of libpcap for a packet, unless all packets are shorter.
const LEAST_BUFFER: usize = 2048;

/// A packet of a handle: `struct weir_pcap_packet`. Its bytes stay until the next is read.
#[derive(Debug)]
#[repr(C)]
pub struct Packet {
    pub(crate) header: PcapPkthdr,
    pub(crate) data: *const u8,
}

impl Packet {
    /// What there is before the first packet.
    pub(crate) const NONE: Self = Self { header: PcapPkthdr::NONE, data: ptr::null() };
}

impl Packet {
    /// Returns the packet as a filter sees it.
    #[inline]
    pub(crate) fn seen(&self) -> Seen<'_> {
        // SAFETY: a packet's bytes are there (C3), and nobody writes to them while a function of the handle runs (C4).
        let data = unsafe { slice::from_raw_parts(self.data, self.header.caplen as usize) };
        Seen { data, length: self.header.len, meta: Metadata::default() }
    }
}

/// An open file, from the first packet on.
pub(crate) struct Savefile {
    bytes: Bytes,
    format: Format,
    /// The file as C sees it.
    file: File,
    /// Whether `file` can be read where `bytes` is. Not if the file is compressed.
    shareable: bool,
    begin: Begin,
    /// What `pcap_bufsize` returns.
    buffer: usize,
}

enum Format {
    Classic(Classic),
    Ng(Ng),
}

/// What the beginning of a file says of all packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    pub(crate) version: (u16, u16),
    pub(crate) swapped: bool,
    /// `DLT_` number.
    pub(crate) link_type: c_int,
    pub(crate) link_type_ext: u32,
    pub(crate) snapshot: u32,
}

impl Savefile {
    /// Reads the next packet into `to`, field by field: copying it takes longer than reading it. Returns whether there is
    /// one.
    #[inline]
    pub(crate) fn next(&mut self, to: &mut Packet) -> Result<bool, String> {
        match &mut self.format {
            Format::Classic(classic) => classic.next(&mut self.bytes, &self.begin, &mut self.buffer, to),
            Format::Ng(ng) => ng.next(&mut self.bytes, &self.begin, to),
        }
    }

    /// Returns what to wait for before the next packet is read, if that may take long.
    #[inline]
    pub(crate) fn wait(&self) -> Option<Wait> {
        self.bytes.awaited().map(Wait::Byte)
    }

    /// Returns the `FILE`. From now on it is where the next packet begins.
    pub(crate) fn shared(&mut self) -> File {
        if self.shareable {
            self.bytes.share(self.file);
        }
        self.file
    }

    pub(crate) fn begin(&self) -> Begin {
        self.begin
    }

    pub(crate) fn descriptor(&self) -> c_int {
        self.file.descriptor()
    }

    pub(crate) fn swapped(&self) -> bool {
        self.begin.swapped
    }

    pub(crate) fn version(&self) -> (u16, u16) {
        self.begin.version
    }

    pub(crate) fn buffer_size(&self) -> c_int {
        self.buffer.try_into().unwrap_or(c_int::MAX)
    }
}

impl Drop for Savefile {
    fn drop(&mut self) {
        if Some(self.file) != File::standard_input() {
            self.file.close();
        }
    }
}

/// Returns the longest packet of a link type: 256 KiB, but more for buses.
fn longest_packet(link_type: c_int) -> u32 {
    match link_type {
        231 => 128 << 20, // D-Bus
        249 => 1 << 20,   // USBPcap
        279 => 8 << 20,   // Elektrobit ebhscr
        _ => 256 << 10,
    }
}

/// Returns the snap length for the number in a file: none and nonsense are the longest packet.
fn snap_len(in_file: u32, link_type: c_int) -> u32 {
    if in_file == 0 || in_file > i32::MAX.cast_unsigned() { longest_packet(link_type) } else { in_file }
}

/// Checks that timestamps can have this precision.
fn supported(precision: c_int) -> Result<(), String> {
    match precision {
        PCAP_TSTAMP_PRECISION_MICRO | PCAP_TSTAMP_PRECISION_NANO => Ok(()),
        other => Err(format!("unknown time stamp resolution {}", other.cast_unsigned())),
    }
}

/// Ticks per second of a precision.
fn ticks(precision: c_int) -> u32 {
    if precision == PCAP_TSTAMP_PRECISION_NANO { 1_000_000_000 } else { 1_000_000 }
}

/// Returns why there were fewer bytes: `cut`, unless reading has failed.
#[cold]
fn short(bytes: &Bytes, cut: impl FnOnce() -> String) -> String {
    match bytes.error() {
        Some(error) => unreadable(&error),
        None => cut(),
    }
}

/// Returns the text for an `errno` of reading.
#[cold]
pub(crate) fn failed(errno: c_int) -> String {
    unreadable(&io::Error::from_raw_os_error(errno))
}

fn unreadable(error: &io::Error) -> String {
    format!("error reading dump file: {}", text_of(error))
}
