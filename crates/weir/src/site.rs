//! A namespace in which something is captured: what is asked there, and what is heard from there.

use std::os::fd::{AsFd, BorrowedFd};

use weir_sys::link::{Link, LinkChange, LinkMonitor, Links};

use crate::namespace::{Namespace, Watch, here};
use crate::{Error, builder::Wanted};

/// One namespace of a capture. Its sockets belong to the namespace, and are used from wherever the capture is.
#[derive(Debug)]
pub(crate) struct Site {
    identity: Option<(u64, u64)>,
    /// `None`: the capture was opened in it.
    watch: Option<Watch>,
    /// `None`: it is closed.
    sockets: Option<(Links, LinkMonitor)>,
}

impl Site {
    /// Opens the sockets.
    pub(crate) fn open(namespace: Option<&Namespace>) -> Result<Self, Error> {
        // First the monitor: what happens in between is heard.
        let open = || LinkMonitor::open().and_then(|monitor| Ok((Links::open()?, monitor)));
        Ok(Self {
            identity: namespace.map_or_else(here, |namespace| Some(namespace.identity())),
            watch: namespace.and_then(Namespace::watch),
            sockets: Some(inside(namespace, open)??),
        })
    }

    /// Whether that is where an interface is.
    pub(crate) fn is_of(&self, wanted: &Wanted) -> bool {
        match &wanted.namespace {
            Some(namespace) => self.identity == Some(namespace.identity()),
            None => self.watch.is_none(),
        }
    }

    /// Whether both are of one namespace.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// All interfaces; none once it is closed.
    pub(crate) fn links(&self) -> Result<Vec<Link>, Error> {
        match &self.sockets {
            Some((links, _)) => Ok(links.all()?),
            None => Ok(Vec::new()),
        }
    }

    /// What has been heard since the last time.
    pub(crate) fn changes(&mut self) -> Result<Vec<LinkChange>, Error> {
        let mut changes = Vec::new();
        if let Some((_, monitor)) = &mut self.sockets {
            monitor.changes(|change| changes.push(change))?;
        }
        Ok(changes)
    }

    /// Whether the namespace is not there any more but for this capture.
    pub(crate) fn is_over(&self) -> bool {
        self.sockets.is_some() && self.watch.as_ref().is_some_and(Watch::is_over)
    }

    /// Lets go of the namespace.
    pub(crate) fn close(&mut self) {
        self.sockets = None;
    }

    /// Readable when there is something to hear.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.as_ref().map(|(_, monitor)| monitor.as_fd())
    }
}

/// Does `work` in the namespace; on this thread, if none was named.
pub(crate) fn inside<R: Send>(
    namespace: Option<&Namespace>,
    work: impl FnOnce() -> R + Send,
) -> Result<R, Error> {
    match namespace {
        Some(namespace) => namespace.inside(work),
        None => Ok(work()),
    }
}
