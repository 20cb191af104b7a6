//! Merging several files.

use std::io::Cursor;
use std::time::Duration;

use weir::reader::{ByteOrder, Item, Merge, Reader};

use crate::files::Bytes;

fn reader(file: Bytes) -> Reader {
    Reader::from_read(Box::new(Cursor::new(file.bytes)), "test").unwrap()
}

fn named(order: ByteOrder, names: &[&str]) -> Bytes {
    names.iter().fold(Bytes::new(order).section(), |file, name| {
        file.block(1, |body| body.u16(1).u16(0).u32(0).option(2, name.as_bytes()).option(9, &[9]).end())
    })
}

/// Timestamp, interface and first byte of each packet; interfaces must be named before.
fn packets(merge: &mut Merge) -> Vec<(u64, u32, u8)> {
    let mut found = Vec::new();
    let mut named = 0;
    while let Some(item) = merge.next().unwrap() {
        match item {
            Item::Packet(packet) => {
                assert!(packet.interface < named);
                found.push((packet.timestamp, packet.interface, packet.data[0]));
            }
            Item::Interface(number) => {
                assert_eq!(number, named);
                named += 1;
            }
            Item::Statistics(statistics) => assert!(statistics.interface < named),
            Item::Block { .. } | Item::Pause => {}
        }
    }
    assert_eq!(merge.interfaces().len(), named as usize);
    found
}

#[test]
fn files_are_merged_by_time_and_share_interfaces() {
    let first = named(ByteOrder::Little, &["eth0", "eth1"]).packet(0, 10, &[1]).packet(1, 30, &[2]);
    let second = named(ByteOrder::Big, &["eth1", "eth9"]).packet(0, 10, &[3]).packet(1, 20, &[4]);
    let second = second.block(5, |body| body.u32(1).time(25)).packet(0, 40, &[5]);
    let third = Bytes::new(ByteOrder::Little).pcap(0xa1b2_3c4d).record(0, 5, &[6]).record(0, 35, &[7]);
    let mut merge = Merge::new(vec![reader(first), reader(second), reader(third)]);
    let found = packets(&mut merge);
    assert_eq!(found, [(5, 3, 6), (10, 0, 1), (10, 1, 3), (20, 2, 4), (30, 1, 2), (35, 3, 7), (40, 1, 5)]);
    let names: Vec<_> = merge.interfaces().iter().map(|interface| interface.name.as_deref()).collect();
    assert_eq!(names, [Some("eth0"), Some("eth1"), Some("eth9"), None]);
    assert_eq!(merge.late(), 0);
}

#[test]
fn two_interfaces_of_one_file_stay_two() {
    let file = || named(ByteOrder::Little, &["eth0", "eth0"]).packet(1, 1, &[1]);
    let mut merge = Merge::new(vec![reader(file()), reader(file())]);
    assert_eq!(packets(&mut merge), [(1, 1, 1), (1, 1, 1)]);
    assert_eq!(merge.interfaces().len(), 2);
}

#[test]
fn a_window_sorts_what_is_not_further_apart() {
    let file = |times: &[u64]| {
        times.iter().fold(named(ByteOrder::Little, &["eth0"]), |file, time| {
            file.packet(0, *time, &[u8::try_from(*time).unwrap()])
        })
    };
    let times = [100, 50, 60, 101, 70, 150, 30, 160];
    let run = |window| {
        let mut merge = Merge::new(vec![reader(file(&times)), reader(file(&[55, 155]))]).window(window);
        let found: Vec<_> = packets(&mut merge).into_iter().map(|(time, ..)| time).collect();
        (found, merge.late())
    };
    assert_eq!(run(Duration::ZERO), (vec![55, 100, 50, 60, 101, 70, 150, 30, 155, 160], 4));
    assert_eq!(run(Duration::from_nanos(60)), (vec![50, 55, 60, 70, 30, 100, 101, 150, 155, 160], 1));
    assert_eq!(run(Duration::from_nanos(200)), (vec![30, 50, 55, 60, 70, 100, 101, 150, 155, 160], 0));
}

#[test]
fn what_is_held_back_is_whole() {
    let mut file = named(ByteOrder::Big, &["eth0"]);
    for time in (1..200u64).rev() {
        file = file.block(6, |body| {
            let data = vec![u8::try_from(time).unwrap(); usize::try_from(time).unwrap()];
            let length = u32::try_from(time).unwrap();
            let body = body.u32(0).time(time).u32(length).u32(length + 1).padded(&data);
            if time % 3 == 0 { body.option(1, format!("at {time}").as_bytes()).end() } else { body }
        });
    }
    let mut merge = Merge::new(vec![reader(file)]).window(Duration::MAX);
    assert!(matches!(merge.next().unwrap(), Some(Item::Interface(0))));
    for time in 1..200u64 {
        let Some(Item::Packet(packet)) = merge.next().unwrap() else { panic!("no packet {time}") };
        assert_eq!((packet.timestamp, packet.data.len() as u64), (time, time));
        assert!(packet.data.iter().all(|byte| u64::from(*byte) == time));
        assert_eq!(packet.comment, (time % 3 == 0).then(|| format!("at {time}")).as_deref());
    }
    assert!(merge.next().unwrap().is_none());
}

#[test]
fn a_damaged_file_does_not_hold_up_the_others() {
    let cut = named(ByteOrder::Little, &["eth0"]).packet(0, 1, &[1]).raw(&[6, 0, 0, 0]);
    let good = named(ByteOrder::Little, &["eth0"]).packet(0, 2, &[2]).packet(0, 3, &[3]);
    let mut merge = Merge::new(vec![reader(cut), reader(good)]);
    let (mut found, mut errors) = (Vec::new(), 0);
    loop {
        match merge.next() {
            Ok(Some(Item::Packet(packet))) => found.push(packet.timestamp),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => errors += 1,
        }
    }
    assert_eq!((found, errors), (vec![1, 2, 3], 1));
}
