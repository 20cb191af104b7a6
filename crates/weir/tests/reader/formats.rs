//! Every format, byte order and resolution, compared with hand-written files.

use weir::reader::{ByteOrder, Doubt, Fault, FileKind, Item, Oddity, ReadReason};

use crate::files::Bytes;
use crate::{Kept, all, reader};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
/// A second in November 2023.
const SECOND: u32 = 1_700_000_000;
const NANOS: u64 = SECOND as u64 * 1_000_000_000;

fn kept(timestamp: u64, data: &[u8]) -> Kept {
    let original_len = u32::try_from(data.len()).unwrap();
    Kept { timestamp, interface: 0, original_len, data: data.to_vec() }
}

#[test]
fn pcap_of_each_order_and_resolution() {
    for order in ORDERS {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let file = Bytes::new(order).pcap(magic);
            let file = file.record(SECOND, 123_456, &[1, 2, 3]).record(SECOND, 999_999, &[]).bytes;
            let read = all(&file);
            assert!(read.error.is_none() && read.warnings.is_empty());
            let expected = [kept(NANOS + 123_456 * unit, &[1, 2, 3]), kept(NANOS + 999_999 * unit, &[])];
            assert_eq!(read.packets, expected, "{order} {magic:#x}");
            let reader = reader(&file).unwrap();
            assert_eq!(reader.format().byte_order, order);
            assert!(matches!(reader.format().kind, FileKind::Pcap(_)));
            assert_eq!((reader.interfaces().len(), reader.interfaces()[0].snap_len), (1, 65_535));
        }
    }
}

#[test]
fn pcap_with_longer_headers() {
    for order in ORDERS {
        // Kuznetzov's: interface index, protocol, packet type (4: sent), nothing.
        let file = Bytes::new(order).pcap(0xa1b2_cd34);
        let file = file.u32(SECOND).u32(1).u32(2).u32(60).u32(7).u16(0x800).raw(&[4, 0]).raw(&[8, 9]).bytes;
        let mut read = reader(&file).unwrap();
        let packet = read.next_packet().unwrap().unwrap();
        assert_eq!((packet.data, packet.original_len, packet.timestamp), (&[8, 9][..], 60, NANOS + 1000));
        assert_eq!(packet.direction, Some(weir::Direction::Out));
        assert!(read.next_packet().unwrap().is_none());
        for magic in [0x1c00_01ac, 0x1c00_01ab] {
            let file = Bytes::new(order).pcap(magic).u32(18).record(SECOND, 1, &[8, 9]).bytes;
            assert_eq!(all(&file).packets, [kept(NANOS + 1000, &[8, 9])]);
        }
    }
}

#[test]
fn pcap_of_old_versions_says_its_lengths_the_other_way_round() {
    for (major, minor, first, second) in
        [(2, 2, 60, 2), (2, 3, 60, 2), (2, 3, 2, 60), (543, 0, 60, 2), (2, 4, 2, 60)]
    {
        let file = Bytes::new(ByteOrder::Big).u32(0xa1b2_c3d4).u16(major).u16(minor);
        let file = file.u64(0).u32(0).u32(1).u32(SECOND).u32(0).u32(first).u32(second).raw(&[8, 9]).bytes;
        let read = all(&file);
        assert!(read.error.is_none());
        assert_eq!(read.packets, [Kept { original_len: 60, ..kept(NANOS, &[8, 9]) }], "{major}.{minor}");
    }
    let file = Bytes::new(ByteOrder::Big).u32(0xa1b2_c3d4).u16(3).u16(0).u64(0).u64(1).bytes;
    let error = all(&file).error.unwrap();
    assert!(matches!(error.reason, ReadReason::Damaged(Fault::Version { major: 3, minor: 0 })), "{error}");
}

#[test]
fn the_upper_bits_of_a_link_type() {
    let link = |word: u32| {
        let file = Bytes::new(ByteOrder::Little).u32(0xa1b2_c3d4).u16(2).u16(4).u64(0).u32(0).u32(word).bytes;
        let reader = reader(&file).unwrap();
        (reader.interfaces()[0].link_type, reader.fcs_len(0), reader.warnings().len())
    };
    assert_eq!(link(276), (276, None, 0));
    assert_eq!(link(0x2400_0001), (1, Some(4), 0));
    assert_eq!(link(0x0001_0001), (1, None, 1));
    assert_eq!(link(0x2000_0001), (1, None, 1));
}

#[test]
fn pcapng_of_each_order_and_resolution() {
    for order in ORDERS {
        for (resolution, ticks, nanos) in [
            (None, NANOS / 1000 + 1, NANOS + 1000),
            (Some(9), NANOS + 7, NANOS + 7),
            (Some(3), NANOS / 1_000_000, NANOS),
            (Some(0x80), SECOND.into(), NANOS),
            (Some(0x80 | 20), (u64::from(SECOND) << 20) + (1 << 19), NANOS + 500_000_000),
        ] {
            let file = Bytes::new(order).section().interface(resolution);
            let file = file.packet(0, ticks, &[1, 2, 3, 4, 5]).packet(0, ticks, &[]).bytes;
            let read = all(&file);
            assert!(read.error.is_none() && read.warnings.is_empty());
            assert_eq!(
                read.packets,
                [kept(nanos, &[1, 2, 3, 4, 5]), kept(nanos, &[])],
                "{order} {resolution:?}"
            );
        }
    }
}

#[test]
fn an_offset_of_time_stamps() {
    for (offset, nanos) in [(100i64, NANOS + 100_000_000_000), (-1, NANOS - 1_000_000_000)] {
        let file = Bytes::new(ByteOrder::Big).section().block(1, |body| {
            body.u16(1).u16(0).u32(0).option(9, &[9]).option(14, &offset.to_be_bytes()).end()
        });
        assert_eq!(all(&file.packet(0, NANOS, &[1]).bytes).packets, [kept(nanos, &[1])]);
    }
}

#[test]
fn sections_count_their_interfaces_on() {
    let [little, big] = ORDERS.map(|order| {
        Bytes::new(order).section().interface(Some(9)).interface(Some(6)).packet(1, 5, &[1]).packet(
            0,
            5,
            &[2],
        )
    });
    let file = [little.bytes, big.bytes].concat();
    let read = all(&file);
    assert!(read.error.is_none());
    let found: Vec<_> = read.packets.iter().map(|p| (p.interface, p.timestamp, p.data[0])).collect();
    assert_eq!(found, [(1, 5000, 1), (0, 5, 2), (3, 5000, 1), (2, 5, 2)]);
    let mut reader = reader(&file).unwrap();
    let mut named = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Interface(number) = item {
            named.push(number);
        }
    }
    assert_eq!((named, reader.interfaces().len(), reader.sections().len()), (vec![0, 1, 2, 3], 4, 2));
}

#[test]
fn what_blocks_say() {
    for order in ORDERS {
        let number = |value: u64| Bytes::new(order).u64(value).bytes;
        let file = Bytes::new(order)
            .block(0x0a0d_0d0a, |body| {
                let body = body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(0);
                body.option(2, b"chip").option(3, b"os").option(4, b"prog").option(1, b"why").end()
            })
            .block(1, |body| {
                let body = body.u16(113).u16(0).u32(96).option(2, b"eth0\0").option(3, b"the uplink");
                let body = body.option(6, &[1, 2, 3, 4, 5, 6]).option(8, &number(1_000_000));
                let body = body.option(11, b"\0tcp port 80").option(12, b"Linux").option(13, &[4]);
                body.option(1, b"seen").option(9, &[6]).end()
            })
            .block(6, |body| {
                let body = body.u32(0).time(7).u32(3).u32(99).padded(&[1, 2, 3]).option(1, b"look here");
                let flags = Bytes::new(order).u32(2).bytes;
                let queue = Bytes::new(order).u32(5).bytes;
                let body = body.option(2, &flags).option(4, &number(17)).option(6, &queue);
                body.option(1, b"and here").end()
            })
            .block(2, |body| {
                let flags = Bytes::new(order).u32(1).bytes;
                body.u16(0).u16(3).time(8).u32(1).u32(50).padded(&[9]).option(2, &flags).option(1, b"old")
            })
            .block(3, |body| body.u32(200).padded(&[7; 96]))
            .block(5, |body| {
                let times = Bytes::new(order).time(2).bytes;
                let body = body.u32(0).time(9).option(2, &times).option(4, &number(30)).option(5, &number(2));
                body.option(7, &number(1)).option(8, &number(27)).option(1, b"end").end()
            });
        let mut reader = reader(&file.bytes).unwrap();
        assert!(matches!(reader.next().unwrap(), Some(Item::Interface(0))));
        let interface = reader.interfaces()[0].clone();
        assert_eq!((interface.link_type, interface.snap_len), (113, 96));
        assert_eq!(interface.name.as_deref(), Some("eth0"));
        assert_eq!(interface.description.as_deref(), Some("the uplink"));
        assert_eq!(interface.mac, Some([1, 2, 3, 4, 5, 6]));
        assert_eq!(interface.speed_bits, Some(1_000_000));
        assert_eq!(interface.filter.as_deref(), Some("tcp port 80"));
        assert_eq!((interface.os.as_deref(), interface.comment.as_deref()), (Some("Linux"), Some("seen")));
        assert_eq!(reader.fcs_len(0), Some(4));
        let section = reader.sections()[0].clone();
        assert_eq!(section.user_application.as_deref(), Some("prog"));
        assert_eq!((section.os.as_deref(), section.hardware.as_deref()), (Some("os"), Some("chip")));
        assert_eq!(section.comment.as_deref(), Some("why"));

        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.data, packet.timestamp, packet.original_len), (&[1, 2, 3][..], 7000, 99));
        assert_eq!((packet.comment, packet.queue, packet.lost_before), (Some("and here"), 5, 17));
        assert_eq!(packet.direction, Some(weir::Direction::Out));
        assert_eq!(packet.notes.comments().collect::<Vec<_>>(), ["look here", "and here"]);
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.data, packet.timestamp, packet.original_len), (&[9][..], 8000, 50));
        assert_eq!(packet.notes.comments().collect::<Vec<_>>(), ["old"]);
        assert!(!packet.notes.is_timeless());
        assert_eq!((packet.direction, packet.lost_before), (Some(weir::Direction::In), 3));
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.data, packet.timestamp, packet.original_len), (&[7; 96][..], 0, 200));
        assert!(packet.notes.is_timeless() && packet.notes.is_empty());
        let Some(Item::Statistics(statistics)) = reader.next().unwrap() else { panic!("no statistics") };
        assert_eq!((statistics.timestamp, statistics.start, statistics.end), (9000, Some(2000), None));
        assert_eq!((statistics.received, statistics.dropped, statistics.accepted), (Some(30), Some(2), None));
        assert_eq!((statistics.dropped_by_os, statistics.delivered), (Some(1), Some(27)));
        assert_eq!(statistics.comment.as_deref(), Some("end"));
        assert!(reader.next().unwrap().is_none());
        assert!(reader.warnings().is_empty());
    }
}

#[test]
fn other_blocks_come_in_native_order() {
    let blocks = |order| {
        let file = Bytes::new(order).section();
        let file = file.block(4, |body| {
            body.option(1, &[10, 0, 0, 1, b'a', 0]).option(2, &[7; 19]).end().option(2, b"ns").end()
        });
        let file = file.block(10, |body| body.u32(0x544c_534b).u32(5).padded(b"12345"));
        file.block(0xbad, |body| body.u32(32_473).raw(&[1, 2, 3, 4]))
    };
    let read = |order| {
        let mut reader = reader(&blocks(order).bytes).unwrap();
        let mut found = Vec::new();
        while let Some(item) = reader.next().unwrap() {
            let Item::Block { kind, body } = item else { panic!("{item:?}") };
            found.push((kind, body.to_vec()));
        }
        (found, reader.warnings().to_vec())
    };
    let (native, none) = read(ByteOrder::NATIVE);
    let (mut foreign, warnings) = read(ByteOrder::NATIVE.swapped());
    assert!(none.is_empty());
    assert_eq!(native.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [4, 10, 0xbad]);
    assert!(matches!(warnings[0].what, Oddity::Doubt(Doubt::Foreign { kind: 0xbad, .. })));
    foreign.push(native[2].clone());
    assert_eq!(foreign, native);
}
