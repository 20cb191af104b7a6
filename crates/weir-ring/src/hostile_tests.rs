//! Tests with a producer that lies: whatever it puts into shared memory, the consumer returns an error or bytes of the
//! pool.

use std::sync::Arc;

use proptest::prelude::*;

use crate::consumer::Consumer;
use crate::layout::{Commit, Shape};
use crate::pool::Pool;
use crate::sync::Ordering;

fn victim() -> (Arc<Pool>, Consumer) {
    let shape = Shape::new(2, 3, 4096, 60).expect("a pool can have these measures");
    let (_, mut consumers) = Pool::private(shape).expect("there is memory");
    let consumer = consumers.remove(0);
    (consumer.pool(), consumer)
}

proptest! {
    #[test]
    fn wild_progress_is_refused_or_stays_inside(
        words in prop::collection::vec((0u32..6, 0u64..8, any::<u64>(), any::<u64>()), 1..200)
    ) {
        let (pool, mut consumer) = victim();
        let mut parts = Vec::new();
        for (chunk, position, commit, opened) in words {
            pool.set_progress_position(chunk, position, Ordering::Release);
            pool.set_progress_commit(chunk, Commit::from_word(commit), Ordering::Release);
            pool.scribble_queue(0, opened);
            if let Ok(Some(part)) = consumer.take() {
                prop_assert!(part.as_ref().len() <= pool.shape().stride() as usize);
                prop_assert!(part.as_ref().iter().all(|&byte| byte == 0));
                parts.push(part);
            }
            let _ = consumer.ready();
            let fill = consumer.fill();
            prop_assert!(fill.free <= 3 && fill.held <= 3);
            if parts.len() > 4 {
                parts.clear();
            }
        }
    }
}

#[test]
fn what_shrinks_is_refused() {
    let (pool, mut consumer) = victim();
    let commit = |bytes, records, closed| {
        pool.set_progress_commit(0, Commit { bytes, records, closed }, Ordering::Release);
    };
    pool.set_progress_position(0, 0, Ordering::Release);
    commit(320, 10, false);
    assert_eq!(consumer.take().unwrap().unwrap().records(), 10);
    for (bytes, records) in [
        (288, 10),
        (320, 9),
        (352, 10),
        (320, 11),
        (352, 12),
        (353, 11),
        (354, 11),
        (8196, 11),
        (1 << 30, 11),
    ] {
        commit(bytes, records, true);
        let error = consumer.take().unwrap_err();
        assert_eq!((error.bytes, error.taken_bytes), (bytes, 320), "{bytes} {records}");
    }
    commit(8192, 11, true);
    assert_eq!(consumer.take().unwrap().unwrap().len(), 8192 - 320, "a chunk may be full to its end");
}

#[test]
fn a_chunk_that_was_closed_without_a_record_is_refused() {
    let (pool, mut consumer) = victim();
    pool.set_progress_commit(0, Commit { bytes: 0, records: 0, closed: true }, Ordering::Release);
    pool.set_progress_position(0, 0, Ordering::Release);
    consumer.take().unwrap_err();
}

#[test]
fn chunks_are_where_they_can_be_whatever_the_producer_says() {
    let (pool, mut consumer) = victim();
    pool.set_progress_commit(0, Commit { bytes: 32, records: 1, closed: true }, Ordering::Release);
    pool.set_progress_position(0, 0, Ordering::Release);
    let part = consumer.take().unwrap();
    for (opened, chunk, expected) in [
        (0, 0, (2, 0, 0)),
        (2, 1, (1, 1, 0)),
        (2, 6, (1, 1, 0)), // there is no such chunk
        (2, u32::MAX, (1, 1, 0)),
        (100, 1, (0, 1, 1)),
    ] {
        pool.set_opened(0, opened, 0, chunk);
        let fill = consumer.fill();
        assert_eq!((fill.free, fill.open, fill.ready), expected, "{opened} {chunk}");
        assert_eq!(fill.held, 1);
    }
    drop(part);
    assert_eq!(consumer.fill().held, 0);
}

#[test]
fn a_ring_that_was_scribbled_over_changes_nothing_for_the_consumer() {
    let (pool, mut consumer) = victim();
    for slot in 0..8 {
        pool.scribble(0, slot, u64::MAX);
    }
    pool.set_progress_position(0, 0, Ordering::Release);
    pool.set_progress_commit(0, Commit { bytes: 32, records: 1, closed: true }, Ordering::Release);
    assert_eq!(consumer.take().unwrap().unwrap().records(), 1);
}
