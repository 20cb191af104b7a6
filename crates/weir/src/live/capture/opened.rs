//! The part of a capture that belongs to the thread that takes packets: queues, notifiers, and what the thread sleeps on.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use super::interfaces::Shared;
use crate::Error;
use crate::chunk::Chunk;
use crate::live::source::outlet::Outlet;
use crate::live::wait::stop::StopHandle;
use crate::live::wait::strategy::{Queues, Woken};
use crate::live::wait::waker::Waker;
use crate::live::wait::{Notifier, Ready};

/// Queues, and what wakes their reader.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The outlets of all ports, port by port.
    pub(crate) outlets: Vec<Outlet>,
    notifiers: Vec<Arc<dyn Notifier>>,
    pub(crate) waker: Waker,
    pub(crate) stop: StopHandle,
    pub(crate) shared: Arc<Shared>,
    /// Every interface is gone.
    pub(crate) gone: bool,
}

impl Opened {
    pub(crate) fn new(
        outlets: Vec<Outlet>,
        notifiers: Vec<Arc<dyn Notifier>>,
        shared: Shared,
    ) -> Result<Self, Error> {
        let (waker, stop) = (Waker::new()?, StopHandle::new()?);
        notifiers.iter().try_for_each(|notifier| waker.add_notifier(notifier.fd()))?;
        waker.add_news(stop.as_fd())?;
        shared.lock().fds().try_for_each(|fd| waker.add_news(fd))?;
        Ok(Self { outlets, notifiers, waker, stop, shared: Arc::new(shared), gone: false })
    }

    /// Hands the notifiers over to another thread.
    pub(crate) fn give_notifiers(&mut self) -> Vec<Arc<dyn Notifier>> {
        self.notifiers.iter().for_each(|notifier| self.waker.remove(notifier.fd()));
        std::mem::take(&mut self.notifiers)
    }

    /// Runs once a second: does the sources' periodic work, and looks for events of interfaces and namespaces.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        let mut ports = self.shared.lock();
        for (_, monitor) in ports.check()? {
            self.waker.remove(monitor.as_fd());
        }
        self.gone = ports.are_gone();
        Ok(())
    }

    /// Processes the kernel's messages about interfaces. Returns whether they include events.
    fn listen(&mut self) -> Result<bool, Error> {
        let mut ports = self.shared.lock();
        let news = ports.listen()?;
        self.gone = ports.are_gone();
        Ok(news)
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
        self.notifiers.iter().for_each(|notifier| notifier.quiet());
    }

    fn sleep(&mut self, longest: Duration) -> Result<Woken, Error> {
        match self.waker.sleep(longest)? {
            // The change may be to an interface that is not captured.
            Woken::Time => Ok(Woken::Time),
            Woken::Notified => Ok(Woken::Notified),
            Woken::News => {
                Ok(if self.listen()? || self.stop.is_stopped() { Woken::News } else { Woken::Time })
            }
        }
    }
}
