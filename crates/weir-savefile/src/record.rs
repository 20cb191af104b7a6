//! The record: one packet as a pcapng Enhanced Packet Block (draft, section 4.3).
//!
//! The kernel program and the user-space sources use the same layout, so a chunk can be read as a sequence of records
//! and written to a file unchanged:
//!
//! ```text
//! offset  0  type = 6
//!         4  total length of the block
//!         8  interface
//!        12  timestamp, high half         nanoseconds since the Unix epoch; 0: none
//!        16  timestamp, low half
//!        20  captured length
//!        24  original length
//!        28  the packet, padded with zeros to a multiple of four
//!            options, if any, with their end mark
//!            total length again
//! ```
//!
//! All fields are `u32` in native byte order.

use crate::options::{self, Options};
pub use crate::options::{DIRECTION, DROP_COUNT, FLAGS, QUEUE};
use crate::pcapng::halves;
use crate::{ByteOrder, Notes, padding};

/// Block type.
pub const KIND: u32 = 6;
/// Length of the part before the packet.
pub const HEAD: usize = 28;
/// Length of the part after the packet and options: the total length again.
pub const TAIL: usize = 4;
/// Length that a record without options adds to the padded packet.
pub const OVERHEAD: usize = HEAD + TAIL;

/// The packet was received.
pub const INBOUND: u32 = 1;
/// The packet was sent.
pub const OUTBOUND: u32 = 2;

/// The fields of a record, except the captured length, which [`encode`] computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordHeader {
    /// Position of the interface's description in the section.
    pub interface: u32,
    /// Nanoseconds since the Unix epoch; 0 if there is no timestamp.
    pub timestamp: u64,
    /// Length on the wire.
    pub original_len: u32,
    /// `epb_flags`, omitted if `None`.
    pub flags: Option<u32>,
    /// `epb_dropcount`, omitted if `None`.
    pub dropcount: Option<u64>,
    /// `epb_queue`, omitted if `None`.
    pub queue: Option<u32>,
}

impl RecordHeader {
    /// Returns the length of the option list with its end mark; 0 if there are no options.
    #[inline]
    fn options_len(&self) -> usize {
        let len = usize::from(self.flags.is_some()) * 8
            + usize::from(self.dropcount.is_some()) * 12
            + usize::from(self.queue.is_some()) * 8;
        if len == 0 { 0 } else { len + 4 }
    }
}

/// Encodes a record at the start of `buf`. The packet is the concatenation of `parts`, so that a stripped VLAN tag can
/// be restored between the addresses and the type without an extra copy.
///
/// Returns the number of bytes used. `None`: the record does not fit, and `buf` is unchanged.
#[inline]
pub fn encode(buf: &mut [u8], header: &RecordHeader, parts: &[&[u8]]) -> Option<usize> {
    let captured = parts.iter().map(|part| part.len()).sum::<usize>();
    let total = OVERHEAD + captured + padding(captured) + header.options_len();
    let block = buf.get_mut(..total)?;
    let total_field = u32::try_from(total).ok()?.to_ne_bytes();
    let captured_field = u32::try_from(captured).ok()?.to_ne_bytes();

    let mut out = Cursor { rest: block };
    out.put(&KIND.to_ne_bytes());
    out.put(&total_field);
    out.put(&header.interface.to_ne_bytes());
    out.put(&halves(header.timestamp));
    out.put(&captured_field);
    out.put(&header.original_len.to_ne_bytes());
    for part in parts {
        out.put(part);
    }
    out.put(&[0; 3][..padding(captured)]);
    if let Some(flags) = header.flags {
        out.put_option(FLAGS, &flags.to_ne_bytes());
    }
    if let Some(dropcount) = header.dropcount {
        out.put_option(DROP_COUNT, &dropcount.to_ne_bytes());
    }
    if let Some(queue) = header.queue {
        out.put_option(QUEUE, &queue.to_ne_bytes());
    }
    if header.options_len() > 0 {
        out.put_option(options::END, &[]);
    }
    out.put(&total_field);
    Some(total)
}

/// Appends a record with all its options. `comment` is truncated to the longest possible option. `notes` come from
/// another file; their flags are added to those of `header`, and `comment` is omitted if it is among their comments.
///
/// `None`: the block would be too long, and `out` is unchanged.
#[inline]
pub fn append(
    out: &mut Vec<u8>,
    header: &RecordHeader,
    data: &[u8],
    comment: Option<&str>,
    notes: &Notes<'_>,
) -> Option<()> {
    let start = out.len();
    out.reserve(OVERHEAD + data.len() + 32);
    for word in [KIND, 0, header.interface] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(&halves(header.timestamp));
    for word in [u32::try_from(data.len()).unwrap_or(u32::MAX), header.original_len] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(data);
    out.extend_from_slice(&[0; 3][..padding(data.len())]);
    let list = out.len();
    let mut flags = header.flags;
    if notes.is_empty() {
        options::append_text(out, options::COMMENT, comment);
    } else {
        let comment = comment.filter(|comment| notes.comments().all(|other| other != *comment));
        options::append_text(out, options::COMMENT, comment);
        notes.append_to(out);
        flags = Some(flags.unwrap_or(0) | notes.flags()).filter(|flags| *flags > 0);
    }
    if let Some(flags) = flags {
        options::append(out, FLAGS, &flags.to_ne_bytes());
    }
    if let Some(dropcount) = header.dropcount {
        options::append(out, DROP_COUNT, &dropcount.to_ne_bytes());
    }
    if let Some(queue) = header.queue {
        options::append(out, QUEUE, &queue.to_ne_bytes());
    }
    if out.len() > list {
        options::append_end(out);
    }
    close(out, start)
}

/// Appends the record that is all of `block`, with `lost` more packets lost before it. `None`: it is no record, and `out` is
/// unchanged.
pub fn append_with_loss(out: &mut Vec<u8>, block: &[u8], lost: u64) -> Option<()> {
    let (record, []) = first(block).ok()? else { return None };
    let head = HEAD + record.data.len() + padding(record.data.len());
    let list = &block[head..block.len() - TAIL];
    let start = out.len();
    out.extend_from_slice(&block[..head]);
    options::append(out, DROP_COUNT, &record.dropcount.saturating_add(lost).to_ne_bytes());
    for option in Options::new(list).flatten().filter(|option| option.code != DROP_COUNT) {
        options::append(out, option.code, option.value);
    }
    options::append_end(out);
    close(out, start)
}

/// Writes both lengths of the block that begins at `start` and lacks only the last one. `None`: it is too long, and gone.
#[inline]
fn close(out: &mut Vec<u8>, start: usize) -> Option<()> {
    // If the packet is too long for its length field, so is the block.
    let Ok(total) = u32::try_from(out.len() + TAIL - start) else {
        out.truncate(start);
        return None;
    };
    out[start + 4..start + 8].copy_from_slice(&total.to_ne_bytes());
    out.extend_from_slice(&total.to_ne_bytes());
    Some(())
}

/// A writer that fills a slice from its start; the caller has checked that everything fits.
struct Cursor<'a> {
    rest: &'a mut [u8],
}

impl Cursor<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let (here, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        self.rest = rest;
    }

    /// Appends an option. `value` has 0, 4 or 8 bytes, which need no padding.
    #[inline]
    fn put_option<const N: usize>(&mut self, code: u16, value: &[u8; N]) {
        self.put(&code.to_ne_bytes());
        self.put(&u16::try_from(N).unwrap_or(u16::MAX).to_ne_bytes());
        self.put(value);
    }
}

/// A packet, borrowed from the bytes of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The packet, up to the snap length.
    pub data: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0 if there is no timestamp.
    pub timestamp: u64,
    /// Packets lost on this interface and queue since the previous record.
    pub dropcount: u64,
    /// Position of the interface's description in the section.
    pub interface: u32,
    /// Length on the wire.
    pub original_len: u32,
    /// The receive queue, or 0 if the record does not name it.
    pub queue: u32,
    /// `epb_flags`, if present.
    pub flags: Option<u32>,
    /// All options, encoded, if they say more than the fields above: comments, hashes, how the packet was received
    /// ([`Notes`]). Otherwise empty.
    pub notes: &'a [u8],
}

/// An error in a sequence of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed record at byte {offset}: {reason}")]
pub struct Malformed {
    /// Offset of the bad record.
    pub offset: usize,
    /// The error.
    pub reason: Reason,
}

/// An error in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end before the block does.
    #[error("it is truncated")]
    Cut,
    /// A block of another type.
    #[error("block type {0:#x} is not a packet")]
    Kind(u32),
    /// The block length is not a multiple of four, or too small for a record.
    #[error("a record cannot be {0} bytes long")]
    Length(u32),
    /// The packet is longer than the block.
    #[error("a packet of {0} bytes does not fit in it")]
    Captured(u32),
    /// The two block lengths differ.
    #[error("its trailing length, {0}, differs from its leading length")]
    Tail(u32),
    /// An option is longer than the block, or its length is invalid for its code.
    #[error("its options are damaged")]
    Options,
}

/// An iterator over a sequence of records. It ends with the bytes, or after the first [`Malformed`] record.
///
/// Whatever the input, it reads nothing outside the bytes, and every step but the last advances.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    /// The bytes from the next record on.
    rest: &'a [u8],
    /// Length of the records returned so far.
    offset: usize,
}

impl<'a> Records<'a> {
    /// Starts at the beginning of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    /// Returns the total length of the records returned so far.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match first(self.rest) {
            Ok((record, rest)) => {
                self.offset += self.rest.len() - rest.len();
                self.rest = rest;
                Some(Ok(record))
            }
            Err(reason) => {
                self.rest = &[];
                Some(Err(Malformed { offset: self.offset, reason }))
            }
        }
    }
}

impl std::iter::FusedIterator for Records<'_> {}

/// An iterator over the timestamps of a sequence of records, which reads only the start of each. It ends early where there is
/// no record; whether a record is whole is for [`Records`] to say.
#[derive(Debug, Clone)]
pub struct Timestamps<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Timestamps<'a> {
    /// Starts at the beginning of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Returns the total length of the records whose timestamps were returned so far.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the timestamp of the last record in `bytes`, found from the end.
    pub fn last(bytes: &'a [u8]) -> Option<u64> {
        let total = u32::from_ne_bytes(*bytes.last_chunk::<TAIL>()?) as usize;
        Self::new(&bytes[bytes.len().checked_sub(total)?..]).next()
    }
}

impl Iterator for Timestamps<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let rest = &self.bytes[self.offset..];
        let head = rest.first_chunk::<20>()?;
        let word = |at| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let total = word(4) as usize;
        if word(0) != KIND || total < OVERHEAD || total > rest.len() {
            return None;
        }
        self.offset += total;
        Some(u64::from(word(12)) << 32 | u64::from(word(16)))
    }
}

/// Splits `bytes` into the first record and the rest.
#[inline]
pub(crate) fn first(bytes: &[u8]) -> Result<(Record<'_>, &[u8]), Reason> {
    first_in(ByteOrder::NATIVE, bytes)
}

/// Does what [`first`] does, for records of any byte order.
#[inline]
pub(crate) fn first_in(order: ByteOrder, bytes: &[u8]) -> Result<(Record<'_>, &[u8]), Reason> {
    decode(order, bytes, true)
}

/// Does what [`first_in`] does, but ignores the options, which may be invalid.
pub(crate) fn bare(order: ByteOrder, bytes: &[u8]) -> Result<(Record<'_>, &[u8]), Reason> {
    decode(order, bytes, false)
}

#[inline(always)]
fn decode(order: ByteOrder, bytes: &[u8], with_options: bool) -> Result<(Record<'_>, &[u8]), Reason> {
    let head = bytes.first_chunk::<HEAD>().ok_or(Reason::Cut)?;
    let word = |at| order.u32([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let kind = word(0);
    if kind != KIND {
        return Err(Reason::Kind(kind));
    }
    let total = word(4);
    if !total.is_multiple_of(4) || (total as usize) < OVERHEAD {
        return Err(Reason::Length(total));
    }
    let (block, rest) = bytes.split_at_checked(total as usize).ok_or(Reason::Cut)?;
    let (body, tail) = block[HEAD..].split_last_chunk::<TAIL>().ok_or(Reason::Length(total))?;
    let tail = order.u32(*tail);
    if tail != total {
        return Err(Reason::Tail(tail));
    }
    let captured = word(20);
    let (data, behind) = body.split_at_checked(captured as usize).ok_or(Reason::Captured(captured))?;
    let mut record = Record {
        data,
        timestamp: u64::from(word(12)) << 32 | u64::from(word(16)),
        dropcount: 0,
        interface: word(8),
        original_len: word(24),
        queue: 0,
        flags: None,
        notes: &[],
    };
    // The body is a multiple of four, so the padding is present, and only options can follow it.
    if with_options && behind.len() >= 4 {
        read_options(order, &behind[padding(data.len())..], &mut record)?;
    }
    Ok((record, rest))
}

/// Sets the fields that come from the option list.
#[inline]
fn read_options<'a>(order: ByteOrder, list: &'a [u8], record: &mut Record<'a>) -> Result<(), Reason> {
    let mut more = false;
    for option in Options::in_order(order, list) {
        let option = option.map_err(|_| Reason::Options)?;
        match option.code {
            FLAGS => {
                let flags = order.u32(fixed(option.value)?);
                more |= flags & !DIRECTION != 0;
                record.flags = Some(flags);
            }
            DROP_COUNT => record.dropcount = order.u64(fixed(option.value)?),
            QUEUE => record.queue = order.u32(fixed(option.value)?),
            _ => more = true,
        }
    }
    if more {
        record.notes = list;
    }
    Ok(())
}

#[inline]
fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], Reason> {
    value.try_into().map_err(|_| Reason::Options)
}

/// Returns the length of the whole records at the start of `bytes`: the valid part after a short write.
pub fn whole_records(bytes: &[u8]) -> usize {
    first_records(bytes, usize::MAX)
}

/// Returns the length of the first `records` records of `bytes`, or of all whole ones if there are fewer.
pub fn first_records(bytes: &[u8], records: usize) -> usize {
    let mut run = Records::new(bytes);
    run.by_ref().take(records).for_each(drop);
    run.offset()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: RecordHeader = RecordHeader {
        interface: 1,
        timestamp: 0x0102_0304_0506_0708,
        original_len: 1500,
        flags: None,
        dropcount: None,
        queue: None,
    };

    fn encoded(header: &RecordHeader, data: &[u8]) -> Vec<u8> {
        let mut buf = vec![0xee; 256];
        let used = encode(&mut buf, header, &[data]).unwrap();
        buf.truncate(used);
        buf
    }

    fn only(bytes: &[u8]) -> Result<Record<'_>, Reason> {
        let mut records = Records::new(bytes);
        let first = records.next().unwrap();
        assert!(records.next().is_none());
        first.map_err(|malformed| malformed.reason)
    }

    fn set(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    #[test]
    fn every_byte_of_a_record() {
        let header = RecordHeader { flags: Some(OUTBOUND), ..HEADER };
        let mut expected = Vec::new();
        for word in [6, 48, 1, 0x0102_0304, 0x0506_0708, 3, 1500u32] {
            expected.extend_from_slice(&word.to_ne_bytes());
        }
        expected.extend_from_slice(&[7, 8, 9, 0]);
        for half in [2, 4u16] {
            expected.extend_from_slice(&half.to_ne_bytes());
        }
        for word in [2, 0, 48u32] {
            expected.extend_from_slice(&word.to_ne_bytes());
        }
        assert_eq!(encoded(&header, &[7, 8, 9]), expected);
    }

    #[test]
    fn both_ways_to_write_a_record_agree() {
        for options in 0..8u8 {
            let option = |bit: u8| options & bit != 0;
            let header = RecordHeader {
                flags: option(1).then_some(INBOUND),
                dropcount: option(2).then_some(7),
                queue: option(4).then_some(9),
                ..HEADER
            };
            for len in [0, 1, 60, 61] {
                let mut appended = Vec::new();
                append(&mut appended, &header, &[7; 61][..len], None, &Notes::default()).unwrap();
                assert_eq!(appended, encoded(&header, &[7; 61][..len]));
            }
        }
    }

    #[test]
    fn a_comment_stands_before_the_other_options() {
        let mut bytes = Vec::new();
        append(
            &mut bytes,
            &RecordHeader { queue: Some(9), ..HEADER },
            &[7; 4],
            Some("hello"),
            &Notes::default(),
        )
        .unwrap();
        assert_eq!(only(&bytes).unwrap().queue, 9);
        let options: Vec<_> =
            Options::new(&bytes[HEAD + 4..bytes.len() - TAIL]).map(Result::unwrap).collect();
        assert_eq!((options[0].code, options[0].value, options.len()), (options::COMMENT, &b"hello"[..], 2));
    }

    #[test]
    fn losses_are_added_and_all_else_is_kept() {
        let mut comment = Vec::new();
        let header = RecordHeader { flags: Some(5), dropcount: Some(2), queue: Some(9), ..HEADER };
        append(&mut comment, &header, &[7; 5], Some("hello"), &Notes::default()).unwrap();
        for (block, flags, queue, lost) in [(comment, Some(5), 9, 5), (encoded(&HEADER, &[7; 5]), None, 0, 3)]
        {
            let mut out = vec![1];
            append_with_loss(&mut out, &block, 3).unwrap();
            let record = only(&out[1..]).unwrap();
            assert_eq!((record.dropcount, record.flags, record.queue), (lost, flags, queue));
            assert_eq!((record.data, record.timestamp), (&[7; 5][..], HEADER.timestamp));
            assert_eq!(options::comments(record.notes).count(), usize::from(flags.is_some()));
            let drops = Options::new(&out[1 + HEAD + 8..out.len() - TAIL]);
            assert_eq!(drops.filter(|option| option.unwrap().code == DROP_COUNT).count(), 1);
            let mut out = vec![1];
            assert_eq!(append_with_loss(&mut out, &[&block[..], &block].concat(), 3), None);
            assert_eq!(append_with_loss(&mut out, &block[1..], 3), None);
            assert_eq!(out, [1]);
        }
    }

    #[test]
    fn timestamps_end_where_there_is_no_record() {
        let good = encoded(&HEADER, &[1; 8]);
        let of = |bytes: &[u8]| (Timestamps::new(bytes).count(), Timestamps::last(bytes).is_some());
        assert_eq!(of(&[&good[..], &good].concat()), (2, true));
        for (at, value, count) in [(0, 5, 0), (4, 28, 0), (4, 32, 1), (4, 44, 0), (4, 0, 0)] {
            let mut bytes = good.clone();
            set(&mut bytes, at, value);
            assert_eq!(Timestamps::new(&bytes).count(), count, "{at} {value}");
        }
        assert_eq!(of(&good[4..]), (0, false));
        assert_eq!(of(&[1, 2, 3]), (0, false));
    }

    #[test]
    fn a_record_that_does_not_fit_leaves_the_buffer_alone() {
        let mut buf = [0xee; 35];
        assert_eq!(encode(&mut buf, &HEADER, &[&[1]]), None);
        assert_eq!(buf, [0xee; 35]);
    }

    #[test]
    fn each_field_is_checked() {
        let good = encoded(&HEADER, &[1; 10]);
        let bad = |at, value| {
            let mut bytes = good.clone();
            set(&mut bytes, at, value);
            only(&bytes).map(drop)
        };
        assert!(only(&good).is_ok());
        assert_eq!(bad(0, 5), Err(Reason::Kind(5)));
        assert_eq!(bad(4, 0), Err(Reason::Length(0)));
        assert_eq!(bad(4, 28), Err(Reason::Length(28)));
        assert_eq!(bad(4, 43), Err(Reason::Length(43)));
        assert_eq!(bad(4, 48), Err(Reason::Cut));
        assert_eq!(bad(4, u32::MAX - 3), Err(Reason::Cut));
        assert_eq!(bad(20, 13), Err(Reason::Captured(13)));
        assert_eq!(bad(20, u32::MAX), Err(Reason::Captured(u32::MAX)));
        assert_eq!(bad(40, 40), Err(Reason::Tail(40)));
        for cut in 1..good.len() {
            assert_eq!(only(&good[..cut]), Err(Reason::Cut));
        }
    }

    #[test]
    fn options_are_checked() {
        let good = encoded(&RecordHeader { flags: Some(1), queue: Some(9), ..HEADER }, &[1; 8]);
        assert_eq!(only(&good).unwrap().queue, 9);
        let with_length = |len: u16| {
            let mut bytes = good.clone();
            bytes[38..40].copy_from_slice(&len.to_ne_bytes());
            only(&bytes).map(drop)
        };
        assert_eq!(with_length(4), Ok(()));
        assert_eq!(with_length(3), Err(Reason::Options));
        assert_eq!(with_length(8), Err(Reason::Options));
        assert_eq!(with_length(u16::MAX), Err(Reason::Options));
    }

    #[test]
    fn offsets_name_the_malformed_record() {
        let mut bytes = [encoded(&HEADER, &[1; 4]), encoded(&HEADER, &[2; 5])].concat();
        set(&mut bytes, 36, 5);
        let last = Records::new(&bytes).last().unwrap();
        assert_eq!(last, Err(Malformed { offset: 36, reason: Reason::Kind(5) }));
    }

    #[test]
    fn prefixes_end_between_records() {
        let records = [encoded(&HEADER, &[1; 4]), encoded(&HEADER, &[2; 5]), encoded(&HEADER, &[])];
        let bytes = records.concat();
        assert_eq!(records.each_ref().map(Vec::len), [36, 40, 32]);
        assert_eq!(whole_records(&bytes), 108);
        assert_eq!(whole_records(&bytes[..107]), 76);
        assert_eq!(whole_records(&bytes[..35]), 0);
        assert_eq!([0, 1, 2, 3, 4].map(|n| first_records(&bytes, n)), [0, 36, 76, 108, 108]);
    }
}
