//! Opens the directories of a path one by one, and follows symbolic links only if root or this user owns them.
//! Otherwise the owner of a link could redirect root's capture anywhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, fstatfs, readlinkat};
use rustix::io::{Errno, retry_on_intr};
use weir_sys::lock;

use super::refusal::Refusal;

/// The maximum number of nested links (the kernel's own limit is 40).
pub(super) const MOST_LINKS: u32 = 8;

/// `PROC_SUPER_MAGIC` from linux/magic.h.
const PROC: i64 = 0x9fa0;

/// The target of a link.
pub(super) enum LinkTarget {
    /// An open file of a process, such as `/dev/stdout`: it has no path, and nobody can replace it.
    Open,
    /// To another path.
    Path(PathBuf),
}

/// Opens `path`, retrying after signals.
pub(super) fn openat(
    at: impl AsFd,
    path: impl AsRef<Path>,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| rustix::fs::openat(&at, path.as_ref(), flags, mode))
}

/// Returns the directory of `path`.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Opens the directory of `path`, relative to the working directory.
pub(super) fn directory(path: &Path) -> Result<OwnedFd, Refusal> {
    walk(CWD, parent(path), &mut { MOST_LINKS })
}

/// Opens the directory `path`, relative to `base`. `links`: how many more links may be followed.
pub(super) fn walk(base: BorrowedFd<'_>, path: &Path, links: &mut u32) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let begin = if path.has_root() { Path::new("/") } else { Path::new(".") };
    let mut here = openat(base, begin, flags, Mode::empty())?;
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::ParentDir => OsStr::new(".."),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
        };
        here = match openat(&here, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => match link_target(here.as_fd(), name, links)? {
                LinkTarget::Open => openat(&here, name, flags, Mode::empty())?,
                LinkTarget::Path(target) => walk(here.as_fd(), &target, links)?,
            },
            opened => opened?,
        };
    }
    Ok(here)
}

/// Reads the link `name`, if root or this user owns it.
pub(super) fn link_target(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    links: &mut u32,
) -> Result<LinkTarget, Refusal> {
    let link = openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let there = fstat(&link)?;
    if FileType::from_raw_mode(there.st_mode) != FileType::Symlink {
        return Err(Errno::NOTDIR.into());
    }
    if fstatfs(&link)?.f_type == PROC {
        return Ok(LinkTarget::Open);
    }
    if there.st_uid != 0 && there.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Refusal::Link { owner: there.st_uid });
    }
    *links = links.checked_sub(1).ok_or(Errno::LOOP)?;
    let target = readlinkat(&link, "", Vec::new())?;
    Ok(LinkTarget::Path(PathBuf::from(OsStr::from_bytes(target.as_bytes()))))
}

/// Opens `path` for reading, without following a link.
pub(super) fn look(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

/// Returns whether the file is being written.
pub(super) fn is_locked(path: &Path) -> bool {
    look(path).and_then(lock::is_locked).unwrap_or(false)
}
