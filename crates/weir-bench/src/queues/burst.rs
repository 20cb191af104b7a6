//! The longest burst without loss. While `a` packets a second come to a handler that can do `s`, a pool with room for C packets
//! overflows after C a / (a - s) of them.
//!
//! One longer burst finds it: what was captured before the first loss is the longest burst that loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::getpid;
use weir::Packet;
use weir_lab::{Checker, Traffic};

use super::Of;
use super::field::{Field, QUEUES, SIZE, settle};
use super::threads::Threads;
use crate::experiment::{Judged, Outcome, Taken};
use crate::failure::{Failure, failed};
use crate::process::Memory;
use crate::units;
use crate::wanted::Wanted;

const HELD: &str = "burst, handler held up";
const HALF: &str = "burst, handler half as fast";
/// Bytes of a WireCAP cell, which holds one packet.
const CELL: f64 = 2048.0;
/// How many times as long as the law says the burst is.
const LONGER: f64 = 2.0;

pub(super) fn series() -> Vec<&'static str> {
    vec![HELD, HALF]
}

/// `rate`: what one handler can do.
pub(super) fn measure(field: &Field, rate: f64) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    turn(field, None, &mut taken)?;
    turn(field, Some(units::whole(2.0 * rate)), &mut taken)?;
    Ok(taken)
}

/// `arriving`: packets a second, twice as many as the handler can do; `None`: it does nothing until they have come, at the rate
/// of the machine.
fn turn(field: &Field, arriving: Option<u64>, taken: &mut Taken) -> Result<(), Failure> {
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
    let total = capture.stats()?.total();
    let longest = (total.lost > 0 && sent.refused == 0).then(|| unbroken.0.load(Relaxed));
    let seconds = sent.elapsed.as_secs_f64();
    let (arriving, handled) = (sent.accepted as f64 / seconds, handled as f64 / seconds);
    let longer_than = arriving / (arriving - handled);
    let right = total.seen == sent.accepted
        && total.seen == total.delivered + total.lost
        && done[0].packets == total.delivered;
    taken.problems.extend((!right).then(|| format!("{handler}: {sent:?}, {total:?}")));
    let mut of = Of { taken, series: handler };
    if let Some(longest) = longest {
        of.add("longest", longest as f64);
    }
    of.add("law", room * longer_than);
    of.add("law-of-cells", memory as f64 / CELL * longer_than);
    Ok(())
}

/// How many packets were handled before one was missing, from number 0 on. One handler writes.
#[derive(Debug, Default)]
struct Unbroken(Arc<AtomicU64>);

impl Unbroken {
    /// Counted work.
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

pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let bar = |handler, law, than, least| {
        let laws = outcome.rounds_of(handler, law, None);
        let longest = outcome.rounds_of(handler, "longest", None).into_iter();
        let times = longest.filter_map(|(round, longest)| {
            let (_, law) = laws.iter().find(|(other, _)| *other == round)?;
            Some(longest / law)
        });
        Judged::new(&format!("{handler} / {than}, {SIZE} B"), Wanted::AtLeast(least), "times", times)
    };
    let of = |handler| {
        [bar(handler, "law", "the law", 0.95), bar(handler, "law-of-cells", "the law of cells", 15.0)]
    };
    [HELD, HALF].into_iter().flat_map(of).collect()
}
