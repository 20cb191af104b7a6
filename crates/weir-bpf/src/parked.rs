//! Programs for test runs, attached where no packet comes.

use std::os::fd::BorrowedFd;

use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::netns::NetNs;
use weir_sys::{CallError, link, veth};

/// A program on a device that never gets a packet, for as long as this lives.
///
/// A test run on live frames puts its program into the kernel's XDP dispatcher and takes it out again, and each time waits for an
/// RCU grace period: tens of milliseconds a call. A program that is attached somewhere is in the dispatcher already. The
/// device has native XDP, because generic XDP anywhere costs every packet of the system's stack a few nanoseconds.
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
    /// `EPERM`: no privilege to make a namespace (`CAP_SYS_ADMIN`) or to attach.
    pub fn park(program: BorrowedFd<'_>) -> Result<Self, CallError> {
        let namespace = NetNs::new()?;
        let attach = || {
            // Down, or the kernel would send packets of its own through it.
            veth::create_down("parked", "other")?;
            let links = link::links()?;
            let index = links.iter().find(|link| link.name == "parked").map_or(0, |link| link.index);
            XdpLink::attach(program, index, XdpHook::Native)
        };
        let link = namespace.inside(attach)??;
        Ok(Self { _link: link, _namespace: namespace })
    }
}
