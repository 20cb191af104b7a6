//! The interfaces of a capture and their namespaces: the part that a capture shares with its observers.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use weir_sys::link::LinkChange;

use crate::Error;
use crate::account::Account;
use crate::live::event::{Event, Heard, Log};
use crate::live::handlers::Team;
use crate::live::merge::OrderCounts;
use crate::live::port::Port;
use crate::live::side_by_side::drop_side_by_side;
use crate::live::site::{Site, Sockets};

/// State that a capture shares with its observers. The capturing thread locks it once a second and for events, but never
/// for a packet.
#[derive(Debug)]
pub(crate) struct Shared {
    ports: Mutex<Ports>,
    team: OnceLock<Arc<Team>>,
    order: Option<Arc<OrderCounts>>,
}

/// The interfaces, until the capture is dropped.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) list: Vec<Port>,
    sites: Vec<Site>,
    log: Log,
    began: Instant,
    ended: Option<Instant>,
    /// The last account of a dropped capture.
    last: Option<Account>,
}

impl Shared {
    /// Shares `ports`; `Port::site` is an index into `sites`.
    pub(crate) fn new(ports: Vec<Port>, sites: Vec<Site>, order: Option<Arc<OrderCounts>>) -> Self {
        let mut log = Log::default();
        ports.iter().filter_map(Port::first_event).for_each(|event| log.push(event));
        let (began, ended, last) = (Instant::now(), None, None);
        let ports = Mutex::new(Ports { list: ports, sites, log, began, ended, last });
        Self { ports, team: OnceLock::new(), order }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ports> {
        // A panic in another thread leaves nothing half done here.
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the queues were handed over to `team`.
    pub(crate) fn give_to(&self, team: &Arc<Team>) {
        let _ = self.team.set(Arc::clone(team)); // queues are handed over once
    }

    /// Returns the counters.
    pub(crate) fn account(&self) -> Result<Account, Error> {
        let mut ports = self.lock();
        if let Some(last) = &ports.last {
            return Ok(last.clone());
        }
        let (elapsed, interfaces) = (ports.elapsed(), ports.accounts()?);
        Ok(Account {
            elapsed,
            interfaces,
            handlers: self.team.get().map(|team| team.account()).unwrap_or_default(),
            time_order: self.order.as_ref().map(|order| order.account()),
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
        let last = self.account().unwrap_or_default();
        let mut ports = self.lock();
        ports.last = Some(last);
        ports.release();
    }
}

impl Ports {
    /// Releases everything, several interfaces at a time: each socket that is closed waits for a grace period.
    pub(crate) fn release(&mut self) {
        drop_side_by_side(std::mem::take(&mut self.list));
        self.sites.clear();
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
        }
        self.ended.get_or_insert_with(Instant::now);
        result
    }

    /// Does the work that is due once a second. Returns the sockets of namespaces that are gone.
    pub(crate) fn check(&mut self) -> Result<Vec<Sockets>, Error> {
        self.listen()?;
        let mut closed = Vec::new();
        for place in 0..self.sites.len() {
            if self.sites[place].is_over() {
                for port in self.list.iter_mut().filter(|port| port.site == place && !port.is_gone()) {
                    self.log.push(port.end()?);
                }
                closed.extend(self.sites[place].close());
            }
        }
        for port in self.list.iter_mut().filter(|port| !port.is_gone()) {
            port.source.tick()?;
        }
        Ok(closed)
    }

    /// Processes the kernel's messages about interfaces. Returns whether they include events.
    pub(crate) fn listen(&mut self) -> Result<bool, Error> {
        let before = self.log.len();
        for (place, site) in self.sites.iter_mut().enumerate() {
            for change in site.changes()? {
                let links = if change == LinkChange::Missed { Some(site.links()?) } else { None };
                for port in self.list.iter_mut().filter(|port| port.site == place) {
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
        self.sites.iter().filter_map(Site::fd)
    }

    /// Whether every interface is gone.
    pub(crate) fn are_gone(&self) -> bool {
        self.list.iter().all(Port::is_gone)
    }

    fn elapsed(&self) -> Duration {
        self.ended.unwrap_or_else(Instant::now) - self.began
    }

    fn accounts(&mut self) -> Result<Vec<crate::InterfaceAccount>, Error> {
        let links = self.sites.iter().map(Site::links).collect::<Result<Vec<_>, Error>>()?;
        Ok(self.list.iter_mut().map(|port| port.account(&links[port.site])).collect())
    }
}
