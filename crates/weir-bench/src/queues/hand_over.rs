//! The cost of taking a chunk from a buddy's queue and giving it back: all that the library does for it, in processor
//! time, with handlers that look at no packet.

use std::thread;
use std::time::Duration;

use weir::{Handler, Plan};

use super::Of;
use super::field::{Field, PATIENCE, packets_of, settle};
use crate::experiment::{Judged, Outcome, Taken};
use crate::failure::{Failure, failed};
use crate::process::thread_time;
use crate::spread::median;
use crate::wanted::Wanted;

/// Bytes of a chunk.
const SMALL: u32 = 4 << 10;
const LARGE: u32 = 64 << 10;
const CHUNKS: u32 = 256;
/// Chunks that are timed after each fill of the pool; a few are left to the handler at home.
const TIMED: u32 = 240;
const FILLS: u32 = 10;

/// Chunks of a size, in processor time: for the buddy, and for the handler at home.
fn names(size: u32) -> [String; 2] {
    let packets = packets_of(size);
    ["to a buddy and back", "without a hand-over"].map(|how| format!("chunk of {packets} packets {how}"))
}

pub(super) fn series() -> Vec<String> {
    [SMALL, LARGE].into_iter().flat_map(names).collect()
}

pub(super) fn measure(field: &Field) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    for size in [SMALL, LARGE] {
        // In a thread of its own: handlers keep the thread that calls them on their processor.
        let apart = thread::scope(|scope| scope.spawn(|| turn(field, size)).join());
        let (times, problem) = apart.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        for (series, time) in names(size).iter().zip(times) {
            Of { taken: &mut taken, series }.add("chunk", time);
        }
        taken.problems.extend(problem);
    }
    Ok(taken)
}

/// Nanoseconds of a chunk, for the buddy and at home: medians of all fills of the pool.
fn turn(field: &Field, size: u32) -> Result<([f64; 2], Option<String>), Failure> {
    let packets_of_chunk = packets_of(size);
    let mut generator = field.generator(&field.traffic()?, 0, 0)?;
    let mut capture = field.open_with(CHUNKS, size)?;
    let plan = Plan::new(2).pin([field.processor(); 2]).advanced(1);
    let [mut home, mut buddy] =
        <[Handler; 2]>::try_from(capture.handlers(&plan)?).expect("two were asked for");
    let (mut of_buddy, mut of_home) = (Vec::new(), Vec::new());
    let (mut accepted, mut whole) = (0, true);
    let mut take = |handler: &mut Handler, wait| {
        let taken = handler.next(wait)?.taken().map(|share| share.len() as u64);
        whole &= taken == Some(packets_of_chunk);
        Ok::<_, Failure>(())
    };
    for fill in 0..2 * FILLS {
        let sent = generator.send(u64::from(CHUNKS) * packets_of_chunk).map_err(failed("send"))?;
        accepted += sent.accepted;
        settle(&mut capture, accepted)?;
        let (handler, times) =
            if fill % 2 == 0 { (&mut buddy, &mut of_buddy) } else { (&mut home, &mut of_home) };
        // It may take a moment until the buddy hears of it.
        take(handler, PATIENCE)?;
        let before = thread_time();
        for _ in 0..TIMED {
            take(handler, Duration::ZERO)?;
        }
        times.push((thread_time() - before).as_secs_f64() * 1e9 / f64::from(TIMED));
        while home.next(Duration::ZERO)?.taken().is_some() {}
    }
    capture.stop()?;
    let account = capture.stats()?;
    let (total, chunks) = (account.total(), account.interfaces[0].queues[0].offloaded);
    let expected = u64::from(FILLS * (TIMED + 1));
    let right = whole && chunks == expected && total.delivered == accepted;
    let problem = (!right).then(|| format!("{chunks} of {expected} chunks taken by the buddy, {total:?}"));
    Ok(([of_buddy, of_home].map(median), problem))
}

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let [[small, _], [large, _]] = [SMALL, LARGE].map(names);
    let more = (packets_of(LARGE) - packets_of(SMALL)) as f64;
    let chunk = outcome.values_of(&large, "chunk", None).into_iter().map(|time| time / 1e3);
    let added = outcome.added([&large, &small], "chunk", None).into_iter().map(|(_, time)| time / more);
    vec![
        Judged::new("a chunk to a buddy and back", Wanted::AtMost(2.0), "us", chunk),
        // Allows for noise of the caches: work for a packet takes more.
        Judged::new("and for each packet in it", Wanted::AtMost(0.5), "ns", added),
    ]
}
