//! The names in a bpffs under which forwarding continues in the kernel:
//!
//! ```text
//! /sys/fs/bpf/weir/forward-NAMESPACE-INDEX-NAMESPACE-INDEX/{forth,back}/{link, accounts, sent, refused, filters, outcomes, promiscuous}
//! ```
//!
//! The numbers are the network namespace and index of each interface, the receiving one first; interface names may
//! change, and differ between namespaces. `promiscuous` is a directory that exists if promiscuous mode has to be
//! switched off at the end. `sent` and `refused` are in `forth` only: they serve both ways.
//!
//! A process that begins or ends forwarding holds a lock on the directory, which only its owner can open. If two begin
//! at once, only one succeeds, and the other has nothing that it could remove.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, statfs};
use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::netns;

use super::directory::{make_directory, privileged};
use super::endpoint::Endpoint;
use crate::Error;
use crate::live::error::Problem;

pub(super) const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// Directories of the two directions.
pub(super) const DIRECTIONS: [&str; 2] = ["forth", "back"];
/// The program's link, pinned last: without it nothing else has any effect.
pub(super) const LINK: &str = "link";
pub(super) const PROMISCUOUS: &str = "promiscuous";
/// How often to retry when another process removes the directory at the same moment.
const ATTEMPTS: u32 = 10;

/// The directory of pinned forwarding, and the right to change it.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    /// Held until the directory should stay; otherwise it is removed on drop.
    locked: Option<File>,
}

/// Identifies an interface while the system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) namespace: u64,
    pub(super) index: u32,
}

impl Pins {
    /// Creates the directory for forwarding that is about to begin.
    pub(super) fn make(endpoints: &[Endpoint; 2]) -> Result<Self, Error> {
        if !is_bpffs() {
            return Err(Error::Forward(Problem::new(
                format!("forwarding cannot outlive the process without a bpffs at {BPFFS}"),
                format!("mount -t bpf -o mode=0700 bpf {BPFFS}"),
            )));
        }
        let root = root();
        make_directory(&root)?;
        own(&root)?;
        let directory = place(&root, keys(endpoints)?);
        let [from, to] = endpoints;
        let Some(locked) = lock(&directory, true)? else {
            return Err(begins(&directory, from.name(), to.name()));
        };
        if goes_on(&directory) {
            return Err(already(from.name(), to.name()));
        }
        let pins = Self { directory, locked: Some(locked) };
        // Removes what a killed process has left.
        pins.empty()?;
        Ok(pins)
    }

    /// Fails if this is forwarded already, as far as a directory says that can be trusted.
    pub(super) fn check(endpoints: &[Endpoint; 2]) -> Result<(), Error> {
        let [from, to] = endpoints;
        // What somebody else has put there is not ours to end, and forwarding without pins does not need it.
        if own_if_there(&root()).is_err() {
            return Ok(());
        }
        if goes_on(&place(&root(), keys(endpoints)?)) { Err(already(from.name(), to.name())) } else { Ok(()) }
    }

    /// Returns the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the directory of a direction.
    pub(super) fn direction(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.directory.join(name);
        make_directory(&directory)?;
        Ok(directory)
    }

    /// Returns the mark for an interface that was made promiscuous.
    pub(super) fn promiscuous(&self, name: &str) -> PathBuf {
        self.directory.join(name).join(PROMISCUOUS)
    }

    /// Keeps the directory.
    pub(super) fn keep(&mut self) {
        self.locked = None;
    }

    /// Locks an existing directory; `None`: another process has the lock.
    pub(super) fn taken(directory: &Path) -> Result<Option<Self>, Error> {
        let locked = lock(directory, false)?;
        Ok(locked.map(|locked| Self { directory: directory.to_owned(), locked: Some(locked) }))
    }

    fn empty(&self) -> Result<(), Error> {
        DIRECTIONS.iter().try_for_each(|direction| removed(&self.directory.join(direction)))
    }
}

impl Drop for Pins {
    /// Removes forwarding that failed to begin or has ended.
    fn drop(&mut self) {
        if self.locked.is_some() {
            // The lock is released last: a process waiting for it finds no directory then.
            let _gone_already = removed(&self.directory);
        }
    }
}

fn keys(endpoints: &[Endpoint; 2]) -> Result<[Key; 2], Error> {
    let key = |endpoint: &Endpoint| {
        Ok::<_, Error>(Key { namespace: endpoint.inside(netns::cookie)??, index: endpoint.index() })
    };
    Ok([key(&endpoints[0])?, key(&endpoints[1])?])
}

pub(super) fn root() -> PathBuf {
    Path::new(BPFFS).join("weir")
}

/// bpffs does not allow dots in names.
pub(super) fn place(root: &Path, [from, to]: [Key; 2]) -> PathBuf {
    let Key { namespace, index } = from;
    root.join(format!("forward-{namespace}-{index}-{}-{}", to.namespace, to.index))
}

fn goes_on(directory: &Path) -> bool {
    DIRECTIONS.iter().any(|direction| directory.join(direction).join(LINK).exists())
}

fn already(from: &str, to: &str) -> Error {
    Error::AlreadyForwarding { from: from.to_owned(), to: to.to_owned() }
}

/// Returns the error if another process has the lock.
pub(super) fn begins(directory: &Path, from: &str, to: &str) -> Error {
    if goes_on(directory) {
        return already(from, to);
    }
    Error::ForwardingChanges { from: from.to_owned(), to: to.to_owned() }
}

/// Locks the directory, creating it if `make` is set. `None`: another process has the lock.
fn lock(directory: &Path, make: bool) -> Result<Option<File>, Error> {
    let failed = |error: Errno| privileged(CallError::new(format!("lock {}", directory.display()), error));
    for _ in 0..ATTEMPTS {
        if make {
            make_directory(directory)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let locked = match rustix::fs::open(directory, flags, Mode::empty()) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) if make => continue,
            Err(error) => return Err(failed(error)),
        };
        match flock(&locked, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        // The previous owner of the lock may have removed the directory.
        let same = |one: &fs::Metadata, other: &fs::Metadata| one.ino() == other.ino();
        if let (Ok(there), Ok(ours)) = (fs::symlink_metadata(directory), locked.metadata())
            && same(&there, &ours)
        {
            return Ok(Some(locked));
        }
    }
    Ok(None)
}

/// Rejects a directory in which others may have put something: a bpffs may be open to all users, like /tmp, and its
/// contents are detached without further checks.
fn own(directory: &Path) -> Result<(), Error> {
    let path = directory.display();
    // Not "remove": pins of somebody else's may be in it.
    let refused = |what: &str| {
        let owner = fs::symlink_metadata(directory).map(|found| format!(" (of user ID {})", found.uid()));
        Error::Forward(Problem::new(
            format!("weir does not trust {path}{}: it {what}", owner.unwrap_or_default()),
            format!("see who put it there, then move it away as root: mv {path} {path}-untrusted"),
        ))
    };
    let failed =
        |error: io::Error| privileged(CallError::new(format!("inspect {}", directory.display()), error));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(directory, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(refused("is not a directory")),
        Err(error) => return Err(failed(error.into())),
    };
    let found = opened.metadata().map_err(failed)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refused("is writable by others"));
    }
    // Unless it is sticky, a directory that others may write to lets them replace its contents.
    let parent = directory.parent().unwrap_or(directory);
    let around = fs::metadata(parent).map_err(failed)?;
    if around.mode() & 0o002 != 0 && around.mode() & 0o1000 == 0 {
        let what = format!("{} is writable by everybody", parent.display());
        return Err(Error::Forward(Problem::new(what, format!("chmod 0700 {}", parent.display()))));
    }
    if found.mode() & 0o077 != 0 {
        opened.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Calls [`own`] if the directory exists.
pub(super) fn own_if_there(directory: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => own(directory),
    }
}

fn removed(directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CallError::new(format!("remove {}", directory.display()), error).into())
        }
        _ => Ok(()),
    }
}

pub(super) fn is_bpffs() -> bool {
    statfs(BPFFS)
        .is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| kind == u64::from(BPF_FS_MAGIC)))
}

/// Parses the interfaces from the name of a directory.
pub(super) fn parsed(name: &str) -> Option<[Key; 2]> {
    let mut numbers = name.strip_prefix("forward-")?.split('-').map(str::parse::<u64>);
    let mut key = || {
        let (namespace, index) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Key { namespace, index: index.try_into().ok()? })
    };
    let pair = [key()?, key()?];
    numbers.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_name_of_its_own() {
        let keys = [(1, 12), (11, 2), (1, 1), (1, 2)].map(|(namespace, index)| Key { namespace, index });
        let mut names = Vec::new();
        for from in keys {
            for to in keys {
                let path = place(&root(), [from, to]);
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                assert_eq!(parsed(&name), Some([from, to]));
                assert!(!name.contains('.') && !names.contains(&name), "{name}");
                names.push(name);
            }
        }
    }

    #[test]
    fn what_somebody_else_may_have_planted_is_not_trusted() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("weir");
        let mode = |mode| fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        let refused = |why: &str| {
            let error = own_if_there(&directory).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        own_if_there(&directory).unwrap();
        make_directory(&directory).unwrap();
        own_if_there(&directory).unwrap();
        mode(0o755);
        own_if_there(&directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        for others in [0o1777, 0o770, 0o702] {
            mode(others);
            refused("is writable by others");
        }
        mode(0o700);
        let around = |mode| fs::set_permissions(base.path(), Permissions::from_mode(mode)).unwrap();
        around(0o777);
        refused("is writable by everybody");
        around(0o1777);
        let owner = |id| std::os::unix::fs::chown(&directory, Some(id), None);
        // As root only.
        if owner(65_534).is_ok() {
            refused("(of user ID 65534): it belongs to another user");
            assert!(own_if_there(&directory).unwrap_err().hint().unwrap().contains("-untrusted"));
            owner(0).unwrap();
        }
        own_if_there(&directory).unwrap();
        let elsewhere = base.path().join("elsewhere");
        fs::rename(&directory, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &directory).unwrap();
        refused("is not a directory");
        fs::remove_file(&directory).unwrap();
        fs::write(&directory, "").unwrap();
        refused("is not a directory");
    }

    #[test]
    fn nobody_is_advised_to_give_away_root() {
        let refused = privileged(CallError::new("open", Errno::ACCESS));
        assert_eq!(refused.hint().as_deref(), Some("run as root"));
    }

    #[test]
    fn of_those_who_begin_at_once_one_does_and_the_others_remove_nothing() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("forward-1-1-1-2");
        for _ in 0..200 {
            let start = std::sync::Barrier::new(4);
            let begun = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    let locked = lock(&directory, true).unwrap()?;
                    let pins = Pins { directory: directory.clone(), locked: Some(locked) };
                    fs::write(directory.join("mark"), "").expect("the directory is there");
                    Some(pins)
                };
                let threads = [(); 4].map(|()| scope.spawn(one));
                threads.map(|thread| thread.join().unwrap())
            });
            let begun: Vec<Pins> = begun.into_iter().flatten().collect();
            assert_eq!(begun.len(), 1);
            assert!(directory.join("mark").exists());
            drop(begun);
            assert!(!directory.exists(), "what has not begun leaves nothing");
        }
    }
}
