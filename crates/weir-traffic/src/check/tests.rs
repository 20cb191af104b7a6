//! The checker against frames whose fate the test has decided, and against a slow one that remembers everything.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::checksum::sum;

/// When the first frame is sent.
const START: u64 = 1_800_000_000_000_000_000;

/// A UDP packet over IPv4 in Ethernet, with a signature and right checksums.
fn frame(stream: u16, sequence: u64, time: u64) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 47, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x30, 0x39, 0, 9, 0, 27, 0, 0]);
    frame.extend(Signature { stream, sequence, time }.to_bytes());
    frame.push(7);
    let header = !sum(&[&frame[14..34]]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    let checksum = !sum(&[&frame[26..34], &[0, 17, 0, 27], &frame[34..]]);
    frame[40..42].copy_from_slice(&checksum.to_be_bytes());
    frame
}

fn whole(data: &[u8], time: u64) -> Frame<'_> {
    Frame { link_type: 1, data, original_len: u32::try_from(data.len()).expect("short"), time: Some(time) }
}

/// What happens to a frame on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Arrives,
    IsLeftOut,
    ArrivesTwice,
    /// The next one overtakes it.
    IsOvertaken,
    /// A bit behind its signature flips.
    IsFlipped,
    /// A bit of its signature flips.
    LosesItsSignature,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Arrives),
        1 => Just(Fate::IsLeftOut),
        1 => Just(Fate::ArrivesTwice),
        1 => Just(Fate::IsOvertaken),
        1 => Just(Fate::IsFlipped),
        1 => Just(Fate::LosesItsSignature),
    ]
}

proptest! {
    #[test]
    fn it_says_what_was_done_to_the_frames(mut fates in prop::collection::vec(fate(), 1..500)) {
        // Who overtakes arrives.
        fates.push(Fate::Arrives);
        for at in 1..fates.len() {
            if fates[at - 1] == Fate::IsOvertaken {
                fates[at] = Fate::Arrives;
            }
        }
        let mut arriving: Vec<Vec<u8>> = Vec::new();
        let mut overtaken = None;
        for (sequence, &fate) in fates.iter().enumerate() {
            let mut bytes = frame(5, sequence as u64, START);
            match fate {
                Fate::IsFlipped => *bytes.last_mut().expect("bytes") ^= 1,
                Fate::LosesItsSignature => bytes[45] ^= 1,
                _ => {}
            }
            match fate {
                Fate::IsLeftOut => {}
                Fate::IsOvertaken => overtaken = Some(bytes),
                Fate::ArrivesTwice => arriving.extend([bytes.clone(), bytes]),
                _ => {
                    arriving.push(bytes);
                    arriving.extend(overtaken.take());
                }
            }
        }
        let mut checker = Checker::new();
        for (number, bytes) in arriving.iter().enumerate() {
            checker.add(&whole(bytes, START + 1_000 + number as u64));
        }
        let of = |wanted: Fate| fates.iter().filter(|&&fate| fate == wanted).count() as u64;
        let sent = fates.len() as u64;
        let report = checker.report(Some(sent + 3));
        let missing = of(Fate::IsLeftOut) + of(Fate::LosesItsSignature);
        prop_assert_eq!(report.frames, arriving.len() as u64);
        prop_assert_eq!(report.other, of(Fate::LosesItsSignature));
        let overtaken = of(Fate::IsOvertaken);
        let expected = FrameCounters {
            intact: sent - missing - of(Fate::IsFlipped),
            duplicate: of(Fate::ArrivesTwice),
            corrupt: of(Fate::IsFlipped),
            missing: missing + 3,
            reordered: overtaken,
            furthest_behind: overtaken.min(1),
            ..FrameCounters::default()
        };
        prop_assert_eq!(report.counters, expected);
        prop_assert_eq!(report.streams[0].counters, FrameCounters { missing, ..expected });
        prop_assert!(!report.is_perfect());
        let latency = report.latency.expect("times");
        prop_assert!(latency.min_ns >= 1_000 && latency.max_ns < 1_000 + arriving.len() as u64);
        prop_assert_eq!((latency.frames, latency.negative), (expected.intact, 0));
        let unexpected = checker.report(Some(sent - 1));
        prop_assert_eq!((unexpected.unexpected, unexpected.counters.missing), (1, missing));
    }
}

/// A frame that arrives: stream, sequence, flipped, cut off, nanoseconds on its way.
type Arrived = (u16, u64, bool, bool, i64);

/// Judges by looking at everything that arrived before.
fn slow(arrived: &[Arrived]) -> (HashMap<u16, FrameCounters>, u64) {
    let mut all: HashMap<u16, FrameCounters> = HashMap::new();
    let mut before: HashMap<u16, Vec<(u64, bool)>> = HashMap::new();
    let mut seen: HashMap<u16, HashSet<u64>> = HashMap::new();
    let mut beyond_streams = 0;
    for &(stream, sequence, flipped, cut, _) in arrived {
        if all.len() == STREAMS && !all.contains_key(&stream) {
            beyond_streams += 1;
            continue;
        }
        let (counters, before) = (all.entry(stream).or_default(), before.entry(stream).or_default());
        let damaged = flipped && !cut;
        let behind = before.iter().map(|&(other, _)| other.saturating_sub(sequence)).max().unwrap_or(0);
        if behind < WINDOW {
            seen.entry(stream).or_default().insert(sequence);
        }
        match () {
            () if damaged => counters.corrupt += 1,
            () if behind >= WINDOW => counters.beyond_window += 1,
            () => {
                counters.unchecked += u64::from(cut);
                if before.contains(&(sequence, false)) {
                    counters.duplicate += 1;
                } else {
                    counters.intact += 1;
                    counters.reordered += u64::from(behind > 0);
                    counters.furthest_behind = counters.furthest_behind.max(behind);
                }
            }
        }
        before.push((sequence, damaged));
    }
    for (stream, counters) in &mut all {
        let highest = before[stream].iter().map(|&(sequence, _)| sequence).max().expect("a frame");
        counters.missing = highest + 1 - seen[stream].len() as u64;
    }
    (all, beyond_streams)
}

fn arrived() -> impl Strategy<Value = Arrived> {
    let sequence =
        prop_oneof![8 => 0..60_u64, 1 => WINDOW - 30..WINDOW + 30, 1 => 3 * WINDOW..3 * WINDOW + 5];
    let stream = prop_oneof![4 => 0..3_u16, 1 => any::<u16>()];
    (stream, sequence, prop::bool::weighted(0.1), prop::bool::weighted(0.1), -50..10_000_i64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn it_agrees_with_one_that_remembers_everything(arrived in prop::collection::vec(arrived(), 1..600)) {
        let mut checker = Checker::new();
        for &(stream, sequence, flipped, cut, latency) in &arrived {
            let mut bytes = frame(stream, sequence, START);
            *bytes.last_mut().expect("bytes") ^= u8::from(flipped);
            let kept = bytes.len() - usize::from(cut);
            let whole = whole(&bytes, START.strict_add_signed(latency));
            checker.add(&Frame { data: &bytes[..kept], ..whole });
        }
        let (all, beyond_streams) = slow(&arrived);
        let report = checker.report(None);
        let found: HashMap<u16, FrameCounters> = report.streams.iter().map(|one| (one.stream, one.counters)).collect();
        prop_assert_eq!(&found, &all);
        prop_assert_eq!(report.beyond_streams, beyond_streams);
        let FrameCounters { intact, duplicate, corrupt, beyond_window, .. } = report.counters;
        prop_assert_eq!(intact + duplicate + corrupt + beyond_window + beyond_streams, report.frames);
        let latency = report.latency.expect("times");
        prop_assert_eq!(latency.frames + latency.negative, intact);
        let inside = |one: &StreamReport| arrived.iter().any(|&(stream, sequence, ..)| (stream, sequence) == (one.stream, one.lowest));
        prop_assert!(report.streams.iter().all(inside));
    }
}

#[test]
fn the_window_slides_over_a_long_stream() {
    let mut checker = Checker::new();
    // Of each ten frames one is missing, which arrives a whole window later: one too late, or just in time.
    let sent = 3 * WINDOW;
    let mut bytes = frame(0, 0, 0);
    let mut arrive = |sequence: u64| {
        bytes[42..60].copy_from_slice(&Signature { stream: 0, sequence, time: 0 }.to_bytes());
        checker.add(&whole(&bytes, 1));
    };
    for sequence in 0..sent {
        if sequence % 10 != 0 {
            arrive(sequence);
        }
        if let Some(late) = sequence.checked_sub(WINDOW - 1).filter(|late| late % 20 == 0) {
            arrive(late);
        }
        if let Some(too_late) = sequence.checked_sub(WINDOW).filter(|late| late % 20 == 10) {
            arrive(too_late);
        }
    }
    let counters = checker.report(Some(sent)).counters;
    let highest = |step: u64, first: u64, window: u64| (sent - window - first).div_ceil(step);
    assert_eq!(counters.beyond_window, highest(20, 10, WINDOW));
    assert_eq!(counters.reordered, highest(20, 0, WINDOW - 1));
    assert_eq!(counters.furthest_behind, WINDOW - 1);
    assert_eq!(counters.missing, sent.div_ceil(10) - counters.reordered);
    assert_eq!(counters.intact, sent - sent.div_ceil(10) + counters.reordered);
    assert_eq!((counters.duplicate, counters.corrupt), (0, 0));
}

#[test]
fn streams_are_bounded_and_all_of_them_counted() {
    let mut checker = Checker::new();
    for round in 0..3 {
        for stream in 0..100 {
            checker.add(&whole(&frame(stream, round, START), START));
        }
    }
    let report = checker.report(None);
    assert_eq!((report.frames, report.counters.intact, report.beyond_streams), (300, 192, 108));
    assert_eq!(report.streams.iter().map(|one| one.stream).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    assert!(!report.is_perfect());
}

#[test]
fn perfect_is_once_and_intact_in_any_order() {
    let mut checker = Checker::new();
    assert!(!checker.report(None).is_perfect());
    let without_time =
        |bytes: &[u8], checker: &mut Checker| checker.add(&Frame { time: None, ..whole(bytes, 0) });
    for sequence in [1, 0, 2] {
        without_time(&frame(0, sequence, START), &mut checker);
    }
    without_time(&[0xff; 60], &mut checker);
    let report = checker.report(Some(3));
    assert!(report.is_perfect() && report.latency.is_none(), "{report:?}");
    assert_eq!((report.counters.reordered, report.other), (1, 1));
    assert!(!checker.report(Some(4)).is_perfect() && !checker.report(Some(2)).is_perfect());
}
