//! A namespace of a capture: queries and notifications.

use std::os::fd::{AsFd, BorrowedFd};

use weir_sys::link::{Link, LinkChange, LinkMonitor, Links};

use super::{Namespace, Watch, here};
use crate::Error;

/// The sockets that query a namespace and listen to it.
pub(crate) type Sockets = (Links, LinkMonitor);

/// A namespace of a capture. Its sockets belong to the namespace, and can be used from any other.
#[derive(Debug)]
pub(crate) struct NamespaceContext {
    /// The same for each `NamespaceContext` of a namespace.
    pub(crate) identity: Option<(u64, u64)>,
    /// `None`: the capture was opened in it.
    watch: Option<Watch>,
    /// `None`: it is closed.
    sockets: Option<Sockets>,
}

impl NamespaceContext {
    /// Opens the sockets.
    pub(crate) fn open(namespace: Option<&Namespace>) -> Result<Self, Error> {
        // Open the monitor first: it catches changes in between.
        let open = || LinkMonitor::open().and_then(|monitor| Ok((Links::open()?, monitor)));
        Ok(Self {
            identity: namespace.map_or_else(here, |namespace| Some(namespace.identity())),
            watch: namespace.and_then(Namespace::watch),
            sockets: Some(inside(namespace, open)??),
        })
    }

    /// Whether this is `namespace`; `None`: the one in which the capture was opened.
    pub(crate) fn is(&self, namespace: Option<&Namespace>) -> bool {
        match namespace {
            Some(namespace) => self.identity == Some(namespace.identity()),
            None => self.watch.is_none(),
        }
    }

    /// Returns all interfaces; none once it is closed.
    pub(crate) fn links(&self) -> Result<Vec<Link>, Error> {
        match &self.sockets {
            Some((links, _)) => Ok(links.all()?),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the changes since the last call.
    pub(crate) fn changes(&mut self) -> Result<Vec<LinkChange>, Error> {
        let mut changes = Vec::new();
        if let Some((_, monitor)) = &mut self.sockets {
            monitor.changes(|change| changes.push(change))?;
        }
        Ok(changes)
    }

    /// Whether only this capture keeps the namespace alive.
    pub(crate) fn is_over(&self) -> bool {
        self.sockets.is_some() && self.watch.as_ref().is_some_and(Watch::is_over)
    }

    /// Releases the namespace as soon as the returned sockets are dropped.
    pub(crate) fn close(&mut self) -> Option<Sockets> {
        self.sockets.take()
    }

    /// Returns a descriptor that is readable when there are changes.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.as_ref().map(|(_, monitor)| monitor.as_fd())
    }
}

/// Runs `work` in the namespace, or on this thread if `namespace` is `None`.
pub(crate) fn inside<R: Send>(
    namespace: Option<&Namespace>,
    work: impl FnOnce() -> R + Send,
) -> Result<R, Error> {
    match namespace {
        Some(namespace) => namespace.inside(work),
        None => Ok(work()),
    }
}
