//! Saving the intact parts of a damaged file.

use std::fs;

use weir::reader::{ByteOrder, Fault, Further, Joined, ReadReason, RepairError, Repaired, repair};

use crate::files::Bytes;
use crate::{Kept, all};

/// Repairs `bytes`; gives what was told and the new file. Each byte is in it or lost.
fn repaired(bytes: &[u8]) -> (Repaired, Vec<u8>) {
    let (told, file) = repaired_further(bytes);
    assert!(told.further.is_empty());
    assert_eq!(
        told.bytes + told.lost_bytes,
        if told.ended.is_none() { bytes.len() as u64 } else { told.bytes + told.lost_bytes }
    );
    (told, file)
}

/// The same of files that were put together.
fn repaired_further(bytes: &[u8]) -> (Repaired, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    fs::write(&input, bytes).unwrap();
    let told = repair(&input, &output).unwrap();
    let file = fs::read(&output).unwrap();
    assert_eq!(told.bytes, file.len() as u64);
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
fn zeros_are_no_packets() {
    for (file, starts) in [pcap(ByteOrder::Little), pcap(ByteOrder::Big)] {
        let expected = kept(&file);
        // From any place in packet 10, its header included, over two others, and behind the end.
        for shift in 0..starts[11] - starts[10] {
            let zeros = starts[10] + shift..starts[12] + shift;
            let mut damaged = file.clone();
            damaged[zeros].fill(0);
            damaged.resize(file.len() + 4096, 0);
            let (told, copy) = repaired(&damaged);
            let found = kept(&copy);
            assert_eq!(found[..10], expected[..10], "{shift}");
            // Of the two whose headers are hit in part it cannot always be told.
            let behind = &expected[if shift == 0 { 12 } else { 13 }..];
            assert!(found.ends_with(behind) && found.len() <= 12 + behind.len(), "{shift}");
            assert!(found.iter().all(|packet| packet.timestamp > 1_600_000_000_000_000_000), "{shift}");
            assert!(told.lost_bytes >= 4096 && told.lost.last().unwrap().end == damaged.len() as u64);
        }
        // Who only reads gets what is in front of them.
        let read = all(&[&file[..], &[0; 4096]].concat());
        assert_eq!(read.packets, expected);
        assert!(matches!(read.error.unwrap().reason, ReadReason::Damaged(Fault::Zeros)));
    }
}

/// The same small number again and again looks like packets of 1970.
#[test]
fn patterns_are_no_packets() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let (file, starts) = pcap(order);
        for filled in [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0xff; 4], [0x20; 4]] {
            let mut damaged = file[..starts[10]].to_vec();
            damaged.extend(filled.repeat(600));
            damaged.extend_from_slice(&file[starts[10]..]);
            let (told, copy) = repaired(&damaged);
            assert!(copy == file, "{filled:?}");
            assert_eq!(told.lost_bytes, 2400);
        }
    }
}

#[test]
fn a_file_behind_another_goes_on() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let (first, starts) = pcap(order);
        for (other, magic) in
            [(ByteOrder::Little, 0xa1b2_3c4d), (ByteOrder::Big, 0xa1b2_3c4d), (ByteOrder::Big, 0xa1b2_c3d4)]
        {
            // Far from the first in time, too.
            let second = Bytes::new(other).pcap(magic);
            let second = (0..20).fold(second, |file, n| file.record(900_000_000 + n, n, &data(n))).bytes;
            // The first whole, and cut in the middle of a packet.
            for (end, packets) in [(first.len(), 60), (starts[50] + 20, 50)] {
                let both = [&first[..end], &second].concat();
                let (told, copy) = repaired_further(&both);
                assert_eq!(kept(&copy), [&kept(&first)[..packets], &kept(&second)].concat());
                let further = Further { position: end as u64, link_type: 1, packets: Joined::Whole };
                assert_eq!(told.further, [further]);
                assert_eq!(told.lost_bytes, if packets == 60 { 0 } else { 20 });
            }
            let read = all(&[&first[..], &second].concat());
            assert_eq!(read.packets, kept(&first));
            assert!(matches!(read.error.unwrap().reason, ReadReason::Damaged(Fault::AnotherFile)));
        }
    }
}

#[test]
fn a_file_of_another_link_type_behind_another_is_left_out() {
    let (first, _) = pcap(ByteOrder::Little);
    let mut second = first.clone();
    second[20] = 101;
    let (told, copy) = repaired_further(&[&first[..], &second, &first].concat());
    assert_eq!(kept(&copy), [kept(&first), kept(&first)].concat());
    assert_eq!(told.further[0].packets, Joined::LeftOut);
    assert_eq!((told.further[1].packets, told.lost_bytes), (Joined::Whole, second.len() as u64));
}

/// Clocks are set, and files of several are merged: no time is wrong by itself.
#[test]
fn packets_of_any_time_are_kept() {
    for times in [[0, 1_700_000_000], [1_700_000_000, 4_000_000_000]] {
        let time = |n: u32| times[n as usize % 2] + n;
        let starting = Bytes::new(ByteOrder::Little).pcap(0xa1b2_c3d4);
        let mut file = (0..40).fold(starting, |file, n| file.record(time(n), n, &data(n))).bytes;
        assert_eq!(repaired(&file).1, file);
        let expected = kept(&file);
        let length = 24 + (0..20).map(|n| data(n).len() + 16).sum::<usize>();
        file[length..length + 16].fill(0);
        assert_eq!(kept(&repaired(&file).1), [&expected[..20], &expected[21..]].concat());

        // The clock is set where the damage is.
        let starting = Bytes::new(ByteOrder::Little).pcap(0xa1b2_c3d4);
        let time = |n: u32| times[usize::from(n > 20)] + n;
        let mut file = (0..40).fold(starting, |file, n| file.record(time(n), n, &data(n))).bytes;
        let expected = kept(&file);
        file[length..length + 16].fill(0);
        assert_eq!(kept(&repaired(&file).1), [&expected[..20], &expected[21..]].concat());
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
