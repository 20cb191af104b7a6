//! The pcapng blocks other than packets.
//!
//! Each block is a struct of its fields; `append_to` encodes it, with the options that are set.

use crate::options::{self, append, append_end, append_text};
use crate::{ByteOrder, padding};

/// Section Header Block, section 4.1 of the draft. The number is the same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Interface Description Block, section 4.2.
pub const INTERFACE_DESCRIPTION: u32 = 1;
/// Packet Block, replaced by the Enhanced Packet Block: appendix A.
pub const PACKET: u32 = 2;
/// Simple Packet Block, section 4.4.
pub const SIMPLE_PACKET: u32 = 3;
/// Name Resolution Block, section 4.5.
pub const NAME_RESOLUTION: u32 = 4;
/// Interface Statistics Block, section 4.6.
pub const INTERFACE_STATISTICS: u32 = 5;
/// Decryption Secrets Block, section 4.7.
pub const DECRYPTION_SECRETS: u32 = 10;
/// Custom Block that may be copied to another file, section 4.8.
pub const CUSTOM: u32 = 0xbad;
/// Custom Block that must not be copied to another file.
pub const CUSTOM_STAYS: u32 = 0x4000_0bad;
/// A block of weir's own: the lives of sockets, from which readers find out whose packets are ([`WhoBlock`]). The top bit is that of
/// types for local use, so others may use the same number: what is in it begins with [`WHO_MAGIC`].
pub const WHO: u32 = 0x8077_686f;
/// The beginning of a [`WHO`] block, with its version.
pub const WHO_MAGIC: [u8; 8] = *b"weirwho1";
/// Shows readers the byte order of a section.
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// `if_tsresol` of everything that weir writes: timestamps count 10^-9 seconds.
pub const NANOSECONDS: u8 = 9;

/// The start of a section, with the origin of the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SectionHeader<'a> {
    /// The machine, such as its processor.
    pub hardware: Option<&'a str>,
    /// The operating system and its version.
    pub os: Option<&'a str>,
    /// The program that wrote the file, and its version.
    pub user_application: Option<&'a str>,
    /// A comment.
    pub comment: Option<&'a str>,
    /// Other options: a list in native byte order without its end mark.
    pub more: &'a [u8],
}

impl SectionHeader<'_> {
    /// Appends the block. Its section length is "unknown", so that the section can grow.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        block(out, SECTION_HEADER, |out| {
            out.extend_from_slice(&BYTE_ORDER_MAGIC.to_ne_bytes());
            out.extend_from_slice(&1u16.to_ne_bytes());
            out.extend_from_slice(&0u16.to_ne_bytes());
            out.extend_from_slice(&(-1i64).to_ne_bytes());
            append_text(out, options::COMMENT, self.comment);
            append_text(out, 2, self.hardware);
            append_text(out, 3, self.os);
            append_text(out, 4, self.user_application);
            out.extend_from_slice(self.more);
            append_end(out);
        });
    }
}

/// An interface. Records refer to it by the position of its description in the section, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceDescription<'a> {
    /// `LINKTYPE_` number, 1 for Ethernet.
    pub link_type: u16,
    /// Snap length in bytes; 0: no limit.
    pub snap_len: u32,
    /// Interface name, such as `eth0`.
    pub name: Option<&'a str>,
    /// A description for people.
    pub description: Option<&'a str>,
    /// Hardware address.
    pub mac: Option<[u8; 6]>,
    /// Bits per second.
    pub speed_bits: Option<u64>,
    /// The capture filter, in libpcap's language.
    pub filter: Option<&'a str>,
    /// The operating system of the machine that has the interface.
    pub os: Option<&'a str>,
    /// The interface hardware.
    pub hardware: Option<&'a str>,
    /// Length of the frame check sequence at the end of each packet.
    pub fcs_len: Option<u8>,
    /// A comment.
    pub comment: Option<&'a str>,
    /// Other options: a list in native byte order without its end mark.
    pub more: &'a [u8],
}

impl InterfaceDescription<'_> {
    /// Appends the block, with timestamps in nanoseconds.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        block(out, INTERFACE_DESCRIPTION, |out| {
            out.extend_from_slice(&self.link_type.to_ne_bytes());
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&self.snap_len.to_ne_bytes());
            append_text(out, 2, self.name);
            append_text(out, 3, self.description);
            if let Some(mac) = self.mac {
                append(out, 6, &mac);
            }
            append_u64(out, 8, self.speed_bits);
            append(out, 9, &[NANOSECONDS]);
            if let Some(filter) = self.filter {
                // The leading zero marks a libpcap expression, as opposed to byte code.
                append(out, 11, &[&[0], filter.as_bytes()].concat());
            }
            append_text(out, 12, self.os);
            if let Some(fcs_len) = self.fcs_len {
                append(out, 13, &[fcs_len]);
            }
            append_text(out, 15, self.hardware);
            append_text(out, 1, self.comment);
            out.extend_from_slice(self.more);
            append_end(out);
        });
    }
}

/// The counters of one interface since the start of the capture, at one point in time. All times are nanoseconds since
/// the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceStatistics<'a> {
    /// Position of the interface's description in the section.
    pub interface: u32,
    /// When the counters were read.
    pub timestamp: u64,
    /// Start of the capture.
    pub start: Option<u64>,
    /// End of the capture.
    pub end: Option<u64>,
    /// `isb_ifrecv`: packets that the interface received.
    pub received: Option<u64>,
    /// `isb_ifdrop`: packets that the interface dropped for lack of space. Wireshark shows this number as dropped.
    pub dropped: Option<u64>,
    /// `isb_filteraccept`: packets that the filter accepted.
    pub accepted: Option<u64>,
    /// `isb_osdrop`: packets that the operating system dropped.
    pub dropped_by_os: Option<u64>,
    /// `isb_usrdeliv`: packets that reached the capturing program.
    pub delivered: Option<u64>,
    /// A comment.
    pub comment: Option<&'a str>,
}

impl InterfaceStatistics<'_> {
    /// Appends the block.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        block(out, INTERFACE_STATISTICS, |out| {
            out.extend_from_slice(&self.interface.to_ne_bytes());
            out.extend_from_slice(&halves(self.timestamp));
            append_text(out, options::COMMENT, self.comment);
            for (code, time) in [(2, self.start), (3, self.end)] {
                if let Some(time) = time {
                    append(out, code, &halves(time));
                }
            }
            append_u64(out, 4, self.received);
            append_u64(out, 5, self.dropped);
            append_u64(out, 6, self.accepted);
            append_u64(out, 7, self.dropped_by_os);
            append_u64(out, 8, self.delivered);
            append_end(out);
        });
    }
}

/// What was seen of sockets, in a block of type [`WHO`]:
///
/// ```text
/// offset  0  WHO_MAGIC
///         8  the run of the system whose sockets these are
///        24  length of the news, in the byte order of the section
///        28  the news, padded with zeros to a multiple of four
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhoBlock<'a> {
    /// Tells the numbers of sockets and processes from those of another host, or of the same one after it has started anew
    /// (`/proc/sys/kernel/random/boot_id`); zeros if it is not known.
    pub boot: [u8; 16],
    /// The news, as weir-who encodes them: the same bytes in either byte order.
    pub news: &'a [u8],
}

impl<'a> WhoBlock<'a> {
    /// Appends the block. `None`: it would be too long, and `out` is unchanged.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Option<()> {
        append_block(out, WHO, &self.body()?)
    }

    /// Returns the body of the block, in native byte order and without padding. `None`: it would be too long.
    pub fn body(&self) -> Option<Vec<u8>> {
        let length = u32::try_from(self.news.len()).ok()?;
        Some([&WHO_MAGIC[..], &self.boot, &length.to_ne_bytes(), self.news].concat())
    }

    /// Reads the body of a block of type [`WHO`], in native byte order. `None`: it is of somebody else, of another version, or
    /// damaged.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        Self::read_in(ByteOrder::NATIVE, body)
    }

    pub(crate) fn read_in(order: ByteOrder, body: &'a [u8]) -> Option<Self> {
        let rest = body.strip_prefix(&WHO_MAGIC)?;
        let (boot, rest) = rest.split_first_chunk()?;
        let length = order.u32_at(rest, 0)? as usize;
        Some(Self { boot: *boot, news: rest.get(4..)?.get(..length)? })
    }
}

/// Appends a block of any type. `body` is the part between the two lengths, in native byte order; it is padded to a
/// multiple of four.
///
/// `None`: the block would be too long, and `out` is unchanged.
pub fn append_block(out: &mut Vec<u8>, kind: u32, body: &[u8]) -> Option<()> {
    u32::try_from(body.len() + padding(body.len()) + 12).ok()?;
    block(out, kind, |out| {
        out.extend_from_slice(body);
        out.extend_from_slice(&[0; 3][..padding(body.len())]);
    });
    Some(())
}

/// Appends a packet of the section's first interface without a timestamp. The packet must be truncated at that
/// interface's snap length or not at all.
///
/// `None`: the block would be too long, and `out` is unchanged.
pub fn append_simple_packet(out: &mut Vec<u8>, original_len: u32, data: &[u8]) -> Option<()> {
    u32::try_from(data.len() + padding(data.len()) + 16).ok()?;
    block(out, SIMPLE_PACKET, |out| {
        out.extend_from_slice(&original_len.to_ne_bytes());
        out.extend_from_slice(data);
        out.extend_from_slice(&[0; 3][..padding(data.len())]);
    });
    Some(())
}

/// Encodes a timestamp as in pcapng: the high 32 bits, then the low 32 bits, each in native byte order.
#[inline]
pub(crate) const fn halves(timestamp: u64) -> [u8; 8] {
    timestamp.rotate_left(if cfg!(target_endian = "little") { 32 } else { 0 }).to_ne_bytes()
}

fn append_u64(out: &mut Vec<u8>, code: u16, value: Option<u64>) {
    if let Some(value) = value {
        append(out, code, &value.to_ne_bytes());
    }
}

/// Appends a block: its type and body, with the total length before and after the body.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    // There are at most ten options of at most 64 KiB each, plus options copied from a file, where their length was
    // limited, or a body whose length was checked.
    let total = u32::try_from(out.len() + 4 - start).expect("a block's options are bounded");
    out[start + 4..start + 8].copy_from_slice(&total.to_ne_bytes());
    out.extend_from_slice(&total.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    type OwnedOptions = Vec<(u16, Vec<u8>)>;

    /// An option that was copied from another file; its code is the same in both byte orders.
    const MORE: [u8; 8] = {
        let [low, high] = 4u16.to_ne_bytes();
        [1, 1, low, high, 7, 7, 7, 7]
    };

    /// Checks the frame of the only block in `bytes`; returns its type, its fixed part and its options.
    fn open(bytes: &[u8], fixed: usize) -> (u32, &[u8], OwnedOptions) {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(word(4) as usize, bytes.len());
        assert_eq!(word(bytes.len() - 4) as usize, bytes.len());
        let options = &bytes[8 + fixed..bytes.len() - 4];
        assert_eq!(options[options.len() - 4..], [0; 4], "the list has its end mark");
        let options = Options::new(options).map(|o| o.unwrap()).map(|o| (o.code, o.value.to_vec())).collect();
        (word(0), &bytes[8..8 + fixed], options)
    }

    #[test]
    fn section_header() {
        let mut bytes = Vec::new();
        let header = SectionHeader {
            hardware: Some("amd64"),
            os: Some("Linux"),
            user_application: Some("weir"),
            comment: Some("why"),
            more: &MORE,
        };
        header.append_to(&mut bytes);
        let (kind, fixed, options) = open(&bytes, 16);
        assert_eq!(kind, SECTION_HEADER);
        assert_eq!(fixed[..4], BYTE_ORDER_MAGIC.to_ne_bytes());
        assert_eq!(fixed[8..], [0xff; 8]);
        assert_eq!((&fixed[4..6], &fixed[6..8]), (&1u16.to_ne_bytes()[..], &[0; 2][..]));
        let texts = [(1, "why"), (2, "amd64"), (3, "Linux"), (4, "weir")];
        let texts = texts.map(|(code, text)| (code, text.as_bytes().to_vec()));
        assert_eq!(options, [&texts[..], &[(0x101, vec![7; 4])]].concat());
    }

    #[test]
    fn interface_description() {
        let mut bytes = Vec::new();
        InterfaceDescription {
            link_type: 1,
            snap_len: 262_144,
            name: Some("eth0"),
            mac: Some([2, 0, 0, 0, 0, 1]),
            speed_bits: Some(10_000_000_000),
            filter: Some("tcp"),
            description: Some("uplink"),
            os: Some("Linux"),
            hardware: Some("a card"),
            fcs_len: Some(4),
            comment: Some("why"),
            more: &MORE,
        }
        .append_to(&mut bytes);
        let (kind, fixed, options) = open(&bytes, 8);
        assert_eq!(kind, INTERFACE_DESCRIPTION);
        assert_eq!(fixed[..2], 1u16.to_ne_bytes());
        assert_eq!(fixed[4..], 262_144u32.to_ne_bytes());
        assert_eq!(
            options,
            [
                (2, b"eth0".to_vec()),
                (3, b"uplink".to_vec()),
                (6, vec![2, 0, 0, 0, 0, 1]),
                (8, 10_000_000_000u64.to_ne_bytes().to_vec()),
                (9, vec![9]),
                (11, b"\0tcp".to_vec()),
                (12, b"Linux".to_vec()),
                (13, vec![4]),
                (15, b"a card".to_vec()),
                (1, b"why".to_vec()),
                (0x101, vec![7; 4]),
            ]
        );
    }

    #[test]
    fn interface_statistics() {
        let mut bytes = Vec::new();
        let time = 0x0102_0304_0506_0708;
        InterfaceStatistics {
            interface: 3,
            timestamp: time,
            start: Some(1),
            end: Some(time),
            received: Some(10),
            dropped: Some(4),
            accepted: Some(9),
            dropped_by_os: Some(2),
            delivered: Some(7),
            comment: Some("end"),
        }
        .append_to(&mut bytes);
        let (kind, fixed, options) = open(&bytes, 12);
        let halves = [0x0102_0304u32.to_ne_bytes(), 0x0506_0708u32.to_ne_bytes()].concat();
        assert_eq!(kind, INTERFACE_STATISTICS);
        assert_eq!(fixed[..4], 3u32.to_ne_bytes());
        assert_eq!(fixed[4..], halves);
        let start = [0u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat();
        let counts = [(4, 10u64), (5, 4), (6, 9), (7, 2), (8, 7)];
        let counts = counts.map(|(code, count)| (code, count.to_ne_bytes().to_vec()));
        assert_eq!(options, [&[(1, b"end".to_vec()), (2, start), (3, halves)][..], &counts].concat());
    }

    #[test]
    fn any_block() {
        for len in 0..9usize {
            let mut bytes = Vec::new();
            append_block(&mut bytes, 4, &[1; 9][..len]).unwrap();
            let total = 12 + len.next_multiple_of(4);
            assert_eq!(bytes.len(), total);
            for at in [4, total - 4] {
                assert_eq!(bytes[at..at + 4], u32::try_from(total).unwrap().to_ne_bytes());
            }
            assert_eq!(bytes[8..8 + len], [1; 9][..len]);
        }
    }

    #[test]
    fn news_come_back_whole_and_only_from_blocks_of_their_own() {
        const WHO_HEAD: usize = 28;
        for len in 0..5 {
            let block = WhoBlock { boot: *b"0123456789abcdef", news: &[7; 5][..len] };
            let mut bytes = vec![9; 3];
            block.append_to(&mut bytes).unwrap();
            let bytes = &bytes[3..];
            assert_eq!(
                (&bytes[..4], bytes.len()),
                (&WHO.to_ne_bytes()[..], 12 + WHO_HEAD + len.next_multiple_of(4))
            );
            let body = &bytes[8..bytes.len() - 4];
            assert_eq!(WhoBlock::read(body), Some(block));
            assert_eq!(WhoBlock::read(&body[..WHO_HEAD + len]), Some(block), "without padding");
            (0..WHO_HEAD + len).for_each(|cut| assert_eq!(WhoBlock::read(&body[..cut]), None, "{cut}"));
            let mut other = body.to_vec();
            other[7] += 1;
            assert_eq!(WhoBlock::read(&other), None, "another version");
        }
    }

    #[test]
    fn simple_packets() {
        for len in 0..9usize {
            let mut bytes = vec![7];
            append_simple_packet(&mut bytes, 1500, &[1; 9][..len]).unwrap();
            let bytes = &bytes[1..];
            let total = 16 + len.next_multiple_of(4);
            let total_field = u32::try_from(total).unwrap().to_ne_bytes();
            assert_eq!(bytes.len(), total);
            assert_eq!((&bytes[..4], &bytes[4..8]), (&3u32.to_ne_bytes()[..], &total_field[..]));
            assert_eq!(bytes[8..12], 1500u32.to_ne_bytes());
            assert_eq!(bytes[12..12 + len], [1; 9][..len]);
            assert_eq!(bytes[12 + len..total - 4], [0; 3][..total - 16 - len]);
            assert_eq!(bytes[total - 4..], total_field);
        }
    }

    #[test]
    fn time_stamps_survive_the_halves() {
        for time in [0, 1, u64::from(u32::MAX), 1 << 32, 0x1234_5678_9abc_def0, u64::MAX] {
            assert_eq!(ByteOrder::NATIVE.time_at(&halves(time), 0), Some(time));
        }
    }
}
