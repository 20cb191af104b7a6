//! A process beside this one, with the same program: what it does needs rights that this one gives up.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::thread;

/// A forked process and a socket to it. It is to end when the other end is closed, with
/// us, however we end; dropping this closes it and waits for that.
#[derive(Debug)]
pub struct Forked {
    socket: Option<OwnedFd>,
    pid: libc::pid_t,
}

/// Forks a process called `name` that does `work` with its end of a socket (`SOCK_SEQPACKET`: messages, in order). It has what is open and would stay open over an
/// `execve`, nothing else, and no signal but `SIGKILL` ends it: it is to outlive, by a moment, who is told to end.
///
/// # Errors
///
/// No resources; or this process has other threads already, of which a fork would leave locks in any state.
pub fn fork(name: &CStr, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    fork_with(SocketType::SEQPACKET, name, work)
}

/// The same with another kind of socket, for messages of any length.
///
/// # Errors
///
/// As [`fork`].
pub fn fork_with(kind: SocketType, name: &CStr, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    has_one_thread()?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
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

fn has_one_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        _ => Err(io::Error::other("the process has threads already")),
    }
}

/// What a process may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of addresses.
    pub memory: u64,
    /// Seconds of processor time.
    pub seconds: u64,
}

/// Forks a process that does `work` with its end of a socket (`SOCK_STREAM`) and all that is open here. The kernel ends it where it
/// goes beyond `limits`; dropping our end waits until it has ended.
///
/// # Errors
///
/// As [`fork`].
pub fn apart(limits: Limits, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    has_one_thread()?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: as in `fork_with`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let limited = limits.set();
        let done = limited.is_ok() && catch_unwind(AssertUnwindSafe(|| work(theirs))).is_ok();
        // SAFETY: as in `fork_with`.
        unsafe { libc::_exit(i32::from(!done)) }
    }
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(Forked { socket: Some(ours), pid }) }
}

impl Limits {
    /// For the calling process.
    fn set(self) -> io::Result<()> {
        for (resource, most) in
            [(Resource::As, self.memory), (Resource::Cpu, self.seconds), (Resource::Core, 0)]
        {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    }
}

/// Waits until a child has ended.
fn wait_for(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is valid for the call to write to; the process is our child, or the call fails.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Ends this process, a [forked](fork) one, `grace` after the other end of its socket was closed, whatever it waits for
/// then: a file system may take its time. The other side may have become somebody who can send it no signal. To be called
/// before it does anything that may take long.
///
/// # Errors
///
/// No resources for another thread.
pub fn end_with(socket: impl AsFd, grace: Duration) -> io::Result<()> {
    let socket = socket.as_fd().try_clone_to_owned()?;
    thread::spawn_bare("weir-end", move || {
        // No event is asked for: that the other end is closed is told all the same.
        while !poll(&mut [PollFd::new(&socket, PollFlags::empty())], None).is_ok_and(|ready| ready > 0) {}
        std::thread::sleep(grace);
        // SAFETY: ends the process without running anything that was prepared for the end of its parent.
        unsafe { libc::_exit(1) }
    })?;
    Ok(())
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
        wait_for(self.pid);
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
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn who_goes_beyond_the_limits_is_ended() {
        // In a process with one thread, unlike that of a test.
        let told = in_a_process_of_its_own(|| {
            let limits = Limits { memory: 1 << 30, seconds: 1 };
            let said = |work: fn(&mut File)| {
                let forked = apart(limits, |socket| work(&mut File::from(socket))).expect("a process");
                let mut said = String::new();
                let mut socket = File::from(forked.socket().try_clone_to_owned().expect("a descriptor"));
                socket.read_to_string(&mut said).expect("until it ends");
                said
            };
            let well = said(|socket| drop(socket.write_all(b"well")));
            let busy = said(|socket| {
                let begun = std::time::Instant::now();
                while begun.elapsed().as_secs() < 60 {}
                let _ = socket.write_all(b"for a minute");
            });
            let large = said(|socket| {
                let bytes: Result<(), _> = Vec::<u8>::new().try_reserve_exact(2 << 30);
                let _ = socket.write_all(if bytes.is_ok() { b"all" } else { b"not" });
            });
            format!("{well}, {busy}, {large}")
        });
        assert_eq!(told, "well, , not");
    }

    /// What `work` has to say.
    fn in_a_process_of_its_own(work: impl FnOnce() -> String) -> String {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        // SAFETY: the child allocates, which is sound with the C library's allocator (fork(3) holds its locks), and ends without
        // running anything else of ours.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let said = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| "a panic".to_owned());
            let _ = (&theirs).write_all(said.as_bytes());
            // SAFETY: as in `fork_with`.
            unsafe { libc::_exit(0) }
        }
        drop(theirs);
        let mut said = String::new();
        ours.read_to_string(&mut said).expect("what it says");
        wait_for(pid);
        said
    }

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
