//! The `bpf(2)` calls for which libbpf-rs has no safe wrapper.

pub mod grace;
pub mod map;
pub mod pin;
pub mod probe;
pub mod program;
pub mod query;

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::CallError;

/// The place in the kernel where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpHook {
    /// In the driver, before a socket buffer exists (`XDP_FLAGS_DRV_MODE`).
    Native,
    /// In the stack, on a socket buffer, for drivers without XDP (`XDP_FLAGS_SKB_MODE`).
    Generic,
}

/// An XDP program attached to an interface. Unless it is pinned, it is detached when this is dropped or the process
/// dies. It never replaces another program: the kernel refuses a second one.
#[derive(Debug)]
pub struct XdpLink(Link);

/// The packets that a tcx program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcxHook {
    /// Incoming packets, before the stack gets them.
    Ingress,
    /// Outgoing packets, before the queueing discipline gets them.
    Egress,
}

/// The position among the tcx programs already attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPosition {
    /// Before the others.
    First,
    /// After the others: it gets packets that they leave undecided.
    Last,
}

/// A program attached to an interface with tcx (Linux 6.6). Unless it is pinned, it is detached when this is dropped or the
/// process dies.
#[derive(Debug)]
pub struct TcxLink(Link);

/// A program's link to its interface.
#[derive(Debug)]
struct Link {
    fd: OwnedFd,
    /// Whether the program stays attached when this is dropped.
    stays: AtomicBool,
}

const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_LINK_UPDATE: libc::c_int = 29;
const BPF_LINK_DETACH: libc::c_int = 34;
const BPF_XDP: u32 = 37;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_F_BEFORE: u32 = 1 << 3;
const BPF_F_AFTER: u32 = 1 << 4;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// `struct { ... } link_create` of `union bpf_attr` (linux/bpf.h, Linux 5.9), up to the fields needed here.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `struct { ... } link_update` of `union bpf_attr`, up to the fields needed here.
#[repr(C)]
struct LinkUpdate {
    link_fd: u32,
    new_prog_fd: u32,
    flags: u32,
    old_prog_fd: u32,
}

/// `struct { ... } link_detach` of `union bpf_attr`.
#[repr(C)]
struct LinkDetach {
    link_fd: u32,
}

impl TcxLink {
    /// Attaches `program` to the interface with index `ifindex` in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// `EINVAL`: a kernel without tcx. `ENODEV`: no such interface. `ERANGE`: 64 programs are already attached.
    pub fn attach(
        program: BorrowedFd<'_>,
        ifindex: u32,
        hook: TcxHook,
        position: AttachPosition,
    ) -> Result<Self, CallError> {
        let attach_type = match hook {
            TcxHook::Ingress => BPF_TCX_INGRESS,
            TcxHook::Egress => BPF_TCX_EGRESS,
        };
        let flags = match position {
            AttachPosition::First => BPF_F_BEFORE,
            AttachPosition::Last => BPF_F_AFTER,
        };
        Link::create(program, ifindex, attach_type, flags)
            .map(Self)
            .map_err(|error| CallError::new(format!("attach tcx program to interface {ifindex}"), error))
    }

    /// Replaces the current program with `program`: each packet meets one or the other.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it is not a program for tc.
    pub fn exchange(&self, program: BorrowedFd<'_>) -> Result<(), CallError> {
        self.0.exchange(program).map_err(|error| CallError::new("replace tcx program", error))
    }

    /// Detaches the program. It may still be processing packets afterwards: see [`grace`].
    ///
    /// # Errors
    ///
    /// `ENOLINK`: it is already detached, because the interface is gone.
    pub fn detach(&self) -> Result<(), CallError> {
        self.0.detach().map_err(|error| CallError::new("detach tcx program", error))
    }
}

impl XdpLink {
    /// Attaches `program` to the interface with index `ifindex` in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// `EBUSY` or `EEXIST`: another program is attached. `EOPNOTSUPP`: the driver has no native XDP. `ERANGE` or
    /// `EINVAL`: the driver does not support it with the interface's current MTU or queues.
    pub fn attach(program: BorrowedFd<'_>, ifindex: u32, hook: XdpHook) -> Result<Self, CallError> {
        let flags = match hook {
            XdpHook::Native => XDP_FLAGS_DRV_MODE,
            XdpHook::Generic => XDP_FLAGS_SKB_MODE,
        };
        Link::create(program, ifindex, BPF_XDP, flags)
            .map(Self)
            .map_err(|error| CallError::new(format!("attach XDP program to interface {ifindex}"), error))
    }

    /// Replaces the current program with `program`: each packet meets one or the other.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it is not an XDP program, or not for this interface. Also the driver's errors.
    pub fn exchange(&self, program: BorrowedFd<'_>) -> Result<(), CallError> {
        self.0.exchange(program).map_err(|error| CallError::new("replace XDP program", error))
    }

    /// Detaches the program. It may still be processing packets afterwards: see [`grace`].
    ///
    /// # Errors
    ///
    /// `ENOLINK`: it is already detached, because the interface is gone.
    pub fn detach(&self) -> Result<(), CallError> {
        self.0.detach().map_err(|error| CallError::new("detach XDP program", error))
    }
}

/// What both kinds of links have.
macro_rules! pinnable {
    ($($link:ident),*) => {$(
        impl $link {
            /// Pins the link as `path` in a bpffs: the program stays attached until [`detach`](Self::detach), even if this is
            /// dropped or the process ends.
            ///
            /// # Errors
            ///
            /// The errors of [`pin::pin`].
            pub fn pin(&self, path: &Path) -> Result<(), CallError> {
                self.0.pin(path)
            }

            /// Opens the link that was pinned as `path`. The program is detached when this is dropped, unless it is to
            /// [stay](Self::stay).
            ///
            /// # Errors
            ///
            /// The errors of [`pin::pinned`].
            pub fn pinned(path: &Path) -> Result<Self, CallError> {
                Link::pinned(path).map(Self)
            }

            /// Sets whether the program stays attached when this is dropped: it does if the link is pinned.
            pub fn stay(&self, stays: bool) {
                self.0.stay(stays);
            }

            /// Returns what it attaches.
            ///
            /// # Errors
            ///
            /// None in practice.
            pub fn attached(&self) -> Result<query::Attached, CallError> {
                query::attached(self.0.fd.as_fd()).map_err(|error| CallError::new("query a link", error))
            }
        }
    )*};
}
pinnable!(XdpLink, TcxLink);

impl Link {
    fn create(program: BorrowedFd<'_>, ifindex: u32, attach_type: u32, flags: u32) -> std::io::Result<Self> {
        let attr = LinkCreate { prog_fd: raw(program), target_ifindex: ifindex, attach_type, flags };
        // SAFETY: `attr` begins like union bpf_attr for this command; the kernel reads no more than its size.
        let fd = unsafe { bpf(BPF_LINK_CREATE, &raw const attr) }?;
        // SAFETY: a descriptor that the kernel has just created for us.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, stays: AtomicBool::new(false) })
    }

    fn pin(&self, path: &Path) -> Result<(), CallError> {
        pin::pin(self.fd.as_fd(), path)?;
        self.stay(true);
        Ok(())
    }

    fn pinned(path: &Path) -> Result<Self, CallError> {
        Ok(Self { fd: pin::pinned(path)?, stays: AtomicBool::new(false) })
    }

    fn stay(&self, stays: bool) {
        // Relaxed: the drop follows all other uses.
        self.stays.store(stays, Ordering::Relaxed);
    }

    /// Updates the link, unless it is detached: then no packet meets its program.
    fn exchange(&self, program: BorrowedFd<'_>) -> std::io::Result<()> {
        match self.update(program) {
            Err(error) if error.raw_os_error() == Some(libc::ENOLINK) => Ok(()),
            other => other,
        }
    }

    fn update(&self, program: BorrowedFd<'_>) -> std::io::Result<()> {
        let (link_fd, new_prog_fd) = (raw(self.fd.as_fd()), raw(program));
        let attr = LinkUpdate { link_fd, new_prog_fd, flags: 0, old_prog_fd: 0 };
        // SAFETY: as in `create`.
        unsafe { bpf(BPF_LINK_UPDATE, &raw const attr) }.map(drop)
    }

    fn detach(&self) -> std::io::Result<()> {
        let attr = LinkDetach { link_fd: raw(self.fd.as_fd()) };
        // SAFETY: as in `create`.
        unsafe { bpf(BPF_LINK_DETACH, &raw const attr) }.map(drop)
    }
}

impl Drop for Link {
    /// Detaches explicitly. Closing the descriptor is not enough: a child that another thread is starting has a copy
    /// until it executes its program, and the interface would stay occupied for that long.
    fn drop(&mut self) {
        if !*self.stays.get_mut() {
            // Already detached, or gone with the interface.
            let _ = self.detach();
        }
    }
}

fn raw(fd: BorrowedFd<'_>) -> u32 {
    u32::try_from(fd.as_raw_fd()).expect("an open descriptor is not negative")
}

/// # Safety
///
/// `attr` must have the layout of `union bpf_attr` for `command`.
pub(crate) unsafe fn bpf<T>(command: libc::c_int, attr: *const T) -> Result<libc::c_int, std::io::Error> {
    // SAFETY: the caller's contract; the size passed is the size of what `attr` points to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<T>()) };
    libc::c_int::try_from(result).ok().filter(|&r| r >= 0).ok_or_else(std::io::Error::last_os_error)
}
