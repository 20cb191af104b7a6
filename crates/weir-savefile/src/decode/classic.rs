//! Classic pcap and its variants.
//!
//! The packet length is the only length in a record, so everything after a damaged record is lost.
//!
//! | magic | written by | differences |
//! |---|---|---|
//! | `a1b2c3d4` | most programs | |
//! | `a1b23c4d` | most programs | nanoseconds |
//! | `a1b2cd34` | Linux distributions around 1999, by A. Kuznetzov's patch | eight more bytes per record: interface index, protocol, packet type |
//! | `1c0001ac`, `1c0001ab` | Ixia's lcap, from hardware or software | the header ends with the length of all records |

use super::{Doubt, Fault, Found, LONGEST_BLOCK, PacketAt, Step};
use crate::ByteOrder;
use crate::pcap::{FILE_HEADER, LAST_TIME, RECORD_HEADER, Resolution, longest_packet};
use crate::record::{INBOUND, OUTBOUND, Record};

/// Extra bytes in each of Kuznetzov's record headers.
const PATCHED_MORE: usize = 8;
/// Extra bytes in Ixia's file header.
const IXIA_MORE: usize = 4;
/// `PACKET_OUTGOING`: the packet type of a packet that the host sent, in Kuznetzov's records.
const OUTGOING: u8 = 4;

/// The format variant, as told by the magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Byte order of all numbers in the file.
    pub order: ByteOrder,
    /// Unit of the subsecond part of a timestamp.
    pub resolution: Resolution,
    /// Whether records have the longer header of Kuznetzov's patch.
    pub patched: bool,
    /// Whether it is Ixia's lcap, which has a longer file header.
    pub ixia: bool,
}

/// The file header of a pcap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Format variant of the file.
    pub variant: Variant,
    /// Version (2.4 since 1998).
    pub version: (u16, u16),
    /// Snap length.
    pub snap_len: u32,
    /// `LINKTYPE_` number.
    pub link_type: u16,
    /// Length of the frame check sequence at the end of each packet, if the file states it.
    pub fcs_len: Option<u8>,
    lengths: Lengths,
    /// Longest packet that is accepted, in bytes.
    pub(super) longest: u32,
}

/// The order of the two lengths in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// Captured length, original length: since version 2.3.
    CapturedFirst,
    /// Original length, captured length: before version 2.3.
    OriginalFirst,
    /// Programs that wrote version 2.3 used either order. The larger value is the original length.
    LargerIsOriginal,
}

/// Returns the variant with this magic number.
pub(super) fn variant(magic: [u8; 4]) -> Result<Variant, Fault> {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let plain = Variant { order, resolution: Resolution::Micro, patched: false, ixia: false };
        return Ok(match order.u32(magic) {
            0xa1b2_c3d4 => plain,
            0xa1b2_3c4d => Variant { resolution: Resolution::Nano, ..plain },
            0xa1b2_cd34 => Variant { patched: true, ..plain },
            0x1c00_01ac | 0x1c00_01ab => Variant { ixia: true, ..plain },
            0xa12b_3c4d => return Err(Fault::Undocumented("Navtel's pcap")),
            0xa1b2_34cd => return Err(Fault::Undocumented("F. Mesquita's pcap")),
            _ => continue,
        });
    }
    Err(Fault::Magic(magic))
}

/// Returns whether `bytes` begin with a pcap file header: a known magic number and a supported version.
pub fn begins_file(bytes: &[u8]) -> bool {
    let Some(variant) = bytes.first_chunk().and_then(|magic| variant(*magic).ok()) else { return false };
    let version = variant.order.u16_at(bytes, 4).zip(variant.order.u16_at(bytes, 6));
    version.is_some_and(|(major, minor)| lengths(major, minor).is_some())
}

/// Returns the reason why an apparent record of an empty packet is not one.
#[cold]
fn no_record(header: &[u8]) -> Option<Fault> {
    match header {
        header if begins_file(header) => Some(Fault::AnotherFile),
        header if header.iter().all(|byte| *byte == 0) => Some(Fault::Zeros),
        _ => None,
    }
}

/// Returns the order of the lengths in this version; `None`: unknown version.
fn lengths(major: u16, minor: u16) -> Option<Lengths> {
    match (major, minor) {
        (2, 0..=2) => Some(Lengths::OriginalFirst),
        (2, 3) => Some(Lengths::LargerIsOriginal),
        (2, 4) => Some(Lengths::CapturedFirst),
        (543, 0) => Some(Lengths::OriginalFirst), // tcpdump of DG/UX
        _ => None,
    }
}

impl Variant {
    /// Returns the length of the file header in bytes.
    pub fn header_len(self) -> usize {
        FILE_HEADER + if self.ixia { IXIA_MORE } else { 0 }
    }

    /// Returns the length of a record header in bytes.
    #[inline]
    pub fn record_header_len(self) -> usize {
        RECORD_HEADER + if self.patched { PATCHED_MORE } else { 0 }
    }
}

impl Header {
    /// Reads the file header. `None`: there are too few bytes.
    pub(super) fn read(variant: Variant, bytes: &[u8]) -> Result<Option<(Self, Option<Doubt>)>, Fault> {
        let Some(bytes) = bytes.get(..variant.header_len()) else { return Ok(None) };
        let half = |at| variant.order.u16_at(bytes, at).unwrap_or_default();
        let word = |at| variant.order.u32_at(bytes, at).unwrap_or_default();
        let version = (half(4), half(6));
        let (major, minor) = version;
        let lengths = lengths(major, minor).ok_or(Fault::Version { major, minor })?;
        // Bits 0 to 15: link type. Bits 16 to 25: no meaning. Bit 26: the four highest bits hold the length of the
        // frame check sequence, in 16-bit words. Bit 27: no meaning.
        let link = word(20);
        let link_type = u16::try_from(link & 0xffff).unwrap_or_default();
        let fcs_len = (link & 1 << 26 != 0).then(|| u8::try_from(link >> 28).unwrap_or_default() * 2);
        let zone = word(8).cast_signed();
        let doubt = if link & 0x0bff_0000 != 0 || (fcs_len.is_none() && link >> 28 != 0) {
            Some(Doubt::LinkType(link))
        } else if zone != 0 {
            Some(Doubt::Zone(zone))
        } else {
            None
        };
        let snap_len = word(16);
        // A record longer than both this and the file's snap length is damaged.
        let usual = longest_packet(link_type);
        let longest = if snap_len > usual { LONGEST_BLOCK } else { usual };
        let header = Self { variant, version, snap_len, link_type, fcs_len, lengths, longest };
        Ok(Some((header, doubt)))
    }

    pub(super) fn step<'a>(&self, bytes: &'a [u8]) -> Result<Step<'a>, Fault> {
        if let Some((record, used)) = self.plain(bytes) {
            let packet = PacketAt {
                data: used - record.data.len()..used,
                timestamp: record.timestamp,
                original_len: record.original_len,
                flags: record.flags,
                ..PacketAt::default()
            };
            return Ok(Step::Found { used, found: Found::Packet(packet) });
        }
        let head = self.variant.record_header_len();
        let Some(header) = bytes.get(..head) else {
            return Ok(Step::Need(head));
        };
        let numbers = self.numbers(header);
        let (captured, limit) = (numbers.captured, self.longest);
        if captured > limit {
            return Err(Fault::TooLong { length: captured, limit });
        }
        if numbers.is_nothing()
            && let Some(fault) = no_record(header)
        {
            return Err(fault);
        }
        Ok(Step::Need(head + captured as usize))
    }

    /// Returns the record and its length in bytes, as [`Decoder::plain`](super::Decoder::plain) does. All whole records
    /// are plain.
    #[inline(always)]
    pub(super) fn plain<'a>(&self, bytes: &'a [u8]) -> Option<(Record<'a>, usize)> {
        let start = self.variant.record_header_len();
        let numbers = self.numbers(bytes.get(..start)?);
        let Numbers { timestamp, captured, original_len, flags, .. } = numbers;
        let used = start + captured as usize;
        if captured > self.longest || (numbers.is_nothing() && no_record(&bytes[..start]).is_some()) {
            return None;
        }
        let record = Record {
            data: bytes.get(start..used)?,
            timestamp,
            original_len,
            flags,
            dropcount: 0,
            interface: 0,
            queue: 0,
            notes: &[],
        };
        Some((record, used))
    }

    /// Returns this header with constants that the compiler can see, if records [have the usual
    /// layout](Self::is_usual).
    #[inline(always)]
    pub(super) fn usual(&self) -> Option<Self> {
        let variant = Variant { order: ByteOrder::NATIVE, patched: false, ixia: false, ..self.variant };
        self.is_usual().then_some(Self { variant, lengths: Lengths::CapturedFirst, ..*self })
    }

    /// Returns whether records have the layout that weir and most programs write: native byte order and no extra
    /// fields.
    pub fn is_usual(&self) -> bool {
        let Variant { order, patched, ixia, .. } = self.variant;
        order == ByteOrder::NATIVE && !patched && !ixia && self.lengths == Lengths::CapturedFirst
    }

    /// Converts a record to the format of this file. `from`: the header of the file it comes from. Timestamps are
    /// truncated to this file's resolution.
    pub fn adopt(&self, from: &Self, record: &[u8]) -> Vec<u8> {
        let (head, data) = record.split_at(from.variant.record_header_len().min(record.len()));
        let Numbers { timestamp, captured, original_len, flags, .. } = from.numbers(head);
        let word = |number: u64| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            if self.variant.order == ByteOrder::NATIVE { number } else { number.swap_bytes() }.to_ne_bytes()
        };
        let unit = match self.variant.resolution {
            Resolution::Nano => 1,
            Resolution::Micro => 1_000,
        };
        let (first, second) = match self.lengths {
            Lengths::OriginalFirst => (original_len, captured),
            _ => (captured, original_len),
        };
        // The fraction of the other record may be more than a second, behind the last one.
        let timestamp = timestamp.min(LAST_TIME);
        let (seconds, fraction) = (timestamp / 1_000_000_000, timestamp % 1_000_000_000 / unit);
        let mut adopted = [seconds, fraction, first.into(), second.into()].map(word).concat();
        if self.variant.patched {
            let kind = if flags == Some(OUTBOUND) { OUTGOING } else { 0 };
            adopted.extend([0, 0, 0, 0, 0, 0, kind, 0]);
        }
        adopted.extend_from_slice(data);
        adopted
    }

    /// Returns whether this file may hold a packet of `captured` bytes from a file with the header `other`.
    pub fn may_hold(&self, other: &Self, captured: usize) -> bool {
        (self.link_type, self.fcs_len) == (other.link_type, other.fcs_len)
            && captured <= self.longest as usize
    }

    /// Returns whether records of both files have the same layout.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.variant == other.variant && self.lengths == other.lengths
    }

    /// Reads a record header, which must have its full length.
    #[inline(always)]
    pub(crate) fn numbers(&self, header: &[u8]) -> Numbers {
        let word = |at| self.variant.order.u32_at(header, at).unwrap_or_default();
        let nanoseconds = match self.variant.resolution {
            Resolution::Nano => 1,
            Resolution::Micro => 1_000,
        };
        let (first, second) = (word(8), word(12));
        let (captured, original_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::LargerIsOriginal => (first.min(second), first.max(second)),
        };
        // At most 2^32 seconds and 2^32 microseconds: 2^62 nanoseconds.
        let fraction = word(4);
        let timestamp = u64::from(word(0)) * 1_000_000_000 + u64::from(fraction) * nanoseconds;
        let flags = header
            .get(RECORD_HEADER + 6)
            .filter(|_| self.variant.patched)
            .map(|kind| if *kind == OUTGOING { OUTBOUND } else { INBOUND });
        Numbers { timestamp, fraction, captured, original_len, flags }
    }
}

/// The fields of a record header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) timestamp: u64,
    /// Subsecond part of the timestamp, in the file's unit.
    pub(crate) fraction: u32,
    pub(crate) captured: u32,
    pub(crate) original_len: u32,
    pub(crate) flags: Option<u32>,
}

impl Numbers {
    /// Returns whether the packet is empty, as for a run of zeros or a file header that is mistaken for a record.
    #[inline(always)]
    fn is_nothing(&self) -> bool {
        self.captured == 0 && self.original_len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_packet_is_read_and_one_byte_more_refused() {
        let word = |number: u32| number.to_le_bytes();
        let file = [word(0xa1b2_c3d4), [2, 0, 4, 0], word(0), word(0), word(262_144), word(1)].concat();
        let variant = variant([0xd4, 0xc3, 0xb2, 0xa1]).expect("pcap");
        let (header, _) = Header::read(variant, &file).expect("a header").expect("all of it");
        let record = |length| [word(1), word(0), word(length), word(length)].concat();
        let longest = record(262_144);
        assert!(matches!(header.step(&longest), Ok(Step::Need(262_160))));
        let whole = [&longest[..], &[7; 262_144]].concat();
        assert!(matches!(header.step(&whole), Ok(Step::Found { used: 262_160, .. })));
        let longer = record(262_145);
        let refused = header.step(&longer);
        assert!(matches!(refused, Err(Fault::TooLong { length: 262_145, limit: 262_144 })));
    }
}
