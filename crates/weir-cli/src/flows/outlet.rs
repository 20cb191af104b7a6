//! An outlet: a thread that writes flows, and a queue in front of it with a bound, so that it never holds up a capture.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use weir::flows::Flow;
use weir::flows::export::Missed;

use crate::failure::Failure;

/// The most flows that wait.
const MOST: usize = 100_000;

/// Where flows go.
pub(super) trait Destination: Send {
    /// Writes some flows.
    fn send(&mut self, flows: &[Flow]) -> io::Result<()>;

    /// Called where no flows wait, a few times a second.
    fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Called once, behind the last flow.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns what is not sent of the flows that were written. Asked after each of the calls above.
    fn unsent(&self) -> Unsent {
        Unsent::default()
    }

    /// Told before each of the other calls which flows have found no room until then, since the start.
    fn refused(&mut self, _refused: Missed) {}
}

/// Flows that a destination was given and has not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unsent {
    /// Those that it will send.
    pub(super) waiting: u64,
    /// Those that it has lost, since the start.
    pub(super) lost: u64,
}

/// Between two calls of [`Destination::rest`].
const REST: Duration = Duration::from_millis(250);

/// What became of the flows that an outlet was given: `given = sent + queued + lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct OutletCounts {
    pub(super) given: u64,
    pub(super) sent: u64,
    pub(super) queued: u64,
    pub(super) lost: u64,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    flows: VecDeque<Flow>,
    counts: OutletCounts,
    /// Flows that have found no room.
    refused: Missed,
    /// Flows that the destination was given, and those of them that it has lost.
    handed: u64,
    lost_there: u64,
    /// Nothing more is coming.
    closed: bool,
    /// Why nothing more is written.
    failed: Option<io::Error>,
    /// It has failed, and perhaps somebody has taken the reason.
    is_over: bool,
}

impl Waiting {
    /// Counts what became of the flows, more of which the destination was given.
    fn settle(&mut self, more: u64, unsent: Unsent) {
        self.handed += more;
        let sent = self.handed - unsent.waiting - unsent.lost;
        let lost = unsent.lost - mem::replace(&mut self.lost_there, unsent.lost);
        self.counts.queued -= sent - self.counts.sent + lost;
        self.counts.sent = sent;
        self.counts.lost += lost;
    }
}

/// Hands flows to the thread. Several threads can have it.
#[derive(Clone, Debug)]
pub(super) struct Outlet(Arc<Shared>);

/// Hands flows to all outlets.
pub(super) fn give_all(outlets: &[Outlet], flows: Vec<Flow>, give: fn(&Outlet, Vec<Flow>)) {
    let Some((first, others)) = outlets.split_first() else { return };
    others.iter().for_each(|outlet| give(outlet, flows.clone()));
    give(first, flows);
}

/// The end of an outlet that waits for the thread.
#[derive(Debug)]
pub(super) struct Writing {
    outlet: Outlet,
    /// `None`: it has been waited for.
    thread: Option<JoinHandle<()>>,
}

impl Outlet {
    /// Starts the thread.
    pub(super) fn start(mut destination: impl Destination + 'static) -> Result<Writing, Failure> {
        let outlet = Self(Arc::default());
        let theirs = outlet.clone();
        let thread = weir_sys::thread::spawn_deaf("weir-flows", move || theirs.write(&mut destination));
        let failed = |error| Failure::new(format_args!("cannot start a thread for flows: {error}"));
        Ok(Writing { outlet, thread: Some(thread.map_err(failed)?) })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over flows. Those that find no room are lost, and counted.
    pub(super) fn give(&self, flows: Vec<Flow>) {
        self.put(flows, self.waiting());
    }

    /// The same, but waits for room: a file can wait, and so can what is left in the end.
    pub(super) fn give_patiently(&self, mut flows: Vec<Flow>) {
        while !flows.is_empty() {
            let rest = flows.split_off(flows.len().min(MOST / 2));
            let mut waiting = self.waiting();
            while waiting.flows.len() + flows.len() > MOST && !waiting.is_over {
                waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            self.put(mem::replace(&mut flows, rest), waiting);
        }
    }

    fn put(&self, mut flows: Vec<Flow>, mut waiting: MutexGuard<'_, Waiting>) {
        let room = if waiting.is_over { 0 } else { MOST.saturating_sub(waiting.flows.len()) };
        waiting.counts.given += flows.len() as u64;
        let room = room.min(flows.len());
        waiting.counts.lost += (flows.len() - room) as u64;
        flows.drain(room..).for_each(|flow| waiting.refused.add(&flow));
        waiting.counts.queued += flows.len() as u64;
        waiting.flows.extend(flows);
        drop(waiting);
        self.0.changed.notify_all();
    }

    /// Returns why nothing more is written, once.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.waiting().failed.take()
    }

    pub(super) fn counts(&self) -> OutletCounts {
        self.waiting().counts
    }

    fn write(&self, destination: &mut impl Destination) {
        while let Some(flows) = self.next() {
            destination.refused(self.waiting().refused);
            let sent = if flows.is_empty() { destination.rest() } else { destination.send(&flows) };
            let mut waiting = self.waiting();
            if let Err(error) = sent {
                return self.fail(waiting, error);
            }
            waiting.settle(flows.len() as u64, destination.unsent());
        }
        destination.refused(self.waiting().refused);
        let finished = destination.finish();
        let mut waiting = self.waiting();
        match finished {
            Ok(()) => waiting.settle(0, destination.unsent()),
            Err(error) => self.fail(waiting, error),
        }
    }

    /// Waits for flows; none if there are none for a while. `None`: nothing more is coming.
    fn next(&self) -> Option<Vec<Flow>> {
        let mut waiting = self.waiting();
        if waiting.flows.is_empty() && !waiting.closed {
            waiting = self.0.changed.wait_timeout(waiting, REST).unwrap_or_else(PoisonError::into_inner).0;
        }
        if waiting.flows.is_empty() && waiting.closed {
            return None;
        }
        let flows = mem::take(&mut waiting.flows).into();
        drop(waiting);
        self.0.changed.notify_all();
        Some(flows)
    }

    fn fail(&self, mut waiting: MutexGuard<'_, Waiting>, error: io::Error) {
        waiting.flows.clear();
        waiting.counts.lost += mem::take(&mut waiting.counts.queued);
        (waiting.failed, waiting.is_over) = (Some(error), true);
        drop(waiting);
        self.0.changed.notify_all();
    }
}

impl Writing {
    /// Returns what flows are handed to.
    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    /// Waits until everything is written.
    pub(super) fn finish(&mut self) -> (OutletCounts, io::Result<()>) {
        self.outlet.waiting().closed = true;
        self.outlet.0.changed.notify_all();
        let ended = self.thread.take().map(JoinHandle::join);
        let result = match (ended, self.outlet.failure()) {
            (Some(Err(_)), _) => Err(io::Error::other("the thread that writes flows has panicked")),
            (_, Some(error)) => Err(error),
            (_, None) => Ok(()),
        };
        (self.outlet.counts(), result)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use weir::flows::{Observation, Settings, Table};

    use super::*;

    /// Writes when it is told to.
    struct Slow(Receiver<io::Result<()>>, Arc<Mutex<Missed>>);

    impl Destination for Slow {
        fn send(&mut self, _flows: &[Flow]) -> io::Result<()> {
            self.0.recv().unwrap_or(Ok(()))
        }

        fn refused(&mut self, refused: Missed) {
            *self.1.lock().unwrap() = refused;
        }
    }

    /// So many flows, all of them the same.
    pub(in super::super) fn flows(number: usize) -> Vec<Flow> {
        let settings = Settings { flows: 1, ..Settings::default() };
        let mut table = Table::new(&settings).expect("little memory");
        let mut frame = [0; 42];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        (frame[17], frame[23]) = (28, 17);
        let mut flows = Vec::new();
        let packet = Observation { time: 1, interface: 0, link_type: 1, frame: &frame, length: 42 };
        table.add(&packet, &mut |flow| flows.push(flow));
        table.end_all(&mut |flow| flows.push(flow));
        vec![flows.remove(0); number]
    }

    #[test]
    fn each_flow_is_sent_or_lost() {
        let (tell, told) = channel();
        let refused = Arc::<Mutex<Missed>>::default();
        let mut writing = Outlet::start(Slow(told, Arc::clone(&refused))).expect("a thread");
        let outlet = writing.outlet().clone();
        outlet.give(flows(1));
        // The thread has it, or soon will: so many more fit, and one does not.
        while !outlet.waiting().flows.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        outlet.give(flows(MOST + 1));
        let counts = outlet.counts();
        assert_eq!(
            (counts.given, counts.sent, counts.queued, counts.lost),
            (MOST as u64 + 2, 0, MOST as u64 + 1, 1)
        );
        drop(tell);
        let (counts, result) = writing.finish();
        assert!(result.is_ok());
        assert_eq!((counts.sent, counts.queued, counts.lost), (MOST as u64 + 1, 0, 1));
        let mut one = Missed::default();
        one.add(&flows(1)[0]);
        assert_eq!(*refused.lock().unwrap(), one, "the destination is told before the end");
    }

    /// Keeps each flow until the next, and loses every third.
    #[derive(Default)]
    struct Lossy(Unsent);

    impl Destination for Lossy {
        fn send(&mut self, flows: &[Flow]) -> io::Result<()> {
            let handed = flows.len() as u64;
            self.0 = Unsent { waiting: 1, lost: self.0.lost + self.0.waiting + handed / 3 };
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            self.0 = Unsent { waiting: 0, lost: self.0.lost };
            Ok(())
        }

        fn unsent(&self) -> Unsent {
            self.0
        }
    }

    #[test]
    fn flows_that_a_destination_keeps_or_loses_are_not_sent() {
        let mut writing = Outlet::start(Lossy::default()).expect("a thread");
        let outlet = writing.outlet().clone();
        let settled = |expected: [u64; 4]| loop {
            let OutletCounts { given, sent, queued, lost } = outlet.counts();
            assert_eq!(given, sent + queued + lost);
            if [given, sent, queued, lost] == expected {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        outlet.give(flows(9));
        settled([9, 5, 1, 3]);
        outlet.give(flows(3));
        settled([12, 6, 1, 5]);
        let (counts, result) = writing.finish();
        assert!(result.is_ok());
        assert_eq!((counts.given, counts.sent, counts.queued, counts.lost), (12, 7, 0, 5));
    }

    #[test]
    fn who_is_patient_loses_nothing() {
        let (tell, told) = channel();
        drop(tell);
        let mut writing = Outlet::start(Slow(told, Arc::default())).expect("a thread");
        writing.outlet().give_patiently(flows(MOST * 3 + 1));
        let (counts, result) = writing.finish();
        assert!(result.is_ok());
        assert_eq!((counts.given, counts.sent, counts.lost), (MOST as u64 * 3 + 1, MOST as u64 * 3 + 1, 0));
    }

    #[test]
    fn after_a_failure_all_are_lost() {
        let (tell, told) = channel();
        let mut writing = Outlet::start(Slow(told, Arc::default())).expect("a thread");
        writing.outlet().give(flows(3));
        tell.send(Err(io::ErrorKind::BrokenPipe.into())).expect("it waits");
        let outlet = writing.outlet().clone();
        while !outlet.waiting().is_over {
            std::thread::sleep(Duration::from_millis(1));
        }
        outlet.give(flows(2));
        outlet.give_patiently(flows(MOST + 1));
        let (counts, result) = writing.finish();
        assert_eq!(result.map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
        assert_eq!((counts.sent, counts.queued, counts.lost), (0, 0, counts.given));
    }
}
