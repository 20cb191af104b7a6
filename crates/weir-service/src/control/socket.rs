//! Location of a running capture's socket: `/run/weir/PID.sock`, or below `$XDG_RUNTIME_DIR` for users other than root.
//! A service uses the directory created by its service manager, below `/run/weir`.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{
    CWD, FlockOperation, Gid, Mode, OFlags, RenameFlags, chown, fchmod, flock, fstat, open, renameat_with,
};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect as connect_to, listen as hear,
    socket_with,
};

/// The system-wide directory.
const SYSTEM: &str = "/run/weir";
/// Longest wait for another process to clean up a directory, or to replace a socket.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// Most connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Returns the directories in which a capture of this user may put its socket, best first.
fn homes() -> Vec<PathBuf> {
    let named = |variable: &str| {
        let path = PathBuf::from(std::env::var_os(variable)?);
        path.is_absolute().then_some(path)
    };
    let own = named("XDG_RUNTIME_DIR").map(|base| base.join("weir"));
    let system = Some(PathBuf::from(SYSTEM));
    // RuntimeDirectory= in systemd.exec(5). If it names several, none of them belongs to weir alone.
    let service = named("RUNTIME_DIRECTORY").filter(|path| path.starts_with(SYSTEM) && path.is_dir());
    let homes =
        if rustix::process::geteuid().is_root() { [service, system, own] } else { [service, own, system] };
    homes.into_iter().flatten().collect()
}

/// Returns the directories in which captures have their sockets, those of this user first.
pub(super) fn directories() -> Vec<PathBuf> {
    let mut all = homes();
    let entries = fs::read_dir(SYSTEM).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut below: Vec<PathBuf> =
        below.map(|entry| entry.path()).filter(|path| !all.contains(path)).collect();
    below.sort();
    all.append(&mut below);
    all
}

/// Returns the path that the socket of `process` would have in `directory`.
pub(super) fn of_process(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.sock"))
}

/// Listens at the default location, for the owner and an optional `group`. If that fails, returns the first location
/// and the error.
pub(super) fn listen_somewhere(group: Option<u32>) -> Result<(UnixListener, PathBuf), (PathBuf, io::Error)> {
    let mut why = None;
    for directory in homes() {
        let _there_already = DirBuilder::new().mode(0o755).create(&directory);
        sweep(&directory);
        let path = of_process(&directory, std::process::id());
        match listen(&path, group) {
            Ok(listener) => return Ok((listener, path)),
            Err(error) => why = why.or(Some((path, error))),
        }
    }
    Err(why.expect("there is one place at least"))
}

/// Listens at `path`, for the owner and an optional `group`. Replaces a socket that nobody listens on.
///
/// The socket is created elsewhere and then moved. A client that finds it at `path` must find it with its final mode
/// and listening, or it would take it for a leftover. Others may be able to rename files in the directory, or the
/// directory itself. So the directory is held open, and the socket is created in a subdirectory that nobody else may
/// write to.
pub(crate) fn listen(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    listen_as(path, std::process::id(), group)
}

/// Listens as process `process`.
fn listen_as(path: &Path, process: u32, group: Option<u32>) -> io::Result<UnixListener> {
    // The path through a held directory is short, but clients need one that fits an address.
    SocketAddrUnix::new(path)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = Held::open(path.parent().unwrap_or(path), OFlags::empty())?;
    let path = directory.join(name);
    let cradle = directory.join(format!(".{process}"));
    let _of_a_process_that_was_killed = remove_cradle(&cradle);
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // `bind` creates a file with the socket's mode, so others can never write to it.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    DirBuilder::new().mode(0o700).create(&cradle)?;
    let moved = (|| {
        let ours = Held::open(&cradle, OFlags::NOFOLLOW)?;
        if !ours.is_ours_alone()? {
            let what = "another user renames files there";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let unborn = ours.join(UNBORN);
        bind(&socket, &SocketAddrUnix::new(&unborn)?)?;
        if let Some(group) = group {
            chown(&unborn, None, Some(Gid::from_raw(group)))?;
            fs::set_permissions(&unborn, Permissions::from_mode(0o660))?;
        }
        hear(&socket, BACKLOG)?;
        let _nobody_else = Lock::take(&directory.path)?;
        if is_left(&path) {
            fs::remove_file(&path)?;
        }
        Ok(renameat_with(CWD, &unborn, CWD, &path, RenameFlags::NOREPLACE)?)
    })();
    let _gone_already = remove_cradle(&cradle);
    moved.map(|()| socket.into())
}

/// Name of a socket until it is moved.
const UNBORN: &str = "socket";

/// Removes the directory in which a socket was created, and its contents. A directory of another user stays.
fn remove_cradle(cradle: &Path) -> io::Result<()> {
    let ours = Held::open(cradle, OFlags::NOFOLLOW)?;
    if ours.is_ours_alone()? {
        let _moved = fs::remove_file(ours.join(UNBORN));
        fs::remove_dir(cradle)?;
    }
    Ok(())
}

/// A directory that stays the same even if it is renamed.
#[derive(Debug)]
struct Held {
    directory: OwnedFd,
    /// Path to it through the descriptor.
    path: PathBuf,
}

impl Held {
    fn open(path: &Path, flags: OFlags) -> io::Result<Self> {
        // A relative path without a directory has an empty parent.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = flags | OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Ok(Self { directory, path })
    }

    fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    fn is_ours(&self) -> io::Result<bool> {
        Ok(fstat(&self.directory)?.st_uid == rustix::process::geteuid().as_raw())
    }

    fn is_ours_alone(&self) -> io::Result<bool> {
        Ok(self.is_ours()? && fstat(&self.directory)?.st_mode & 0o077 == 0)
    }
}

/// Connects to the listener at `path`. Does not wait for a busy one: `EAGAIN`.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_to(&socket, &SocketAddrUnix::new(path)?)?;
    ioctl_fionbio(&socket, false)?;
    Ok(socket.into())
}

/// A lock that keeps others from cleaning up a socket in a directory, or removing its replacement, until it is dropped.
///
/// It is taken on a file that only its owner can open. Anyone who can open a directory could lock it and hold the lock
/// forever.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(directory: &Path) -> io::Result<Self> {
        let path = directory.join(".lock");
        let until = Instant::now() + PATIENCE;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        loop {
            let file = File::from(open(&path, flags, Mode::RUSR | Mode::WUSR)?);
            let found = file.metadata()?;
            if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
                let what = format!("{} belongs to another user or is accessible to others", path.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // The previous holder has removed the file.
                Ok(()) if fs::symlink_metadata(&path).map_or(0, |there| there.ino()) != found.ino() => {}
                Ok(()) => return Ok(Self { path, _file: file }),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => {
                    let what = format!("another process has held {} for too long", path.display());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is locked: a process that has opened it notices that it is not the current file.
        let _gone_already = fs::remove_file(&self.path);
    }
}

/// Removes the sockets of killed captures, but only in our own directory: a lock file owned by root in a service's
/// directory would block the service.
pub(super) fn sweep(directory: &Path) {
    let Ok(directory) = Held::open(directory, OFlags::empty()) else { return };
    if sockets(&directory.path).is_empty() || !directory.is_ours().is_ok_and(|ours| ours) {
        return;
    }
    let Ok(_nobody_else) = Lock::take(&directory.path) else { return };
    for path in sockets(&directory.path) {
        if is_left(&path) {
            let _not_ours = fs::remove_file(path);
        }
    }
}

/// Returns the sockets in `directory`, sorted by name.
pub(super) fn sockets(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_socket(path)).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    paths.sort();
    paths
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket())
}

/// Returns whether `path` is a socket that nobody listens on.
fn is_left(path: &Path) -> bool {
    is_socket(path) && connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_socket_that_was_left_is_swept_and_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let _heard = listen(&path("1.sock"), None).expect("listens");
        drop(listen(&path("2.sock"), None).expect("listens"));
        fs::write(path("3.sock"), "a file").expect("writes");
        assert!(listen(&path("1.sock"), None).is_err(), "somebody listens");
        sweep(directory.path());
        assert_eq!(sockets(directory.path()), [path("1.sock")]);
        assert!(path("3.sock").exists());
        drop(listen(&path("2.sock"), None).expect("listens"));
        drop(listen(&path("2.sock"), None).expect("replaces"));
        let mode = fs::metadata(path("1.sock")).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_socket_that_is_there_is_listened_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.sock");
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..500 {
                    let listener = listen(&path, None).expect("listens");
                    assert_eq!(sockets(directory.path()), [path.as_path()], "nothing else is left there");
                    fs::remove_file(&path).expect("nobody has swept it");
                    drop(listener);
                }
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                sweep(directory.path());
            }
        });
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }

    #[test]
    fn of_two_who_find_a_socket_left_one_has_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.sock");
        let start = Barrier::new(2);
        for _ in 0..2000 {
            // Without ever listening: a child that another test is starting may hold a copy of a listening descriptor.
            let left = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
            let address = SocketAddrUnix::new(&path).expect("a short path");
            bind(left.expect("a socket"), &address).expect("nothing is there");
            // Each under a different name, as separate processes would use.
            let listeners = thread::scope(|scope| {
                let one = |number: u32| {
                    let (path, start) = (&path, &start);
                    scope.spawn(move || {
                        start.wait();
                        listen_as(path, number, None)
                    })
                };
                [one(0), one(1)].map(|one| one.join().expect("no panic").ok())
            });
            let listeners: Vec<_> = listeners.into_iter().flatten().collect();
            assert_eq!(listeners.len(), 1);
            connect(&path).expect("who has it is heard");
            fs::remove_file(&path).expect("it is there");
        }
    }

    #[test]
    fn one_who_takes_no_connection_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.sock");
        let listener = listen(&path, None).expect("listens");
        rustix::net::listen(&listener, 0).expect("a shorter queue");
        let waiting = connect(&path).expect("the queue has room for one");
        assert_eq!(connect(&path).expect_err("it is full").kind(), io::ErrorKind::WouldBlock);
        sweep(directory.path());
        assert!(path.exists());
        drop(waiting);
    }

    #[test]
    fn whoever_locks_the_directory_holds_up_nobody() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.sock");
        let held = File::open(directory.path()).expect("anybody may");
        flock(&held, FlockOperation::LockExclusive).expect("nobody else has it");
        let _heard = listen(&path, None).expect("listens");
        sweep(directory.path());
        assert_eq!(sockets(directory.path()), [path]);
    }

    #[test]
    fn nobody_is_waited_for_without_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let held = Lock::take(directory.path()).expect("nobody has it");
        let error = listen(&directory.path().join("1.sock"), None).expect_err("another has it");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(held);
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
        // A file that others may open, and so hold, is not used as a lock.
        fs::write(directory.path().join(".lock"), "").expect("writes");
        let _heard = listen(&directory.path().join("1.sock"), None).expect_err("not ours alone");
    }

    #[test]
    fn who_renames_directories_gets_nobodys_file() {
        let base = tempfile::tempdir().expect("a directory");
        let path = |name: &str| base.path().join(name);
        fs::write(path("victim"), "").expect("writes");
        fs::set_permissions(path("victim"), Permissions::from_mode(0o600)).expect("it is ours");
        fs::create_dir(path("wanted")).expect("makes it");
        fs::create_dir(path("trap")).expect("makes it");
        let trap = Held::open(&path("trap"), OFlags::empty()).expect("opens");
        let (over, turns) = (AtomicBool::new(false), AtomicU32::new(0));
        thread::scope(|scope| {
            let renames = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Under the name of the new directory, in place of the directory that contains it.
                    let _there_already = std::os::unix::fs::symlink(path("victim"), trap.join(".7"));
                    let both = (path("wanted"), path("trap"));
                    renameat_with(CWD, &both.0, CWD, &both.1, RenameFlags::EXCHANGE).expect("exchanges");
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
            let group = rustix::process::getegid().as_raw();
            let mut tries = 0;
            while tries < 3000 || (turns.load(Ordering::Relaxed) < 1000 && !renames.is_finished()) {
                tries += 1;
                let _may_fail = listen_as(&path("wanted/x.sock"), 7, Some(group));
                for directory in ["wanted", "trap"] {
                    let _not_in_both = fs::remove_file(path(directory).join("x.sock"));
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::metadata(path("victim")).expect("is there").mode() & 0o777, 0o600);
    }

    #[test]
    fn a_group_that_may_ask_may_connect_and_nobody_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1.sock");
        let group = rustix::process::getegid().as_raw();
        let _heard = listen(&path, Some(group)).expect("listens");
        let found = fs::metadata(&path).expect("is there");
        assert_eq!((found.mode() & 0o777, found.gid()), (0o660, group));
    }
}
