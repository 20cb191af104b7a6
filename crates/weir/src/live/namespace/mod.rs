//! Network namespaces in which interfaces are captured.

pub(crate) mod context;
pub(crate) mod promiscuity;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weir_sys::CallError;
use weir_sys::link::{self, Link};
use weir_sys::netns::NetNs;

use crate::Error;
use crate::live::error::Problem;
use crate::live::error::command::{DIRECTORIES, is_process};

/// Capabilities needed to enter a namespace and open a packet socket there.
const TO_ENTER: &str = "cap_sys_admin,cap_net_raw";
/// Capabilities needed to look at the namespace of another user's process.
const TO_LOOK: &str = "cap_sys_ptrace,cap_sys_admin,cap_net_raw";

/// A network namespace in which interfaces are captured; see [`crate::Builder::interface_in`].
///
/// This value, and a capture in the namespace, keep it alive. A capture lets go of it when the file or process that
/// named it is gone.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: String,
    lease: Lease,
    identity: (u64, u64),
    netns: Arc<NetNs>,
}

impl Namespace {
    /// Finds a namespace: by its name in `ip netns` or Docker, by the ID of a process in it, or by the path of its file
    /// (any name with a slash).
    ///
    /// # Errors
    ///
    /// It does not exist, or access is denied. Each error says what to do.
    pub fn find(name: &str) -> Result<Self, Error> {
        let process = process_of(name)?;
        let path = path_of(name)?;
        let netns = NetNs::open(&path).map_err(|error| refused(name, &path, error))?;
        let lease = process.map_or(Lease::File(path), |process| Lease::Process(Arc::new(process)));
        Ok(Self { name: name.to_owned(), lease, identity: netns.identity()?, netns: Arc::new(netns) })
    }

    /// Returns the name as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the interfaces in the namespace, by index.
    ///
    /// # Errors
    ///
    /// The namespace cannot be entered, or the kernel does not list its interfaces.
    pub fn links(&self) -> Result<Vec<Link>, Error> {
        Ok(self.inside(link::links)??)
    }

    /// Returns the namespace's unique identity.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Runs `work` inside the namespace: sockets and programs that it creates stay there. This takes no privileges if
    /// the thread is in the namespace already.
    ///
    /// # Errors
    ///
    /// The namespace cannot be entered.
    pub fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        if here() == Some(self.identity) {
            return Ok(work());
        }
        self.netns.inside(work).map_err(|error| match Errno::from_raw_os_error(error.errno()) {
            Errno::PERM => Error::Privilege {
                operation: format!("enter network namespace `{}`", self.name),
                needs: TO_ENTER,
            },
            _ => error.into(),
        })
    }

    /// Returns what shows that the namespace is gone; `None` if this thread is in it.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let foreign = here() != Some(self.identity);
        foreign.then(|| Watch { lease: self.lease.clone(), identity: self.identity })
    }
}

/// Returns the identity of this thread's namespace, if `/proc` shows it.
pub(crate) fn here() -> Option<(u64, u64)> {
    NetNs::current().and_then(|netns| netns.identity()).ok()
}

/// The file or process that named a namespace.
#[derive(Clone, Debug)]
enum Lease {
    File(PathBuf),
    /// A pidfd: it never stands for another process, even if the ID is reused.
    Process(Arc<OwnedFd>),
}

/// Checks whether a namespace still exists for the user; our own sockets in it keep it alive.
#[derive(Debug)]
pub(crate) struct Watch {
    lease: Lease,
    identity: (u64, u64),
}

impl Watch {
    /// Whether the file or process that named the namespace is gone, or stands for another one.
    pub(crate) fn is_over(&self) -> bool {
        match &self.lease {
            Lease::File(path) => match fs::metadata(path) {
                Ok(file) => (file.dev(), file.ino()) != self.identity,
                // Being denied access proves nothing.
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            },
            // A pidfd is readable once the process has ended.
            Lease::Process(process) => {
                let mut fds = [PollFd::new(process, PollFlags::IN)];
                poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
            }
        }
    }
}

/// Opens the process, if `name` is the ID of one.
fn process_of(name: &str) -> Result<Option<OwnedFd>, Error> {
    let number = is_process(name).then(|| name.parse().ok()).flatten();
    let Some(process) = number.and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(process, PidfdFlags::empty()) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH | Errno::INVAL) => Ok(None), // the file will not be found either
        Err(error) => Err(CallError::new(format!("open process {name}"), error).into()),
    }
}

fn path_of(name: &str) -> Result<PathBuf, Error> {
    if name.contains('/') {
        return Ok(name.into());
    }
    if is_process(name) {
        return Ok(format!("/proc/{name}/ns/net").into());
    }
    let places = DIRECTORIES.map(|directory| Path::new(directory).join(name));
    let found =
        places.into_iter().find(|path| !name.is_empty() && name != "." && name != ".." && path.exists());
    found.ok_or_else(|| {
        let known = names();
        let known = match known.as_slice() {
            [] => "create one with `ip netns add`".to_owned(),
            names => format!("available: {}", names.join(", ")),
        };
        Error::Namespace {
            name: name.to_owned(),
            source: Problem::new(
                "no such namespace",
                format!("{known}; for a container, give the ID of one of its processes"),
            ),
        }
    })
}

/// Returns all names of namespaces.
pub(crate) fn names() -> Vec<String> {
    let entries = DIRECTORIES.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Translates the kernel's error when it does not open a namespace.
fn refused(name: &str, path: &Path, error: CallError) -> Error {
    let is_process = path.starts_with("/proc") && !name.contains('/');
    let (what, remedy) = match Errno::from_raw_os_error(error.errno()) {
        Errno::ACCESS | Errno::PERM => {
            return Error::Privilege {
                operation: format!("inspect network namespace `{name}`"),
                needs: TO_LOOK,
            };
        }
        Errno::NOENT | Errno::SRCH if is_process => {
            (format!("no such process: {name}"), "`lsns -t net` lists namespaces with their processes")
        }
        Errno::NOENT => (format!("no such file: {name}"), "`lsns -t net -n` lists namespaces"),
        Errno::INVAL => (
            format!("{} is not a network namespace", path.display()),
            "use a file such as /run/netns/NAME or /proc/PID/ns/net",
        ),
        _ => return error.into(),
    };
    Error::Namespace { name: name.to_owned(), source: Problem::new(what, remedy).because(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_entered_without_privilege() {
        for name in [std::process::id().to_string(), "/proc/self/ns/net".to_owned()] {
            let namespace = Namespace::find(&name).unwrap();
            assert_eq!(
                namespace.inside(|| std::thread::current().id()).unwrap(),
                std::thread::current().id()
            );
            assert!(namespace.links().unwrap().iter().any(|link| link.name == "lo"));
            assert!(namespace.watch().is_none(), "we are in it: nobody can take it away");
        }
    }

    #[test]
    fn what_is_no_namespace_is_told() {
        for (name, what) in [
            ("no-such-name", "no such namespace"),
            ("", "no such namespace"),
            ("..", "no such namespace"),
            ("4194305", "no such process: 4194305"), // beyond the largest ID that the kernel allows
            ("/no/such/file", "no such file: /no/such/file"),
            ("/dev/null", "/dev/null is not a network namespace"),
            ("/proc/self/ns/mnt", "is not a network namespace"),
        ] {
            let error = Namespace::find(name).unwrap_err();
            assert!(error.to_string().contains(what) && error.hint().is_some(), "{name}: {error}");
        }
    }
}
