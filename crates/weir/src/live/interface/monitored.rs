//! One interface outside of a capture: its properties, and changes to it.

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::link::{Link, LinkChange};
use weir_sys::packet::Promiscuous;

use super::Device;
use super::event::{Change, Event, Known};
use crate::live::error::NEEDS;
use crate::live::namespace::context::{NamespaceContext, inside};
use crate::live::request::Wanted;
use crate::stats::NicCounters;
use crate::{Error, Namespace};

/// An interface that is being watched.
#[derive(Debug)]
pub(crate) struct MonitoredInterface {
    id: u32,
    pub(crate) namespace: Option<Namespace>,
    pub(crate) device: Device,
    pub(crate) context: NamespaceContext,
    known: Known,
    /// Its state, with the device's own counters, when it was found and when last looked at.
    pub(crate) began: Link,
    pub(crate) now: Link,
    gone: bool,
    promiscuous: Option<Promiscuous>,
}

impl MonitoredInterface {
    /// Finds an interface, which is not `any`, and begins to watch it. Its events have the number `id`.
    pub(crate) fn find(wanted: &Wanted, id: u32) -> Result<Self, Error> {
        let context = NamespaceContext::open(wanted.namespace.as_ref())?;
        let device = inside(wanted.namespace.as_ref(), || Device::find(wanted))??;
        let link = Link { name: wanted.name.clone(), ..device.link.clone() };
        Ok(Self {
            id,
            namespace: wanted.namespace.clone(),
            known: Known::of(&link),
            began: link.clone(),
            now: link,
            device,
            context,
            gone: false,
            promiscuous: None,
        })
    }

    /// The name as given by the user.
    pub(crate) fn name(&self) -> &str {
        &self.device.link.name
    }

    pub(crate) fn index(&self) -> u32 {
        self.device.link.index
    }

    /// Runs `work` in its namespace.
    pub(crate) fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        inside(self.namespace.as_ref(), work)
    }

    /// Makes the interface promiscuous while this process lives, or until it is [calm](Self::calm) again.
    pub(crate) fn make_promiscuous(&mut self) -> Result<(), Error> {
        let index = self.index();
        let promiscuous = self.inside(|| Promiscuous::new(index))?;
        self.promiscuous = Some(promiscuous.map_err(|error| self.not_promiscuous(error))?);
        Ok(())
    }

    /// Converts the kernel's error when it does not make the interface promiscuous.
    pub(crate) fn not_promiscuous(&self, error: CallError) -> Error {
        match Errno::from_raw_os_error(error.errno()) {
            Errno::PERM => {
                let operation = format!("enable promiscuous mode on `{}`", self.name());
                Error::Privilege { operation, needs: NEEDS }
            }
            _ => error.into(),
        }
    }

    /// Ends promiscuous mode, as far as this made it.
    pub(crate) fn calm(&mut self) {
        self.promiscuous = None;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns what to report at the start.
    pub(crate) fn first_event(&self) -> Option<Event> {
        self.known.lacks_carrier().then(|| self.event(Change::NoCarrier))
    }

    /// Returns what has changed since the last call.
    pub(crate) fn listen(&mut self) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for change in self.context.changes()? {
            match change {
                LinkChange::Is(link) if link.index == self.index() => events.extend(self.follow(link)),
                LinkChange::Gone(link) if link.index == self.index() => {
                    self.now = link;
                    events.extend(self.end());
                }
                LinkChange::Missed => {
                    let links = self.context.links()?;
                    match links.into_iter().find(|link| link.index == self.index()) {
                        Some(link) => events.extend(self.follow(link)),
                        None => events.extend(self.end()),
                    }
                }
                _ => {}
            }
        }
        if !self.gone && self.context.is_over() {
            events.extend(self.end());
            self.context.close();
        }
        Ok(events)
    }

    fn follow(&mut self, link: Link) -> Vec<Event> {
        let changes = self.known.follow(&link);
        self.now = link;
        changes.into_iter().map(|change| self.event(change)).collect()
    }

    fn end(&mut self) -> Option<Event> {
        let known = std::mem::replace(&mut self.gone, true);
        (!known).then(|| self.event(Change::Gone))
    }

    fn event(&self, change: Change) -> Event {
        Event { interface: self.id, name: self.name().to_owned(), change }
    }

    /// Returns a descriptor that is readable when something has changed.
    pub(crate) fn fd(&self) -> Option<PollFd<'_>> {
        Some(PollFd::from_borrowed_fd(self.context.fd()?, PollFlags::IN))
    }

    /// Reads the device's own counters.
    pub(crate) fn count(&mut self) -> Result<(), Error> {
        let index = self.index();
        if let Some(link) = self.context.links()?.into_iter().find(|link| link.index == index) {
            self.now = link;
        }
        Ok(())
    }

    /// Returns its losses while receiving.
    pub(crate) fn nic(&self) -> NicCounters {
        let grown = |of: fn(&Link) -> u64| of(&self.now).saturating_sub(of(&self.began));
        NicCounters {
            missed: grown(|link| link.rx_missed),
            fifo_errors: grown(|link| link.rx_fifo_errors),
            dropped: grown(|link| link.rx_dropped),
        }
    }
}
