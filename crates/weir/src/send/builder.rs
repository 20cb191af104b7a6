//! Options of a sender.

use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::link::Links;
use weir_sys::packet::{self, TxRing};

use super::MARK;
use super::batch::Batch;
use super::destination::Destination;
use super::outlet::{Backend, Outlet, TxPath};
use super::sender::Sender;
use crate::live::namespace::context::inside;
use crate::live::request::Wanted;
use crate::{Error, Namespace};

/// A builder for a [`Sender`]; see [`Sender::to`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SenderBuilder {
    pub(super) wanted: Wanted,
    backend: Backend,
    mark: Option<u32>,
}

impl Sender {
    /// Returns a builder for a sender to this interface, in the network namespace of the thread that calls
    /// [`open`](SenderBuilder::open).
    pub fn to(interface: impl Into<String>) -> SenderBuilder {
        let wanted = Wanted { namespace: None, name: interface.into(), queues: None };
        SenderBuilder { wanted, backend: Backend::Plain, mark: Some(MARK) }
    }
}

impl SenderBuilder {
    /// Selects an interface of another network namespace. The sender calls it `NAMESPACE/NAME`.
    pub fn namespace(mut self, namespace: Option<&Namespace>) -> Self {
        self.wanted.namespace = namespace.cloned();
        self
    }

    /// Selects how packets reach the kernel; by default [`Backend::Plain`].
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// Sets the mark of the packets (`SO_MARK`), by default [`MARK`]; `None`: they have none.
    pub fn mark(self, mark: Option<u32>) -> Self {
        Self { mark, ..self }
    }

    /// Looks at the interface, which takes no privileges.
    ///
    /// # Errors
    ///
    /// There is no such interface, it is down, or it takes neither Ethernet frames nor IP packets.
    pub fn find(&self) -> Result<Destination, Error> {
        Destination::find(&self.wanted)
    }

    /// Opens the sender. Takes `CAP_NET_RAW`.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find); without the privilege; or without memory for the ring.
    pub fn open(&self) -> Result<Sender, Error> {
        let destination = self.find()?;
        let opened = inside(self.wanted.namespace.as_ref(), || {
            let links = Links::open()?;
            let path = match self.backend {
                Backend::Plain => self.plain(&destination),
                Backend::Ring => self.ring(&destination),
            };
            Ok((links, path?))
        })?;
        let (links, path) = opened.map_err(|error: CallError| refused(&destination.name, error))?;
        Ok(Sender::new(Outlet::new(destination, path, links)))
    }

    fn socket(&self, destination: &Destination) -> Result<packet::Sender, CallError> {
        let socket = packet::Sender::new(destination.index)?;
        self.mark.map_or(Ok(()), |mark| socket.mark(mark))?;
        Ok(socket)
    }

    fn ring(&self, destination: &Destination) -> Result<TxPath, CallError> {
        Ok(TxPath::Ring(TxRing::new(self.socket(destination)?, destination.room())?))
    }

    fn plain(&self, destination: &Destination) -> Result<TxPath, CallError> {
        Ok(TxPath::Plain(Batch::new(self.socket(destination)?)))
    }
}

/// Translates the kernel's error.
fn refused(name: &str, error: CallError) -> Error {
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM => Error::Privilege {
            operation: format!("send on `{name}`: cannot {}", error.operation),
            needs: "cap_net_raw",
        },
        Errno::NODEV => Error::InterfaceGone { name: name.to_owned() },
        _ => error.into(),
    }
}
