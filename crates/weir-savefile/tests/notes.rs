//! Options that have no field of their own are copied to another file.
#![forbid(unsafe_code)]

use weir_savefile::options::Options;
use weir_savefile::record::{self, INBOUND, RecordHeader, Records};
use weir_savefile::{ByteOrder, Notes};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
/// Length of an Enhanced Packet Block before its packet.
const FIXED: usize = 28;
const HEADER: RecordHeader =
    RecordHeader { interface: 1, timestamp: 7, original_len: 4, flags: None, dropcount: None, queue: None };

/// Returns a number in the byte order of a file.
fn number<const BYTES: usize>(order: ByteOrder, big: [u8; BYTES]) -> Vec<u8> {
    match order {
        ByteOrder::Big => big.to_vec(),
        ByteOrder::Little => big.into_iter().rev().collect(),
    }
}

fn list(order: ByteOrder, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (code, value) in options.iter().chain([&(0, Vec::new())]) {
        bytes.extend(number(order, code.to_be_bytes()));
        bytes.extend(number(order, u16::try_from(value.len()).expect("short").to_be_bytes()));
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// Returns the options of a record written with these notes.
fn kept(header: &RecordHeader, comment: Option<&str>, notes: &Notes<'_>) -> Vec<(u16, Vec<u8>)> {
    let mut bytes = Vec::new();
    record::append(&mut bytes, header, &[9; 4], comment, notes).expect("it is short");
    let record = Records::new(&bytes).next().expect("a record").expect("it is whole");
    assert_eq!((record.data, record.timestamp), (&[9; 4][..], 7));
    let options =
        Options::new(&bytes[FIXED + record.data.len()..bytes.len() - 4]).map(|option| option.expect("whole"));
    options.map(|option| (option.code, option.value.to_vec())).filter(|(code, _)| *code != 0).collect()
}

#[test]
fn all_is_kept_in_native_order() {
    let told = |order| {
        vec![
            (1, b"one".to_vec()),
            (2, number(order, [1, 0, 0, 9])),
            (3, vec![2, 0xde, 0xad, 0xbe, 0xef]),
            (4, number(order, [0, 0, 0, 0, 0, 0, 0, 17])),
            (5, number(order, [1, 2, 3, 4, 5, 6, 7, 8])),
            (6, number(order, [0, 0, 0, 3])),
            (7, vec![0, 0xaa, 0xbb]),
            (7, [vec![1], number(order, [0, 0, 0, 0, 0, 0, 0, 2])].concat()),
            (7, [vec![2], number(order, [0, 0, 0, 0, 0, 0, 0, 1])].concat()),
            (8, [number(order, [0, 0, 1, 2]), number(order, [0, 0, 3, 4])].concat()),
            (1, b"two".to_vec()),
        ]
    };
    // The drop count and queue come from the header, and flags are written last.
    let mut expected = told(ByteOrder::NATIVE);
    let flags = expected.remove(1);
    expected.retain(|(code, _)| ![4, 6].contains(code));
    expected.push(flags);
    for order in ORDERS {
        let list = list(order, &told(order));
        let notes = Notes::new(order, &list);
        assert_eq!(notes.comments().collect::<Vec<_>>(), ["one", "two"], "{order}");
        let header = RecordHeader { flags: Some(INBOUND), ..HEADER };
        assert_eq!(kept(&header, None, &notes), expected, "{order}");
        let both = RecordHeader { flags: Some(0x0100_0009), ..HEADER };
        assert_eq!(kept(&both, None, &notes), expected, "{order}");
        // A comment that is present already is not repeated; any other is added.
        assert_eq!(kept(&header, Some("two"), &notes), expected, "{order}");
        assert_eq!(kept(&header, Some("three"), &notes)[0], (1, b"three".to_vec()), "{order}");
        // How the packet was received does not depend on the header.
        let flags = number(ByteOrder::NATIVE, [1, 0, 0, 8]);
        assert_eq!(kept(&HEADER, None, &notes).last(), Some(&(2, flags)), "{order}");
    }
}

/// Numbers of unknown width in the other byte order, and options that must not be copied.
#[test]
fn what_cannot_be_taken_along_is_left_out() {
    for order in ORDERS {
        let maker = number(order, [0, 0, 0x7e, 0xd9]);
        let custom = [2988, 2989, 19372, 19373].map(|code| (code, [&maker[..], b"abcd"].concat()));
        let unknown = [(0x1234, vec![1, 2, 3, 4])];
        let comment = [(1, b"kept".to_vec())];
        let list = list(order, &[&custom[..], &unknown, &comment].concat());
        let codes: Vec<u16> =
            kept(&HEADER, None, &Notes::new(order, &list)).into_iter().map(|(code, _)| code).collect();
        // Text can be converted from the other byte order.
        let native: &[u16] = &[2988, 2989, 0x1234, 1];
        assert_eq!(codes, if order == ByteOrder::NATIVE { native } else { &[2988, 1] }, "{order}");
        let text = [number(ByteOrder::NATIVE, [0, 0, 0x7e, 0xd9]), b"abcd".to_vec()].concat();
        assert_eq!(kept(&HEADER, None, &Notes::new(order, &list))[0], (2988, text), "{order}");
    }
}

/// An error ends a list.
#[test]
fn a_list_that_is_cut_does_no_harm() {
    let whole =
        list(ByteOrder::NATIVE, &[(1, b"one".to_vec()), (3, vec![2, 1, 2, 3, 4]), (1, b"two".to_vec())]);
    for end in 0..whole.len() {
        let notes = Notes::new(ByteOrder::NATIVE, &whole[..end]);
        let codes = kept(&HEADER, None, &notes).len();
        assert!(codes <= 3 && notes.comments().count() <= codes, "{end}");
    }
}

#[test]
fn some_options_can_be_left_out() {
    for order in ORDERS {
        let options =
            [(1, b"one".to_vec()), (3, vec![2, 1, 2, 3, 4]), (0x1234, Vec::new()), (1, b"four".to_vec())];
        let whole = list(order, &options);
        let notes = Notes::new(order, &whole);
        assert!(!notes.is_empty() && !notes.is_timeless() && notes.as_bytes() == whole);
        let mut kept = Vec::new();
        let some = notes.only(|code| code != 1, &mut kept);
        assert_eq!(some.as_bytes(), &list(order, &options[1..3])[..16], "{order}");
        assert_eq!(some.comments().count(), 0);
        assert!(notes.only(|_| false, &mut Vec::new()).is_empty());
        let copy = whole.clone();
        assert_eq!(notes.moved(&copy), notes);
    }
    let timeless = Notes::of_no_time();
    assert!(timeless.is_timeless() && timeless.is_empty() && timeless.moved(&[]).is_timeless());
    assert!(Notes::default().is_empty() && !Notes::default().is_timeless());
}
