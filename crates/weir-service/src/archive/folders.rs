//! Makes folders, and creates, renames and removes files in them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, RenameFlags, accessat, fsync, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

/// Files are for their owner to write and for the group to read, as far as the umask lets them.
const FILE: Mode = Mode::from_raw_mode(0o640);
const FOLDER: Mode = Mode::from_raw_mode(0o750);

/// The directory. It is looked up each time, so that it can be moved or unmounted in between.
#[derive(Debug)]
pub(super) struct Folders {
    directory: PathBuf,
}

impl Folders {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether this process may fill the directory.
    pub(super) fn check(&self) -> io::Result<()> {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        Ok(accessat(CWD, &self.directory, wanted, AtFlags::EACCESS)?)
    }

    pub(super) fn begin(&self, name: &Path) -> io::Result<File> {
        let (folder, name) = self.folder(name, true)?;
        let hidden = hidden(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, &hidden, flags, FILE)?;
        // Whoever had the hidden name has given it up by giving the file its own.
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(file.into()),
            looked => {
                let _it_stays = unlinkat(&folder, &hidden, AtFlags::empty());
                Err(looked.err().unwrap_or(Errno::EXIST).into())
            }
        }
    }

    pub(super) fn finish(&self, name: &Path) -> io::Result<()> {
        let (folder, name) = self.folder(name, false)?;
        let hidden = hidden(name);
        match renameat_with(&folder, &hidden, &folder, name, RenameFlags::NOREPLACE) {
            // Some file systems can only replace.
            Err(Errno::INVAL) => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => renameat(&folder, &hidden, &folder, name)?,
                looked => return Err(looked.err().unwrap_or(Errno::EXIST).into()),
            },
            renamed => renamed?,
        }
        // The file has its name, even if that may be lost with the power.
        let _as_well_as_it_goes = fsync(&folder);
        Ok(())
    }

    pub(super) fn discard(&self, name: &Path) -> io::Result<()> {
        let found = self.folder(name, false);
        let removed = found.and_then(|(folder, name)| Ok(unlinkat(folder, hidden(name), AtFlags::empty())?));
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Opens the folder of a file. No link is followed within the directory.
    fn folder<'a>(&self, name: &'a Path, make: bool) -> io::Result<(OwnedFd, &'a OsStr)> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "no name of a file here");
        let plain = |part: Component<'a>| match part {
            Component::Normal(part) if !part.as_bytes().starts_with(b".") => Some(part),
            _ => None,
        };
        let parts = name.components().map(plain).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
        let (last, folders) = parts.split_last().ok_or_else(wrong)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = openat(CWD, &self.directory, flags, Mode::empty())?;
        for part in folders {
            let flags = flags | OFlags::NOFOLLOW;
            let found = match openat(&folder, *part, flags, Mode::empty()) {
                Err(Errno::NOENT) if make => {
                    match mkdirat(&folder, *part, FOLDER) {
                        // Another program needs it, too.
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    let _as_well_as_it_goes = fsync(folder.as_fd());
                    openat(&folder, *part, flags, Mode::empty())?
                }
                found => found?,
            };
            folder = found;
        }
        Ok((folder, last))
    }
}

/// Returns the name of a file that is not finished.
fn hidden(name: &OsStr) -> OsString {
    [OsStr::new("."), name, OsStr::new(".tmp")].into_iter().collect()
}
