//! The process that outlives us by a moment.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
    socketpair,
};

use super::{Alive, Plan, RTM_NEWTFILTER};
use crate::netlink::{NLMSG_DONE, NLMSG_ERROR, split};
use crate::thread;

/// A forked process that has attached the filters, and takes them off once it is told to, or the other end of its control
/// socket is closed: with us, however we end.
#[derive(Debug)]
pub(super) struct Guard {
    plan: Plan,
    netlink: OwnedFd,
    control: Option<OwnedFd>,
    pid: libc::pid_t,
}

/// What the guard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    Discipline,
    Ingress,
    Egress,
}

impl Step {
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Discipline => "create the clsact qdisc",
            Self::Ingress => "create the ingress filter",
            Self::Egress => "create the egress filter",
        }
    }
}

/// How far it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) step: Step,
    /// 0: all is done.
    pub(super) errno: i32,
}

impl Outcome {
    const BYTES: usize = 5;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.errno.to_ne_bytes();
        [self.step as u8, a, b, c, d]
    }

    fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [step, errno @ ..] = bytes;
        let step = match step {
            0 => Step::Discipline,
            1 => Step::Ingress,
            _ => Step::Egress,
        };
        Self { step, errno: i32::from_ne_bytes(errno) }
    }
}

impl Guard {
    /// Forks the guard, has it carry out `plan`, and tells how that went. If it failed nothing is left attached.
    ///
    /// The guard has `alive` open as long as there is something to take off, and so should we.
    pub(super) fn start(plan: Plan, alive: &Alive) -> io::Result<(Self, Outcome)> {
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        connect(&netlink, &SocketAddrNetlink::new(0, 0))?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // The guard must not die of what we are told by: Ctrl-C, or a service manager's SIGTERM to all of a service.
        let before = thread::mask_all()?;
        // SAFETY: the child calls only `guard`, which keeps to what is allowed after a fork of a process with threads.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            guard(&plan, netlink.as_fd(), theirs.as_fd(), alive.as_raw_fd());
        }
        let forked = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
        thread::mask(&before)?;
        let mut guard = Self { plan, netlink, control: Some(ours), pid: forked? };
        drop(theirs);
        // Killed so early, it may have left something, which is taken off when `guard` is dropped.
        let told = guard.control.as_ref().and_then(|control| hear(control.as_fd()));
        let outcome = told.ok_or_else(|| io::Error::other("the guard process was killed"))?;
        if outcome.errno != 0 {
            guard.control = None;
            guard.reap();
        }
        Ok((guard, outcome))
    }

    /// Has the filters taken off, and waits until they are. `None`: they were, before.
    pub(super) fn end(&mut self) -> Option<Outcome> {
        let control = self.control.take()?;
        let asked = send(&control, &[1], SendFlags::NOSIGNAL);
        // Whoever has killed the guard has left its work to us.
        let outcome = asked.ok().and_then(|_| hear(control.as_fd()));
        let outcome = outcome.unwrap_or_else(|| end(&self.plan, self.netlink.as_fd()));
        drop(control);
        self.reap();
        Some(outcome)
    }

    /// Waits until the process, which is about to, has ended.
    fn reap(&self) {
        let mut status = 0;
        // SAFETY: `status` is valid for the call to write to; the process is our child, or the call fails.
        unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.end();
    }
}

/// What the guard says next; `None`: nothing any more.
fn hear(control: BorrowedFd<'_>) -> Option<Outcome> {
    let mut bytes = [0; Outcome::BYTES];
    match retry_on_intr(|| recv(control, &mut bytes, RecvFlags::empty())) {
        Ok((_, Outcome::BYTES)) => Some(Outcome::from_bytes(bytes)),
        _ => None,
    }
}

// From here on, what the forked process does. It has one thread, of a process that may have had more: it makes system calls
// on memory that is there, and neither allocates, nor takes a lock, nor panics.

fn guard(plan: &Plan, netlink: BorrowedFd<'_>, control: BorrowedFd<'_>, alive: RawFd) -> ! {
    // A name of its own, so that `killall weir` leaves it its work.
    let _ = rustix::thread::set_name(c"tc-guard");
    let program = |side: usize| plan.sides.get(side).map_or(-1, |side| side.program);
    close_all_but([netlink.as_raw_fd(), control.as_raw_fd(), alive, program(0), program(1)]);
    let outcome = begin(plan, netlink);
    tell(control, outcome);
    if outcome.errno == 0 {
        // The filters hold their programs.
        close_all_but([netlink.as_raw_fd(), control.as_raw_fd(), alive, -1, -1]);
        // An order, or the end of whoever might have given one.
        let _ = retry_on_intr(|| recv(control, &mut [0; 1], RecvFlags::empty()));
        tell(control, end(plan, netlink));
    }
    // SAFETY: ends the process without running anything that was prepared for the end of its parent.
    unsafe { libc::_exit(0) }
}

/// Fails only where nobody listens.
fn tell(control: BorrowedFd<'_>, outcome: Outcome) {
    let _ = send(control, &outcome.to_bytes(), SendFlags::NOSIGNAL);
}

/// Nothing of the parent is kept open: whoever waits for the end of its pipes must not wait for ours.
fn close_all_but(mut keep: [RawFd; 5]) {
    keep.sort_unstable();
    let mut first: libc::c_uint = 0;
    for fd in keep {
        let Ok(fd) = libc::c_uint::try_from(fd) else { continue };
        if let Some(last) = fd.checked_sub(1) {
            close_range(first, last);
        }
        first = fd.saturating_add(1);
    }
    close_range(first, libc::c_uint::MAX);
}

fn close_range(first: libc::c_uint, last: libc::c_uint) {
    if first <= last {
        // SAFETY: closes descriptors that this process does not use.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Makes the discipline and the filters, or nothing.
fn begin(plan: &Plan, netlink: BorrowedFd<'_>) -> Outcome {
    if let Some(make) = &plan.make_discipline {
        let errno = carry_out(netlink, make);
        if errno != 0 {
            return Outcome { step: Step::Discipline, errno };
        }
    }
    for side in &plan.sides {
        let errno = carry_out(netlink, &side.make);
        if errno != 0 {
            end(plan, netlink);
            return Outcome { step: side.step, errno };
        }
    }
    Outcome { step: Step::Egress, errno: 0 }
}

/// Removes the filters, and the discipline if it is ours and nobody else has a filter in it.
fn end(plan: &Plan, netlink: BorrowedFd<'_>) -> Outcome {
    let mut outcome = Outcome { step: Step::Egress, errno: 0 };
    for side in &plan.sides {
        let errno = carry_out(netlink, &side.remove);
        if outcome.errno == 0 {
            outcome = Outcome { step: side.step, errno };
        }
    }
    let unused = || plan.list.iter().all(|list| !has_filters(netlink, list));
    if let Some(remove) = plan.remove_discipline.as_ref().filter(|_| unused()) {
        // The interface may be gone, and the discipline with it.
        carry_out(netlink, remove);
    }
    outcome
}

/// Sends one request and gives the kernel's answer, 0 or an errno.
fn carry_out(netlink: BorrowedFd<'_>, request: &[u8]) -> i32 {
    if let Err(error) = retry_on_intr(|| send(netlink, request, SendFlags::empty())) {
        return error.raw_os_error();
    }
    let mut buffer = [0; 4 << 10];
    loop {
        let received = match retry_on_intr(|| recv(netlink, &mut buffer, RecvFlags::empty())) {
            Ok((_, received)) => received,
            Err(error) => return error.raw_os_error(),
        };
        match buffer.get(..received).and_then(split) {
            Some((message, _)) if message.kind == NLMSG_ERROR => {
                let errno = message.payload.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                return errno.wrapping_neg();
            }
            Some(_) => {}
            None => return Errno::BADMSG.raw_os_error(),
        }
    }
}

/// Whether one side of the discipline has filters, as far as can be told: better a discipline too many than one too few.
fn has_filters(netlink: BorrowedFd<'_>, list: &[u8]) -> bool {
    if retry_on_intr(|| send(netlink, list, SendFlags::empty())).is_err() {
        return true;
    }
    let mut found = false;
    let mut buffer = [0; 32 << 10];
    loop {
        let Ok((_, received)) = retry_on_intr(|| recv(netlink, &mut buffer, RecvFlags::empty())) else {
            return true;
        };
        let mut rest = buffer.get(..received).unwrap_or_default();
        while let Some((message, next)) = split(rest) {
            match message.kind {
                NLMSG_DONE => return found,
                NLMSG_ERROR => return true,
                RTM_NEWTFILTER => found = true,
                _ => {}
            }
            rest = next;
        }
    }
}
