//! Damaged files: intact data is returned, then the position and the reason; no panic, no endless loop, bounded memory.

use weir::reader::{ByteOrder, Doubt, Fault, Item, Oddity, ReadReason};

use crate::files::Bytes;
use crate::{Kept, all, reader};

/// A small file of each kind, with where its packets end.
fn samples() -> Vec<(&'static str, Vec<u8>, Vec<usize>)> {
    let mut samples = Vec::new();
    for (name, order) in [("little", ByteOrder::Little), ("big", ByteOrder::Big)] {
        let mut file = Bytes::new(order).pcap(0xa1b2_c3d4);
        let mut ends = Vec::new();
        for packet in 0..3u8 {
            file = file.record(1_700_000_000, packet.into(), &[packet; 5]);
            ends.push(file.bytes.len());
        }
        samples.push((name, file.bytes, ends));

        let mut ends = Vec::new();
        let mut file = Bytes::new(order).section().interface(Some(9)).interface(None);
        file = file.packet(0, 5, &[1; 5]);
        ends.push(file.bytes.len());
        file =
            file.block(6, |body| body.u32(1).time(9).u32(2).u32(9).padded(&[2; 2]).option(1, b"text").end());
        ends.push(file.bytes.len());
        file = file.block(5, |body| body.u32(0).time(9).option(4, &[0; 8]).end());
        file = file.block(3, |body| body.u32(6).padded(&[3; 6]));
        ends.push(file.bytes.len());
        file = file.block(2, |body| body.u16(1).u16(0).time(9).u32(1).u32(1).padded(&[4]));
        ends.push(file.bytes.len());
        file = file.block(4, |body| body.option(1, &[10, 0, 0, 1, b'a', 0]).end());
        file = file.section().interface(Some(0x89)).packet(0, 5, &[5; 4]);
        ends.push(file.bytes.len());
        samples.push((name, file.bytes, ends));
    }
    samples
}

#[test]
fn every_cut_gives_what_is_whole_before_it() {
    for (name, file, ends) in samples() {
        let whole = all(&file);
        assert!(whole.error.is_none(), "{name}: {:?}", whole.error);
        assert_eq!(whole.packets.len(), ends.len());
        for cut in 0..file.len() {
            let read = all(&file[..cut]);
            let count = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(read.packets, whole.packets[..count], "{name} cut at {cut}");
            let Some(error) = read.error else { continue };
            assert_eq!(error.packets, count as u64);
            match error.reason {
                ReadReason::Empty => assert_eq!(cut, 0),
                ReadReason::Cut { missing } => {
                    let position = error.position.unwrap();
                    assert!(position < cut as u64 && missing > 0, "{name} cut at {cut}: {error}");
                    assert!(position >= count.checked_sub(1).map_or(0, |last| ends[last] as u64));
                }
                reason => panic!("{name} cut at {cut}: {reason}"),
            }
        }
    }
}

#[test]
fn every_changed_byte_does_no_harm() {
    for (name, file, ends) in samples() {
        for at in 0..file.len() {
            for change in [1u8, 0x80, 0xff, file[at]] {
                let mut damaged = file.clone();
                damaged[at] ^= change;
                let read = all(&damaged);
                assert!(read.packets.len() <= ends.len() + 1, "{name}: packets out of nothing at {at}");
                // What stands before the change is as it was, unless the change says how to read it.
                let before = ends.iter().filter(|end| **end <= at).count();
                let found = read.packets.len().min(before);
                assert_eq!(found, before, "{name}: {at}");
                // Blocks, too.
                if let Ok(mut reader) = reader(&damaged) {
                    let mut steps = 0;
                    while let Ok(Some(_)) = reader.next() {
                        steps += 1;
                        assert!(steps < 100);
                    }
                }
            }
        }
    }
}

fn damaged(file: Bytes) -> (Vec<Kept>, u64, Fault) {
    let read = all(&file.bytes);
    let error = read.error.expect("an error");
    match error.reason {
        ReadReason::Damaged(fault) => (read.packets, error.position.unwrap(), fault),
        reason => panic!("{reason}"),
    }
}

#[test]
fn lengths_that_cannot_be() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let good = || Bytes::new(order).section().interface(Some(9)).packet(0, 1, &[7; 8]);
        let place = good().bytes.len() as u64;
        for kind in [6, 1, 3, 5, 77] {
            for length in [0, 4, 8, 11, 13, 47] {
                let (packets, position, fault) = damaged(good().u32(kind).u32(length).raw(&[0; 64]));
                assert_eq!((packets.len(), position, fault), (1, place, Fault::Length { kind, length }));
            }
            for length in [u32::MAX - 3, 0x8000_0000, (32 << 20) + 4] {
                let (packets, position, fault) = damaged(good().u32(kind).u32(length).raw(&[0; 64]));
                assert_eq!((packets.len(), position), (1, place));
                assert!(matches!(fault, Fault::TooLong { .. }), "{fault}");
            }
        }
        // Plausible, but more than there is: no memory is taken for it.
        let read = all(&good().u32(6).u32(32 << 20).raw(&[0; 64]).bytes);
        assert!(
            matches!(read.error.unwrap().reason, ReadReason::Cut { missing } if missing == (32 << 20) - 72)
        );
        for captured in [262_145, u32::MAX, 0x8000_0000] {
            let file = Bytes::new(order).pcap(0xa1b2_3c4d).record(1, 2, &[3; 9]);
            let file = file.u32(1).u32(2).u32(captured).u32(captured).raw(&[0; 64]);
            let (packets, position, fault) = damaged(file);
            assert_eq!((packets.len(), position), (1, 24 + 25));
            assert_eq!(fault, Fault::TooLong { length: captured, limit: 262_144 });
        }
    }
}

#[test]
fn blocks_that_make_no_sense_inside_are_left_out_and_told() {
    let good = Bytes::new(ByteOrder::Big).section().interface(Some(9)).packet(0, 1, &[7; 8]);
    let place = good.bytes.len() as u64;
    for (bad, fault) in [
        (Bytes::new(ByteOrder::Big).packet(9, 1, &[1]), Fault::Interface { id: 9, count: 1 }),
        (
            Bytes::new(ByteOrder::Big).block(6, |body| body.u32(0).time(1).u32(5).u32(5).u32(0)),
            Fault::Captured(5),
        ),
        (Bytes::new(ByteOrder::Big).block(6, |body| body.u32(0)), Fault::Short { kind: 6 }),
        (Bytes::new(ByteOrder::Big).block(3, |body| body.u32(9)), Fault::Captured(9)),
        (Bytes::new(ByteOrder::Big).block(5, |body| body.u32(0)), Fault::Short { kind: 5 }),
        (
            Bytes::new(ByteOrder::Big).block(2, |body| body.u16(0).u16(0).time(0).u32(u32::MAX).u32(0)),
            Fault::Captured(u32::MAX),
        ),
    ] {
        let file = good.clone().raw(&bad.bytes).packet(0, 2, &[8; 8]);
        let read = all(&file.bytes);
        assert_eq!(read.packets.iter().map(|p| p.timestamp).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((read.warnings[0].what, read.warnings[0].position), (Oddity::LeftOut(fault), place));
        match read.error.unwrap().reason {
            ReadReason::LeftOut { blocks: 1, first, fault: told } => {
                assert_eq!((first, told), (place, fault))
            }
            reason => panic!("{reason}"),
        }
    }
}

#[test]
fn a_packet_is_whole_though_its_options_are_not() {
    for list in [&[0, 4, 0, 4, 1, 2, 3, 4][..], &[0, 1, 0xff, 0xff], &[0, 2, 0, 3, 0, 0, 0, 0]] {
        let file = Bytes::new(ByteOrder::Big).section().interface(Some(9));
        let file = file.block(6, |body| body.u32(0).time(1).u32(4).u32(4).raw(&[7; 4]).raw(list));
        let read = all(&file.bytes);
        assert!(read.error.is_none());
        assert_eq!((read.packets.len(), read.warnings[0].what), (1, Oddity::Doubt(Doubt::Options(6))));
    }
}

#[test]
fn time_stamps_out_of_range_are_clamped_and_told() {
    let file = Bytes::new(ByteOrder::Little).section().interface(Some(0));
    let read = all(&file.packet(0, u64::MAX, &[]).packet(0, 1 << 40, &[]).bytes);
    assert_eq!(read.packets.iter().map(|p| p.timestamp).collect::<Vec<_>>(), [u64::MAX; 2]);
    assert_eq!((read.warnings[0].what, read.warnings[0].times), (Oddity::Doubt(Doubt::Time), 2));
}

#[test]
fn interfaces_without_end_are_refused() {
    let mut file = Bytes::new(ByteOrder::Little).section();
    for _ in 0..65_537 {
        file = file.block(1, |body| body.u16(1).u16(0).u32(0));
    }
    let (packets, _, fault) = damaged(file);
    assert_eq!((packets.len(), fault), (0, Fault::Descriptions));
    let mut file = Bytes::new(ByteOrder::Little).section();
    for _ in 0..300 {
        file = file.block(1, |body| body.u16(1).u16(0).u32(0).option(3, &[b'x'; 65_532]));
    }
    assert_eq!(damaged(file).2, Fault::Descriptions);
}

#[test]
fn what_is_no_capture_file_says_what_it_begins_with() {
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"\x7fELF\x02\x01", "begins with 7f 45 4c 46"),
        (b"\x4d\x3c\x2b\xa1rest", "Navtel"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x01\x02\x03\x04", "byte-order magic"),
        (b"\xd4", "at least 3 bytes"),
    ] {
        let error = all(bytes).error.unwrap();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().starts_with("test: "), "{error}");
    }
}

#[test]
fn the_short_cut_finds_what_the_long_way_finds() {
    for (_, file, _) in samples() {
        let mut short = reader(&file).unwrap();
        let mut long = reader(&file).unwrap();
        while let Some(expected) = long.next().unwrap() {
            let Item::Packet(expected) = expected else { continue };
            let packet = short.next_packet().unwrap().unwrap();
            assert_eq!(format!("{packet:?}"), format!("{expected:?}"));
        }
        assert!(short.next_packet().unwrap().is_none());
    }
}
