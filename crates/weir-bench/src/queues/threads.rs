//! Threads that handle packets, and how far they have come.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir::{Capture, Handler, Packet};

use super::field::PATIENCE;
use crate::failure::{Failure, failed};
use crate::process::{thread_time, thread_waited};

/// One thread for each handler.
#[derive(Debug)]
pub(crate) struct Threads {
    progress: Arc<[Progress]>,
    /// Each returns how long others had its processor.
    threads: Vec<JoinHandle<Result<Duration, weir::Error>>>,
}

/// How far a handler had come at the end of its last share. The handler writes; relaxed, since each value stands for
/// itself.
#[derive(Debug, Default)]
struct Progress {
    packets: AtomicU64,
    /// Nanoseconds of processor time.
    busy: AtomicU64,
    /// Nanoseconds since all have begun.
    at: AtomicU64,
}

/// What a handler has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) packets: u64,
    /// Processor time that this took.
    pub(crate) busy_seconds: f64,
    /// When the last was done, since the beginning.
    pub(super) seconds: f64,
    /// How long it was ready to run while others had its processor.
    pub(super) waited_seconds: f64,
}

impl Threads {
    /// Starts them, each with work of its own.
    pub(crate) fn start<W>(handlers: Vec<Handler>, works: Vec<W>) -> Self
    where
        W: FnMut(&Packet<'_>) + Send + 'static,
    {
        let progress: Arc<[Progress]> = handlers.iter().map(|_| Progress::default()).collect();
        let begun = Instant::now();
        let start = |(handler, mut work): (Handler, W)| {
            let progress = Arc::clone(&progress);
            thread::spawn(move || {
                let (busy, waited) = (thread_time(), thread_waited());
                let progress = &progress[handler.number()];
                handler.run(|share| {
                    share.packets().for_each(|packet| work(&packet));
                    let packets = share.len() as u64;
                    drop(share);
                    progress.packets.fetch_add(packets, Relaxed);
                    progress.busy.store(nanoseconds(thread_time() - busy), Relaxed);
                    progress.at.store(nanoseconds(begun.elapsed()), Relaxed);
                    ControlFlow::Continue(())
                })?;
                let times = waited.zip(thread_waited());
                Ok(times.map(|(before, after)| after.saturating_sub(before)).unwrap_or_default())
            })
        };
        let threads = handlers.into_iter().zip(works).map(start).collect();
        Self { progress, threads }
    }

    /// What they have done so far, except for times known only at the end.
    pub(super) fn so_far(&self) -> Vec<Done> {
        self.progress.iter().map(Progress::done).collect()
    }

    /// Waits until they have handled this many packets.
    pub(super) fn wait_for(&self, packets: u64) -> Result<(), Failure> {
        let (mut handled, mut since) = (0, Instant::now());
        while handled < packets {
            thread::sleep(Duration::from_millis(1));
            let now = self.progress.iter().map(|progress| progress.packets.load(Relaxed)).sum();
            if now > handled {
                (handled, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                return Err(Failure::new(format_args!("only {handled} of {packets} packets were handled")));
            }
        }
        Ok(())
    }

    /// Ends the capture, and waits until they have taken what is left.
    pub(crate) fn finish(self, capture: &mut Capture) -> Result<Vec<Done>, Failure> {
        capture.stop()?;
        let mut waited = Vec::new();
        for thread in self.threads {
            let ended = thread.join().map_err(|_panic| Failure::new("a handler panicked"))?;
            waited.push(ended.map_err(failed("handle packets"))?);
        }
        let done = self.progress.iter().zip(waited);
        Ok(done
            .map(|(progress, waited)| Done { waited_seconds: waited.as_secs_f64(), ..progress.done() })
            .collect())
    }
}

impl Progress {
    fn done(&self) -> Done {
        let seconds = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Relaxed)).as_secs_f64();
        Done {
            packets: self.packets.load(Relaxed),
            busy_seconds: seconds(&self.busy),
            seconds: seconds(&self.at),
            waited_seconds: 0.0,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
