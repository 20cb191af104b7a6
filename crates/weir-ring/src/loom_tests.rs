//! Tests of every interleaving of producer, consumer and a thread that gives chunks back, in loom's memory model.
//!
//! Run with `make loom`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::layout::{RECORD_MIN, Shape};
use crate::{Claim, Consumer, Part, Piece, Pool, Producer, Strands};

/// Creates a pool with one queue and `chunks` chunks, each closed by `records` records of the smallest size.
fn pool(chunks: u32, records: u32) -> (Producer, Consumer) {
    let shape = Shape::with_measures(1, chunks, records * RECORD_MIN);
    let (mut producers, mut consumers) = Pool::private(shape).expect("a model needs no system");
    (producers.pop().expect("one queue"), consumers.pop().expect("one queue"))
}

/// Writes record number `value` if there is room.
fn write(producer: &mut Producer, value: u64) -> bool {
    let Some(place) = producer.place() else { return false };
    producer.pool().data.store(place, value);
    producer.commit(RECORD_MIN);
    true
}

/// Reads the records of a part; loom reports any that may be written to at the same time.
fn read(part: &Part) -> Vec<u64> {
    (0..part.records() as usize)
        .map(|i| part.pool().data.load(part.place() + i * RECORD_MIN as usize))
        .collect()
}

#[test]
fn what_is_committed_arrives_in_order_and_once() {
    loom::model(|| {
        let (mut producer, mut consumer) = pool(2, 1);
        let writing =
            thread::spawn(move || (1..=3).filter(|&value| write(&mut producer, value)).collect::<Vec<_>>());
        let mut read_so_far = Vec::new();
        for _ in 0..2 {
            if let Some(part) = consumer.take().expect("our own producer") {
                read_so_far.extend(read(&part));
            }
            thread::yield_now();
        }
        let written = writing.join().expect("the writer does not panic");
        while let Some(part) = consumer.take().expect("our own producer") {
            read_so_far.extend(read(&part));
        }
        assert_eq!(read_so_far, written);
        let fill = consumer.fill();
        assert_eq!((fill.free, fill.open, fill.ready, fill.held), (2, 0, 0, 0));
    });
}

#[test]
fn an_open_chunk_can_be_read_while_it_is_written() {
    loom::model(|| {
        let (mut producer, mut consumer) = pool(2, 2);
        let writing = thread::spawn(move || {
            assert!(write(&mut producer, 1) && write(&mut producer, 2));
        });
        let mut values = Vec::new();
        let first = consumer.take().expect("our own producer");
        values.extend(first.iter().flat_map(read));
        writing.join().expect("the writer does not panic");
        let second = consumer.take().expect("our own producer");
        values.extend(second.iter().flat_map(read));
        assert_eq!(values, [1, 2]);
        // Parts of one chunk, dropped in the wrong order: the chunk goes back with the last one.
        assert_eq!(consumer.fill().held, 1);
        drop(second);
        drop(first);
        assert_eq!(consumer.fill().free, 2);
    });
}

#[test]
fn a_chunk_that_is_opened_again_is_not_taken_for_full() {
    loom::model(|| {
        let (mut producer, mut consumer) = pool(1, 1);
        assert!(write(&mut producer, 1));
        assert_eq!(read(&consumer.take().expect("our own producer").expect("it is there")), [1]);
        let writing = thread::spawn(move || assert!(write(&mut producer, 2)));
        // Loom reports it if this reads before the record is written.
        let early = consumer.take().expect("our own producer").map(|part| read(&part));
        writing.join().expect("the writer does not panic");
        let late = consumer.take().expect("our own producer").map(|part| read(&part));
        assert_eq!(early.xor(late), Some(vec![2]));
    });
}

/// What was read has been given before, also for another thread that looks.
#[test]
fn anyone_may_ask_where_the_chunks_are() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (mut producer, mut consumer) = pool(1, 1);
        assert!(write(&mut producer, 1));
        let first = consumer.take().expect("our own producer").expect("it is there");
        let gauge = consumer.gauge();
        let asking = thread::spawn(move || gauge.fill());
        drop(first);
        assert!(write(&mut producer, 2));
        assert!(consumer.take().expect("our own producer").is_some());
        assert!(asking.join().expect("does not panic").held <= 1);
    });
}

#[test]
fn a_chunk_is_not_written_again_before_its_last_part_is_dropped_elsewhere() {
    loom::model(|| {
        let (mut producer, mut consumer) = pool(2, 1);
        assert!(write(&mut producer, 1) && write(&mut producer, 2));
        let first = consumer.take().expect("our own producer").expect("it is there");
        let second = consumer.take().expect("our own producer").expect("it is there");
        let holder = thread::spawn(move || {
            assert_eq!(read(&first), [1]);
            drop(first);
        });
        let other = thread::spawn(move || {
            assert_eq!(read(&second), [2]);
            drop(second);
        });
        let third = write(&mut producer, 3);
        holder.join().expect("does not panic");
        other.join().expect("does not panic");
        let fourth = write(&mut producer, 4);
        let wanted: Vec<u64> =
            [(third, 3), (fourth, 4)].iter().filter(|(done, _)| *done).map(|&(_, v)| v).collect();
        let mut values = Vec::new();
        while let Some(part) = consumer.take().expect("our own producer") {
            values.extend(read(&part));
        }
        assert!(fourth, "both chunks were back");
        assert_eq!(values, wanted);
    });
}

#[test]
fn a_chunk_is_not_written_again_before_both_its_parts_are_dropped_elsewhere() {
    loom::model(|| {
        let (mut producer, mut consumer) = pool(1, 2);
        let mut part = |value| {
            assert!(write(&mut producer, value));
            consumer.take().expect("our own producer").expect("it is there")
        };
        let parts = [part(1), part(2)];
        let holders = parts.map(|part| {
            thread::spawn(move || {
                assert_eq!(part.records(), 1);
                read(&part)[0]
            })
        });
        // Loom reports it if somebody may still be reading what this overwrites.
        let again = write(&mut producer, 3);
        let values = holders.map(|holder| holder.join().expect("does not panic"));
        assert_eq!(values, [1, 2]);
        assert!(again || write(&mut producer, 3), "the chunk was back");
        assert_eq!(read(&consumer.take().expect("our own producer").expect("it is there")), [3]);
    });
}

/// A slot is filled a lap later by a thread that knows what it replaces only from those that gave in between.
#[test]
fn chunks_that_are_given_a_lap_apart_are_all_found() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (mut producer, mut consumer) = pool(2, 1);
        assert!(write(&mut producer, 1) && write(&mut producer, 2));
        let givers = [(); 2].map(|()| {
            let part = consumer.take().expect("our own producer").expect("it is there");
            thread::spawn(move || drop(part))
        });
        // What one of them has given goes back here, and the other one may be the next to use its slot.
        for value in [3, 4] {
            if write(&mut producer, value) {
                drop(consumer.take().expect("our own producer").expect("it is there"));
            }
        }
        givers.into_iter().for_each(|giver| giver.join().expect("does not panic"));
        assert!(write(&mut producer, 5) && write(&mut producer, 6), "both chunks were back");
    });
}

#[test]
fn two_who_claim_a_queue_read_it_once_and_chunks_go_home() {
    loom::model(|| {
        let (mut producer, consumer) = pool(2, 1);
        assert!(write(&mut producer, 1) && write(&mut producer, 2));
        let gauge = consumer.gauge();
        let queue = Arc::new(Claim::new(consumer));
        let take = |queue: Arc<Claim<Consumer>>| {
            let part = queue.try_claim().and_then(|mut consumer| consumer.take().expect("our own producer"));
            part.map_or_else(Vec::new, |part| read(&part)) // dropped here, by the thread that took it
        };
        let buddy = Arc::clone(&queue);
        let buddy = thread::spawn(move || take(buddy));
        let mut values = take(Arc::clone(&queue));
        let third = write(&mut producer, 3);
        values.extend(buddy.join().expect("does not panic"));
        while let Some(part) = queue.try_claim().expect("nobody else").take().expect("our own producer") {
            values.extend(read(&part));
        }
        values.sort_unstable();
        assert_eq!(values, if third { vec![1, 2, 3] } else { vec![1, 2] });
        let fill = gauge.fill();
        assert_eq!((fill.free, fill.ready, fill.held), (2, 0, 0));
    });
}

/// The handlers' state of two flows. Loom reports if two handlers use one flow at once, or one misses the other's work.
type Known = Arc<[UnsafeCell<u32>; 2]>;

/// Does one piece of work after the other until all are done. Place n of each piece 1, 2, ... belongs to flow n.
fn work(strands: &Strands<u32>, who: usize, known: &Known) {
    while !strands.is_done() {
        let Some(taken) = strands.take(who, 2) else {
            thread::yield_now();
            continue;
        };
        for &flow in taken.places.as_deref().unwrap_or(&[0, 1]) {
            // SAFETY: loom checks the exclusivity, which is the purpose of this test.
            known[flow as usize].with_mut(|value| unsafe {
                assert_eq!(*value, taken.what - 1, "flow {flow} in its order");
                *value = taken.what;
            });
        }
        drop(taken);
    }
}

fn divided(what: u32) -> Piece<u32> {
    Piece::new(what, &[(0, 0), (1, 1)])
}

#[test]
fn a_strand_is_in_one_hand_and_in_order() {
    loom::model(|| {
        let known: Known = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let strands = Strands::new();
        strands.lay_out(divided(1));
        strands.lay_out(divided(2));
        let (theirs, flows) = (strands.clone(), Arc::clone(&known));
        let other = thread::spawn(move || work(&theirs, 1, &flows));
        work(&strands, 0, &known);
        other.join().expect("does not panic");
        // SAFETY: as above.
        known.iter().for_each(|flow| flow.with(|value| assert_eq!(unsafe { *value }, 2)));
    });
}

#[test]
fn what_is_not_divided_is_alone() {
    loom::model(|| {
        let known: Known = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let strands = Strands::new();
        let lease = strands.lease().expect("nothing is laid out");
        strands.lay_out(Piece::whole(2));
        strands.lay_out(divided(3));
        let (theirs, flows) = (strands.clone(), Arc::clone(&known));
        let other = thread::spawn(move || work(&theirs, 1, &flows));
        for flow in known.iter() {
            // SAFETY: as above.
            flow.with_mut(|value| unsafe { *value = 1 });
        }
        drop(lease);
        work(&strands, 0, &known);
        other.join().expect("does not panic");
        // SAFETY: as above.
        known.iter().for_each(|flow| flow.with(|value| assert_eq!(unsafe { *value }, 3)));
    });
}
