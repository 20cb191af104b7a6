use weir_savefile::ByteOrder;
use weir_savefile::decode::{
    Decoder, Doubt, Fault, Format, Found, Header, LONGEST_BLOCK, PacketAt, Step, begins_file,
};
use weir_savefile::pcap::{LAST_TIME, Resolution};

use super::{Bytes, ORDERS, needs_all_of, step};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const PATCHED: u32 = 0xa1b2_cd34;
const IXIA: [u32; 2] = [0x1c00_01ac, 0x1c00_01ab];
/// Longest packet of an Ethernet file.
const LONGEST: u32 = 262_144;

pub(crate) fn header_of(order: ByteOrder, magic: u32, version: (u16, u16), link: u32) -> Bytes {
    let header = Bytes::new(order).u32(magic).u16(version.0).u16(version.1).words([0, 0, 1500, link]);
    if IXIA.contains(&magic) { header.u32(0) } else { header }
}

/// A decoder after a file header, and that header.
pub(crate) fn begun(header: &Bytes) -> (Decoder, Header) {
    let mut decoder = Decoder::new();
    needs_all_of(&decoder, &header.1);
    match step(&mut decoder, &header.1) {
        Ok(Found::Header(header, None)) => {
            assert_eq!(decoder.format(), Some(Format::Pcap(header)));
            (decoder, header)
        }
        other => panic!("{other:?}"),
    }
}

fn begun_as(order: ByteOrder, magic: u32, version: (u16, u16)) -> (Decoder, Header) {
    begun(&header_of(order, magic, version, 1))
}

fn packet(decoder: &mut Decoder, record: &[u8]) -> PacketAt {
    needs_all_of(decoder, record);
    match step(decoder, record) {
        Ok(Found::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_variant_has_its_unit_and_its_lengths() {
    for order in ORDERS {
        for (magic, unit, header_len, record_len) in [
            (MICROSECONDS, 1000, 24, 16),
            (NANOSECONDS, 1, 24, 16),
            (PATCHED, 1000, 24, 24),
            (IXIA[0], 1000, 28, 16),
            (IXIA[1], 1000, 28, 16),
        ] {
            let (mut decoder, header) = begun_as(order, magic, (2, 4));
            assert_eq!(header.variant.header_len(), header_len);
            assert_eq!(header.variant.record_header_len(), record_len);
            assert_eq!((header.version, header.snap_len, header.link_type), ((2, 4), 1500, 1));
            let head = Bytes::new(order).words([7, 9, 5, 60]);
            let sent = [0, 0, 0, 0, 0, 0, 4, 0];
            let record = if record_len == 24 { head.clone().bytes(&sent) } else { head.clone() };
            let record = record.bytes(b"hello").1;
            let expected = PacketAt {
                data: record_len..record_len + 5,
                timestamp: 7_000_000_000 + 9 * unit,
                original_len: 60,
                flags: (record_len == 24).then_some(2),
                ..PacketAt::default()
            };
            assert_eq!(packet(&mut decoder, &record), expected, "{magic:x} {order}");
            let plain = decoder.plain(&record).expect("all of them are plain");
            assert_eq!((plain.used, plain.start, plain.captured), (record.len(), record_len, 5));
            assert_eq!((plain.record.timestamp, plain.record.flags), (expected.timestamp, expected.flags));
            let run = [&record[..], &record, &record[..10]].concat();
            assert_eq!(decoder.plain_while(&run, |_, _| true), 2 * record.len());
            let usual = order == ByteOrder::NATIVE && record_len == 16 && header_len == 24;
            assert_eq!(header.is_usual(), usual, "{magic:x} {order}");
            if record_len == 24 {
                let received = head.bytes(&[0; 8]).bytes(b"hello").1;
                assert_eq!(packet(&mut decoder, &received).flags, Some(1));
            }
        }
    }
}

#[test]
fn versions_differ_in_the_order_of_the_lengths() {
    for order in ORDERS {
        for (version, captured_first, original_first) in [
            ((2, 4), true, false),
            ((2, 3), true, true),
            ((2, 2), false, true),
            ((2, 0), false, true),
            ((543, 0), false, true),
        ] {
            let (decoder, header) = begun_as(order, MICROSECONDS, version);
            assert_eq!(header.version, version);
            let lengths = |one, two| {
                let record = Bytes::new(order).words([7, 9, one, two]).bytes(b"hello").1;
                decoder.plain(&record).map(|plain| (plain.captured, plain.record.original_len))
            };
            assert_eq!(lengths(5, 60), captured_first.then_some((5, 60)), "{version:?}");
            assert_eq!(lengths(60, 5), original_first.then_some((5, 60)), "{version:?}");
            assert_eq!(header.is_usual(), version == (2, 4) && order == ByteOrder::NATIVE);
        }
        for version in [(2, 5), (1, 4), (3, 4), (543, 1), (0, 0)] {
            let header = header_of(order, MICROSECONDS, version, 1).1;
            let (major, minor) = version;
            assert_eq!(Decoder::new().step(&header), Err(Fault::Version { major, minor }));
            assert!(!begins_file(&header));
        }
    }
}

#[test]
fn a_magic_number_is_known_by_name_or_not_at_all() {
    for order in ORDERS {
        let of = |magic| Decoder::new().step(&header_of(order, magic, (2, 4), 1).1).map(drop);
        assert_eq!(of(0xa12b_3c4d), Err(Fault::Undocumented("Navtel's pcap")));
        assert_eq!(of(0xa1b2_34cd), Err(Fault::Undocumented("F. Mesquita's pcap")));
        let magic = Bytes::new(order).u32(0xa1b2_c3d5).1;
        assert_eq!(of(0xa1b2_c3d5), Err(Fault::Magic(magic.try_into().expect("four bytes"))));
        let header = header_of(order, NANOSECONDS, (2, 4), 1).1;
        assert!(begins_file(&header[..8]) && !begins_file(&header[..7]) && !begins_file(&[]));
    }
}

#[test]
fn the_word_of_the_link_type_has_more_in_it() {
    for order in ORDERS {
        for (word, fcs_len, doubted) in [
            (1, None, false),
            (0x2400_0001, Some(4), false),
            (0x0400_0001, Some(0), false),
            (0xf400_0001, Some(30), false),
            (0x2000_0001, None, true),
            (0x0001_0001, None, true),
            (0x0200_0001, None, true),
            (0x0800_0001, None, true),
            (0x2c00_0001, Some(4), true),
        ] {
            let header = header_of(order, MICROSECONDS, (2, 4), word).1;
            let Ok(Found::Header(header, doubt)) = step(&mut Decoder::new(), &header) else {
                panic!("no header")
            };
            assert_eq!((header.link_type, header.fcs_len), (1, fcs_len), "{word:x}");
            assert_eq!(doubt, doubted.then_some(Doubt::LinkType(word)), "{word:x}");
        }
        let zone = Bytes::new(order).u32(MICROSECONDS).u16(2).u16(4).words([u32::MAX, 0, 1500, 1]).1;
        let found = step(&mut Decoder::new(), &zone);
        assert!(matches!(found, Ok(Found::Header(_, Some(Doubt::Zone(-1))))), "{found:?}");
    }
}

#[test]
fn what_is_no_record_is_told_from_what_is_missing() {
    for order in ORDERS {
        let (mut decoder, _) = begun_as(order, MICROSECONDS, (2, 4));
        let mut of = |bytes: &[u8]| decoder.step(bytes).map(|step| matches!(step, Step::Need(_)));
        let record = |captured| Bytes::new(order).words([7, 9, captured, captured]).1;
        assert_eq!(of(&record(LONGEST)), Ok(true));
        let (length, limit) = (LONGEST + 1, LONGEST);
        assert_eq!(of(&record(length)), Err(Fault::TooLong { length, limit }));
        assert_eq!(of(&record(0)), Ok(false), "an empty packet");
        assert_eq!(of(&[0; 16]), Err(Fault::Zeros));
        assert_eq!(of(&[0; 15]), Ok(true));
        // Its lengths are the time zone and the accuracy of the header: zeros.
        assert_eq!(of(&header_of(order, MICROSECONDS, (2, 4), 1).1), Err(Fault::AnotherFile));
        // With a snap length beyond what is usual, so are packets.
        let header = Bytes::new(order).u32(MICROSECONDS).u16(2).u16(4).words([0, 0, LONGEST + 1, 1]);
        let (mut decoder, _) = begun(&header);
        let mut of = |captured| decoder.step(&record(captured)).map(drop);
        assert_eq!(of(LONGEST_BLOCK), Ok(()));
        let (length, limit) = (LONGEST_BLOCK + 1, LONGEST_BLOCK);
        assert_eq!(of(length), Err(Fault::TooLong { length, limit }));
        let header = Bytes::new(order).u32(MICROSECONDS).u16(2).u16(4).words([0, 0, LONGEST, 1]);
        assert!(begun(&header).0.step(&record(LONGEST + 1)).is_err());
    }
}

#[test]
fn a_record_is_adopted_by_a_file_of_another_variant() {
    let swapped = ByteOrder::NATIVE.swapped();
    let variants = [
        (ByteOrder::NATIVE, NANOSECONDS, (2, 4)),
        (ByteOrder::NATIVE, PATCHED, (2, 4)),
        (ByteOrder::NATIVE, MICROSECONDS, (2, 2)),
        (ByteOrder::NATIVE, MICROSECONDS, (2, 3)),
        (swapped, MICROSECONDS, (2, 4)),
        (swapped, IXIA[0], (2, 4)),
    ];
    for (order, magic, version) in variants {
        let (mut from, from_header) = begun_as(order, magic, version);
        let lengths = if version == (2, 2) { [60, 5] } else { [5, 60] };
        let head = Bytes::new(order).words([7, 9]).words(lengths);
        let patch: &[u8] = if magic == PATCHED { &[0, 0, 0, 0, 0, 0, 4, 0] } else { &[] };
        let record = head.bytes(patch).bytes(b"hello").1;
        let before = packet(&mut from, &record);
        for (order, magic, version) in variants {
            let (mut to, to_header) = begun_as(order, magic, version);
            let adopted = to_header.adopt(&from_header, &record);
            let after = packet(&mut to, &adopted);
            assert_eq!(&adopted[after.data.clone()], b"hello");
            let unit = if magic == NANOSECONDS { 1 } else { 1000 };
            assert_eq!((after.timestamp, after.original_len), (before.timestamp / unit * unit, 60));
            let sent = if from_header.variant.patched { Some(2) } else { Some(1) };
            assert_eq!(after.flags, sent.filter(|_| magic == PATCHED));
            let alike = from_header.variant == to_header.variant && from_header.version == to_header.version;
            assert_eq!(from_header.is_alike(&to_header), alike);
        }
    }
}

/// Writers that count on beyond a second, and the end of the seconds in 2106.
#[test]
fn fractions_of_more_than_a_second_are_carried_up_to_the_last_time() {
    const SECOND: u64 = 1_000_000_000;
    for order in ORDERS {
        for (magic, unit) in [(MICROSECONDS, 1000), (NANOSECONDS, 1)] {
            let (mut decoder, header) = begun_as(order, magic, (2, 4));
            let record =
                |seconds: u32, fraction| Bytes::new(order).words([seconds, fraction, 1, 1]).bytes(b"x").1;
            let whole = u32::try_from(SECOND / unit).expect("small");
            let (mut nano, in_nano) = begun_as(order, NANOSECONDS, (2, 4));
            let (mut micro, in_micro) = begun_as(order, MICROSECONDS, (2, 4));
            for (seconds, fraction) in [0, 7, u32::MAX]
                .into_iter()
                .flat_map(|s| [0, whole - 1, whole, whole + 1, u32::MAX].map(|f| (s, f)))
            {
                let record = record(seconds, fraction);
                let time = u64::from(seconds) * SECOND + u64::from(fraction) * unit;
                assert_eq!(packet(&mut decoder, &record).timestamp, time, "{seconds} {fraction}");
                // In a record of another file it is a time that the record can hold.
                let last = time.min(LAST_TIME);
                let of = |decoder: &mut Decoder, to: Header| {
                    packet(decoder, &to.adopt(&header, &record)).timestamp
                };
                assert_eq!(of(&mut nano, in_nano), last, "{seconds} {fraction}");
                assert_eq!(of(&mut micro, in_micro), last / 1000 * 1000, "{seconds} {fraction}");
            }
        }
    }
}

#[test]
fn a_file_holds_packets_of_its_own_link_type_up_to_the_longest() {
    let of = |link| begun(&header_of(ByteOrder::NATIVE, NANOSECONDS, (2, 4), link)).1;
    let (ethernet, fcs, raw, usb) = (of(1), of(0x2400_0001), of(101), of(189));
    let longest = LONGEST as usize;
    assert!(ethernet.may_hold(&ethernet, longest) && !ethernet.may_hold(&ethernet, longest + 1));
    assert!(usb.may_hold(&usb, longest + 1));
    assert!(!ethernet.may_hold(&raw, 60) && !ethernet.may_hold(&fcs, 60) && !fcs.may_hold(&ethernet, 60));
    assert!(fcs.may_hold(&fcs, 60));
    assert_eq!(ethernet.variant.resolution, Resolution::Nano);
}
