//! The interfaces of a capture and their namespaces: the part that a capture shares with its observers.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use weir_sys::link::LinkChange;

use super::interface::CaptureInterface;
use crate::Error;
use crate::live::handlers::WorkerGroup;
use crate::live::interface::event::{Event, Heard, Log};
use crate::live::merge::OrderCounts;
use crate::live::namespace::context::{NamespaceContext, Sockets};
use crate::live::side_by_side::drop_side_by_side;
use crate::stats::CaptureStats;

/// State that a capture shares with its observers. The capturing thread locks it once a second and for events, but never
/// for a packet.
#[derive(Debug)]
pub(crate) struct Shared {
    ports: Mutex<CaptureInterfaces>,
    group: OnceLock<Arc<WorkerGroup>>,
    order: Option<Arc<OrderCounts>>,
}

/// The interfaces, until the capture is dropped.
#[derive(Debug)]
pub(crate) struct CaptureInterfaces {
    pub(crate) list: Vec<CaptureInterface>,
    contexts: Vec<NamespaceContext>,
    log: Log,
    began: Instant,
    ended: Option<Instant>,
    /// The last account of a dropped capture.
    last: Option<CaptureStats>,
}

impl Shared {
    /// Shares `ports`; `CaptureInterface::context` is an index into `contexts`.
    pub(crate) fn new(
        ports: Vec<CaptureInterface>,
        contexts: Vec<NamespaceContext>,
        order: Option<Arc<OrderCounts>>,
    ) -> Self {
        let mut log = Log::default();
        ports.iter().filter_map(CaptureInterface::first_event).for_each(|event| log.push(event));
        let (began, ended, last) = (Instant::now(), None, None);
        let ports = Mutex::new(CaptureInterfaces { list: ports, contexts, log, began, ended, last });
        Self { ports, group: OnceLock::new(), order }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, CaptureInterfaces> {
        // A panic in another thread leaves nothing half done here.
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the queues were handed over to `group`.
    pub(crate) fn give_to(&self, group: &Arc<WorkerGroup>) {
        let _ = self.group.set(Arc::clone(group)); // queues are handed over once
    }

    /// Returns the counters.
    pub(crate) fn stats(&self) -> Result<CaptureStats, Error> {
        let mut ports = self.lock();
        if let Some(last) = &ports.last {
            return Ok(last.clone());
        }
        let (elapsed, interfaces) = (ports.elapsed(), ports.stats()?);
        Ok(CaptureStats {
            elapsed,
            interfaces,
            handlers: self.group.get().map(|group| group.stats()).unwrap_or_default(),
            time_order: self.order.as_ref().map(|order| order.stats()),
        })
    }

    /// Returns the events after `heard`.
    pub(crate) fn events(&self, heard: &mut Heard) -> Vec<Event> {
        self.lock().log.since(heard)
    }

    /// Ends the capture and releases everything except the last account.
    pub(crate) fn close(&self) {
        // If detaching fails, closing the descriptors below detaches as well.
        let _ = self.lock().stop();
        let last = self.stats().unwrap_or_default();
        let mut ports = self.lock();
        ports.last = Some(last);
        ports.release();
    }
}

impl CaptureInterfaces {
    /// Releases everything, several interfaces at a time: each socket that is closed waits for a grace period.
    pub(crate) fn release(&mut self) {
        drop_side_by_side(std::mem::take(&mut self.list));
        self.contexts.clear();
    }

    /// Detaches all sources: nothing more arrives.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for port in &mut self.list {
            result = port.source.detach().and(result);
        }
        // One grace period is enough for all.
        if let Some(settled) = self.list.iter().find_map(|port| port.source.settle()) {
            result = settled.map_err(Error::from).and(result);
        }
        for port in &mut self.list {
            result = port.source.finish().and(result);
            if let Some(rules) = port.source.rules() {
                result = rules.stop(false).and(result);
            }
        }
        self.ended.get_or_insert_with(Instant::now);
        result
    }

    /// Does the work that is due once a second. Returns the sockets of namespaces that are gone.
    pub(crate) fn check(&mut self) -> Result<Vec<Sockets>, Error> {
        self.listen()?;
        let mut closed = Vec::new();
        for place in 0..self.contexts.len() {
            if self.contexts[place].is_over() {
                for port in self.list.iter_mut().filter(|port| port.context == place && !port.is_gone()) {
                    self.log.push(port.end()?);
                }
                closed.extend(self.contexts[place].close());
            }
        }
        for port in self.list.iter_mut().filter(|port| !port.is_gone()) {
            port.source.tick()?;
            if let Some(rules) = port.source.rules() {
                rules.sweep()?;
            }
        }
        Ok(closed)
    }

    /// Processes the kernel's messages about interfaces. Returns whether they include events.
    pub(crate) fn listen(&mut self) -> Result<bool, Error> {
        let before = self.log.len();
        for (place, context) in self.contexts.iter_mut().enumerate() {
            for change in context.changes()? {
                let links = if change == LinkChange::Missed { Some(context.links()?) } else { None };
                for port in self.list.iter_mut().filter(|port| port.context == place) {
                    let events = match &links {
                        Some(links) => port.look(links)?,
                        None => port.hear(&change)?,
                    };
                    events.into_iter().for_each(|event| self.log.push(event));
                }
            }
        }
        Ok(self.log.len() > before)
    }

    /// Returns the descriptors that are readable when there are messages.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.contexts.iter().filter_map(NamespaceContext::fd)
    }

    /// Whether every interface is gone.
    pub(crate) fn are_gone(&self) -> bool {
        self.list.iter().all(CaptureInterface::is_gone)
    }

    fn elapsed(&self) -> Duration {
        self.ended.unwrap_or_else(Instant::now) - self.began
    }

    fn stats(&mut self) -> Result<Vec<crate::InterfaceStats>, Error> {
        let links = self.contexts.iter().map(NamespaceContext::links).collect::<Result<Vec<_>, Error>>()?;
        Ok(self.list.iter_mut().map(|port| port.stats(&links[port.context])).collect())
    }
}
