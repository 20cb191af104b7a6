//! Where the socket of a running capture is: `/run/weir/PID.sock`, or under `$XDG_RUNTIME_DIR` for others than root.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::ioctl_fionbio;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
};

/// The system's directory.
const SYSTEM: &str = "/run/weir";

/// The directories in which captures have their sockets, that of this user first.
pub(super) fn directories() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|base| PathBuf::from(base).join("weir"));
    let own = own.filter(|path| path.is_absolute());
    let mut all = vec![PathBuf::from(SYSTEM)];
    if rustix::process::geteuid().is_root() {
        all.extend(own)
    } else {
        all.splice(0..0, own).for_each(drop)
    }
    all
}

/// The socket of process `process`, were it in `directory`.
pub(super) fn of_process(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.sock"))
}

/// Listens at the usual place; `None` where there is none that we may use.
pub(super) fn listen_somewhere() -> Option<(UnixListener, PathBuf)> {
    let usable = |directory: PathBuf| {
        let _there_already = DirBuilder::new().mode(0o755).create(&directory);
        sweep(&directory);
        let path = of_process(&directory, std::process::id());
        listen(&path).ok().map(|listener| (listener, path))
    };
    directories().into_iter().find_map(usable)
}

/// Listens at `path`, for the owner alone. A socket on which nobody listens any more is replaced.
///
/// It is made under another name and moved: who finds it at `path` finds it with its mode and listened on, or would take it
/// for one that was left.
pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
    listen_as(path, std::process::id())
}

/// The same for process `process`.
fn listen_as(path: &Path, process: u32) -> io::Result<UnixListener> {
    let unborn = path.with_file_name(format!(".{process}"));
    let _of_a_process_that_was_killed = fs::remove_file(&unborn);
    let listener = UnixListener::bind(&unborn)?;
    let moved = fs::set_permissions(&unborn, Permissions::from_mode(0o600)).and_then(|()| {
        let _nobody_else = lock(path.parent().unwrap_or(path))?;
        if is_left(path) {
            fs::remove_file(path)?;
        }
        Ok(renameat_with(CWD, &unborn, CWD, path, RenameFlags::NOREPLACE)?)
    });
    if moved.is_err() {
        let _of_no_use = fs::remove_file(&unborn);
    }
    moved.map(|()| listener)
}

/// A connection to who listens at `path`. Does not wait for one who has no time to take it: `EAGAIN`.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_to(&socket, &SocketAddrUnix::new(path)?)?;
    ioctl_fionbio(&socket, false)?;
    Ok(socket.into())
}

/// Keeps others from finding a socket left in `directory`, and from removing what has taken its place since, until it is dropped.
fn lock(directory: &Path) -> io::Result<File> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let locked = File::open(directory)?;
    flock(&locked, FlockOperation::LockExclusive)?;
    Ok(locked)
}

/// Removes the sockets of captures that were killed, as far as we may.
pub(super) fn sweep(directory: &Path) {
    let Ok(_nobody_else) = lock(directory) else { return };
    for path in sockets(directory) {
        if is_left(&path) {
            let _not_ours = fs::remove_file(path);
        }
    }
}

/// The sockets in `directory`, in the order of their names.
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

/// A socket on which nobody listens.
fn is_left(path: &Path) -> bool {
    is_socket(path) && connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_socket_that_was_left_is_swept_and_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let _heard = listen(&path("1.sock")).expect("listens");
        drop(listen(&path("2.sock")).expect("listens"));
        fs::write(path("3.sock"), "a file").expect("writes");
        assert!(listen(&path("1.sock")).is_err(), "somebody listens");
        sweep(directory.path());
        assert_eq!(sockets(directory.path()), [path("1.sock")]);
        assert!(path("3.sock").exists());
        drop(listen(&path("2.sock")).expect("listens"));
        drop(listen(&path("2.sock")).expect("replaces"));
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
                    let listener = listen(&path).expect("listens");
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
            // Nobody has ever listened: a child that another test is just starting may have copies of what listens here.
            let left = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
            let address = SocketAddrUnix::new(&path).expect("a short path");
            rustix::net::bind(left.expect("a socket"), &address).expect("nothing is there");
            // Each in a name of its own, as processes would.
            let listeners = thread::scope(|scope| {
                let one = |number: u32| {
                    let (path, start) = (&path, &start);
                    scope.spawn(move || {
                        start.wait();
                        listen_as(path, number)
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
        let listener = listen(&path).expect("listens");
        rustix::net::listen(&listener, 0).expect("a shorter queue");
        let waiting = connect(&path).expect("the queue has room for one");
        assert_eq!(connect(&path).expect_err("it is full").kind(), io::ErrorKind::WouldBlock);
        sweep(directory.path());
        assert!(path.exists());
        drop(waiting);
    }
}
