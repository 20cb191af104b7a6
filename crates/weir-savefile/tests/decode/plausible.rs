use weir_savefile::ByteOrder;
use weir_savefile::decode::{Decoder, Plausible, Times, section_without_length};

use super::classic::{begun, header_of};
use super::{Bytes, ORDERS, step};

const YEAR: u64 = 366 * 86_400;
const START: u32 = 1_700_000_000;
const LONGEST: u32 = 262_144;

fn nanoseconds(seconds: u64) -> u64 {
    seconds * 1_000_000_000
}

fn pcap(order: ByteOrder) -> Decoder {
    begun(&header_of(order, 0xa1b2_c3d4, (2, 4), 1)).0
}

/// A record of five bytes.
fn record(order: ByteOrder, seconds: u32) -> Vec<u8> {
    Bytes::new(order).words([seconds, 9, 5, 60]).bytes(b"hello").1
}

fn learnt(seconds: u32) -> Times {
    let mut times = Times::default();
    times.learn(nanoseconds(seconds.into()));
    times
}

#[test]
fn a_year_is_near() {
    let times = learnt(START);
    for (seconds, near) in [(0, true), (YEAR, true), (YEAR + 1, false), (40 * YEAR, false)] {
        assert_eq!(times.is_near(nanoseconds(u64::from(START) + seconds)), near, "{seconds} after");
        assert_eq!(times.is_near(nanoseconds(u64::from(START).saturating_sub(seconds))), near);
    }
    assert!(!Times::default().is_near(0));
    let mut times = Times::default();
    (0..17).for_each(|year| times.learn(nanoseconds(2 * year * (YEAR + 1))));
    let kept = (0..17).filter(|year| times.is_near(nanoseconds(2 * year * (YEAR + 1)))).count();
    assert_eq!(kept, 16);
}

#[test]
fn three_records_that_lead_to_each_other_are_believed() {
    for order in ORDERS {
        let decoder = pcap(order);
        let one = record(order, START);
        let three = one.repeat(3);
        let of = |bytes: &[u8], ended| decoder.plausible(bytes, ended, &learnt(START));
        assert_eq!(of(&three, false), Plausible::Yes);
        for end in 0..three.len() {
            match of(&three[..end], false) {
                Plausible::Need(need) => assert!((end + 1..=three.len()).contains(&need), "{need} at {end}"),
                other => panic!("{other:?} at {end}"),
            }
        }
        // One is enough before the end of the file, and before another file.
        assert_eq!(of(&one, true), Plausible::Yes);
        assert_eq!(of(&[], true), Plausible::Need(16));
        let another = header_of(order, 0xa1b2_3c4d, (2, 4), 1).1;
        assert_eq!(of(&[&one[..], &another].concat(), false), Plausible::Yes);
        assert_eq!(of(&[&one[..], &[0xff; 64]].concat(), false), Plausible::No);
    }
}

#[test]
fn each_number_of_a_record_has_to_make_sense() {
    for order in ORDERS {
        for (magic, second) in [(0xa1b2_c3d4, 1_000_000), (0xa1b2_3c4d, 1_000_000_000)] {
            let decoder = begun(&header_of(order, magic, (2, 4), 1)).0;
            let row = |words: [u32; 4]| {
                let mut bytes = Bytes::new(order).words(words);
                bytes.1.resize(16 + words[2].min(LONGEST + 1) as usize, 1);
                bytes.1
            };
            let leads = |words| decoder.goes_on(&row(words), true) == Plausible::Yes;
            let follows = |words| decoder.plausible(&row(words), true, &learnt(START)) == Plausible::Yes;
            let credible = |words| decoder.is_credible(&row(words), &learnt(START));
            for (words, answers) in [
                ([START, 9, 5, 60], [true; 3]),
                ([START, second - 1, 5, 60], [true; 3]),
                ([START, second, 5, 60], [false; 3]),
                ([START, 9, 5, 5], [true; 3]),
                ([START, 9, 5, 4], [false; 3]),
                ([START, 9, 5, 0], [true; 3]),
                ([START, 9, 0, 0], [true, false, false]),
                ([START, 9, 0, 60], [true, false, true]),
                ([START, 9, LONGEST, LONGEST], [true; 3]),
                ([START, 9, 5, LONGEST + 1], [true, false, true]),
                ([START, 9, LONGEST + 1, LONGEST + 1], [false; 3]),
                ([5, 5, 5, 5], [false; 3]),
                // A packet from soon after 1970 leads on, but no packet has been near.
                ([5, 5, 5, 6], [true, false, false]),
                ([5, 6, 5, 5], [true, false, false]),
                ([6, 5, 5, 5], [true, false, false]),
            ] {
                assert_eq!([leads(words), follows(words), credible(words)], answers, "{words:?} {order}");
            }
            assert!(decoder.is_credible(&row([5, 5, 5, 6]), &Times::default()), "no time is known yet");
            assert!(!decoder.is_credible(&[0; 15], &Times::default()));
        }
    }
}

#[test]
fn another_time_takes_more_records() {
    for order in ORDERS {
        let decoder = pcap(order);
        let one = record(order, 5);
        let of = |records, ended, times| decoder.plausible(&one.repeat(records), ended, times);
        let near = learnt(START);
        assert_eq!(of(8, false, &near), Plausible::Yes);
        assert_eq!(of(7, false, &near), Plausible::Need(7 * one.len() + 16));
        assert_eq!((of(3, true, &near), of(2, true, &near)), (Plausible::Yes, Plausible::Need(58)));
        let none = Times::default();
        assert_eq!((of(3, false, &none), of(1, true, &none)), (Plausible::Yes, Plausible::Yes));
        let apart = [record(order, 5), record(order, START)].concat().repeat(4);
        assert_eq!(decoder.plausible(&apart, false, &none), Plausible::No);
    }
}

#[test]
fn the_header_of_another_file_is_believed_with_its_packets() {
    for order in ORDERS {
        let decoder = pcap(order);
        let other = order.swapped();
        let header = header_of(other, 0xa1b2_3c4d, (2, 4), 1).1;
        let file = [&header[..], &record(other, START).repeat(3)].concat();
        let of = |bytes: &[u8], ended| decoder.plausible(bytes, ended, &Times::default());
        assert_eq!(of(&file, false), Plausible::Yes);
        assert_eq!(of(&file[..24], false), Plausible::Need(40));
        assert_eq!(of(&file[..20], false), Plausible::Need(24));
        assert_eq!(of(&file[..24 + 21], true), Plausible::Yes);
    }
}

#[test]
fn blocks_are_plausible_by_their_kind_and_lengths() {
    for order in ORDERS {
        let section = Bytes::new(order).u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX).block(0x0a0d_0d0a);
        let mut decoder = Decoder::new();
        let times = Times::default();
        let block = |kind| Bytes::new(order).u32(0).block(kind);
        assert_eq!(decoder.plausible(&section, false, &times), Plausible::Yes);
        assert_eq!(decoder.plausible(&section[..20], false, &times), Plausible::Need(28));
        assert_eq!(decoder.plausible(&block(6), false, &times), Plausible::No);
        step(&mut decoder, &section).expect("a section");
        for kind in [1, 2, 3, 4, 5, 6, 10, 0xbad, 0x4000_0bad] {
            assert_eq!(decoder.plausible(&block(kind), false, &times), Plausible::Yes, "{kind}");
            assert_eq!(decoder.plausible(&block(kind)[..8], false, &times), Plausible::Need(16), "{kind}");
        }
        assert_eq!(decoder.plausible(&section, false, &times), Plausible::Yes);
        for kind in [0, 7, 9, 11, 0x0bad_0000] {
            assert_eq!(decoder.plausible(&block(kind), false, &times), Plausible::No, "{kind}");
        }
        let torn = Bytes::new(order).words([6, 16, 0, 20]).1;
        assert_eq!(decoder.plausible(&torn, false, &times), Plausible::No);
        // The next block is looked at when it is read.
        assert_eq!(decoder.goes_on(&torn, false), Plausible::Yes);
        assert!(decoder.is_credible(&torn, &times));
        let without = section_without_length(&Bytes::new(order).bytes(&section[..16]).u64(5).1);
        assert_eq!(without, section[..24]);
        assert_eq!(section_without_length(&section[..20]), section[..20]);
    }
}
