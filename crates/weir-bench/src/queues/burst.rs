//! The longest burst without loss. While `a` packets a second come to a handler that can do `s`, a pool with room for C packets
//! overflows behind C a / (a - s) of them.
//!
//! It is found by one burst that is longer: what was captured before the first loss is the longest burst that loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::getpid;
use serde::Serialize;
use weir::Packet;
use weir_lab::{Checker, Traffic};

use super::field::{Field, QUEUES, SIZE, settle};
use super::say;
use super::threads::Threads;
use crate::bars::{Bar, Wanted};
use crate::failed;
use crate::failure::Failure;
use crate::process::Memory;
use crate::spread::Spread;
use crate::units;

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    handler: &'static str,
    round: u32,
    /// Packets a second that came.
    arriving: f64,
    /// Packets a second that were handled meanwhile.
    handled: f64,
    /// Packets that came before the first that was lost; none where they came too slowly for that, or did not come in one run.
    longest: Option<u64>,
    /// What the law says of this pool.
    law: f64,
    /// And of as much memory in cells.
    law_of_cells: f64,
    /// Bytes of the queue's pool, with all that the kernel and the process share for it.
    memory: u64,
    pub(super) problem: Option<String>,
}

const HELD: &str = "held up";
const HALF: &str = "half as fast";
/// Bytes of a cell of WireCAP, which holds one packet.
const CELL: f64 = 2048.0;
/// How much longer than the law says the burst is.
const LONGER: f64 = 2.0;

/// `rate`: what one handler can do.
pub(super) fn measure(field: &Field, round: u32, rate: f64) -> Result<[Sample; 2], Failure> {
    Ok([turn(field, round, None)?, turn(field, round, Some(units::whole(2.0 * rate)))?])
}

/// `arriving`: packets a second, twice as many as the handler can do; `None`: it does nothing until they have come, at the rate
/// of the machine.
fn turn(field: &Field, round: u32, arriving: Option<u64>) -> Result<Sample, Failure> {
    let room = field.room(field.chunks) as f64;
    let traffic = field.traffic()?;
    let (handler, law, mut generator) = match arriving {
        None => (HELD, room, field.generator(&traffic, 0, 0)?),
        Some(rate) => (HALF, 2.0 * room, field.paced(&traffic, rate)?),
    };
    let before = shared_memory()?;
    let mut capture = field.open()?;
    let memory = (shared_memory()? - before) / u64::from(QUEUES);
    let handlers = capture.handlers(&field.plan(1))?;
    let unbroken = Unbroken::default();
    let work = field.work(&capture)?;
    let start = || Threads::start(handlers, vec![unbroken.of(&traffic, work)]);
    let mut send = || generator.send(units::whole(LONGER * law)).map_err(failed("send"));
    let (sent, handled, threads) = if arriving.is_none() {
        let sent = send()?;
        (sent, 0, start())
    } else {
        let threads = start();
        let sent = send()?;
        (sent, threads.so_far()[0].packets, threads)
    };
    settle(&mut capture, sent.accepted)?;
    let done = threads.finish(&mut capture)?;
    let total = capture.account()?.total();
    let longest = (total.lost > 0 && sent.refused == 0).then(|| unbroken.0.load(Relaxed));
    let seconds = sent.elapsed.as_secs_f64();
    let (arriving, handled) = (sent.accepted as f64 / seconds, handled as f64 / seconds);
    let longer_than = arriving / (arriving - handled);
    let right = total.seen == sent.accepted
        && total.seen == total.delivered + total.lost
        && done[0].packets == total.delivered;
    let problem = (!right).then(|| format!("{sent:?}, {total:?}"));
    let (law, law_of_cells) = (room * longer_than, memory as f64 / CELL * longer_than);
    say(
        round,
        &format!("burst, handler {handler}"),
        format_args!(
            "{} packets without loss; predicted: {}, and {} for {} in cells",
            longest.map_or_else(|| "all".to_owned(), units::grouped),
            units::grouped(units::whole(law)),
            units::grouped(units::whole(law_of_cells)),
            units::bytes(memory)
        ),
        problem.as_deref(),
    );
    Ok(Sample { handler, round, arriving, handled, longest, law, law_of_cells, memory, problem })
}

/// How many packets were handled before one was missing, from number 0 on. One handler writes.
#[derive(Debug, Default)]
struct Unbroken(Arc<AtomicU64>);

impl Unbroken {
    /// Work that is counted.
    fn of(
        &self,
        traffic: &Traffic,
        mut work: impl FnMut(&Packet<'_>) + Send + 'static,
    ) -> impl FnMut(&Packet<'_>) + Send + 'static {
        let (mut checker, run) = (Checker::new(traffic), Arc::clone(&self.0));
        move |packet: &Packet<'_>| {
            let next = run.load(Relaxed);
            if checker.check(packet.data) == Ok(next) {
                run.store(next + 1, Relaxed);
            }
            work(packet);
        }
    }
}

/// Bytes that this process and the kernel share for packets.
fn shared_memory() -> Result<u64, Failure> {
    Memory::of(getpid()).map(|memory| memory.shared).map_err(failed("read /proc/self/smaps"))
}

pub(super) fn bars(samples: &[Sample]) -> Vec<Bar> {
    let bar = |handler: &str, than: &str, least, by: fn(&Sample) -> f64| {
        let of = samples.iter().filter(|sample| sample.handler == handler);
        let times = Spread::of(of.filter_map(|sample| Some(sample.longest? as f64 / by(sample))));
        Bar::new(
            &format!("burst, handler {handler} / {than}"),
            Some(SIZE),
            Wanted::AtLeast(least),
            "times",
            times,
        )
    };
    [HELD, HALF]
        .into_iter()
        .flat_map(|handler| {
            [
                bar(handler, "the law", 0.95, |sample| sample.law),
                bar(handler, "the law of cells", 15.0, |sample| sample.law_of_cells),
            ]
        })
        .collect()
}
