//! What it takes to take a chunk from the queue of a buddy and to give it back: all that the library does for it, in processor
//! time, with handlers that look at no packet.

use std::thread;
use std::time::Duration;

use serde::Serialize;
use weir::{Handler, Plan};

use super::field::{Field, PATIENCE, packets_of, settle};
use super::say;
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::process::thread_time;
use crate::spread::Spread;

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    round: u32,
    packets_of_chunk: u64,
    /// Nanoseconds a chunk for a buddy; median of all fills of the pool.
    buddy_ns: f64,
    /// And for the handler at home.
    home_ns: f64,
    /// Chunks that the buddy has taken meanwhile.
    chunks: u64,
    pub(super) problem: Option<String>,
}

/// Bytes of a chunk.
const SMALL: u32 = 4 << 10;
const LARGE: u32 = 64 << 10;
const CHUNKS: u32 = 256;
/// Chunks that are timed after each fill of the pool; a few are left to the handler at home.
const TIMED: u32 = 240;
const FILLS: u32 = 10;

pub(super) fn measure(field: &Field, round: u32) -> Result<Vec<Sample>, Failure> {
    // In a thread of its own: handlers keep the thread that asks them on their processor.
    let apart = |size| thread::scope(|scope| scope.spawn(|| turn(field, round, size)).join());
    let turn = |size| apart(size).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    [SMALL, LARGE].into_iter().map(turn).collect()
}

fn turn(field: &Field, round: u32, size: u32) -> Result<Sample, Failure> {
    let packets_of_chunk = packets_of(size);
    let mut generator = field.generator(&field.traffic()?, 0, 0)?;
    let mut capture = field.open_with(CHUNKS, size)?;
    let plan = Plan::new(2).pin([field.processor(); 2]).advanced(1);
    let [mut home, mut buddy] =
        <[Handler; 2]>::try_from(capture.handlers(&plan)?).expect("two were asked for");
    let (mut of_buddy, mut of_home) = (Vec::new(), Vec::new());
    let (mut accepted, mut whole) = (0, true);
    let mut take = |handler: &mut Handler, wait| {
        let taken = handler.next(wait)?.map(|share| share.len() as u64);
        whole &= taken == Some(packets_of_chunk);
        Ok::<_, Failure>(())
    };
    for fill in 0..2 * FILLS {
        let sent = generator.send(u64::from(CHUNKS) * packets_of_chunk).map_err(failed("send"))?;
        accepted += sent.accepted;
        settle(&mut capture, accepted)?;
        let (handler, times) =
            if fill % 2 == 0 { (&mut buddy, &mut of_buddy) } else { (&mut home, &mut of_home) };
        // It may be a moment until the buddy is told.
        take(handler, PATIENCE)?;
        let before = thread_time();
        for _ in 0..TIMED {
            take(handler, Duration::ZERO)?;
        }
        times.push((thread_time() - before).as_secs_f64() * 1e9 / f64::from(TIMED));
        while home.next(Duration::ZERO)?.is_some() {}
    }
    capture.stop()?;
    let account = capture.account()?;
    let (total, chunks) = (account.total(), account.interfaces[0].queues[0].offloaded);
    let expected = u64::from(FILLS * (TIMED + 1));
    let right = whole && chunks == expected && total.delivered == accepted;
    let problem = (!right).then(|| format!("{chunks} of {expected} chunks taken by the buddy, {total:?}"));
    let [buddy_ns, home_ns] =
        [of_buddy, of_home].map(|times| Spread::of(times).map_or(f64::NAN, |all| all.median));
    say(
        round,
        "hand-over",
        format_args!(
            "{buddy_ns:.0} ns for a chunk of {packets_of_chunk} packets; {home_ns:.0} ns without a hand-over"
        ),
        problem.as_deref(),
    );
    Ok(Sample { round, packets_of_chunk, buddy_ns, home_ns, chunks, problem })
}

pub(super) fn bars(samples: &[Sample]) -> [Bar; 2] {
    let of = |size, round: u32| {
        samples.iter().find(move |one| one.round == round && one.packets_of_chunk == packets_of(size))
    };
    let rounds = samples.iter().map(|sample| sample.round).max().unwrap_or(0);
    let added = |round| Some(of(LARGE, round)?.buddy_ns - of(SMALL, round)?.buddy_ns);
    let more = (packets_of(LARGE) - packets_of(SMALL)) as f64;
    let at_most = |name, most, unit, measured| Bar::new(name, None, Wanted::AtMost(most), unit, measured);
    [
        at_most(
            "a chunk to a buddy and back",
            2.0,
            "us",
            Spread::of((1..=rounds).filter_map(|round| Some(of(LARGE, round)?.buddy_ns / 1e3))),
        ),
        // Some caches' worth of noise: what is done for a packet takes more.
        at_most(
            "and for each packet in it",
            0.5,
            "ns",
            Spread::of((1..=rounds).filter_map(|round| Some(added(round)? / more))),
        ),
    ]
}
