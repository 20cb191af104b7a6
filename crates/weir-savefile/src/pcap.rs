//! The classic pcap format (draft-ietf-opsawg-pcap): one header, then records of one link type.

use std::fmt;

/// Longest block or packet that is accepted, in bytes. The largest real ones are USB and D-Bus packets of some MiB and
/// lists of decryption secrets; libpcap accepts 16 MiB. A greater length is taken for damage, so that a few corrupt
/// bytes cannot make weir allocate that much memory.
pub const LONGEST_BLOCK: u32 = 32 << 20;

/// Length of the file header.
pub const FILE_HEADER: usize = 24;
/// Length of a record header; the packet follows without padding.
pub const RECORD_HEADER: usize = 16;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The last timestamp that a record can hold, in nanoseconds since the Unix epoch: the end of 2106-02-07 06:28:15 UTC.
pub const LAST_TIME: u64 = ((1 << 32) * NANOS_PER_SECOND) - 1;

/// Longest packet that libpcap and Wireshark accept; they reject a file with a longer one.
const LONGEST_PACKET: u32 = 262_144;
/// Link types with longer packets, regardless of the snap length: USB (three), D-Bus.
const LONG_PACKETS: [u16; 4] = [189, 220, 249, 231];

/// Returns the longest packet of a link type that other programs accept, in bytes.
#[inline]
pub fn longest_packet(link_type: u16) -> u32 {
    if LONG_PACKETS.contains(&link_type) { LONGEST_BLOCK } else { LONGEST_PACKET }
}

/// The unit of the subsecond part of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Microseconds, which all readers support.
    Micro,
    /// Nanoseconds, which most readers support.
    Nano,
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Micro => "microseconds",
            Self::Nano => "nanoseconds",
        })
    }
}

/// Encodes a file header, version 2.4. `fcs_len`: length of the frame check sequence at the end of each packet, if
/// known; the format can store even numbers up to 30.
pub fn file_header(
    resolution: Resolution,
    snap_len: u32,
    link_type: u16,
    fcs_len: Option<u8>,
) -> [u8; FILE_HEADER] {
    let magic = match resolution {
        Resolution::Micro => MICROSECONDS,
        Resolution::Nano => NANOSECONDS,
    };
    let mut header = [0; FILE_HEADER];
    header[..4].copy_from_slice(&magic.to_ne_bytes());
    header[4..6].copy_from_slice(&2u16.to_ne_bytes());
    header[6..8].copy_from_slice(&4u16.to_ne_bytes());
    // 8..16: time zone and accuracy, always 0.
    header[16..20].copy_from_slice(&snap_len.to_ne_bytes());
    let fcs = fcs_len.filter(|len| len % 2 == 0 && *len <= 30);
    let fcs = fcs.map_or(0, |len| 1 << 26 | u32::from(len / 2) << 28);
    header[20..].copy_from_slice(&(u32::from(link_type) | fcs).to_ne_bytes());
    header
}

/// Encodes the record header of a packet of `captured_len` bytes. `timestamp` is in nanoseconds since the Unix epoch,
/// limited to [`LAST_TIME`].
#[inline]
pub fn record_header(
    resolution: Resolution,
    timestamp: u64,
    captured_len: u32,
    original_len: u32,
) -> [u8; RECORD_HEADER] {
    let unit = match resolution {
        Resolution::Micro => 1_000,
        Resolution::Nano => 1,
    };
    let timestamp = timestamp.min(LAST_TIME);
    let seconds = u32::try_from(timestamp / NANOS_PER_SECOND).unwrap_or(u32::MAX);
    let fraction = u32::try_from(timestamp % NANOS_PER_SECOND / unit).unwrap_or(u32::MAX);
    let mut header = [0; RECORD_HEADER];
    header[..4].copy_from_slice(&seconds.to_ne_bytes());
    header[4..8].copy_from_slice(&fraction.to_ne_bytes());
    header[8..12].copy_from_slice(&captured_len.to_ne_bytes());
    header[12..].copy_from_slice(&original_len.to_ne_bytes());
    header
}

/// Returns the number of whole records at the start of `bytes`, and their total length.
pub fn whole_records(bytes: &[u8]) -> (usize, usize) {
    let (mut records, mut at) = (0, 0);
    while let Some(header) = bytes[at..].first_chunk::<RECORD_HEADER>() {
        let captured = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]) as usize;
        if bytes.len() - at - RECORD_HEADER < captured {
            break;
        }
        records += 1;
        at += RECORD_HEADER + captured;
    }
    (records, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_headers() {
        let header = file_header(Resolution::Nano, 65_535, 113, None);
        assert_eq!(header[..4], 0xa1b2_3c4du32.to_ne_bytes());
        assert_eq!((&header[4..6], &header[6..8]), (&2u16.to_ne_bytes()[..], &4u16.to_ne_bytes()[..]));
        assert_eq!(header[8..16], [0; 8]);
        assert_eq!(header[16..20], 65_535u32.to_ne_bytes());
        assert_eq!(header[20..], 113u32.to_ne_bytes());
        assert_eq!(file_header(Resolution::Micro, 0, 1, None)[..4], 0xa1b2_c3d4u32.to_ne_bytes());
        for (fcs_len, word) in [
            (Some(4), 0x2400_0001u32),
            (Some(0), 0x0400_0001),
            (Some(30), 0xf400_0001),
            (Some(32), 1),
            (Some(3), 1),
            (None, 1),
        ] {
            assert_eq!(file_header(Resolution::Micro, 0, 1, fcs_len)[20..], word.to_ne_bytes());
        }
    }

    #[test]
    fn only_some_link_types_have_long_packets() {
        for (link_type, longest) in [(1, 262_144), (189, 32 << 20), (231, 32 << 20)] {
            assert_eq!(longest_packet(link_type), longest);
        }
        let units = [Resolution::Micro, Resolution::Nano].map(|resolution| resolution.to_string());
        assert_eq!(units, ["microseconds", "nanoseconds"]);
    }

    #[test]
    fn time_stamps_are_cut_to_their_resolution() {
        let time = 1_700_000_000_123_456_789;
        let fraction = |resolution| {
            let header = record_header(resolution, time, 60, 70);
            assert_eq!(header[..4], 1_700_000_000u32.to_ne_bytes());
            assert_eq!(header[8..12], 60u32.to_ne_bytes());
            assert_eq!(header[12..], 70u32.to_ne_bytes());
            u32::from_ne_bytes(header[4..8].try_into().unwrap())
        };
        assert_eq!(fraction(Resolution::Nano), 123_456_789);
        assert_eq!(fraction(Resolution::Micro), 123_456);
    }

    #[test]
    fn times_after_the_last_are_the_last() {
        const SECOND: u64 = 1 << 32;
        let written = |resolution, time: u64| {
            let header = record_header(resolution, time, 60, 70);
            [0, 4].map(|at| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap()))
        };
        for (resolution, unit, most) in
            [(Resolution::Nano, 1, 999_999_999), (Resolution::Micro, 1000, 999_999)]
        {
            let before = SECOND * NANOS_PER_SECOND - unit;
            assert_eq!(written(resolution, before), [u32::MAX, most]);
            assert_eq!(written(resolution, before - unit), [u32::MAX, most - 1]);
            for later in [before + unit, before + 8_500_000_000, before + 9_000_000_001, u64::MAX] {
                assert_eq!(written(resolution, later), [u32::MAX, most], "{later}");
            }
        }
    }

    #[test]
    fn whole_records_stop_where_one_is_cut() {
        let mut bytes = Vec::new();
        for len in [3u8, 0, 5] {
            bytes.extend_from_slice(&record_header(Resolution::Nano, 0, len.into(), len.into()));
            bytes.extend_from_slice(&vec![len; len.into()]);
        }
        assert_eq!(whole_records(&bytes), (3, bytes.len()));
        assert_eq!(whole_records(&bytes[..bytes.len() - 1]), (2, 35));
        assert_eq!(whole_records(&bytes[..36]), (2, 35));
        assert_eq!(whole_records(&bytes[..18]), (0, 0));
        assert_eq!(whole_records(&[]), (0, 0));
    }
}
