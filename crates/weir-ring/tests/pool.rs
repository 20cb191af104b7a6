//! The pool between a producer and a consumer of this process: order, contents, conservation, and a hostile other side.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;
use weir_ring::{Consumer, Fill, Part, Pool, Producer, Shape};

/// The smallest record that the consumer believes, filled with `value`.
fn write(producer: &mut Producer, value: u32, length: usize) -> bool {
    let Some(room) = producer.room() else { return false };
    for word in room[..length].chunks_exact_mut(4) {
        word.copy_from_slice(&value.to_ne_bytes());
    }
    producer.commit(u32::try_from(length).expect("a small record"));
    true
}

/// The values of the records of `length` bytes in a part, each of them the same in all of its bytes.
fn read(part: &Part, length: usize) -> Vec<u32> {
    let bytes = part.as_ref();
    assert_eq!(bytes.len(), length * part.records() as usize);
    let value = |record: &[u8]| {
        let mut words =
            record.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes")));
        let first = words.next().expect("a record is not empty");
        assert!(words.all(|word| word == first), "a record was torn");
        first
    };
    bytes.chunks_exact(length).map(value).collect()
}

fn one_queue(chunks: u32) -> (Producer, Consumer) {
    let shape = Shape::new(1, chunks, 4096, 60).expect("a pool can have these measures");
    let (mut producers, mut consumers) = Pool::private(shape).expect("there is memory");
    (producers.pop().expect("one queue"), consumers.pop().expect("one queue"))
}

fn sum(fill: Fill) -> u32 {
    fill.free + fill.open + fill.ready + fill.held
}

#[derive(Clone, Debug)]
enum Step {
    Write,
    Take,
    Divide,
    DropOldest,
    DropNewest,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => Just(Step::Write),
        2 => Just(Step::Take),
        1 => Just(Step::Divide),
        1 => Just(Step::DropOldest),
        1 => Just(Step::DropNewest),
    ]
}

proptest! {
    /// The pool against a queue of values: whatever the order of events, everything that was written is read once and in
    /// order, no chunk is lost or doubled, and writing fails only when no chunk is empty.
    #[test]
    fn a_pool_is_a_queue(steps in prop::collection::vec(step(), 1..600), chunks in 2u32..6) {
        const LENGTH: usize = 512;
        let (mut producer, mut consumer) = one_queue(chunks);
        let mut model = VecDeque::new();
        let mut held: VecDeque<(Part, Vec<u32>)> = VecDeque::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Write => {
                    let before = consumer.fill();
                    if write(&mut producer, next, LENGTH) {
                        model.push_back(next);
                    } else {
                        prop_assert_eq!((before.free, before.open), (0, 0));
                    }
                    next += 1;
                }
                Step::Take => {
                    if let Some(part) = consumer.take().expect("our own producer") {
                        let values = read(&part, LENGTH);
                        for value in &values {
                            prop_assert_eq!(model.pop_front(), Some(*value));
                        }
                        held.push_back((part, values));
                    }
                }
                Step::Divide => {
                    if let Some((mut part, mut values)) = held.pop_front() {
                        let half = values.len() / 2;
                        let first = part.take_first(half * LENGTH, u32::try_from(half).expect("a few"));
                        let rest = values.split_off(half);
                        held.push_front((part, rest));
                        held.push_back((first, values));
                    }
                }
                Step::DropOldest | Step::DropNewest => {
                    let newest = matches!(step, Step::DropNewest);
                    if let Some((part, values)) = if newest { held.pop_back() } else { held.pop_front() } {
                        prop_assert_eq!(read(&part, LENGTH), values, "a held part was written to");
                    }
                }
            }
            prop_assert_eq!(sum(consumer.fill()), chunks);
        }
        drop(held);
        while let Some(part) = consumer.take().expect("our own producer") {
            for value in read(&part, LENGTH) {
                prop_assert_eq!(model.pop_front(), Some(value));
            }
        }
        prop_assert!(model.is_empty());
        let fill = consumer.fill();
        prop_assert_eq!((fill.ready, fill.held, fill.free + fill.open), (0, 0, chunks));
    }
}

#[test]
fn threads_that_give_chunks_back_keep_the_stream_whole() {
    const RECORDS: u32 = if cfg!(miri) { 400 } else { 300_000 };
    const LENGTH: usize = 128;
    let (mut producer, mut consumer) = one_queue(8);
    let (to_holders, parts) = mpsc::channel::<Part>();
    let parts = std::sync::Arc::new(std::sync::Mutex::new(parts));
    let holders: Vec<_> = (0..3)
        .map(|_| {
            let parts = std::sync::Arc::clone(&parts);
            thread::spawn(move || {
                let mut records = 0;
                loop {
                    let part = parts.lock().expect("nobody panics").recv();
                    let Ok(part) = part else { return records };
                    let values = read(&part, LENGTH);
                    assert!(values.windows(2).all(|pair| pair[1] > pair[0]));
                    records += part.records();
                }
            })
        })
        .collect();
    let writing = thread::spawn(move || {
        let mut lost = 0;
        for value in 0..RECORDS {
            if !write(&mut producer, value, LENGTH) {
                lost += 1;
                thread::yield_now();
            }
        }
        lost
    });
    let mut taken = 0;
    let mut last = None;
    let lost = loop {
        let done = writing.is_finished();
        match consumer.take().expect("our own producer") {
            Some(part) => {
                let first = read(&part, LENGTH)[0];
                assert!(last.is_none_or(|last| first > last), "{first} after {last:?}");
                last = Some(first);
                taken += part.records();
                to_holders.send(part).expect("the holders are there");
            }
            None if done => break writing.join().expect("the writer does not panic"),
            None => thread::yield_now(),
        }
    };
    drop(to_holders);
    let held: u32 = holders.into_iter().map(|holder| holder.join().expect("no holder panics")).sum();
    assert_eq!((taken, taken + lost), (held, RECORDS));
    assert_eq!(sum(consumer.fill()), 8);
    assert_eq!(consumer.fill().held, 0);
}

#[test]
fn a_full_pool_takes_nothing_and_overwrites_nothing() {
    let (mut producer, mut consumer) = one_queue(2);
    let written = (0..1000).take_while(|&value| write(&mut producer, value, 512)).count();
    assert_eq!(written, 16, "two chunks of eight records");
    assert!(!write(&mut producer, 99, 512));
    let parts: Vec<Part> = std::iter::from_fn(|| consumer.take().expect("our own producer")).collect();
    let values: Vec<u32> = parts.iter().flat_map(|part| read(part, 512)).collect();
    assert_eq!(values, (0..16).collect::<Vec<_>>());
    assert!(!write(&mut producer, 99, 512), "both chunks are held");
    drop(parts);
    assert!(write(&mut producer, 100, 512));
}

/// A record that begins in front of a chunk's size belongs to it, whole; the one that reaches it is the last.
#[test]
fn a_chunk_is_full_when_a_record_reaches_its_size_and_no_byte_before() {
    const LARGEST: u32 = 60;
    let shape = Shape::new(1, 2, 4096, LARGEST).expect("a pool");
    for (before, closed) in [(4096 - 4, false), (4096, true)] {
        let (mut producers, mut consumers) = Pool::private(shape).expect("there is memory");
        let (mut producer, mut consumer) =
            (producers.pop().expect("a queue"), consumers.pop().expect("a queue"));
        let room = |producer: &mut Producer| producer.room().map(|room| room.len());
        assert_eq!(room(&mut producer), Some(shape.stride() as usize));
        assert!(write(&mut producer, 1, before));
        let fill = consumer.fill();
        assert_eq!((fill.open, fill.ready, fill.free), if closed { (0, 1, 1) } else { (1, 0, 1) });
        if !closed {
            // The last byte of the chunk is there for the largest record.
            let rest = room(&mut producer).expect("room");
            assert_eq!(rest, shape.stride() as usize - before);
            assert!(rest >= 28 + LARGEST as usize + 4, "{rest}");
            assert!(write(&mut producer, 2, rest / 4 * 4));
        }
        // Two chunks, both full now: the other one by a single record.
        assert!(write(&mut producer, 3, 4096));
        assert_eq!(room(&mut producer), None);
        let parts: Vec<Part> = std::iter::from_fn(|| consumer.take().expect("our own producer")).collect();
        let records: u32 = parts.iter().map(Part::records).sum();
        assert_eq!((parts.len(), records), (2, if closed { 2 } else { 3 }));
        let fill = consumer.fill();
        assert_eq!((fill.held, fill.free), (2, 0));
    }
}
