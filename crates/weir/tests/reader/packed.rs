//! Compressed files, whole or damaged, recognized by their first bytes.

use std::io::{self, Read, Write as _};

use weir::reader::{ByteOrder, CompressionKind, ReadReason, Reader};

use crate::files::Bytes;
use crate::{all, reader};

fn plain() -> Vec<u8> {
    let mut file = Bytes::new(ByteOrder::Big).section().interface(Some(9));
    for packet in 0..5000u64 {
        let data: Vec<u8> = (0..60).map(|byte| u8::try_from(packet * byte % 251).unwrap()).collect();
        file = file.packet(0, packet, &data);
    }
    file.bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    // As the program does, which takes the smallest blocks that hold everything.
    let blocks = if bytes.len() > 65536 { BlockSize::Max256KB } else { BlockSize::Max64KB };
    let info = FrameInfo::new().block_size(blocks).block_mode(BlockMode::Linked);
    let mut out = FrameEncoder::with_frame_info(info, Vec::new());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

type Pack = fn(&[u8]) -> Vec<u8>;
const PACKS: [(CompressionKind, Pack); 3] =
    [(CompressionKind::Gzip, gzip), (CompressionKind::Zstd, zstd), (CompressionKind::Lz4, lz4)];

/// A frame that decoders of zstd and lz4 pass over.
const SKIPPABLE: [u8; 13] = [0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5];

#[test]
fn one_member_or_many() {
    let plain = plain();
    let expected = all(&plain).packets;
    assert_eq!(expected.len(), 5000);
    for (compression, pack) in PACKS {
        let one = pack(&plain);
        // Cut anywhere, also in the middle of a packet; one member is empty.
        let (most, end) = plain.split_at(plain.len() - 1000);
        let many = [pack(&most[..1000]), pack(&[]), pack(&most[1000..]), pack(end)].concat();
        for packed in [one, many] {
            let read = all(&packed);
            assert!(read.error.is_none(), "{:?}", read.error);
            assert_eq!(read.packets, expected);
            let reader = reader(&packed).unwrap();
            assert_eq!(reader.format().compression, compression);
        }
    }
}

#[test]
fn frames_that_are_to_be_skipped() {
    let plain = plain();
    for pack in [zstd, lz4] {
        let packed =
            [&SKIPPABLE, &pack(&plain[..999])[..], &SKIPPABLE, &SKIPPABLE, &pack(&plain[999..])].concat();
        for packed in [packed.clone(), [&packed[..], &SKIPPABLE].concat()] {
            let read = all(&packed);
            assert!(read.error.is_none(), "{:?}", read.error);
            assert_eq!(read.packets.len(), 5000);
        }
    }
}

#[test]
fn a_cut_stream_gives_what_is_whole_and_says_where_it_ends() {
    let plain = plain();
    let expected = all(&plain).packets;
    for (compression, pack) in PACKS {
        let packed = [pack(&plain[..200_000]), pack(&plain[200_000..])].concat();
        for cut in (6..packed.len()).step_by(packed.len() / 30) {
            let read = all(&packed[..cut]);
            assert_eq!(read.packets, expected[..read.packets.len()], "{compression} {cut}");
            let error =
                read.error.unwrap_or_else(|| panic!("{compression} cut at {cut} of {}", packed.len()));
            if error.position.is_some() {
                assert!(error.compressed.unwrap() <= cut as u64, "{error}");
            }
            // Between two members the stream is whole, and the capture is cut.
            let between = cut == pack(&plain[..200_000]).len();
            match error.reason {
                ReadReason::CompressedCut(which) => assert_eq!(which, compression),
                ReadReason::Cut { .. } if between => {}
                reason => panic!("{compression} {cut}: {reason}"),
            }
        }
        // At least the first member, whatever the size of blocks.
        assert!(all(&packed[..packed.len() - 1]).packets.len() > 2000);
    }
}

#[test]
fn garbage_behind_a_stream_is_told_after_all_packets() {
    for (compression, pack) in PACKS {
        let read = all(&[&pack(&plain())[..], b"garbage here"].concat());
        assert_eq!(read.packets.len(), 5000);
        match read.error.unwrap().reason {
            ReadReason::CompressedDamaged { compression: which, .. } => assert_eq!(which, compression),
            reason => panic!("{compression}: {reason}"),
        }
    }
    // Tapes fill up with zeros.
    assert!(all(&[&gzip(&plain())[..], &[0; 1000]].concat()).error.is_none());
}

#[test]
fn damage_in_a_stream_does_no_harm() {
    let plain = plain();
    let expected = all(&plain).packets;
    for (compression, pack) in PACKS {
        let packed = pack(&plain);
        for at in (4..packed.len()).step_by(packed.len() / 30) {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            let read = all(&damaged);
            assert!(read.packets.len() <= expected.len(), "{compression} {at}");
        }
    }
}

/// Gives a packet's file in drops, then an error.
struct Failing(io::Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(1);
        match self.0.read(&mut buffer[..room])? {
            0 => Err(io::Error::from_raw_os_error(5)),
            bytes => Ok(bytes),
        }
    }
}

#[test]
fn an_error_of_the_system_is_told_as_such() {
    let plain = Bytes::new(ByteOrder::Little).section().interface(Some(9)).packet(0, 1, &[1; 8]).bytes;
    for packed in [plain.clone(), gzip(&plain), zstd(&plain), lz4(&plain)] {
        let mut reader = Reader::from_read(Box::new(Failing(io::Cursor::new(packed))), "disk").unwrap();
        assert_eq!(reader.next_packet().unwrap().unwrap().data, [1; 8]);
        let error = reader.next_packet().unwrap_err();
        assert!(
            matches!(&error.reason, ReadReason::Io(source) if source.raw_os_error() == Some(5)),
            "{error}"
        );
        assert_eq!(error.packets, 1);
        assert!(reader.next_packet().unwrap().is_none());
    }
}
