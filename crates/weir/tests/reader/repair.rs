//! What is whole of a damaged file goes to a new one.

use std::fs;

use weir::reader::{ByteOrder, ReadReason, RepairError, Repaired, repair};

use crate::files::Bytes;
use crate::{Kept, all};

/// Repairs `bytes`; gives what was told and the new file.
fn repaired(bytes: &[u8]) -> (Repaired, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    fs::write(&input, bytes).unwrap();
    let told = repair(&input, &output).unwrap();
    let file = fs::read(&output).unwrap();
    assert_eq!(told.bytes, file.len() as u64);
    assert_eq!(
        told.bytes + told.lost_bytes,
        if told.ended.is_none() { bytes.len() as u64 } else { told.bytes + told.lost_bytes }
    );
    assert_eq!(told.lost.iter().map(|range| range.end - range.start).sum::<u64>(), told.lost_bytes);
    let read = all(&file);
    assert!(read.error.is_none() && read.warnings.is_empty(), "{:?}", read.error);
    assert_eq!(read.packets.len() as u64, told.packets);
    (told, file)
}

fn data(packet: u32) -> Vec<u8> {
    (0..40 + packet % 7).map(|byte| u8::try_from((packet * 31 + byte * 7) % 256).unwrap()).collect()
}

const COUNT: u32 = 60;

/// A file, and where each of its packets begins.
fn pcap(order: ByteOrder) -> (Vec<u8>, Vec<usize>) {
    let mut starts = Vec::new();
    let mut file = Bytes::new(order).pcap(0xa1b2_3c4d);
    for packet in 0..COUNT {
        starts.push(file.bytes.len());
        file = file.record(1_700_000_000 + packet, packet, &data(packet));
    }
    (file.bytes, starts)
}

fn pcapng(order: ByteOrder) -> (Vec<u8>, Vec<usize>) {
    let mut starts = Vec::new();
    let mut file = Bytes::new(order).section().interface(Some(9));
    for packet in 0..COUNT {
        starts.push(file.bytes.len());
        file = file.packet(0, 1_700_000_000_000_000_000 + u64::from(packet), &data(packet));
    }
    (file.bytes, starts)
}

fn samples() -> Vec<(Vec<u8>, Vec<usize>)> {
    [ByteOrder::Little, ByteOrder::Big].into_iter().flat_map(|order| [pcap(order), pcapng(order)]).collect()
}

fn kept(bytes: &[u8]) -> Vec<Kept> {
    all(bytes).packets
}

#[test]
fn a_whole_file_stays_what_it_is() {
    for (file, _) in samples() {
        let (told, copy) = repaired(&file);
        assert_eq!(copy, file);
        assert!(told.lost.is_empty() && told.ended.is_none());
    }
}

#[test]
fn every_cut_keeps_what_is_whole() {
    for (file, starts) in samples() {
        for cut in starts[2]..starts[4] {
            let (told, copy) = repaired(&file[..cut]);
            let end = starts.iter().copied().filter(|start| *start <= cut).max().unwrap();
            assert_eq!(copy, file[..end]);
            let lost = (end < cut).then_some(end as u64..cut as u64);
            assert_eq!(told.lost, Vec::from_iter(lost));
        }
    }
}

#[test]
fn a_hole_costs_what_it_covers_and_no_more() {
    for (file, starts) in samples() {
        let expected = kept(&file);
        // Missing bytes, and bytes overwritten, from the middle of packet 10 to the middle of packet 20.
        for shift in 1..30 {
            let hole = starts[10] + shift..starts[20] + shift;
            let mut missing = file.clone();
            missing.drain(hole.clone());
            let mut noise = file.clone();
            let mut state = 12_345u32;
            for byte in &mut noise[hole] {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = state.to_le_bytes()[3];
            }
            for damaged in [missing, noise] {
                let (told, copy) = repaired(&damaged);
                let found = kept(&copy);
                assert_eq!(found[..10], expected[..10], "{shift}");
                assert_eq!(found[found.len() - 39..], expected[21..], "{shift}");
                assert!(told.lost_bytes > 0 || found.len() > 49);
            }
        }
    }
}

#[test]
fn a_bad_length_costs_one_packet() {
    for (file, starts) in samples() {
        let expected = kept(&file);
        let is_pcap = file[0] != 0x0a;
        // The captured length, or the length of the block.
        let field = starts[10] + if is_pcap { 8 } else { 4 };
        for value in [[0xff; 4], [0x7f; 4], [1, 0, 0, 1]] {
            let mut damaged = file.clone();
            damaged[field..field + 4].copy_from_slice(&value);
            let (told, copy) = repaired(&damaged);
            assert_eq!((told.lost.len(), &told.lost[0]), (1, &(starts[10] as u64..starts[11] as u64)));
            assert_eq!(kept(&copy), [&expected[..10], &expected[11..]].concat());
        }
    }
}

#[test]
fn a_section_may_be_shorter_than_its_header_says() {
    let body =
        Bytes::new(ByteOrder::Big).interface(Some(9)).packet(0, 1, &[1; 8]).packet(0, 2, &[2; 8]).bytes;
    let section = |length: u64| {
        Bytes::new(ByteOrder::Big).block(0x0a0d_0d0a, |b| b.u32(0x1a2b_3c4d).u16(1).u16(0).u64(length))
    };
    let file = section(body.len() as u64).raw(&body).bytes;
    let (_, copy) = repaired(&file[..file.len() - 4]);
    assert!(copy.starts_with(&section(u64::MAX).bytes));
    assert_eq!(kept(&copy).len(), 1);
}

#[test]
fn compressed_data_that_are_cut_give_what_they_hold() {
    let (file, _) = pcapng(ByteOrder::Little);
    let packed = zstd::encode_all(&file[..], 3).unwrap();
    let both = [&packed[..], &packed[..packed.len() / 2]].concat();
    let (told, copy) = repaired(&both);
    assert!(copy.len() >= file.len());
    assert!(matches!(told.ended, Some(ReadReason::CompressedCut(_))));
}

#[test]
fn no_file_is_touched_by_accident() {
    let dir = tempfile::tempdir().unwrap();
    let (file, other) = (dir.path().join("file"), dir.path().join("other"));
    let (bytes, _) = pcap(ByteOrder::Little);
    fs::write(&file, &bytes).unwrap();
    fs::write(&other, "precious").unwrap();
    for output in [&file, &other] {
        assert!(matches!(repair(&file, output), Err(RepairError::Exists { .. })));
    }
    assert_eq!((fs::read(&file).unwrap(), fs::read(&other).unwrap()), (bytes, b"precious".to_vec()));
    // What is no capture leaves nothing behind.
    let new = dir.path().join("new");
    assert!(matches!(repair(&other, &new), Err(RepairError::Read(_))));
    assert!(!new.exists());
    fs::write(&other, &pcapng(ByteOrder::Big).0[..20]).unwrap();
    assert!(matches!(repair(&other, &new), Err(RepairError::Nothing { .. })));
    assert!(!new.exists());
}
