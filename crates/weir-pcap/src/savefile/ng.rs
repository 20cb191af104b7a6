//! The pcapng format, as far as libpcap reads it: packets of one link type and one snap length.

use std::ffi::c_int;

use weir_savefile::ByteOrder;

use super::bytes::Bytes;
use super::pseudo::swap_pseudo_header;
use super::time::Clock;
use super::{Begin, LEAST_BUFFER, Packet, longest_packet, short, snap_len};
use crate::link_types;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const ORDER: u32 = 0x1a2b_3c4d;

/// Bytes of a block around its body: type and length before, the length again after.
const BEFORE: usize = 8;
const AFTER: usize = 4;
const AROUND: usize = BEFORE + AFTER;
/// The smallest section header, and what nobody writes.
const LEAST_SECTION: usize = AROUND + 16;
const MOST_SECTION: u32 = 1 << 20;

/// The longest block, unless packets of the link type are longer.
const LONGEST_BLOCK: u32 = 16 << 20;
/// The longest options beside the longest packet.
const LONGEST_OPTIONS: u32 = 131_072;

const END_OF_OPTIONS: u16 = 0;
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;

/// How blocks are read.
pub(super) struct Ng {
    order: ByteOrder,
    precision: c_int,
    /// The clocks of the interfaces of this section.
    interfaces: Vec<Clock>,
    longest: u32,
    /// Type of the block that was read last.
    kind: u32,
}

/// What all interfaces must have in common.
struct Interface {
    link_type: u16,
    snapshot: u32,
}

/// The rest of a body.
struct Cursor<'a> {
    kind: u32,
    rest: &'a [u8],
    order: ByteOrder,
}

impl Ng {
    /// Reads until the first interface; `Ok(None)` if this is not the format.
    pub(super) fn begin(
        magic: [u8; 4],
        bytes: &mut Bytes,
        precision: c_int,
        buffer: &mut usize,
    ) -> Result<Option<(Self, Begin)>, String> {
        if u32::from_ne_bytes(magic) != SECTION_HEADER {
            return Ok(None);
        }
        let start = bytes.take(8);
        let Ok(start) = <[u8; 8]>::try_from(&*start) else {
            return bytes.error().map_or(Ok(None), |_| Err(short(bytes, String::new)));
        };
        let [a, b, c, d, order @ ..] = start;
        let order = [ByteOrder::Little, ByteOrder::Big].into_iter().find(|known| known.u32(order) == ORDER);
        let Some(order) = order else { return Ok(None) };
        let length = order.u32([a, b, c, d]);
        if (length as usize) < LEAST_SECTION || length > MOST_SECTION {
            return Err(format!(
                "Section Header Block in pcapng dump file has invalid length {LEAST_SECTION} < _{length}_ < \
                 {MOST_SECTION} (BT_SHB_INSANE_MAX)"
            ));
        }
        super::supported(precision)?;
        *buffer = LEAST_BUFFER.max(length as usize);
        let wanted = length as usize - 12;
        let got = bytes.take(wanted).len();
        if got < wanted {
            return Err(short(bytes, || cut(wanted, got)));
        }
        let rest = bytes.taken(wanted);
        let mut cursor = Cursor { kind: SECTION_HEADER, rest, order };
        let version = version(&mut cursor)?;
        let mut ng = Self { order, precision, interfaces: Vec::new(), longest: LONGEST_BLOCK, kind: 0 };
        loop {
            let Some(rest) = ng.block(bytes)? else {
                return Err("the capture file has no Interface Description Blocks".to_owned());
            };
            match ng.kind {
                INTERFACE_DESCRIPTION => {
                    let mut cursor = ng.cursor(body(bytes, rest));
                    let interface = Interface::new(&mut cursor)?;
                    let link_type = link_types::from_file(interface.link_type.into());
                    ng.interfaces.push(clock(cursor, precision)?);
                    let room = longest_packet(link_type) + LONGEST_OPTIONS;
                    ng.longest = LONGEST_BLOCK.max(room);
                    let begin = Begin {
                        version,
                        swapped: order != ByteOrder::NATIVE,
                        link_type,
                        link_type_ext: 0,
                        snapshot: snap_len(interface.snapshot, link_type),
                    };
                    return Ok(Some((ng, begin)));
                }
                ENHANCED_PACKET | SIMPLE_PACKET | OLD_PACKET => {
                    return Err(
                        "the capture file has a packet block before any Interface Description Blocks"
                            .to_owned(),
                    );
                }
                _ => {}
            }
        }
    }

    #[inline]
    pub(super) fn next(&mut self, bytes: &mut Bytes, begin: &Begin, to: &mut Packet) -> Result<bool, String> {
        loop {
            let Some(rest) = self.block(bytes)? else { return Ok(false) };
            let body = body(bytes, rest);
            if let ENHANCED_PACKET | SIMPLE_PACKET | OLD_PACKET = self.kind {
                self.packet(body, begin, to)?;
                return Ok(true);
            }
            let mut cursor = self.cursor(body);
            match self.kind {
                INTERFACE_DESCRIPTION => {
                    same_as_first(&Interface::new(&mut cursor)?, begin)?;
                    self.interfaces.push(clock(cursor, self.precision)?);
                }
                SECTION_HEADER => {
                    same_section(&mut cursor)?;
                    self.interfaces.clear();
                }
                _ => {}
            }
        }
    }

    /// Reads a block and sets its type; returns the number of bytes that [`body`] takes. `Ok(None)` at the end.
    #[inline]
    fn block(&mut self, bytes: &mut Bytes) -> Result<Option<usize>, String> {
        let start = bytes.take(BEFORE);
        let got = start.len();
        let Some(&[a, b, c, d, e, f, g, h]) = start.first_chunk() else {
            return self.no_block(bytes, got);
        };
        self.kind = self.order.u32([a, b, c, d]);
        let length = self.order.u32([e, f, g, h]);
        self.plausible(length)?;
        let rest = length as usize - BEFORE;
        let got = bytes.take(rest).len();
        if got < rest {
            return Err(short(bytes, || cut(rest, got)));
        }
        match bytes.taken(rest).last_chunk::<AFTER>() {
            Some(again) if self.order.u32(*again) == length => Ok(Some(rest)),
            _ => Err("block total length in header and trailer don't match".to_owned()),
        }
    }

    #[cold]
    fn no_block(&self, bytes: &Bytes, got: usize) -> Result<Option<usize>, String> {
        if got == 0 && bytes.error().is_none() {
            return Ok(None);
        }
        Err(short(bytes, || cut(BEFORE, got)))
    }

    /// Reads a packet of any of the three kinds.
    #[inline]
    fn packet(&self, body: &mut [u8], begin: &Begin, to: &mut Packet) -> Result<(), String> {
        let mut cursor = self.cursor(body);
        let order = self.order;
        let (interface, ticks, captured, length) = match self.kind {
            SIMPLE_PACKET => {
                let length = cursor.word()?;
                (0, 0, length.min(begin.snapshot), length)
            }
            kind => {
                let fixed = cursor.fixed::<20>()?;
                let word = |at: usize| order.u32([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
                let old = u32::from(order.u16([fixed[0], fixed[1]]));
                let interface = if kind == OLD_PACKET { old } else { word(0) };
                (interface, u64::from(word(4)) << 32 | u64::from(word(8)), word(12), word(16))
            }
        };
        let Some(clock) = self.interfaces.get(interface as usize) else {
            return Err(format!(
                "a packet arrived on interface {interface}, but there's no Interface Description Block for that \
                 interface"
            ));
        };
        if captured > begin.snapshot {
            return Err(format!(
                "invalid packet capture length {captured}, bigger than snaplen of {}",
                begin.snapshot
            ));
        }
        let (seconds, fraction) = clock.read(ticks);
        to.header.ts.tv_sec = seconds.cast_signed();
        to.header.ts.tv_usec = fraction.cast_signed();
        to.header.caplen = captured;
        to.header.len = length;
        let start = body.len() - cursor.rest.len();
        cursor.take(captured as usize)?;
        let data = &mut body[start..start + captured as usize];
        if begin.swapped {
            swap_pseudo_header(begin.link_type, length, data);
        }
        to.data = data.as_ptr();
        Ok(())
    }

    fn cursor<'a>(&self, body: &'a [u8]) -> Cursor<'a> {
        Cursor { kind: self.kind, rest: body, order: self.order }
    }

    #[inline]
    fn plausible(&self, length: u32) -> Result<(), String> {
        if (length as usize) < AROUND {
            return Err(format!("block in pcapng dump file has a length of {length} < {AROUND}"));
        }
        if !length.is_multiple_of(4) {
            return Err(format!(
                "block in pcapng dump file has a length of {length} that is not a multiple of 4"
            ));
        }
        if length > self.longest {
            return Err(format!("pcapng block size {length} > maximum {}", self.longest));
        }
        Ok(())
    }
}

/// Returns the body of the block that was read last.
#[inline]
fn body(bytes: &mut Bytes, rest: usize) -> &mut [u8] {
    &mut bytes.taken(rest)[..rest - AFTER]
}

fn cut(wanted: usize, got: usize) -> String {
    format!("truncated pcapng dump file; tried to read {wanted} bytes, only got {got}")
}

/// Reads the body of a section header after the byte order.
fn version(cursor: &mut Cursor<'_>) -> Result<(u16, u16), String> {
    let version = (cursor.half()?, cursor.half()?);
    cursor.take(8)?;
    match version {
        (1, 0 | 2) => Ok(version),
        _ => Err(format!("unsupported pcapng savefile version {}.{}", version.0, version.1)),
    }
}

/// Checks that a section that is not the first can be read like it.
fn same_section(cursor: &mut Cursor<'_>) -> Result<(), String> {
    let magic = cursor.word()?;
    let version = (cursor.half()?, cursor.half()?);
    cursor.take(8)?;
    if magic == ORDER.swap_bytes() {
        return Err("the file has sections with different byte orders".to_owned());
    }
    if magic != ORDER {
        return Err("the file has a section with a bad byte order magic field".to_owned());
    }
    match version {
        (1, 0 | 2) => Ok(()),
        _ => Err(format!("unsupported pcapng savefile version {}.{}", version.0, version.1)),
    }
}

fn same_as_first(interface: &Interface, begin: &Begin) -> Result<(), String> {
    let link_type = link_types::from_file(interface.link_type.into());
    if link_type != begin.link_type {
        let number = interface.link_type;
        return Err(format!(
            "an interface has a type {number} different from the type of the first interface"
        ));
    }
    let snapshot = snap_len(interface.snapshot, link_type);
    if snapshot != begin.snapshot {
        return Err(format!(
            "an interface has a snapshot length {} different from the snapshot length of the first interface",
            interface.snapshot
        ));
    }
    Ok(())
}

impl Interface {
    /// Reads the beginning of an interface description.
    fn new(cursor: &mut Cursor<'_>) -> Result<Self, String> {
        let (link_type, _reserved, snapshot) = (cursor.half()?, cursor.half()?, cursor.word()?);
        Ok(Self { link_type, snapshot })
    }
}

/// Reads the options of an interface description.
fn clock(mut cursor: Cursor<'_>, precision: c_int) -> Result<Clock, String> {
    let (mut resolution, mut offset) = (None, None);
    while !cursor.rest.is_empty() {
        let (code, length) = (cursor.half()?, cursor.half()?);
        let padded = usize::from(length).next_multiple_of(4);
        let value = cursor.take(padded)?;
        let wrong = |name: &str, right: u16| {
            Err(format!("Interface Description Block has {name} option with length {length} != {right}"))
        };
        let twice = |name: &str| Err(format!("Interface Description Block has more than one {name} option"));
        match code {
            END_OF_OPTIONS if length != 0 => return wrong("opt_endofopt", 0),
            END_OF_OPTIONS => break,
            TIME_RESOLUTION if length != 1 => return wrong("if_tsresol", 1),
            TIME_RESOLUTION if resolution.is_some() => return twice("if_tsresol"),
            TIME_RESOLUTION => resolution = Some(value[0]),
            TIME_OFFSET if length != 8 => return wrong("if_tsoffset", 8),
            TIME_OFFSET if offset.is_some() => return twice("if_tsoffset"),
            TIME_OFFSET => offset = value.first_chunk().map(|value| cursor.order.u64(*value)),
            _ => {}
        }
    }
    Clock::new(resolution, offset.unwrap_or(0), precision)
}

impl<'a> Cursor<'a> {
    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else { return Err(self.too_short()) };
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else { return Err(self.too_short()) };
        self.rest = rest;
        Ok(*taken)
    }

    fn word(&mut self) -> Result<u32, String> {
        Ok(self.order.u32(self.fixed()?))
    }

    fn half(&mut self) -> Result<u16, String> {
        Ok(self.order.u16(self.fixed()?))
    }

    #[cold]
    fn too_short(&self) -> String {
        format!("block of type {} in pcapng dump file is too short", self.kind)
    }
}
