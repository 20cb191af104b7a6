//! A process beside this one, with the same program: what it does needs rights that this one gives up.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::thread;

/// A forked process and a socket to it (`SOCK_SEQPACKET`: messages, in order). It is to end when the other end is closed, with
/// us, however we end; dropping this closes it and waits for that.
#[derive(Debug)]
pub struct Forked {
    socket: Option<OwnedFd>,
    pid: libc::pid_t,
}

/// Forks a process called `name` that does `work` with its end of the socket. It has what is open and would stay open over an
/// `execve`, nothing else, and no signal but `SIGKILL` ends it: it is to outlive, by a moment, who is told to end.
///
/// # Errors
///
/// No resources; or this process has other threads already, of which a fork would leave locks in any state.
pub fn fork(name: &CStr, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("the process has threads already"));
    }
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // Before there is a child: one that kept our end as well would never see it closed.
    let open = open_descriptors()?;
    let before = thread::mask_all()?;
    // SAFETY: there is one thread, so the child is a copy in which no lock is held by somebody who is not there.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let _ = rustix::thread::set_name(name);
        close_what_an_exec_would(&open, theirs.as_fd());
        let done = catch_unwind(AssertUnwindSafe(|| work(theirs)));
        // SAFETY: ends the process without running anything that was prepared for the end of its parent.
        unsafe { libc::_exit(i32::from(done.is_err())) }
    }
    let forked = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
    thread::mask(&before)?;
    Ok(Forked { socket: Some(ours), pid: forked? })
}

impl Forked {
    /// Our end.
    #[expect(clippy::missing_panics_doc, reason = "the socket is there until it is dropped")]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("it is there until it is dropped").as_fd()
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.socket = None;
        let mut status = 0;
        // SAFETY: `status` is valid for the call to write to; the process is our child, or the call fails.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/self/fd")?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Sockets, programs, maps: those of a capture go with the capture.
fn close_what_an_exec_would(open: &[RawFd], keep: BorrowedFd<'_>) {
    for &number in open {
        // SAFETY: asks for a number's flags; what is not open is an error.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        if number != keep.as_raw_fd() && flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
            // SAFETY: whoever owns it is a frame of our parent's, to which this process never comes back.
            unsafe { libc::close(number) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_where_there_are_threads() {
        std::thread::scope(|scope| {
            let (hold, held) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || held.recv());
            assert!(fork(c"nobody", |_| ()).is_err());
            drop(hold);
        });
    }
}
