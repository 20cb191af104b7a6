//! Promiscuous mode of a capture's interfaces: one socket for all those of a namespace, since the kernel takes
//! milliseconds to close each.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use weir_sys::CallError;
use weir_sys::packet::Promiscuous;

/// The socket that the sources on interfaces of one namespace share. It is closed with the last source; until then all of
/// them stay promiscuous.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promiscuity(Arc<Mutex<Weak<Promiscuous>>>);

impl Promiscuity {
    /// Makes `interface`, in this thread's namespace, promiscuous while the result lives.
    pub(crate) fn include(&self, interface: u32) -> Result<Arc<Promiscuous>, CallError> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = shared.upgrade() {
            socket.and(interface)?;
            return Ok(socket);
        }
        let socket = Arc::new(Promiscuous::new(interface)?);
        *shared = Arc::downgrade(&socket);
        Ok(socket)
    }
}
