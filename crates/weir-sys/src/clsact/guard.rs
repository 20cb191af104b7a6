//! The guard process, which briefly outlives us to remove the filters.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
    socketpair,
};

use super::{Alive, GuardMessages, RTM_NEWTFILTER};
use crate::netlink::{NLMSG_DONE, NLMSG_ERROR, split};
use crate::thread;

/// A forked process that has attached the filters. It removes them on request, or when the other end of its control
/// socket is closed, which happens however we end.
#[derive(Debug)]
pub(super) struct Guard {
    messages: GuardMessages,
    netlink: OwnedFd,
    control: Option<OwnedFd>,
    pid: libc::pid_t,
}

/// A step of the guard's work.
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

/// How far the guard got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) step: Step,
    /// 0: everything is done.
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
    /// Forks the guard, which carries out `messages`, and returns the outcome. On failure, nothing stays attached.
    ///
    /// The guard keeps `alive` open while there are filters to remove, and so should the caller.
    pub(super) fn start(messages: GuardMessages, alive: &Alive) -> io::Result<(Self, Outcome)> {
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        connect(&netlink, &SocketAddrNetlink::new(0, 0))?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // The signals that end us must not kill the guard: Ctrl-C, or a service manager's SIGTERM to a whole service.
        let before = thread::mask_all()?;
        // SAFETY: the child calls only `guard`, which does only what is allowed after the fork of a multithreaded
        // process.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            guard(&messages, netlink.as_fd(), theirs.as_fd(), alive.as_raw_fd());
        }
        let forked = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
        thread::mask(&before)?;
        let mut guard = Self { messages, netlink, control: Some(ours), pid: forked? };
        drop(theirs);
        // If the guard was killed this early, dropping `guard` removes what it may have left.
        let told = guard.control.as_ref().and_then(|control| hear(control.as_fd()));
        let outcome = told.ok_or_else(|| io::Error::other("the guard process was killed"))?;
        if outcome.errno != 0 {
            guard.control = None;
            guard.reap();
        }
        Ok((guard, outcome))
    }

    /// Makes the guard remove the filters, and waits for that. `None`: they were already removed.
    pub(super) fn end(&mut self) -> Option<Outcome> {
        let control = self.control.take()?;
        let asked = send(&control, &[1], SendFlags::NOSIGNAL);
        // If the guard was killed, its work is left to us.
        let outcome = asked.ok().and_then(|_| hear(control.as_fd()));
        let outcome = outcome.unwrap_or_else(|| end(&self.messages, self.netlink.as_fd()));
        drop(control);
        self.reap();
        Some(outcome)
    }

    /// Waits until the process, which is about to end, has ended.
    fn reap(&self) {
        let mut status = 0;
        // SAFETY: `status` is writable; the process is our child, or the call fails.
        unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = self.end();
    }
}

/// Receives the guard's next outcome; `None`: the guard has ended.
fn hear(control: BorrowedFd<'_>) -> Option<Outcome> {
    let mut bytes = [0; Outcome::BYTES];
    match retry_on_intr(|| recv(control, &mut bytes, RecvFlags::empty())) {
        Ok((_, Outcome::BYTES)) => Some(Outcome::from_bytes(bytes)),
        _ => None,
    }
}

// From here on, the code of the forked process. It has one thread, but its parent may have had more. It only makes
// system calls on existing memory: it does not allocate, take locks or panic.

fn guard(messages: &GuardMessages, netlink: BorrowedFd<'_>, control: BorrowedFd<'_>, alive: RawFd) -> ! {
    // A name of its own, so that `killall weir` does not hit it.
    let _ = rustix::thread::set_name(c"tc-guard");
    let program = |side: usize| messages.sides.get(side).map_or(-1, |side| side.program);
    close_all_but([netlink.as_raw_fd(), control.as_raw_fd(), alive, program(0), program(1)]);
    let outcome = begin(messages, netlink);
    tell(control, outcome);
    if outcome.errno == 0 {
        // The filters keep their programs alive.
        close_all_but([netlink.as_raw_fd(), control.as_raw_fd(), alive, -1, -1]);
        // Wait for an order, or for the end of the other side.
        let _ = retry_on_intr(|| recv(control, &mut [0; 1], RecvFlags::empty()));
        tell(control, end(messages, netlink));
    }
    // SAFETY: ends the process without running its parent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// Sends an outcome. This fails only if nobody listens.
fn tell(control: BorrowedFd<'_>, outcome: Outcome) {
    let _ = send(control, &outcome.to_bytes(), SendFlags::NOSIGNAL);
}

/// Closes the parent's descriptors: a process that waits for the end of the parent's pipes must not wait for the guard.
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
        // SAFETY: this process does not use the descriptors.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Creates the discipline and the filters, or nothing.
fn begin(messages: &GuardMessages, netlink: BorrowedFd<'_>) -> Outcome {
    if let Some(make) = &messages.make_discipline {
        let errno = carry_out(netlink, make);
        if errno != 0 {
            return Outcome { step: Step::Discipline, errno };
        }
    }
    for side in &messages.sides {
        let errno = carry_out(netlink, &side.make);
        if errno != 0 {
            end(messages, netlink);
            return Outcome { step: side.step, errno };
        }
    }
    Outcome { step: Step::Egress, errno: 0 }
}

/// Removes the filters, and also the discipline if it is ours and has no other filters.
fn end(messages: &GuardMessages, netlink: BorrowedFd<'_>) -> Outcome {
    let mut outcome = Outcome { step: Step::Egress, errno: 0 };
    for side in &messages.sides {
        let errno = carry_out(netlink, &side.remove);
        if outcome.errno == 0 {
            outcome = Outcome { step: side.step, errno };
        }
    }
    let unused = || messages.list.iter().all(|list| !has_filters(netlink, list));
    if let Some(remove) = messages.remove_discipline.as_ref().filter(|_| unused()) {
        // The interface may be gone, and the discipline with it.
        carry_out(netlink, remove);
    }
    outcome
}

/// Sends one request and returns the kernel's answer, 0 or an errno.
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

/// Returns whether one side of the discipline has filters; true in case of doubt. It is better to leave a discipline
/// behind than to remove one in use.
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
