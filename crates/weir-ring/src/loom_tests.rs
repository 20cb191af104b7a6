//! Tests of every interleaving of writer, reader and a thread that gives chunks back, in loom's memory model.
//!
//! Run with `make loom`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::layout::{RECORD_MIN, Shape};
use crate::{Claim, Part, Piece, Pool, Reader, Strands, Writer};

/// Creates a pool with one queue and `chunks` chunks, each closed by `records` records of the smallest size.
fn pool(chunks: u32, records: u32) -> (Writer, Reader) {
    let shape = Shape::with_measures(1, chunks, records * RECORD_MIN);
    let (mut writers, mut readers) = Pool::private(shape).expect("a model needs no system");
    (writers.pop().expect("one queue"), readers.pop().expect("one queue"))
}

/// Writes record number `value` if there is room.
fn write(writer: &mut Writer, value: u64) -> bool {
    let Some(place) = writer.place() else { return false };
    writer.pool().data.store(place, value);
    writer.commit(RECORD_MIN);
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
        let (mut writer, mut reader) = pool(2, 1);
        let writing =
            thread::spawn(move || (1..=3).filter(|&value| write(&mut writer, value)).collect::<Vec<_>>());
        let mut read_so_far = Vec::new();
        for _ in 0..2 {
            if let Some(part) = reader.take().expect("our own writer") {
                read_so_far.extend(read(&part));
            }
            thread::yield_now();
        }
        let written = writing.join().expect("the writer does not panic");
        while let Some(part) = reader.take().expect("our own writer") {
            read_so_far.extend(read(&part));
        }
        assert_eq!(read_so_far, written);
        let fill = reader.fill();
        assert_eq!((fill.free, fill.open, fill.ready, fill.held), (2, 0, 0, 0));
    });
}

#[test]
fn an_open_chunk_can_be_read_while_it_is_written() {
    loom::model(|| {
        let (mut writer, mut reader) = pool(2, 2);
        let writing = thread::spawn(move || {
            assert!(write(&mut writer, 1) && write(&mut writer, 2));
        });
        let mut values = Vec::new();
        let first = reader.take().expect("our own writer");
        values.extend(first.iter().flat_map(read));
        writing.join().expect("the writer does not panic");
        let second = reader.take().expect("our own writer");
        values.extend(second.iter().flat_map(read));
        assert_eq!(values, [1, 2]);
        // Parts of one chunk, dropped in the wrong order: the chunk goes back with the last one.
        assert_eq!(reader.fill().held, 1);
        drop(second);
        drop(first);
        assert_eq!(reader.fill().free, 2);
    });
}

#[test]
fn a_chunk_that_is_opened_again_is_not_taken_for_full() {
    loom::model(|| {
        let (mut writer, mut reader) = pool(1, 1);
        assert!(write(&mut writer, 1));
        assert_eq!(read(&reader.take().expect("our own writer").expect("it is there")), [1]);
        let writing = thread::spawn(move || assert!(write(&mut writer, 2)));
        // Loom reports it if this reads before the record is written.
        let early = reader.take().expect("our own writer").map(|part| read(&part));
        writing.join().expect("the writer does not panic");
        let late = reader.take().expect("our own writer").map(|part| read(&part));
        assert_eq!(early.xor(late), Some(vec![2]));
    });
}

/// What was read has been given before, also for another thread that looks.
#[test]
fn anyone_may_ask_where_the_chunks_are() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (mut writer, mut reader) = pool(1, 1);
        assert!(write(&mut writer, 1));
        let first = reader.take().expect("our own writer").expect("it is there");
        let gauge = reader.gauge();
        let asking = thread::spawn(move || gauge.fill());
        drop(first);
        assert!(write(&mut writer, 2));
        assert!(reader.take().expect("our own writer").is_some());
        assert!(asking.join().expect("does not panic").held <= 1);
    });
}

#[test]
fn a_chunk_is_not_written_again_before_its_last_part_is_dropped_elsewhere() {
    loom::model(|| {
        let (mut writer, mut reader) = pool(2, 1);
        assert!(write(&mut writer, 1) && write(&mut writer, 2));
        let first = reader.take().expect("our own writer").expect("it is there");
        let second = reader.take().expect("our own writer").expect("it is there");
        let holder = thread::spawn(move || {
            assert_eq!(read(&first), [1]);
            drop(first);
        });
        let other = thread::spawn(move || {
            assert_eq!(read(&second), [2]);
            drop(second);
        });
        let third = write(&mut writer, 3);
        holder.join().expect("does not panic");
        other.join().expect("does not panic");
        let fourth = write(&mut writer, 4);
        let wanted: Vec<u64> =
            [(third, 3), (fourth, 4)].iter().filter(|(done, _)| *done).map(|&(_, v)| v).collect();
        let mut values = Vec::new();
        while let Some(part) = reader.take().expect("our own writer") {
            values.extend(read(&part));
        }
        assert!(fourth, "both chunks were back");
        assert_eq!(values, wanted);
    });
}

#[test]
fn a_chunk_is_not_written_again_before_both_its_parts_are_dropped_elsewhere() {
    loom::model(|| {
        let (mut writer, mut reader) = pool(1, 2);
        let mut part = |value| {
            assert!(write(&mut writer, value));
            reader.take().expect("our own writer").expect("it is there")
        };
        let parts = [part(1), part(2)];
        let holders = parts.map(|part| {
            thread::spawn(move || {
                assert_eq!(part.records(), 1);
                read(&part)[0]
            })
        });
        // Loom reports it if somebody may still be reading what this overwrites.
        let again = write(&mut writer, 3);
        let values = holders.map(|holder| holder.join().expect("does not panic"));
        assert_eq!(values, [1, 2]);
        assert!(again || write(&mut writer, 3), "the chunk was back");
        assert_eq!(read(&reader.take().expect("our own writer").expect("it is there")), [3]);
    });
}

/// A slot is filled a lap later by a thread that knows what it replaces only from those that gave in between.
#[test]
fn chunks_that_are_given_a_lap_apart_are_all_found() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (mut writer, mut reader) = pool(2, 1);
        assert!(write(&mut writer, 1) && write(&mut writer, 2));
        let givers = [(); 2].map(|()| {
            let part = reader.take().expect("our own writer").expect("it is there");
            thread::spawn(move || drop(part))
        });
        // What one of them has given goes back here, and the other one may be the next to use its slot.
        for value in [3, 4] {
            if write(&mut writer, value) {
                drop(reader.take().expect("our own writer").expect("it is there"));
            }
        }
        givers.into_iter().for_each(|giver| giver.join().expect("does not panic"));
        assert!(write(&mut writer, 5) && write(&mut writer, 6), "both chunks were back");
    });
}

#[test]
fn two_who_claim_a_queue_read_it_once_and_chunks_go_home() {
    loom::model(|| {
        let (mut writer, reader) = pool(2, 1);
        assert!(write(&mut writer, 1) && write(&mut writer, 2));
        let gauge = reader.gauge();
        let queue = Arc::new(Claim::new(reader));
        let take = |queue: Arc<Claim<Reader>>| {
            let part = queue.try_claim().and_then(|mut reader| reader.take().expect("our own writer"));
            part.map_or_else(Vec::new, |part| read(&part)) // dropped here, by the thread that took it
        };
        let buddy = Arc::clone(&queue);
        let buddy = thread::spawn(move || take(buddy));
        let mut values = take(Arc::clone(&queue));
        let third = write(&mut writer, 3);
        values.extend(buddy.join().expect("does not panic"));
        while let Some(part) = queue.try_claim().expect("nobody else").take().expect("our own writer") {
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
