//! The open resources of a capture: ports with their queues and bells, and the namespaces they are in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::link::LinkChange;

use crate::Error;
use crate::chunk::Chunk;
use crate::event::Event;
use crate::merge::Merge;
use crate::outlet::Outlet;
use crate::patience::{Patience, Queues, Woken, timespec};
use crate::port::Port;
use crate::site::Site;
use crate::source::{Bell, Ready};

/// Events kept for [`crate::Capture::events`].
const MOST_EVENTS: usize = 1000;

/// The open resources of a capture.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) ports: Vec<Port>,
    pub(crate) sites: Vec<Site>,
    /// The outlets of all ports, port by port.
    pub(crate) outlets: Vec<Outlet>,
    pub(crate) bells: Vec<Arc<dyn Bell>>,
    /// Events not yet reported.
    pub(crate) events: Vec<Event>,
}

impl Opened {
    /// Runs once a second: does the sources' periodic work, and looks for events of interfaces and namespaces.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.listen()?;
        for place in 0..self.sites.len() {
            if self.sites[place].is_over() {
                for port in self.ports.iter_mut().filter(|port| port.site == place && !port.is_gone()) {
                    self.events.push(port.end()?);
                }
                self.sites[place].close();
            }
        }
        for port in self.ports.iter_mut().filter(|port| !port.is_gone()) {
            port.source.tick()?;
        }
        Ok(())
    }

    /// Returns the next packets in timestamp order, once it is certain that no older ones can come.
    pub(crate) fn next_by_time(
        &mut self,
        merge: &mut Merge,
        patience: &mut Patience,
        deadline: Instant,
    ) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(chunk) = merge.next() {
                return Ok(Some(chunk));
            }
            merge.look(&mut self.outlets, Instant::now)?;
            merge.relieve(&self.outlets);
            if merge.is_due() {
                continue;
            }
            let due = merge.due();
            match patience.next(self, due.map_or(deadline, |due| due.min(deadline)))? {
                Some(chunk) => merge.put(chunk),
                None if due.is_some_and(|due| due <= Instant::now()) => {}
                None => return Ok(None),
            }
        }
    }

    /// Processes the kernel's messages about interfaces.
    fn listen(&mut self) -> Result<(), Error> {
        for (place, site) in self.sites.iter_mut().enumerate() {
            for change in site.changes()? {
                let links = if change == LinkChange::Missed { Some(site.links()?) } else { None };
                for port in self.ports.iter_mut().filter(|port| port.site == place) {
                    self.events.extend(match &links {
                        Some(links) => port.look(links)?,
                        None => port.hear(&change)?,
                    });
                }
            }
        }
        let forgotten = self.events.len().saturating_sub(MOST_EVENTS);
        self.events.drain(..forgotten);
        Ok(())
    }
}

impl Queues for Opened {
    type Taken = Chunk;

    fn count(&self) -> usize {
        self.outlets.len()
    }

    fn ready(&mut self, queue: usize) -> Result<Ready, Error> {
        self.outlets[queue].ready()
    }

    fn take(&mut self, queue: usize) -> Result<Option<Chunk>, Error> {
        self.outlets[queue].take()
    }

    fn arm(&mut self, bytes: u32) -> bool {
        self.outlets.iter_mut().for_each(|outlet| outlet.queue.wake_after(bytes));
        true
    }

    fn disarm(&mut self) {
        self.outlets.iter_mut().for_each(|outlet| outlet.queue.wake_never());
        self.bells.iter().for_each(|bell| bell.quiet());
    }

    fn sleep(&mut self, longest: Duration) -> Result<Woken, Error> {
        let bells = self.bells.iter().map(|bell| bell.fd());
        let fds = bells.chain(self.sites.iter().filter_map(Site::fd));
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timespec(longest))) {
            Ok(0) => return Ok(Woken::Time),
            Ok(_) if fds.iter().skip(self.bells.len()).all(|fd| fd.revents().is_empty()) => {
                return Ok(Woken::Bell);
            }
            Ok(_) => {}
            // The caller wants to know about a signal.
            Err(Errno::INTR) => return Ok(Woken::News),
            Err(error) => return Err(CallError::new("wait for packets", error).into()),
        }
        self.listen()?;
        Ok(if self.events.is_empty() { Woken::Time } else { Woken::News })
    }
}
