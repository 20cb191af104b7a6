//! The names in a bpffs under which rules stay in force without a process:
//!
//! ```text
//! /sys/fs/bpf/weir/guard-NAMESPACE-INDEX/{xdp, ingress, egress}
//! ```
//!
//! Each is the link of a program; the numbers are the network namespace and the index of the interface. A guard whose rules are to stay
//! holds a lock on the directory for as long as it runs, so whoever has the lock may take over what is there: it puts its own programs
//! into the links, and no packet meets none.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::bpf::query::Attached;
use weir_sys::bpf::{TcxLink, XdpLink};
use weir_sys::netns;

use super::OnExit;
use crate::Error;
use crate::live::bpffs::{BPFFS, Key, is_bpffs, lock, make_directory, own, own_if_there, privileged, root};
use crate::live::error::Problem;
use crate::live::interface::monitored::MonitoredInterface;

/// Where a program of rules is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Xdp,
    Ingress,
    Egress,
}

impl Place {
    pub(super) const ALL: [Self; 3] = [Self::Xdp, Self::Ingress, Self::Egress];

    /// Returns the name of its link.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// The directory of an interface, and the right to change it.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    _locked: File,
}

/// Links that a guard has left which has ended. None of them detaches its program when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) xdp: Option<XdpLink>,
    pub(super) ingress: Option<TcxLink>,
    pub(super) egress: Option<TcxLink>,
}

/// A link of either kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnyLink<'a> {
    Xdp(&'a XdpLink),
    Tcx(&'a TcxLink),
}

/// Calls a method that both kinds have.
macro_rules! either {
    ($link:expr, $method:ident($($argument:expr),*)) => {
        match $link {
            AnyLink::Xdp(link) => link.$method($($argument),*),
            AnyLink::Tcx(link) => link.$method($($argument),*),
        }
    };
}

impl AnyLink<'_> {
    pub(super) fn exchange(self, program: BorrowedFd<'_>) -> Result<(), CallError> {
        either!(self, exchange(program))
    }

    pub(super) fn attached(self) -> Result<Attached, CallError> {
        either!(self, attached())
    }

    pub(super) fn pin(self, file: &Path) -> Result<(), Error> {
        either!(self, pin(file)).map_err(privileged)
    }

    pub(super) fn stay(self, stays: bool) {
        either!(self, stay(stays));
    }

    pub(super) fn detach(self) -> Result<(), CallError> {
        either!(self, detach())
    }
}

impl Pins {
    /// Returns the directory of the interface, if rules are to stay in force there or have stayed, and the lock on it.
    pub(super) fn of(monitored: &MonitoredInterface, on_exit: OnExit) -> Result<Option<Self>, Error> {
        let stays = on_exit == OnExit::Closed;
        let root = root();
        if !is_bpffs() {
            return if stays { Err(no_bpffs()) } else { Ok(None) };
        }
        let key = Key { namespace: monitored.inside(netns::cookie)??, index: monitored.index() };
        let directory = place(&root, key);
        if stays {
            make_directory(&root)?;
            own(&root)?;
        } else if own_if_there(&root).is_err() || !directory.is_dir() {
            // What cannot be seen or trusted is not taken over.
            return Ok(None);
        }
        match lock(&directory, stays)? {
            Some(locked) => Ok(Some(Self { directory, _locked: locked })),
            None if stays => Err(held(monitored.name())),
            None => Ok(None),
        }
    }

    /// Locks an existing directory; `None`: its guard is running.
    pub(super) fn taken(directory: &Path) -> Result<Option<Self>, Error> {
        Ok(lock(directory, false)?.map(|locked| Self { directory: directory.to_owned(), _locked: locked }))
    }

    /// Returns the links of programs that are still attached.
    pub(super) fn left(&self) -> Result<Left, Error> {
        left(&self.directory)
    }

    /// Returns the name of a link.
    pub(super) fn file(&self, place: Place) -> PathBuf {
        self.directory.join(place.name())
    }

    /// Removes the name of a link, if it has one.
    pub(super) fn unpin(&self, place: Place) -> Result<(), Error> {
        let file = self.file(place);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(privileged(CallError::new(format!("remove {}", file.display()), error)))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Pins {
    /// Removes the directory if nothing is in it. The lock is released last: a process waiting for it finds no directory then.
    fn drop(&mut self) {
        let _in_use = fs::remove_dir(&self.directory);
    }
}

impl Left {
    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.xdp.is_none() && self.ingress.is_none() && self.egress.is_none()
    }

    /// Returns where they are.
    pub(super) fn places(&self) -> Vec<Place> {
        Place::ALL.into_iter().filter(|place| self.link(*place).is_some()).collect()
    }

    pub(super) fn link(&self, place: Place) -> Option<AnyLink<'_>> {
        match place {
            Place::Xdp => self.xdp.as_ref().map(AnyLink::Xdp),
            Place::Ingress => self.ingress.as_ref().map(AnyLink::Tcx),
            Place::Egress => self.egress.as_ref().map(AnyLink::Tcx),
        }
    }
}

/// Returns the links in a directory of programs that are still attached.
pub(super) fn left(directory: &Path) -> Result<Left, Error> {
    let file = |place: Place| directory.join(place.name());
    let tcx = |place| opened(TcxLink::pinned(&file(place)), |link| AnyLink::Tcx(link));
    Ok(Left {
        xdp: opened(XdpLink::pinned(&file(Place::Xdp)), |link| AnyLink::Xdp(link))?,
        ingress: tcx(Place::Ingress)?,
        egress: tcx(Place::Egress)?,
    })
}

/// Returns a link that was opened; `None`: there is none, or its program is no longer attached.
fn opened<L>(link: Result<L, CallError>, any: impl Fn(&L) -> AnyLink<'_>) -> Result<Option<L>, Error> {
    match link {
        Ok(link) => {
            any(&link).stay(true);
            let is_attached = any(&link).attached()?.interface != 0;
            Ok(is_attached.then_some(link))
        }
        Err(error) if error.errno() == Errno::NOENT.raw_os_error() => Ok(None),
        Err(error) => Err(privileged(error)),
    }
}

/// bpffs does not allow dots in names.
pub(super) fn place(root: &Path, Key { namespace, index }: Key) -> PathBuf {
    root.join(format!("guard-{namespace}-{index}"))
}

/// Parses the interface from the name of a directory.
pub(super) fn parsed(name: &str) -> Option<Key> {
    let (namespace, index) = name.strip_prefix("guard-")?.split_once('-')?;
    Some(Key { namespace: namespace.parse().ok()?, index: index.parse().ok()? })
}

fn no_bpffs() -> Error {
    Error::Pins(Problem::new(
        format!("cannot keep rules in force without a process: {BPFFS} is not a bpffs here"),
        format!(
            "mount -t bpf -o mode=0700 bpf {BPFFS}; `ip netns exec` hides it: run outside, with NAMESPACE/IF"
        ),
    ))
}

/// Returns the error if the guard still runs that holds the lock.
pub(super) fn held(name: &str) -> Error {
    Error::Pins(Problem::new(
        format!("a running guard keeps its rules in force on `{name}`"),
        "replace its rules, or end it first",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_a_name_of_its_own() {
        for key in [Key { namespace: 1, index: 12 }, Key { namespace: 11, index: 2 }] {
            let path = place(&root(), key);
            let name = path.file_name().expect("a name").to_str().expect("text");
            assert!(parsed(name) == Some(key) && !name.contains('.'), "{name}");
        }
        assert_eq!(parsed("forward-1-1-1-2"), None);
    }
}
