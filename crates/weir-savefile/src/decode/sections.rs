//! pcapng sections, each with its own byte order and interfaces, and their blocks.

use std::ops::Range;

use super::block::{FRONT, each_option, frame, place, text};
use super::{Doubt, Fault, Found, MOST_DESCRIPTIONS, MOST_INTERFACES, PacketAt, Step, TimeUnit};
use crate::options::{self, RawOption};
use crate::pcapng::{InterfaceDescription, InterfaceStatistics, SECTION_HEADER, SectionHeader};
use crate::record::{self, Reason, Record};
use crate::{ByteOrder, padding, pcapng};

/// Lengths of the fixed parts of block bodies, in bytes.
const SECTION: usize = 16;
const INTERFACE: usize = 8;
const STATISTICS: usize = 12;
const SIMPLE: usize = 4;
const PACKET: usize = 20;

/// Interface options that have no field: byte strings (addresses, name of the time zone) and numbers (time zone, speed
/// in each direction).
const BYTES: [u16; 4] = [4, 5, 7, 18];
const NUMBERS: [u16; 3] = [10, 16, 17];

/// The state of reading a pcapng file.
#[derive(Debug, Clone)]
pub(crate) struct Sections {
    order: ByteOrder,
    /// Number of interfaces in earlier sections.
    base: u32,
    /// Interfaces of this section.
    interfaces: Vec<Known>,
    /// Whether records of this section need no conversion: native byte order, and all timestamps in nanoseconds.
    plain: bool,
    /// Bytes of section headers and interface descriptions so far.
    described: usize,
    /// Number of sections so far.
    sections: u32,
}

/// The properties of an interface that its packets need.
#[derive(Debug, Clone, Copy)]
struct Known {
    time: TimeUnit,
    snap_len: u32,
}

impl Sections {
    pub(super) fn new() -> Self {
        Self {
            order: ByteOrder::NATIVE,
            base: 0,
            interfaces: Vec::new(),
            plain: false,
            described: 0,
            sections: 0,
        }
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the number of interfaces that this section has described.
    pub(crate) fn count(&self) -> u32 {
        // At most MOST_INTERFACES.
        u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX)
    }

    /// Returns the record and its length in bytes, as [`Decoder::plain`](super::Decoder::plain) does. The same code
    /// walks live chunks.
    #[inline(always)]
    pub(super) fn plain<'a>(&self, bytes: &'a [u8]) -> Option<(Record<'a>, usize)> {
        if !self.plain {
            return None;
        }
        let (record, rest) = record::first(bytes).ok()?;
        if record.interface >= self.count() || !record.notes.is_empty() {
            return None;
        }
        let used = bytes.len() - rest.len();
        Some((Record { interface: self.base + record.interface, ..record }, used))
    }

    pub(super) fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, Fault> {
        let frame = match frame(bytes, self.order)? {
            Ok(frame) => frame,
            Err(need) => return Ok(Step::Need(need)),
        };
        if self.sections == 0 && frame.kind != SECTION_HEADER {
            return Err(Fault::NoSection(frame.kind));
        }
        let body = FRONT..frame.length - 4;
        let found = match frame.kind {
            SECTION_HEADER => self.section(frame.order, bytes, body)?,
            pcapng::INTERFACE_DESCRIPTION => self.interface(bytes, body)?,
            pcapng::INTERFACE_STATISTICS => self.statistics(bytes, body),
            record::KIND => self.record(bytes, frame.length),
            pcapng::SIMPLE_PACKET => self.simple(bytes, body),
            pcapng::PACKET => self.obsolete(bytes, body),
            kind => Ok(Found::Block { kind, body, order: self.order }),
        };
        Ok(Step::Found { used: frame.length, found: found.unwrap_or_else(Found::Damaged) })
    }

    fn section<'a>(
        &mut self,
        order: ByteOrder,
        bytes: &'a [u8],
        body: Range<usize>,
    ) -> Result<Result<Found<'a>, Fault>, Fault> {
        let (Some(major), Some(minor)) = (order.u16_at(bytes, FRONT + 4), order.u16_at(bytes, FRONT + 6))
        else {
            return Err(Fault::Short { kind: SECTION_HEADER });
        };
        // Some programs wrote 1.2, which is the same as 1.0.
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Fault::Version { major, minor });
        }
        if body.len() < SECTION {
            return Err(Fault::Short { kind: SECTION_HEADER });
        }
        self.describe(body.len())?;
        self.sections += 1;
        self.base += self.count();
        self.order = order;
        self.plain = order == ByteOrder::NATIVE;
        self.interfaces.clear();
        // The section length in the header only serves to skip the section, and all blocks are read here.
        let (mut header, mut more) = (SectionHeader::default(), Vec::new());
        let doubt = each_option(order, &bytes[body][SECTION..], SECTION_HEADER, |code, value| {
            let field = match code {
                options::COMMENT if header.comment.is_none() => &mut header.comment,
                2 => &mut header.hardware,
                3 => &mut header.os,
                4 => &mut header.user_application,
                _ => {
                    options::append_copy(&mut more, order, RawOption { code, value }, &[], &[]);
                    return true;
                }
            };
            *field = text(value);
            true
        });
        Ok(Ok(Found::Section(header, more, doubt)))
    }

    /// Counts bytes that the reader will keep.
    fn describe(&mut self, bytes: usize) -> Result<(), Fault> {
        self.described += bytes;
        let interfaces = self.base + self.count();
        if self.described > MOST_DESCRIPTIONS
            || interfaces >= MOST_INTERFACES
            || self.sections >= MOST_INTERFACES
        {
            return Err(Fault::Descriptions);
        }
        Ok(())
    }

    fn interface<'a>(
        &mut self,
        bytes: &'a [u8],
        body: Range<usize>,
    ) -> Result<Result<Found<'a>, Fault>, Fault> {
        self.describe(body.len())?;
        let order = self.order;
        let (Some(link_type), Some(snap_len)) = (order.u16_at(bytes, FRONT), order.u32_at(bytes, FRONT + 4))
        else {
            return Err(Fault::Short { kind: pcapng::INTERFACE_DESCRIPTION });
        };
        if body.len() < INTERFACE {
            // Skipping this block would shift the numbers of all later interfaces.
            return Err(Fault::Short { kind: pcapng::INTERFACE_DESCRIPTION });
        }
        let mut description = InterfaceDescription { link_type, snap_len, ..Default::default() };
        let (mut resolution, mut offset, mut more) = (TimeUnit::MICROSECONDS.resolution(), 0, Vec::new());
        let mut keep =
            |code, value| options::append_copy(&mut more, order, RawOption { code, value }, &BYTES, &NUMBERS);
        let list = &bytes[body][INTERFACE..];
        let mut doubt = each_option(order, list, pcapng::INTERFACE_DESCRIPTION, |code, value| {
            match code {
                options::COMMENT if description.comment.is_none() => description.comment = text(value),
                2 => description.name = text(value),
                3 => description.description = text(value),
                6 => description.mac = value.try_into().ok(),
                8 => description.speed_bits = value.try_into().ok().map(|value| order.u64(value)),
                // Timestamps cannot be read without these two, so an invalid length is an error.
                9 => match value {
                    [value] => resolution = *value,
                    _ => return false,
                },
                14 => match value.try_into() {
                    Ok(value) => offset = order.u64(value).cast_signed(),
                    Err(_) => return false,
                },
                // The first byte distinguishes text from byte code, which would not be readable.
                11 => match value.split_first() {
                    Some((0, value)) => description.filter = text(value),
                    _ => keep(code, value),
                },
                12 => description.os = text(value),
                13 => description.fcs_len = value.first().copied(),
                15 => description.hardware = text(value),
                _ => keep(code, value),
            }
            true
        });
        let time = TimeUnit::new(resolution, offset);
        if doubt.is_none() && time.is_finer() {
            doubt = Some(Doubt::Finer);
        }
        self.plain &= time.is_plain();
        self.interfaces.push(Known { time, snap_len });
        Ok(Ok(Found::Interface { description: Box::new(description), time, more, doubt }))
    }

    fn known(&self, id: u32) -> Result<Known, Fault> {
        let fault = Fault::Interface { id, count: self.count() };
        self.interfaces.get(id as usize).copied().ok_or(fault)
    }

    fn statistics<'a>(&self, bytes: &'a [u8], body: Range<usize>) -> Result<Found<'a>, Fault> {
        let order = self.order;
        let short = Fault::Short { kind: pcapng::INTERFACE_STATISTICS };
        if body.len() < STATISTICS {
            return Err(short);
        }
        let id = order.u32_at(bytes, FRONT).ok_or(short)?;
        let time = self.known(id)?.time;
        let mut out_of_range = false;
        let mut nanoseconds = |ticks| {
            time.nanoseconds(ticks).unwrap_or_else(|nearest| {
                out_of_range = true;
                nearest
            })
        };
        let mut statistics = InterfaceStatistics {
            interface: self.base + id,
            timestamp: nanoseconds(order.time_at(bytes, FRONT + 4).ok_or(short)?),
            ..Default::default()
        };
        let list = &bytes[body][STATISTICS..];
        let doubt = each_option(order, list, pcapng::INTERFACE_STATISTICS, |code, value| {
            let count = value.try_into().ok().map(|value| order.u64(value));
            match code {
                options::COMMENT => statistics.comment = text(value),
                2 => statistics.start = order.time_at(value, 0).map(&mut nanoseconds),
                3 => statistics.end = order.time_at(value, 0).map(&mut nanoseconds),
                4 => statistics.received = count,
                5 => statistics.dropped = count,
                6 => statistics.accepted = count,
                7 => statistics.dropped_by_os = count,
                8 => statistics.delivered = count,
                _ => return true,
            }
            code == options::COMMENT || count.is_some()
        });
        Ok(Found::Statistics(statistics, doubt.or_else(|| out_of_range.then_some(Doubt::Time))))
    }

    /// Reads an Enhanced Packet Block that is not plain, or is damaged.
    fn record<'a>(&self, bytes: &'a [u8], length: usize) -> Result<Found<'a>, Fault> {
        let block = &bytes[..length];
        let (record, doubt) = match record::first_in(self.order, block) {
            Ok((record, _)) => (record, None),
            // The packet itself is whole.
            Err(Reason::Options) => match record::bare(self.order, block) {
                Ok((record, _)) => (record, Some(Doubt::Options(record::KIND))),
                Err(reason) => return Err(inside(reason)),
            },
            Err(reason) => return Err(inside(reason)),
        };
        let (timestamp, out_of_range) = match self.known(record.interface)?.time.nanoseconds(record.timestamp)
        {
            Ok(timestamp) => (timestamp, None),
            Err(nearest) => (nearest, Some(Doubt::Time)),
        };
        Ok(Found::Packet(self.located(bytes, &record, timestamp, doubt.or(out_of_range))))
    }

    fn located(&self, bytes: &[u8], record: &Record<'_>, timestamp: u64, doubt: Option<Doubt>) -> PacketAt {
        PacketAt {
            data: record::HEAD..record::HEAD + record.data.len(),
            timestamp,
            original_len: record.original_len,
            interface: self.base + record.interface,
            queue: record.queue,
            flags: record.flags,
            dropcount: record.dropcount,
            notes: if record.notes.is_empty() { 0..0 } else { place(bytes, record.notes) },
            timeless: false,
            doubt,
        }
    }

    /// Reads a Simple Packet Block: a packet of the first interface, without a timestamp.
    fn simple<'a>(&self, bytes: &'a [u8], body: Range<usize>) -> Result<Found<'a>, Fault> {
        let short = Fault::Short { kind: pcapng::SIMPLE_PACKET };
        let original_len = self.order.u32_at(&bytes[..body.end], FRONT).ok_or(short)?;
        let known = self.known(0)?;
        // The captured length is not stored: it is the original length, limited by the snap length.
        let limit = if known.snap_len == 0 { u32::MAX } else { known.snap_len };
        let captured = original_len.min(limit);
        let data = FRONT + SIMPLE..body.end;
        if (captured as usize) > data.len() {
            return Err(Fault::Captured(captured));
        }
        let data = data.start..data.start + captured as usize;
        Ok(Found::Packet(PacketAt {
            data,
            original_len,
            interface: self.base,
            timeless: true,
            ..PacketAt::default()
        }))
    }

    /// Reads a Packet Block, which writers have not used since 2010.
    fn obsolete<'a>(&self, bytes: &'a [u8], body: Range<usize>) -> Result<Found<'a>, Fault> {
        let order = self.order;
        if body.len() < PACKET {
            return Err(Fault::Short { kind: pcapng::PACKET });
        }
        let half = |at| order.u16_at(bytes, FRONT + at).unwrap_or_default();
        let word = |at| order.u32_at(bytes, FRONT + at).unwrap_or_default();
        let (id, drops, captured) = (u32::from(half(0)), half(2), word(12));
        let known = self.known(id)?;
        let start = body.start + PACKET;
        let padded = (captured as usize).saturating_add(padding(captured as usize));
        let Some(list) = bytes[..body.end].get(start.saturating_add(padded)..) else {
            return Err(Fault::Captured(captured));
        };
        let mut packet = PacketAt {
            data: start..start + captured as usize,
            original_len: word(16),
            interface: self.base + id,
            dropcount: if drops == u16::MAX { 0 } else { drops.into() }, // all ones: unknown
            ..PacketAt::default()
        };
        let mut more = false;
        packet.doubt = each_option(order, list, pcapng::PACKET, |code, value| {
            match (code, value.try_into()) {
                (record::FLAGS, Ok(value)) => {
                    let flags = order.u32(value);
                    more |= flags & !record::DIRECTION != 0;
                    packet.flags = Some(flags);
                }
                (record::FLAGS, Err(_)) => return false,
                _ => more = true,
            }
            true
        });
        // Options have the same codes in both blocks; the Packet Block only has fewer.
        if more && packet.doubt.is_none() {
            packet.notes = place(bytes, list);
        }
        match known.time.nanoseconds(order.time_at(bytes, FRONT + 4).unwrap_or_default()) {
            Ok(timestamp) => packet.timestamp = timestamp,
            Err(nearest) => {
                packet.timestamp = nearest;
                packet.doubt = packet.doubt.or(Some(Doubt::Time));
            }
        }
        Ok(Found::Packet(packet))
    }
}

/// Returns the error in a record with a valid frame.
fn inside(reason: Reason) -> Fault {
    match reason {
        Reason::Captured(captured) => Fault::Captured(captured),
        _ => Fault::Short { kind: record::KIND },
    }
}
