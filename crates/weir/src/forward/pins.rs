//! Names under which forwarding goes on in the kernel, in a bpffs:
//!
//! ```text
//! /sys/fs/bpf/weir/forward-NAMESPACE-INDEX-NAMESPACE-INDEX/{forth,back}/{link, queues, sent, refused, filters, outcomes, promiscuous}
//! ```
//!
//! The numbers are those of the two interfaces and of the namespaces that they are in, the one that receives first: names change, and
//! stand for others elsewhere. `promiscuous` is a directory, there if the interface has to be taken out of that mode at the end.
//!
//! Who begins, and who ends, holds a lock on the directory, which nobody but its owner can open. So of two who begin at once one
//! does, and the other has nothing that it could remove.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, statfs};
use rustix::io::Errno;
use weir_bpf::forward::Queues;
use weir_sys::CallError;
use weir_sys::bpf::XdpLink;
use weir_sys::bpf::grace::Grace;
use weir_sys::link::{links, set_promiscuous};
use weir_sys::netns;

use super::account::{ForwardAccount, WayAccount};
use super::end::End;
use super::way;
use crate::builder::Wanted;
use crate::site::inside;
use crate::source::programmed::off;
use crate::{Error, Namespace};

const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// Directories of the ways.
pub(super) const WAYS: [&str; 2] = ["forth", "back"];
/// The program's own link, pinned last: without it the rest is of no effect.
pub(super) const LINK: &str = "link";
const PROMISCUOUS: &str = "promiscuous";
/// How often another's directory is met that goes in the same moment.
const ATTEMPTS: u32 = 10;

/// The directory of what goes on, and the right to change it.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    /// Until the directory stays as it is: otherwise it goes with this.
    locked: Option<File>,
}

/// What tells an interface from all others, as long as the system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    namespace: u64,
    index: u32,
}

impl Pins {
    /// Makes the directory, for forwarding that is about to begin.
    pub(super) fn make(ends: &[End; 2]) -> Result<Self, Error> {
        if !is_bpffs() {
            return Err(Error::Forward {
                what: format!("nothing can stay in the kernel without its file system for that at {BPFFS}"),
                mend: format!("mount -t bpf -o mode=0700 bpf {BPFFS}"),
            });
        }
        let root = root();
        make_directory(&root)?;
        own(&root)?;
        let directory = place(&root, keys(ends)?);
        let [from, to] = ends;
        let Some(locked) = lock(&directory, true)? else {
            return Err(begins(&directory, from.name(), to.name()));
        };
        if goes_on(&directory) {
            return Err(already(from.name(), to.name()));
        }
        let pins = Self { directory, locked: Some(locked) };
        // What somebody who was killed has left.
        pins.empty()?;
        Ok(pins)
    }

    /// Refuses what goes on already.
    pub(super) fn check(ends: &[End; 2]) -> Result<(), Error> {
        let [from, to] = ends;
        own_if_there(&root())?;
        if goes_on(&place(&root(), keys(ends)?)) { Err(already(from.name(), to.name())) } else { Ok(()) }
    }

    /// Where it is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of a way, made.
    pub(super) fn way(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.directory.join(name);
        make_directory(&directory)?;
        Ok(directory)
    }

    /// What tells that the interface of a way was made promiscuous.
    pub(super) fn promiscuous(&self, name: &str) -> PathBuf {
        self.directory.join(name).join(PROMISCUOUS)
    }

    /// Has the directory stay.
    pub(super) fn keep(&mut self) {
        self.locked = None;
    }

    /// Ends what goes on between these two.
    pub(super) fn end(ends: &[Wanted; 2]) -> Result<ForwardAccount, Error> {
        let keys = ends.iter().map(Key::of).collect::<Result<Vec<_>, _>>()?;
        let [from, to] = [0, 1].map(|end: usize| ends[end].label());
        own_if_there(&root())?;
        let directory = place(&root(), [keys[0], keys[1]]);
        if !directory.is_dir() {
            let what =
                format!("nothing goes on from `{from}` to `{to}`: there is no {}", directory.display());
            return Err(Error::Forward { what, mend: others(ends[0].namespace.as_ref())? });
        }
        let Some(locked) = lock(&directory, false)? else { return Err(begins(&directory, &from, &to)) };
        let pins = Self { directory, locked: Some(locked) };
        let mut ended = Vec::new();
        for (name, [here, there]) in WAYS.into_iter().zip([[0, 1], [1, 0]]) {
            let directory = pins.directory.join(name);
            if !directory.is_dir() {
                continue;
            }
            match XdpLink::pinned(&directory.join(LINK)) {
                Ok(link) => off(link.detach())?,
                Err(error) if error.errno() == Errno::NOENT.raw_os_error() => {}
                Err(error) => return Err(pins.leave(privileged(error))),
            }
            if directory.join(PROMISCUOUS).is_dir() {
                let undo = || set_promiscuous(keys[here].index, false);
                inside(ends[here].namespace.as_ref(), undo)??;
            }
            ended.push((directory, ends[here].label(), ends[there].label()));
        }
        let waited = Grace::new().wait();
        let mut ways = Vec::new();
        for (directory, from, to) in ended {
            let queues = Queues::pinned(&directory)?;
            ways.push(WayAccount {
                from,
                to,
                queues: way::queues(&queues)?,
                untold_tags: 0,
                nic: None,
                sender: None,
            });
        }
        drop(pins);
        waited?;
        Ok(ForwardAccount { elapsed: Duration::ZERO, ways })
    }

    /// What cannot be ended stays as it is.
    fn leave(mut self, error: Error) -> Error {
        self.keep();
        error
    }

    fn empty(&self) -> Result<(), Error> {
        WAYS.iter().try_for_each(|way| removed(&self.directory.join(way)))
    }
}

impl Drop for Pins {
    /// What could not be begun leaves nothing, and what has ended.
    fn drop(&mut self) {
        if self.locked.is_some() {
            // The lock goes last: who waits for it finds no directory then.
            let _gone_already = removed(&self.directory);
        }
    }
}

impl Key {
    fn of(wanted: &Wanted) -> Result<Self, Error> {
        let namespace = wanted.namespace.as_ref();
        let (cookie, links) = inside(namespace, || (netns::cookie(), links()))?;
        let index = links?.into_iter().find(|link| link.name == wanted.name).map(|link| link.index);
        let gone = || Error::Forward {
            what: format!("there is no interface `{}`, and what is gone forwards nothing", wanted.label()),
            mend: "ip link lists those that are there".to_owned(),
        };
        Ok(Self { namespace: cookie?, index: index.ok_or_else(gone)? })
    }
}

fn keys(ends: &[End; 2]) -> Result<[Key; 2], Error> {
    let key = |end: &End| Ok::<_, Error>(Key { namespace: end.inside(netns::cookie)??, index: end.index() });
    Ok([key(&ends[0])?, key(&ends[1])?])
}

fn root() -> PathBuf {
    Path::new(BPFFS).join("weir")
}

/// No dot may be in a name there.
fn place(root: &Path, [from, to]: [Key; 2]) -> PathBuf {
    let Key { namespace, index } = from;
    root.join(format!("forward-{namespace}-{index}-{}-{}", to.namespace, to.index))
}

fn goes_on(directory: &Path) -> bool {
    WAYS.iter().any(|way| directory.join(way).join(LINK).exists())
}

fn already(from: &str, to: &str) -> Error {
    let what = format!("`{from}` to `{to}` is forwarded already, by the kernel alone");
    Error::Forward { what, mend: format!("end that: weir forward --end {from} {to}") }
}

/// Somebody else has the directory's lock.
fn begins(directory: &Path, from: &str, to: &str) -> Error {
    if goes_on(directory) {
        return already(from, to);
    }
    let what = format!("another process is just beginning or ending to forward `{from}` to `{to}`");
    Error::Forward { what, mend: "try again".to_owned() }
}

/// A lock on the directory, made if `make` says so. `None`: somebody has it.
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
        // Whoever had it before may have removed the directory.
        let same = |one: &fs::Metadata, other: &fs::Metadata| one.ino() == other.ino();
        if let (Ok(there), Ok(ours)) = (fs::symlink_metadata(directory), locked.metadata())
            && same(&there, &ours)
        {
            return Ok(Some(locked));
        }
    }
    Ok(None)
}

/// Refuses a directory in which somebody else may have put something: a bpffs may be open to all users, as /tmp is, and what is
/// there is taken off without another question.
fn own(directory: &Path) -> Result<(), Error> {
    let refused = |what: &str| Error::Forward {
        what: format!("{} {what}", directory.display()),
        mend: format!("see what is there, and remove it: ls -ld {}", directory.display()),
    };
    let failed =
        |error: io::Error| privileged(CallError::new(format!("look at {}", directory.display()), error));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(directory, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(refused("is not a directory")),
        Err(error) => return Err(failed(error.into())),
    };
    let found = opened.metadata().map_err(failed)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("is not this user's own directory"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(refused("may be written to by others"));
    }
    // What is in a directory that others may write to can be exchanged, but for a sticky one's.
    let parent = directory.parent().unwrap_or(directory);
    let around = fs::metadata(parent).map_err(failed)?;
    if around.mode() & 0o002 != 0 && around.mode() & 0o1000 == 0 {
        let what = format!("{} may be written to by everybody", parent.display());
        return Err(Error::Forward { what, mend: format!("chmod 0700 {}", parent.display()) });
    }
    if found.mode() & 0o077 != 0 {
        opened.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// The same, if it is there at all.
fn own_if_there(directory: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => own(directory),
    }
}

/// For its owner alone.
pub(super) fn make_directory(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(privileged(CallError::new(format!("make {}", path.display()), error)))
        }
        _ => Ok(()),
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

fn privileged(error: CallError) -> Error {
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: error.operation, needs: "cap_dac_override" }
        }
        _ => error.into(),
    }
}

fn is_bpffs() -> bool {
    statfs(BPFFS)
        .is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| kind == u64::from(BPF_FS_MAGIC)))
}

/// What else goes on, as seen from a namespace.
fn others(namespace: Option<&Namespace>) -> Result<String, Error> {
    let (cookie, links) = inside(namespace, || (netns::cookie(), links()))?;
    let (cookie, links) = (cookie?, links?);
    let named = |Key { namespace, index }: Key| {
        let link = links.iter().find(|link| namespace == cookie && link.index == index);
        link.map_or_else(|| format!("interface {index} of another namespace"), |link| link.name.clone())
    };
    let entries = fs::read_dir(root()).into_iter().flatten().flatten();
    let keys = entries.filter_map(|entry| parsed(&entry.file_name().to_string_lossy()));
    let mut pairs: Vec<String> = keys.map(|[from, to]| format!("{} to {}", named(from), named(to))).collect();
    pairs.sort();
    Ok(match pairs.as_slice() {
        [] => "nothing goes on at all".to_owned(),
        pairs => format!("what does: {}", pairs.join("; ")),
    })
}

/// The interfaces that the name of a directory stands for.
fn parsed(name: &str) -> Option<[Key; 2]> {
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
            refused("may be written to by others");
        }
        mode(0o700);
        let around = |mode| fs::set_permissions(base.path(), Permissions::from_mode(mode)).unwrap();
        around(0o777);
        refused("may be written to by everybody");
        around(0o1777);
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
