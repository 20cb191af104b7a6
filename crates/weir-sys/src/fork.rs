//! A second process of the same program, for work that needs privileges this process gives up.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, chdir, getpid, pidfd_open, setrlimit, setsid};

use crate::thread;

/// A forked process and a socket to it. The process must end when our end is closed, which happens however we end.
/// Dropping this shuts the socket down and waits for the process; in another process that a fork has made of this one,
/// it only closes the socket.
#[derive(Debug)]
pub struct Forked {
    socket: Option<OwnedFd>,
    pid: libc::pid_t,
    parent: Pid,
}

/// Forks a process called `name` that does `work` with its end of a socket (`SOCK_SEQPACKET`: messages, in order). It
/// keeps only descriptors that would survive an `execve`. No signal except `SIGKILL` ends it, so that it can
/// briefly outlive its parent when both are told to end.
///
/// # Errors
///
/// No resources, or this process already has other threads, whose locks a fork would leave in an unknown state.
pub fn fork(name: &CStr, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    fork_with(SocketType::SEQPACKET, name, work)
}

/// Like [`fork`], with another kind of socket, for messages of any length.
///
/// # Errors
///
/// The errors of [`fork`].
pub fn fork_with(kind: SocketType, name: &CStr, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    // SAFETY: `begin` makes sure that there is one thread.
    let fork = || libc::c_long::from(unsafe { libc::fork() });
    begin(kind, name, fork, close_what_an_exec_would, work)
}

/// Forks a process that does `work` with its end of a socket (`SOCK_SEQPACKET`), hidden from the program that this
/// library is part of: the program gets no signal when it ends, and does not find it when it waits for any child
/// (`__WCLONE`, waitpid(2)). Of the descriptors, it keeps only `kept`. It has no terminal, and no signal except `SIGKILL`
/// ends it.
///
/// # Errors
///
/// The errors of [`fork`].
pub fn hidden(name: &CStr, kept: &[BorrowedFd<'_>], work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    // Not fork(3): its child would send SIGCHLD, and it runs what the program has registered with pthread_atfork(3).
    // SAFETY: no flag is set, so the child has copies of everything; `begin` makes sure that there is one thread.
    let clone = || unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    let leave = |open: &[RawFd], theirs: BorrowedFd<'_>| {
        let _ = setsid();
        let _ = chdir("/");
        leave_rings();
        for &number in open {
            if number != theirs.as_raw_fd() && kept.iter().all(|kept| kept.as_raw_fd() != number) {
                // SAFETY: its owner is a stack frame of our parent, to which this process never returns.
                unsafe { libc::close(number) };
            }
        }
    };
    begin(SocketType::SEQPACKET, name, clone, leave, work)
}

/// Begins a process by `fork`, which returns as fork(2). It leaves what it shares with this one by `leave`, given the open
/// descriptors and its end of the socket, and does `work`.
fn begin(
    kind: SocketType,
    name: &CStr,
    fork: impl FnOnce() -> libc::c_long,
    leave: impl FnOnce(&[RawFd], BorrowedFd<'_>),
    work: impl FnOnce(OwnedFd),
) -> io::Result<Forked> {
    // In the child, no lock may be held by a thread that does not exist there.
    has_one_thread()?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    // Must precede the fork: a child that kept our end as well would never see it closed.
    let open = open_descriptors()?;
    let before = thread::mask_all()?;
    let pid = fork();
    if pid == 0 {
        let _ = rustix::thread::set_name(name);
        leave(&open, theirs.as_fd());
        let done = catch_unwind(AssertUnwindSafe(|| work(theirs)));
        // SAFETY: ends the process without running its parent's exit handlers.
        unsafe { libc::_exit(i32::from(done.is_err())) }
    }
    let forked = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
    thread::mask(&before)?;
    let pid = libc::pid_t::try_from(forked?).expect("the kernel's process IDs have this type");
    Ok(Forked { socket: Some(ours), pid, parent: getpid() })
}

fn has_one_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        _ => Err(io::Error::other("the process has threads already")),
    }
}

/// The resources that a process may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of address space.
    pub memory: u64,
    /// Seconds of processor time.
    pub seconds: u64,
    /// Time from start to end.
    pub time: Duration,
}

/// Forks a process that does `work` with its end of a socket (`SOCK_STREAM`) and all descriptors open here. The kernel
/// ends it if it exceeds `limits`. Dropping our end waits until it has ended.
///
/// # Errors
///
/// The errors of [`fork`].
pub fn apart(limits: Limits, work: impl FnOnce(OwnedFd)) -> io::Result<Forked> {
    has_one_thread()?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: as in `begin`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let limited = limits.set();
        let done = limited.is_ok() && catch_unwind(AssertUnwindSafe(|| work(theirs))).is_ok();
        // SAFETY: as in `begin`.
        unsafe { libc::_exit(i32::from(!done)) }
    }
    if pid < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(Forked { socket: Some(ours), pid, parent: getpid() })
    }
}

impl Limits {
    /// Sets the limits for the calling process.
    fn set(self) -> io::Result<()> {
        for (resource, most) in
            [(Resource::As, self.memory), (Resource::Cpu, self.seconds), (Resource::Core, 0)]
        {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        thread::end_after(self.time)
    }
}

/// Does `work` in another process after this one has ended, even if this one has become another program by then. That
/// program does not see the process: it is not its child, and holds neither its terminal nor its descriptors.
///
/// # Errors
///
/// The errors of [`fork`].
pub fn afterwards(name: &CStr, work: impl FnOnce()) -> io::Result<()> {
    let this = getpid();
    let forked = fork(name, |socket| {
        // SAFETY: this process has one thread.
        if unsafe { libc::fork() } != 0 {
            // The other process now has another parent.
            return;
        }
        let Ok(watched) = watch_alone(this, &socket) else { return };
        drop(socket);
        while !poll(&mut [PollFd::new(&watched, PollFlags::IN)], None).is_ok_and(|ready| ready > 0) {}
        work();
    })?;
    match retry_on_intr(|| rustix::io::read(forked.socket(), &mut [0u8; 1]))? {
        0 => Err(io::Error::other("the process that would do it later does not start")),
        _ => Ok(()),
    }
}

/// Leaves everything that this process shares with `other`, reports that, and returns a descriptor that is readable when
/// `other` has ended.
fn watch_alone(other: Pid, report: &OwnedFd) -> io::Result<OwnedFd> {
    setsid()?;
    chdir("/")?;
    let watched = pidfd_open(other, PidfdFlags::empty())?;
    for number in open_descriptors()? {
        if number != watched.as_raw_fd() && number != report.as_raw_fd() {
            // SAFETY: its owner is a stack frame of another process, to which this one never returns.
            unsafe { libc::close(number) };
        }
    }
    rustix::io::write(report, &[1])?;
    Ok(watched)
}

/// Waits for a child to end.
fn wait_for(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is writable; the process is our child, or the call fails.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Ends this [forked](fork) process `grace` after the other end of its socket is closed, even if it is waiting, for
/// instance for a slow file system. The other side may have changed its user, and may not send it signals. Call this
/// before anything that may take long.
///
/// # Errors
///
/// No resources for another thread.
pub fn end_with(socket: impl AsFd, grace: Duration) -> io::Result<()> {
    let socket = socket.as_fd().try_clone_to_owned()?;
    thread::spawn_bare("weir-end", move || {
        // No event is requested: poll reports a closed other end in any case.
        while !poll(&mut [PollFd::new(&socket, PollFlags::empty())], None).is_ok_and(|ready| ready > 0) {}
        std::thread::sleep(grace);
        // SAFETY: ends the process without running its parent's exit handlers.
        unsafe { libc::_exit(1) }
    })?;
    Ok(())
}

impl Forked {
    /// Returns our end of the socket.
    #[expect(clippy::missing_panics_doc, reason = "the socket is there until it is dropped")]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("it is there until it is dropped").as_fd()
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        if getpid() == self.parent {
            // A fork of ours may still have the socket open.
            let _ = shutdown(&socket, Shutdown::Both);
            drop(socket);
            wait_for(self.pid);
        }
    }
}

/// Runs `work` in a new process with one thread, which may [`fork`] unlike a test, and returns its result, or what its panic
/// says. For tests alone.
///
/// # Panics
///
/// If there is no such process.
pub fn in_a_test(work: impl FnOnce() -> String) -> String {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    // SAFETY: the child allocates, which is sound with the C library's allocator (fork(3) holds its locks), and ends without
    // running any other code of its parent.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", io::Error::last_os_error());
    if pid == 0 {
        drop(ours);
        let said = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned())
        });
        let _ = (&theirs).write_all(said.as_bytes());
        // SAFETY: as in `begin`.
        unsafe { libc::_exit(0) }
    }
    drop(theirs);
    let mut said = String::new();
    ours.read_to_string(&mut said).expect("what it says");
    wait_for(pid);
    said
}

fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/self/fd")?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Unmaps the rings of sockets, and the maps and buffers of the kernel: each mapping keeps its socket or map alive.
fn leave_rings() {
    for line in fs::read_to_string("/proc/self/maps").unwrap_or_default().lines() {
        let Some((start, end)) = line.split_once(' ').and_then(|(range, rest)| {
            let of_the_kernel = rest.contains(" socket:[") || rest.contains(" anon_inode:");
            range.split_once('-').filter(|_| of_the_kernel)
        }) else {
            continue;
        };
        let number = |text| usize::from_str_radix(text, 16).ok();
        if let (Some(start), Some(end)) = (number(start), number(end)) {
            // SAFETY: its owner is a stack frame of our parent, to which this process never returns.
            unsafe { libc::munmap(start as *mut libc::c_void, end - start) };
        }
    }
}

/// Closes descriptors that an `execve` would close: sockets, programs and maps of a capture must go away with the
/// capture.
fn close_what_an_exec_would(open: &[RawFd], keep: BorrowedFd<'_>) {
    for &number in open {
        // SAFETY: only reads a descriptor's flags; if it is not open, the call fails.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        if number != keep.as_raw_fd() && flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
            // SAFETY: its owner is a stack frame of our parent, to which this process never returns.
            unsafe { libc::close(number) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn who_goes_beyond_the_limits_is_ended() {
        // Needs a process with one thread, unlike the test's own.
        let told = in_a_test(|| {
            let limits = |time| Limits { memory: 1 << 30, seconds: 1, time: Duration::from_millis(time) };
            let said = |work: fn(&mut File)| said_within(limits(300_000), work);
            let idle = said_within(limits(50), |socket| {
                std::thread::sleep(Duration::from_secs(60));
                let _ = socket.write_all(b"for a minute");
            });
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
            format!("{well}, {busy}, {large}, {idle}")
        });
        assert_eq!(told, "well, , not, ");
    }

    /// Runs `work` apart, and returns what it has written when it has ended.
    fn said_within(limits: Limits, work: fn(&mut File)) -> String {
        // As where it is used: signals are blocked.
        thread::mask_all().expect("a mask");
        let forked = apart(limits, |socket| work(&mut File::from(socket))).expect("a process");
        let mut said = String::new();
        let mut socket = File::from(forked.socket().try_clone_to_owned().expect("a descriptor"));
        socket.read_to_string(&mut said).expect("until it ends");
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
