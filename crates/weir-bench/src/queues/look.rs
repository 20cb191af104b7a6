//! The cost of flow order while a queue gets help: each packet is looked at once more, and each chunk is divided.

use std::thread;
use std::time::Duration;

use weir::{Handler, Order, Plan};

use super::Of;
use super::field::{Field, PATIENCE, settle};
use crate::experiment::Taken;
use crate::failure::{Failure, failed};
use crate::process::thread_time;
use crate::spread::median;

const FILLS: u32 = 10;

const ORDERS: [(&str, Order); 2] = [("order none", Order::None), ("order flow", Order::Flow)];

pub(super) fn series() -> Vec<&'static str> {
    ORDERS.map(|(name, _)| name).to_vec()
}

pub(super) fn measure(field: &Field) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    for (name, order) in ORDERS {
        // In a thread of its own: handlers keep the thread that calls them on their processor.
        let apart = thread::scope(|scope| scope.spawn(|| turn(field, order)).join());
        let (time, problem) = apart.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Of { taken: &mut taken, series: name }.add("packet", time);
        taken.problems.extend(problem);
    }
    Ok(taken)
}

/// Two handlers that look at no packet, asked in turn by one thread: nanoseconds of processor time a packet, the median of all fills
/// of the pool.
fn turn(field: &Field, order: Order) -> Result<(f64, Option<String>), Failure> {
    let mut generator = field.generator(&field.traffic()?, 0, 0)?;
    let mut capture = field.open()?;
    let plan = Plan::new(2).pin([field.processor(); 2]).advanced(1).order(order);
    let mut handlers = <[Handler; 2]>::try_from(capture.handlers(&plan)?).expect("two were asked for");
    let (mut times, mut accepted) = (Vec::new(), 0);
    for _ in 0..FILLS {
        let sent = generator.send(field.room(field.chunks)).map_err(failed("send"))?;
        accepted += sent.accepted;
        settle(&mut capture, accepted)?;
        let (mut packets, before) = (0, thread_time());
        // The buddy first: it may take a moment until it hears of the chunk.
        let mut wait = PATIENCE;
        while packets < sent.accepted {
            let taken = packets;
            for handler in handlers.iter_mut().rev() {
                packets += handler.next(wait)?.taken().map_or(0, |share| share.len() as u64);
                wait = Duration::ZERO;
            }
            if taken == packets {
                wait = PATIENCE;
            }
        }
        times.push((thread_time() - before).as_secs_f64() * 1e9 / packets as f64);
    }
    capture.stop()?;
    let account = capture.stats()?;
    let (total, offloaded) = (account.total(), account.interfaces[0].queues[0].offloaded);
    let right = total.delivered == accepted && offloaded > 0;
    let problem = (!right).then(|| format!("{accepted} accepted, {offloaded} chunks taken over, {total:?}"));
    Ok((median(times), problem))
}
