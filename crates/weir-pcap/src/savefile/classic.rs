//! The classic pcap format.

use std::ffi::c_int;

use weir_savefile::ByteOrder;

use super::bytes::Bytes;
use super::pseudo::swap_pseudo_header;
use super::{Begin, LEAST_BUFFER, Packet, longest_packet, short, snap_len};
use crate::abi::PCAP_TSTAMP_PRECISION_NANO;
use crate::link_types;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// A patched libpcap of old Linux distributions: records have eight more bytes in their header.
const PATCHED: u32 = 0xa1b2_cd34;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const PATCHED_HEADER: usize = 24;
/// The patched libpcap did not count Ethernet's header in the snap length.
const PATCHED_SNAP: u32 = 14;
const ETHERNET: c_int = 1;

/// Versions of the format: the second is that of a strange old tcpdump.
const LATEST: (u16, u16) = (2, 4);
const STRANGE: (u16, u16) = (543, 0);

/// The bits of the link type; those above say more about the packets.
const LINK_TYPE: u32 = 0x03ff_ffff;

/// How records are read.
pub(super) struct Classic {
    order: ByteOrder,
    header: usize,
    lengths: Lengths,
    scale: Scale,
}

/// The order of the two lengths in a record, which old versions disagree about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    CapturedSecond,
    /// The captured length is the smaller one.
    Smaller,
}

/// What makes the fraction of a timestamp the one that the program wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Keep,
    Times1000,
    Over1000,
}

impl Classic {
    /// Reads the rest of the file header; `Ok(None)` if the file does not begin with this format's number.
    pub(super) fn begin(
        magic: [u8; 4],
        bytes: &mut Bytes,
        precision: c_int,
    ) -> Result<Option<(Self, Begin)>, String> {
        let known = |order: ByteOrder| match order.u32(magic) {
            number @ (MICROSECONDS | NANOSECONDS | PATCHED) => Some((order, number)),
            _ => None,
        };
        let Some((order, number)) = known(ByteOrder::NATIVE).or_else(|| known(ByteOrder::NATIVE.swapped()))
        else {
            return Ok(None);
        };
        let rest = bytes.take(FILE_HEADER - magic.len());
        let Ok(rest) = <[u8; FILE_HEADER - 4]>::try_from(&*rest) else {
            let got = rest.len();
            return Err(short(bytes, || {
                format!("truncated dump file; tried to read {FILE_HEADER} file header bytes, only got {got}")
            }));
        };
        let word = |at: usize| order.u32([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let version = (order.u16([rest[0], rest[1]]), order.u16([rest[2], rest[3]]));
        if version.0 < LATEST.0 {
            return Err("archaic pcap savefile format".to_owned());
        }
        if version != STRANGE && (version.0 != LATEST.0 || version.1 > LATEST.1) {
            return Err(format!("unsupported pcap savefile version {}.{}", version.0, version.1));
        }
        let link_type = link_types::from_file(word(16) & LINK_TYPE);
        let mut snapshot = snap_len(word(12), link_type);
        let mut header = RECORD_HEADER;
        if number == PATCHED {
            header = PATCHED_HEADER;
            if link_type == ETHERNET {
                snapshot = snapshot.saturating_add(PATCHED_SNAP);
            }
        }
        super::supported(precision)?;
        let classic = Self {
            order,
            header,
            lengths: match version {
                (2, 3) => Lengths::Smaller,
                (2, ..3) | STRANGE => Lengths::CapturedSecond,
                _ => Lengths::CapturedFirst,
            },
            scale: match (number == NANOSECONDS, precision == PCAP_TSTAMP_PRECISION_NANO) {
                (true, false) => Scale::Over1000,
                (false, true) => Scale::Times1000,
                _ => Scale::Keep,
            },
        };
        let begin = Begin {
            version,
            swapped: order != ByteOrder::NATIVE,
            link_type,
            link_type_ext: word(16) & !LINK_TYPE,
            snapshot,
        };
        Ok(Some((classic, begin)))
    }

    /// Returns the size of the buffer that libpcap begins with.
    pub(super) fn buffer(begin: &Begin) -> usize {
        LEAST_BUFFER.min(begin.snapshot as usize)
    }

    #[inline]
    pub(super) fn next(
        &mut self,
        bytes: &mut Bytes,
        begin: &Begin,
        buffer: &mut usize,
        to: &mut Packet,
    ) -> Result<bool, String> {
        let record = bytes.take(self.header);
        let got = record.len();
        let Some(record) = record.first_chunk::<RECORD_HEADER>().filter(|_| got == self.header) else {
            return self.no_header(bytes, got);
        };
        let word = |at: usize| self.order.u32([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        // libpcap takes the two as signed numbers, unless it swaps their bytes.
        let signed = |number: u32| match begin.swapped {
            true => i64::from(number),
            false => i64::from(number.cast_signed()),
        };
        let (seconds, fraction) = (signed(word(0)), signed(word(4)));
        let (first, second) = (word(8), word(12));
        let (captured, length) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::CapturedSecond => (second, first),
            Lengths::Smaller => (first.min(second), first.max(second)),
        };
        let fraction = match self.scale {
            Scale::Keep => fraction,
            Scale::Times1000 => fraction * 1000,
            Scale::Over1000 => fraction / 1000,
        };
        if captured > longest_packet(begin.link_type) {
            return Err(too_long(captured, begin));
        }
        if captured as usize > *buffer {
            *buffer = captured.next_power_of_two().min(begin.snapshot) as usize;
        }
        let data = bytes.take(captured as usize);
        if data.len() < captured as usize {
            return Err(no_data(data.len(), captured, bytes, begin));
        }
        let captured = captured.min(begin.snapshot);
        to.header.ts.tv_sec = seconds;
        to.header.ts.tv_usec = fraction;
        to.header.caplen = captured;
        to.header.len = length;
        if begin.swapped {
            swap_pseudo_header(begin.link_type, length, &mut data[..captured as usize]);
        }
        to.data = data.as_ptr();
        Ok(true)
    }

    #[cold]
    fn no_header(&self, bytes: &Bytes, got: usize) -> Result<bool, String> {
        if got == 0 && bytes.error().is_none() {
            return Ok(false);
        }
        let wanted = self.header;
        Err(short(bytes, || {
            format!("truncated dump file; tried to read {wanted} header bytes, only got {got}")
        }))
    }
}

#[cold]
fn too_long(captured: u32, begin: &Begin) -> String {
    let most = longest_packet(begin.link_type);
    if captured <= begin.snapshot {
        return format!("invalid packet capture length {captured}, bigger than maximum of {most}");
    }
    format!("invalid packet capture length {captured}, bigger than snaplen of {}", begin.snapshot)
}

/// libpcap first reads what the snap length allows.
#[cold]
fn no_data(got: usize, captured: u32, bytes: &Bytes, begin: &Begin) -> String {
    let kept = captured.min(begin.snapshot);
    let wanted = if got < kept as usize { kept } else { captured };
    short(bytes, || format!("truncated dump file; tried to read {wanted} captured bytes, only got {got}"))
}
