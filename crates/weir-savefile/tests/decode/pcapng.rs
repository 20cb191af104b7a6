use weir_savefile::ByteOrder;
use weir_savefile::decode::{
    Decoder, Doubt, Fault, Format, Found, LONGEST_BLOCK, MOST_DESCRIPTIONS, MOST_INTERFACES, PacketAt, Step,
};

use super::{Bytes, ORDERS, needs_all_of, step};

const SECTION: u32 = 0x0a0d_0d0a;
const TIME: u64 = 0x0102_0304_0506_0708;

fn section_of(order: ByteOrder, major: u16, minor: u16) -> Bytes {
    Bytes::new(order).u32(0x1a2b_3c4d).u16(major).u16(minor).u64(u64::MAX)
}

fn section(order: ByteOrder) -> Vec<u8> {
    section_of(order, 1, 0).block(SECTION)
}

/// An Ethernet interface; options may follow.
fn interface(order: ByteOrder, snap_len: u32) -> Bytes {
    Bytes::new(order).u16(1).u16(0).u32(snap_len)
}

/// A decoder after a section header and these interfaces.
fn begun(order: ByteOrder, interfaces: &[Bytes]) -> Decoder {
    let mut decoder = Decoder::new();
    step(&mut decoder, &section(order)).expect("a section");
    for interface in interfaces {
        step(&mut decoder, &interface.clone().block(1)).expect("an interface");
    }
    decoder
}

fn packet(decoder: &mut Decoder, block: &[u8]) -> PacketAt {
    needs_all_of(decoder, block);
    match step(decoder, block) {
        Ok(Found::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

fn damage(decoder: &mut Decoder, block: &[u8]) -> Fault {
    match step(decoder, block) {
        Ok(Found::Damaged(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_section_has_its_byte_order_and_names_its_maker() {
    for order in ORDERS {
        let texts = [(1, "why"), (2, "amd64"), (3, "Linux"), (4, "weir\0"), (1, "more"), (99, "else")];
        let header = texts
            .iter()
            .fold(section_of(order, 1, 2), |header, (code, text)| header.option(*code, text.as_bytes()));
        let mut decoder = Decoder::new();
        let block = header.block(SECTION);
        needs_all_of(&decoder, &block);
        assert_eq!(decoder.format(), None);
        let Ok(Found::Section(header, more, None)) = step(&mut decoder, &block) else { panic!("no section") };
        assert_eq!(decoder.format(), Some(Format::Pcapng(order)));
        assert_eq!((header.comment, header.hardware), (Some("why"), Some("amd64")));
        assert_eq!((header.os, header.user_application), (Some("Linux"), Some("weir")));
        let kept = Bytes::new(ByteOrder::NATIVE).option(1, b"more");
        // What nobody knows cannot be converted.
        let kept = if order == ByteOrder::NATIVE { kept.option(99, b"else") } else { kept };
        assert_eq!(more, kept.1);
    }
}

#[test]
fn a_section_that_is_none_ends_the_file() {
    for order in ORDERS {
        let of = |header: Bytes| Decoder::new().step(&header.block(SECTION)).map(drop);
        for (major, minor) in [(1, 1), (1, 3), (2, 0), (0, 0)] {
            assert_eq!(of(section_of(order, major, minor)), Err(Fault::Version { major, minor }));
        }
        let short = Bytes::new(order).u32(0x1a2b_3c4d).u16(1).u16(0).u32(0);
        assert_eq!(of(short), Err(Fault::Short { kind: SECTION }));
        let wrong = Bytes::new(order).u32(0x1a2b_3c4e).u16(1).u16(0).u64(0);
        assert_eq!(of(wrong.clone()), Err(Fault::ByteOrder(wrong.1[..4].try_into().expect("four bytes"))));
    }
}

#[test]
fn the_lengths_around_a_block_are_checked() {
    for order in ORDERS {
        let with = |front: u32, tail: u32| {
            let bytes = Bytes::new(order).words([99, front, 0, tail]).1;
            begun(order, &[]).step(&bytes).map(|step| matches!(step, Step::Need(_)))
        };
        assert_eq!(with(16, 16), Ok(false));
        for length in [0, 8, 11, 13, 17] {
            assert_eq!(with(length, length), Err(Fault::Length { kind: 99, length }));
        }
        assert_eq!(with(16, 20), Err(Fault::Tail { kind: 99, length: 16, tail: 20 }));
        assert_eq!(with(LONGEST_BLOCK, 0), Ok(true));
        let (length, limit) = (LONGEST_BLOCK + 4, LONGEST_BLOCK);
        assert_eq!(with(length, 0), Err(Fault::TooLong { length, limit }));
        let empty = Bytes::new(order).block(99);
        let found = step(&mut begun(order, &[]), &empty);
        assert_eq!(found, Ok(Found::Block { kind: 99, body: 8..8, order }));
    }
}

#[test]
fn each_field_of_an_interface() {
    for order in ORDERS {
        let speed = Bytes::new(order).u64(10_000_000_000).1;
        let offset = Bytes::new(order).u64(5).1;
        let zone = Bytes::new(order).u32(2).1;
        let body = interface(order, 1500)
            .option(1, b"first")
            .option(1, b"second")
            .option(2, b"eth0")
            .option(3, b"uplink")
            .option(4, &[10, 0, 0, 1, 255, 0, 0, 0])
            .option(6, &[2, 0, 0, 0, 0, 1])
            .option(8, &speed)
            .option(9, &[0])
            .option(10, &zone)
            .option(11, b"\0tcp")
            .option(12, b"Linux")
            .option(13, &[4])
            .option(14, &offset)
            .option(15, b"a card")
            .option(0, &[]);
        let block = body.block(1);
        let mut decoder = begun(order, &[]);
        needs_all_of(&decoder, &block);
        let Ok(Found::Interface { description, time, more, doubt: None }) = step(&mut decoder, &block) else {
            panic!("no interface")
        };
        assert_eq!((description.link_type, description.snap_len), (1, 1500));
        assert_eq!((description.comment, description.name), (Some("first"), Some("eth0")));
        assert_eq!((description.description, description.mac), (Some("uplink"), Some([2, 0, 0, 0, 0, 1])));
        assert_eq!((description.speed_bits, description.filter), (Some(10_000_000_000), Some("tcp")));
        assert_eq!((description.os, description.hardware), (Some("Linux"), Some("a card")));
        assert_eq!(description.fcs_len, Some(4));
        assert_eq!(time.nanoseconds(1), Ok(6_000_000_000), "seconds, five later");
        let zone = 2u32.to_ne_bytes();
        let kept = Bytes::new(ByteOrder::NATIVE).option(1, b"second").option(4, &[10, 0, 0, 1, 255, 0, 0, 0]);
        assert_eq!(more, kept.option(10, &zone).1);
    }
}

#[test]
fn an_interface_is_doubted_if_its_times_cannot_be_trusted() {
    for order in ORDERS {
        let of = |code, value: &[u8]| {
            let block = interface(order, 0).option(code, value).block(1);
            match step(&mut begun(order, &[]), &block) {
                Ok(Found::Interface { doubt, description, more, .. }) => {
                    (doubt, description.filter.map(String::from), more)
                }
                other => panic!("{other:?}"),
            }
        };
        for (code, value) in [(9, &[][..]), (9, &[9, 9]), (14, &[0; 4]), (14, &[0; 12])] {
            assert_eq!(of(code, value).0, Some(Doubt::Options(1)), "{code} {value:?}");
        }
        assert_eq!(of(9, &[12]).0, Some(Doubt::Finer));
        assert_eq!(of(9, &[9]).0, None);
        // Byte code is no text.
        let kept = (order == ByteOrder::NATIVE).then(|| Bytes::new(order).option(11, &[1, 6]).1);
        assert_eq!(of(11, &[1, 6]), (None, None, kept.unwrap_or_default()));
        for end in [0, 4] {
            let block = Bytes::new(order).bytes(&interface(order, 0).1[..end]).block(1);
            assert_eq!(step(&mut begun(order, &[]), &block), Err(Fault::Short { kind: 1 }), "{end}");
        }
    }
}

#[test]
fn each_counter_of_statistics() {
    for order in ORDERS {
        let nanoseconds = interface(order, 0).option(9, &[9]);
        let head = |id: u32| Bytes::new(order).words([id, 0x0102_0304, 0x0506_0708]);
        let time = Bytes::new(order).words([0x0102_0304, 0x0506_0709]).1;
        let mut block = head(1).option(1, b"end").option(2, &time).option(3, &time);
        for (code, count) in (4..9).zip(40..) {
            block = block.option(code, &Bytes::new(order).u64(count).1);
        }
        let block = block.option(77, &[1]).block(5);
        let mut decoder = begun(order, &[interface(order, 0), nanoseconds]);
        needs_all_of(&decoder, &block);
        let Ok(Found::Statistics(found, None)) = step(&mut decoder, &block) else { panic!("no statistics") };
        assert_eq!((found.interface, found.timestamp, found.comment), (1, TIME, Some("end")));
        assert_eq!((found.start, found.end), (Some(TIME + 1), Some(TIME + 1)));
        let counters = [found.received, found.dropped, found.accepted, found.dropped_by_os, found.delivered];
        assert_eq!(counters, [40, 41, 42, 43, 44].map(Some));
        let doubt = |decoder: &mut Decoder, block: Bytes| match step(decoder, &block.block(5)) {
            Ok(Found::Statistics(_, doubt)) => doubt,
            other => panic!("{other:?}"),
        };
        assert_eq!(doubt(&mut decoder, head(1)), None, "without any option");
        for code in 2..9 {
            assert_eq!(doubt(&mut decoder, head(1).option(code, &[0; 4])), Some(Doubt::Options(5)), "{code}");
        }
        // The first interface counts microseconds.
        let late = Bytes::new(order).words([0, u32::MAX, 0]);
        assert_eq!(doubt(&mut decoder, late), Some(Doubt::Time));
        let fault = damage(&mut decoder, &head(2).block(5));
        assert_eq!(fault, Fault::Interface { id: 2, count: 2 });
        let short = Bytes::new(order).words([0, 0]).block(5);
        assert_eq!(damage(&mut decoder, &short), Fault::Short { kind: 5 });
    }
}

/// An Enhanced Packet Block of five bytes, without options.
fn enhanced(order: ByteOrder, id: u32, captured: u32) -> Bytes {
    Bytes::new(order).words([id, 0x0102_0304, 0x0506_0708, captured, 1500]).padded(b"hello")
}

#[test]
fn each_field_of_a_packet() {
    for order in ORDERS {
        let interfaces = [interface(order, 0), interface(order, 0).option(9, &[9])];
        let mut decoder = begun(order, &interfaces);
        let flags = |flags| Bytes::new(order).u32(flags).1;
        let block = enhanced(order, 1, 5)
            .option(2, &flags(2))
            .option(4, &Bytes::new(order).u64(7).1)
            .option(6, &flags(3));
        let expected = PacketAt {
            data: 28..33,
            timestamp: TIME,
            original_len: 1500,
            interface: 1,
            queue: 3,
            flags: Some(2),
            dropcount: 7,
            ..PacketAt::default()
        };
        let block = block.block(6);
        assert_eq!(packet(&mut decoder, &block), expected);
        assert_eq!(decoder.plain(&block), None, "the first interface counts microseconds");
        let noted = packet(&mut decoder, &enhanced(order, 1, 5).option(1, b"note").block(6));
        assert_eq!(noted.notes, 36..44);
        let received = packet(&mut decoder, &enhanced(order, 1, 5).option(2, &flags(5)).block(6));
        assert_eq!((received.notes, received.flags), (36..44, Some(5)));
        let wild = packet(&mut decoder, &enhanced(order, 1, 5).option(6, &[0; 5]).block(6));
        assert_eq!((wild.data, wild.doubt), (28..33, Some(Doubt::Options(6))));
        let late = packet(&mut decoder, &enhanced(order, 0, 5).block(6));
        assert_eq!((late.timestamp, late.doubt), (u64::MAX, Some(Doubt::Time)));
        let fault = damage(&mut decoder, &enhanced(order, 2, 5).block(6));
        assert_eq!(fault, Fault::Interface { id: 2, count: 2 });
        assert_eq!(packet(&mut decoder, &enhanced(order, 1, 8).block(6)).data, 28..36);
        assert_eq!(damage(&mut decoder, &enhanced(order, 1, 9).block(6)), Fault::Captured(9));
        assert_eq!(damage(&mut decoder, &Bytes::new(order).u32(0).block(6)), Fault::Short { kind: 6 });
    }
}

#[test]
fn plain_packets_are_found_faster_and_are_the_same() {
    let order = ByteOrder::NATIVE;
    let nanoseconds = interface(order, 0).option(9, &[9]);
    let mut decoder = begun(order, &[nanoseconds.clone(), nanoseconds.clone()]);
    step(&mut decoder, &section(order)).expect("another section");
    let block = enhanced(order, 0, 5).option(6, &Bytes::new(order).u32(3).1).block(6);
    assert_eq!(decoder.plain(&block), None, "it describes no interface yet");
    step(&mut decoder, &nanoseconds.block(1)).expect("an interface");
    let plain = decoder.plain(&block).expect("it is plain");
    assert_eq!((plain.used, plain.start, plain.captured), (block.len(), 28, 5));
    let found = packet(&mut decoder, &block);
    assert_eq!((plain.record.interface, plain.record.queue, plain.record.timestamp), (2, 3, TIME));
    assert_eq!((found.interface, found.queue, found.timestamp), (2, 3, TIME));
    let noted = enhanced(order, 0, 5).option(1, b"note").block(6);
    assert_eq!(decoder.plain(&noted), None);
    assert_eq!(decoder.plain(&enhanced(order, 1, 5).block(6)), None, "of another interface");
    let run = [&block[..], &block, &noted, &block].concat();
    let mut lengths = Vec::new();
    let used = decoder.plain_while(&run, |record, used| {
        lengths.push((record.data.len(), used));
        true
    });
    assert_eq!((used, lengths), (2 * block.len(), vec![(5, block.len()); 2]));
    assert_eq!(decoder.plain_while(&run, |_, _| false), 0);
    step(&mut decoder, &section(order.swapped())).expect("a section of another machine");
    assert_eq!(decoder.plain(&block), None);
}

#[test]
fn a_simple_packet_ends_at_the_snap_length() {
    for order in ORDERS {
        let simple = |original: u32| Bytes::new(order).u32(original).padded(b"hello").block(3);
        for (snap_len, original, captured) in [(0, 5, 5), (0, 8, 8), (5, 1500, 5), (6, 5, 5)] {
            let mut decoder = begun(order, &[interface(order, 0)]);
            step(&mut decoder, &section(order)).expect("another section");
            step(&mut decoder, &interface(order, snap_len).block(1)).expect("an interface");
            let found = packet(&mut decoder, &simple(original));
            assert_eq!((found.data, found.original_len), (12..12 + captured, original));
            assert!(found.timeless && found.timestamp == 0 && found.interface == 1);
        }
        let mut decoder = begun(order, &[interface(order, 9)]);
        assert_eq!(damage(&mut decoder, &simple(1500)), Fault::Captured(9));
        assert_eq!(damage(&mut decoder, &Bytes::new(order).block(3)), Fault::Short { kind: 3 });
        let none = Fault::Interface { id: 0, count: 0 };
        assert_eq!(damage(&mut begun(order, &[]), &simple(5)), none);
    }
}

#[test]
fn each_field_of_an_obsolete_packet() {
    for order in ORDERS {
        let of = |id: u16, drops: u16, captured: u32| {
            let head = Bytes::new(order).u16(id).u16(drops);
            head.words([0x0102_0304, 0x0506_0708, captured, 1500]).padded(b"hello")
        };
        let mut decoder = begun(order, &[interface(order, 0), interface(order, 0).option(9, &[9])]);
        let flags = |flags| Bytes::new(order).u32(flags).1;
        let expected = PacketAt {
            data: 28..33,
            timestamp: TIME,
            original_len: 1500,
            interface: 1,
            flags: Some(1),
            dropcount: 7,
            ..PacketAt::default()
        };
        let plain = of(1, 7, 5).option(2, &flags(1)).block(2);
        assert_eq!(packet(&mut decoder, &plain), expected);
        let unknown = packet(&mut decoder, &of(1, u16::MAX, 5).block(2));
        assert_eq!((unknown.dropcount, unknown.flags, unknown.notes), (0, None, 0..0));
        let received = packet(&mut decoder, &of(1, 7, 5).option(2, &flags(5)).block(2));
        assert_eq!((received.flags, received.notes), (Some(5), 36..44));
        assert_eq!(packet(&mut decoder, &of(1, 7, 5).option(1, b"note").block(2)).notes, 36..44);
        let wild = packet(&mut decoder, &of(1, 7, 5).option(1, b"note").option(2, &[0; 3]).block(2));
        assert_eq!((wild.doubt, wild.notes), (Some(Doubt::Options(2)), 0..0));
        let late = packet(&mut decoder, &of(0, 7, 5).block(2));
        assert_eq!((late.timestamp, late.doubt), (u64::MAX, Some(Doubt::Time)));
        for captured in [9, u32::MAX] {
            assert_eq!(damage(&mut decoder, &of(1, 7, captured).block(2)), Fault::Captured(captured));
        }
        let fault = damage(&mut decoder, &of(2, 7, 5).block(2));
        assert_eq!(fault, Fault::Interface { id: 2, count: 2 });
        let head = Bytes::new(order).bytes(&of(1, 7, 0).1[..16]).block(2);
        assert_eq!(damage(&mut decoder, &head), Fault::Short { kind: 2 });
        let empty = Bytes::new(order).bytes(&of(1, 7, 0).1[..20]).block(2);
        assert_eq!(packet(&mut decoder, &empty).data, 28..28);
    }
}

#[test]
fn a_file_begins_with_a_section() {
    // Its header was damaged, and reading went on behind it.
    let mut decoder = Decoder::new();
    let packet = enhanced(ByteOrder::NATIVE, 0, 5).block(6);
    assert!(decoder.step(&packet).is_err());
    assert_eq!((decoder.plain(&packet), decoder.plain_while(&packet, |_, _| true)), (None, 0));
    assert_eq!(decoder.step(&[]), Ok(Step::Need(4)));
}

#[test]
fn what_a_file_describes_is_bounded() {
    let order = ByteOrder::NATIVE;
    let one = interface(order, 0).block(1);
    let mut decoder = begun(order, &[]);
    for half in [0, 1] {
        (0..MOST_INTERFACES / 2 - half).for_each(|_| {
            step(&mut decoder, &one).expect("an interface");
        });
        step(&mut decoder, &section(order)).expect("a section");
    }
    step(&mut decoder, &one).expect("the last interface");
    assert_eq!(step(&mut decoder, &one), Err(Fault::Descriptions));

    let mut decoder = Decoder::new();
    for _ in 0..MOST_INTERFACES {
        step(&mut decoder, &section(order)).expect("a section");
    }
    assert_eq!(step(&mut decoder, &section(order)), Err(Fault::Descriptions));

    let long = |bytes: usize| interface(order, 0).bytes(&vec![0; bytes - 8]).block(1);
    let mut decoder = begun(order, &[]);
    for bytes in [MOST_DESCRIPTIONS / 2, MOST_DESCRIPTIONS / 2 - 16] {
        step(&mut decoder, &long(bytes)).expect("an interface");
    }
    assert_eq!(step(&mut decoder, &long(8)), Err(Fault::Descriptions));
}
