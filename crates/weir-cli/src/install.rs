//! Writes files to a directory in which somebody else may have planted something: below it no link is followed, and what
//! is there is replaced, never opened.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

/// A directory that is open, so that no rename can put another in its place.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

impl Directory {
    /// Opens the directory that the user has named; there, links are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
    }

    /// Like [`Self::open`]; creates the directory if it does not exist.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// Opens a directory in this one; creates it if it does not exist.
    pub(crate) fn below(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let opened = openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        Ok(Self(opened.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => {
                io::Error::other(format!("{name} is a link or a file there; remove it"))
            }
            error => error.into(),
        })?))
    }

    /// Writes a file that everybody may read, at once: who has the old one open keeps it.
    pub(crate) fn write(&self, name: &str, mut bytes: impl Read) -> io::Result<()> {
        self.replace(name, |new| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&self.0, new, flags, Mode::from_raw_mode(0o644))?);
            io::copy(&mut bytes, &mut file)?;
            file.set_permissions(Permissions::from_mode(0o644))
        })
    }

    /// Makes a link to `target`, in place of what is there.
    pub(crate) fn link(&self, name: &str, target: &str) -> io::Result<()> {
        self.replace(name, |new| Ok(symlinkat(target, &self.0, new)?))
    }

    /// Makes something new, which must fail where there is something, and gives it its name.
    fn replace(&self, name: &str, make: impl FnOnce(&str) -> io::Result<()>) -> io::Result<()> {
        let new = &*format!("{name}.{}.new", process::id());
        let remove = || unlinkat(&self.0, new, AtFlags::empty());
        // Left by a process with this ID, or planted.
        match remove() {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let made = make(new).and_then(|()| Ok(renameat(&self.0, new, &self.0, name)?));
        made.inspect_err(|_| {
            let _made_or_not = remove();
        })
    }
}
