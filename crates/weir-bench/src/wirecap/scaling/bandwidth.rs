//! How fast this machine moves memory.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Bytes that are copied by one call: of more, a C library may write past the caches, which is slower on some machines.
const BLOCK: usize = 256 << 10;

/// Bytes read and written a second by so many threads at once, each of which copies between its own two halves of `set` bytes, again
/// and again. That should be far more than caches hold.
pub(super) fn copying(threads: usize, set: usize, time: Duration) -> Result<f64, Failure> {
    let barrier = Barrier::new(threads);
    let rates: Vec<f64> = thread::scope(|scope| {
        let start = |_| scope.spawn(|| copy(set, time, &barrier));
        let started: Vec<_> = (0..threads).map(start).collect();
        let joined = started.into_iter().map(|thread| {
            thread.join().map_err(|_panic| Failure::new("a thread that copies memory panicked"))
        });
        joined.collect::<Result<_, _>>()
    })?;
    Ok(rates.into_iter().sum())
}

fn copy(set: usize, time: Duration, barrier: &Barrier) -> f64 {
    // Written to, so that there are pages behind them, near to this processor.
    let source = vec![1_u8; set / 2];
    let mut target = vec![2_u8; set / 2];
    barrier.wait();
    let (began, mut bytes) = (Instant::now(), 0);
    while began.elapsed() < time {
        for (to, from) in target.chunks_mut(BLOCK).zip(black_box(&source).chunks(BLOCK)) {
            to.copy_from_slice(from);
        }
        black_box(&mut target);
        bytes += 2 * target.len() as u64;
    }
    bytes as f64 / began.elapsed().as_secs_f64()
}
