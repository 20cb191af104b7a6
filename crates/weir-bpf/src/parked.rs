//! Programs for test runs, attached where no packets arrive.

use std::os::fd::BorrowedFd;

use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::netns::NetNs;
use weir_sys::{CallError, link, veth};

/// A program attached to a device that never gets a packet. Dropping this detaches it.
///
/// A test run on live frames adds its program to the kernel's XDP dispatcher, removes it afterwards, and waits for an
/// RCU grace period each time: tens of milliseconds per call. A program that is attached anywhere is already in the
/// dispatcher. The device has native XDP, because generic XDP on any device slows down all of the system's packets by a
/// few nanoseconds.
#[derive(Debug)]
pub struct Parked {
    _link: XdpLink,
    _namespace: NetNs,
}

impl Parked {
    /// Attaches `program` in a namespace of its own.
    ///
    /// # Errors
    ///
    /// `EPERM`: missing privileges to create a namespace (`CAP_SYS_ADMIN`) or to attach.
    pub fn park(program: BorrowedFd<'_>) -> Result<Self, CallError> {
        let namespace = NetNs::new()?;
        let attach = || {
            // If it were up, the kernel would send packets of its own through it.
            veth::create_down("parked", "other")?;
            let links = link::links()?;
            let index = links.iter().find(|link| link.name == "parked").map_or(0, |link| link.index);
            XdpLink::attach(program, index, XdpHook::Native)
        };
        let link = namespace.inside(attach)??;
        Ok(Self { _link: link, _namespace: namespace })
    }
}
