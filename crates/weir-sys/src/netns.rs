//! Network namespaces without a name: they live while someone holds them, and need not be removed.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::CallError;
use crate::netlink::{self, Request};

/// Returns the number of the calling thread's namespace (Linux 5.14). Unlike the inode of its file, it is not reused
/// while the system runs.
///
/// # Errors
///
/// No free descriptor; `ENOPROTOOPT` on an older kernel.
pub fn cookie() -> Result<u64, CallError> {
    let failed = |error| CallError::new("get the number of a network namespace", error);
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(|error| failed(error.into()))?;
    let (mut cookie, mut length) = (0_u64, 8);
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which is its size; any bits are valid in it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(failed(io::Error::last_os_error())) }
}

/// A network namespace, held by a file descriptor.
///
/// The kernel removes the namespace and all its virtual devices when its last descriptor, process and socket are gone.
/// There is no entry in `/run/netns`, so a killed process leaves nothing behind.
#[derive(Debug)]
pub struct NetNs {
    fd: OwnedFd,
}

impl NetNs {
    /// Creates a namespace that contains only its loopback device, which is down. Needs `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    ///
    /// `EPERM` without that capability, `ENOSPC` if the system allows no more namespaces.
    pub fn new() -> Result<Self, CallError> {
        // The thread that creates the namespace also moves into it, so this uses a new thread.
        on_new_thread(|| {
            // SAFETY: CLONE_NEWNET does not unshare file descriptors or memory, on which safe code relies.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
                .map_err(|error| CallError::new("create a network namespace", error))?;
            Self::current()
        })
        .map_err(|error| CallError::new("start a thread for a network namespace", error))?
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// `ENOENT` if `/proc` is not mounted.
    pub fn current() -> Result<Self, CallError> {
        Self::open("/proc/thread-self/ns/net")
    }

    /// Opens the namespace that a file refers to: `/proc/PID/ns/net` or `/run/netns/NAME`.
    ///
    /// # Errors
    ///
    /// The error of `open(2)`; `EINVAL` for a file that is not a network namespace.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CallError> {
        let path = path.as_ref();
        let failed =
            |error: Errno| CallError::new(format!("open network namespace {}", path.display()), error);
        // NONBLOCK: if it is a pipe, do not wait for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        Self::try_from(fd).map_err(failed)
    }

    /// Returns another handle of the namespace, for another holder.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// Returns the number of this namespace in the calling thread's namespace, if it has one.
    pub fn number_here(&self) -> Option<i32> {
        const RTM_NEWNSID: u16 = 88;
        const RTM_GETNSID: u16 = 90;
        const NETNSA_NSID: u16 = 1;
        const NETNSA_FD: u16 = 3;
        /// `struct rtgenmsg`, with padding.
        const HEADER: usize = 4;
        let mut number = None;
        let request = Request::new(RTM_GETNSID, 0, &[0; HEADER]);
        let request = request.attribute(NETNSA_FD, &self.fd.as_raw_fd().to_ne_bytes());
        netlink::ask(netlink::ROUTE, &request, RTM_NEWNSID, |message| {
            let value = netlink::attribute(message.get(HEADER..).unwrap_or_default(), NETNSA_NSID);
            number = value.and_then(|value| value.try_into().ok()).map(i32::from_ne_bytes);
        })
        .ok()?;
        number.filter(|&number| number >= 0)
    }

    /// Returns the identity of this namespace: device and inode of its file.
    ///
    /// # Errors
    ///
    /// The error of `fstat(2)`.
    pub fn identity(&self) -> Result<(u64, u64), CallError> {
        let status = rustix::fs::fstat(&self.fd)
            .map_err(|error| CallError::new("inspect a network namespace", error))?;
        Ok((status.st_dev, status.st_ino))
    }

    /// Runs `work` on a new thread inside the namespace, and waits for it. A panic of `work` continues in the caller.
    ///
    /// Sockets created inside stay in the namespace wherever they are used later, and threads started inside stay
    /// there. The file system is the process's: `/sys/class/net` shows the namespace in which `/sys` was mounted, and
    /// `/proc/net` that of the process's first thread; `/proc/thread-self/net` and `/proc/sys/net` show this one.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_SYS_ADMIN`, or no thread can be started.
    pub fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, CallError> {
        let entered = on_new_thread(|| {
            enter(self.fd.as_fd())?;
            Ok(work())
        });
        entered.and_then(|inner| inner).map_err(|error| CallError::new("enter a network namespace", error))
    }

    /// Like [`inside`](Self::inside), for callers that know they have the privileges.
    ///
    /// # Panics
    ///
    /// If no thread can be started, or it may not enter the namespace, which needs `CAP_SYS_ADMIN`.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.inside(work).expect("entering a network namespace requires CAP_SYS_ADMIN")
    }

    /// Starts a program inside the namespace, with a `/sys` of its own that shows the namespace's devices (without what
    /// was mounted below `/sys`).
    ///
    /// The program is killed when this process ends for any reason, unless it changes its user first. `command` is
    /// changed permanently: if started again, it runs in the namespace again.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or `EPERM`: entering and mounting need `CAP_SYS_ADMIN`.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let namespace = self.fd.try_clone()?;
        let parent = getpid();
        let prepare = move || {
            die_with(parent)?;
            enter(namespace.as_fd())?;
            mount_own_sys()
        };
        // SAFETY: between fork and exec, this only makes system calls; it does not allocate or take locks.
        unsafe { command.pre_exec(prepare) };
        spawn_for_life(command)
    }
}

impl TryFrom<OwnedFd> for NetNs {
    type Error = Errno;

    /// Fails with `EINVAL` if the descriptor is not a network namespace.
    fn try_from(fd: OwnedFd) -> Result<Self, Errno> {
        if is_network_namespace(fd.as_fd()) { Ok(Self { fd }) } else { Err(Errno::INVAL) }
    }
}

impl From<NetNs> for OwnedFd {
    fn from(namespace: NetNs) -> Self {
        namespace.fd
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns whether the file is a network namespace.
fn is_network_namespace(file: BorrowedFd<'_>) -> bool {
    const NSFS_MAGIC: u64 = 0x6e73_6673;
    const NS_GET_NSTYPE: libc::Ioctl = 0xb703;
    if !rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type.cast_unsigned() == NSFS_MAGIC) {
        return false;
    }
    // SAFETY: files of nsfs support this request; it takes no argument and accesses no memory of this process.
    let kind = unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) };
    kind == libc::CLONE_NEWNET
}

/// Moves the calling thread into the namespace.
fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// Makes the kernel kill the calling process when its parent ends, even if that has already happened.
fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// Mounts a new sysfs in a separate mount namespace, which the rest of the system does not see. A sysfs shows the
/// network namespace in which it was mounted, so a program in a new namespace needs its own.
fn mount_own_sys() -> io::Result<()> {
    // SAFETY: CLONE_NEWNS does not unshare file descriptors or memory, on which safe code relies.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount(c"sysfs", c"/sys", c"sysfs", flags, None) {
        // A command that is started again does this twice.
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Runs `work` on a thread of its own. A panic continues in the caller.
fn on_new_thread<R: Send>(work: impl FnOnce() -> R + Send) -> io::Result<R> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        Ok(worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
    })
}

/// Starts `command` from a thread that lives as long as the process: the parent-death signal depends on the thread that
/// forked, not on the process.
fn spawn_for_life(command: &mut Command) -> io::Result<Child> {
    type Job = (Command, mpsc::SyncSender<(Command, io::Result<Child>)>);
    static FORKER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

    let forker = FORKER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, answer) in queue {
                let child = command.spawn();
                answer.send((command, child)).expect("the caller waits for the answer");
            }
        });
        jobs
    });
    let (answer, child) = mpsc::sync_channel(1);
    let owned = std::mem::replace(command, Command::new(""));
    forker.send((owned, answer)).expect("the thread ends with the process");
    let (owned, child) = child.recv().expect("the thread answers each job");
    *command = owned;
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(namespace: &NetNs) -> (u64, u64) {
        namespace.identity().expect("fstat")
    }

    #[test]
    fn current_is_the_namespace_of_the_thread() {
        let path = format!("/proc/{}/ns/net", std::process::id());
        let (current, opened) = (NetNs::current().expect("current"), NetNs::open(path).expect("open"));
        assert_eq!(identity(&current), identity(&opened));
    }

    #[test]
    fn an_error_names_the_file() {
        let error = NetNs::open("/run/netns/no-such-namespace").expect_err("there is none");
        assert!(error.to_string().contains("/run/netns/no-such-namespace"), "{error}");
        assert_eq!(error.errno(), libc::ENOENT);
    }

    #[test]
    fn a_file_that_is_no_network_namespace_is_refused() {
        for path in ["/proc/self/ns/mnt", "/dev/null", "/proc/self/status", "/"] {
            assert_eq!(NetNs::open(path).expect_err(path).errno(), libc::EINVAL);
        }
    }

    #[test]
    fn root_run_enters_and_leaves_the_caller_where_it_was() {
        let Some(namespace) = namespace() else { return };
        let before = identity(&NetNs::current().expect("current"));
        let inside = namespace.run(|| identity(&NetNs::current().expect("current")));
        assert_eq!(inside, identity(&namespace));
        assert_ne!(inside, before);
        assert_eq!(identity(&NetNs::current().expect("current")), before);
    }

    #[test]
    fn root_a_panic_inside_reaches_the_caller() {
        let Some(namespace) = namespace() else { return };
        let result = panic::catch_unwind(|| namespace.run(|| panic!("from inside")));
        assert_eq!(*result.expect_err("it panicked").downcast::<&str>().expect("a message"), "from inside");
    }

    #[test]
    fn root_a_child_sees_only_its_namespace() {
        let Some(namespace) = namespace() else { return };
        let mut list = Command::new("ls");
        list.arg("/sys/class/net").stdout(std::process::Stdio::piped());
        for _ in 0..2 {
            let output = namespace.spawn(&mut list).expect("spawn").wait_with_output().expect("wait");
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "lo");
        }
        assert!(Path::new("/sys/class/net").join("lo").exists(), "our own /sys is untouched");
    }

    #[test]
    fn root_a_program_that_does_not_exist_is_an_error() {
        let Some(namespace) = namespace() else { return };
        let error = namespace.spawn(&mut Command::new("/no/such/program")).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn root_a_namespace_is_open_only_in_this_process() {
        let Some(namespace) = namespace() else { return };
        let fd = namespace.as_fd().as_raw_fd();
        let mut look = Command::new("test");
        look.args(["-e", &format!("/proc/self/fd/{fd}")]);
        assert!(!namespace.spawn(&mut look).expect("spawn").wait().expect("wait").success());
    }

    /// Creates a namespace, or skips the test.
    fn namespace() -> Option<NetNs> {
        NetNs::new().map_err(weir_skip::this_test).ok()
    }
}
