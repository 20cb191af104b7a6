//! Opens and removes files in this process.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fcntl_getfl, fcntl_setfl, fstat, statat, unlinkat,
};
use rustix::io::Errno;
use weir_sys::inherited::inherited;
use weir_sys::lock;

use super::broker::{FileBroker, OpenedFile, Purpose};
use super::path_resolution::{self, LinkTarget, MOST_LINKS, openat, parent};
use super::refusal::Refusal;
use super::template::{Found, Template};

/// A [`FileBroker`] that opens and removes files in this process.
#[derive(Debug, Clone, Default)]
pub struct LocalBroker {
    /// Whether new files are also readable by their group.
    pub group_readable: bool,
}

/// The mode of a file that only its owner, or also its group, may read.
pub(super) fn mode(group_readable: bool) -> Mode {
    let own = Mode::RUSR | Mode::WUSR;
    if group_readable { own | Mode::RGRP } else { own }
}

impl FileBroker for LocalBroker {
    fn open(&self, path: &Path, purpose: Purpose) -> Result<OpenedFile, Refusal> {
        open_in(CWD, path, purpose, mode(self.group_readable), &mut { MOST_LINKS })
    }

    fn remove(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let Some(name) = path.file_name() else { return Err(Errno::ISDIR.into()) };
        let directory = match path_resolution::directory(path) {
            Err(Refusal::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            directory => directory?,
        };
        // A deleted file keeps its blocks while anybody has it open.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = openat(&directory, name, flags, Mode::empty());
        match unlinkat(&directory, name, AtFlags::empty()) {
            // Someone else, perhaps the program for finished files, has removed it.
            Ok(()) | Err(Errno::NOENT) => Ok(held.ok()),
            Err(error) => Err(error.into()),
        }
    }

    fn directory(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(path_resolution::directory(path)?, ".", flags, Mode::empty())?.into())
    }

    fn list(&self, template: &Template) -> io::Result<Vec<Found>> {
        template.list()
    }

    fn run(&self, command: &OsStr, path: &Path) -> Result<(), String> {
        // Its output goes to standard error, since standard output may be read by another program.
        let stdout = io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
        let status =
            Command::new(command).arg(path).stdin(Stdio::null()).stdout(stdout).process_group(0).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Opens `path`, relative to `base`. No other user can swap a name between check and use: the directory is held open,
/// and the file is checked after it is opened.
fn open_in(
    base: BorrowedFd<'_>,
    path: &Path,
    purpose: Purpose,
    mode: Mode,
    links: &mut u32,
) -> Result<OpenedFile, Refusal> {
    let Some(name) = path.file_name() else { return Err(Errno::ISDIR.into()) };
    let directory = path_resolution::walk(base, parent(path), links)?;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&directory, name, flags | OFlags::CREATE | OFlags::EXCL, mode) {
        Ok(file) => return Ok(OpenedFile { file: file.into(), created: true, inherited: false }),
        Err(Errno::EXIST) if purpose != Purpose::New => {}
        Err(error) => return Err(error.into()),
    }
    match open_there(directory.as_fd(), name, flags) {
        Ok(file) => {
            let (there, around) = (fstat(&file)?, fstat(&directory)?);
            if let Some(owner) = foreigner(&there, &around) {
                return Err(Refusal::Foreign { owner });
            }
            if purpose == Purpose::Any {
                restrict(&file, &there, mode);
            }
            Ok(OpenedFile { file: file.into(), created: false, inherited: false })
        }
        Err(Errno::LOOP) => follow(directory.as_fd(), name, purpose, mode, links),
        Err(Errno::NXIO) if is_fifo(directory.as_fd(), name) => Err(Refusal::Unread),
        Err(error) => Err(error.into()),
    }
}

/// Opens an existing file without waiting for the reader of a FIFO or for a device. Writes to a FIFO do not wait either.
fn open_there(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let file = openat(directory, name, flags | OFlags::NONBLOCK, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::Fifo {
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    }
    Ok(file)
}

fn is_fifo(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    let there = statat(directory, name, AtFlags::empty());
    there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Fifo)
}

/// Sets the mode of our own file before it is overwritten. [`exposed`] tells whether that worked.
fn restrict(file: &OwnedFd, there: &Stat, mode: Mode) {
    let regular = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
    let ours = there.st_uid == rustix::process::geteuid().as_raw();
    // A file that is being written will not be overwritten.
    if regular
        && ours
        && Mode::from_raw_mode(there.st_mode) != mode
        && !lock::is_locked(file).unwrap_or(false)
    {
        let _as_it_was = fchmod(file, mode);
    }
}

/// Returns the owner and mode of a file if others may read it although `mode` does not allow that.
pub(super) fn exposed(file: &File, mode: Mode) -> Option<(u32, u32)> {
    let there = fstat(file).ok()?;
    let mode_there = Mode::from_raw_mode(there.st_mode);
    let others = Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let more = mode_there.intersection(others).difference(mode);
    (!more.is_empty()).then(|| (there.st_uid, mode_there.bits()))
}

/// Follows the link `name`.
fn follow(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    purpose: Purpose,
    mode: Mode,
    links: &mut u32,
) -> Result<OpenedFile, Refusal> {
    match path_resolution::link_target(directory, name, links)? {
        LinkTarget::Path(target) => open_in(directory, &target, purpose, mode, links),
        LinkTarget::Open => {
            if let Some(file) = already_open(directory, name) {
                return Ok(OpenedFile { file: file.into(), created: false, inherited: true });
            }
            let file = open_there(directory, name, OFlags::WRONLY | OFlags::CLOEXEC)?;
            Ok(OpenedFile { file: file.into(), created: false, inherited: false })
        }
    }
}

/// Returns a descriptor that this process has inherited and may write to, if `directory` is its `/proc/self/fd`.
fn already_open(directory: BorrowedFd<'_>, name: &OsStr) -> Option<OwnedFd> {
    let own = openat(CWD, "/proc/self/fd", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let place = |directory| fstat(directory).map(|there| (there.st_dev, there.st_ino)).ok();
    if place(own.as_fd()) != place(directory) {
        return None;
    }
    let file = inherited(name.to_str()?.parse().ok()?).ok()?;
    let to_read = fcntl_getfl(&file).ok()?.intersection(OFlags::RWMODE) == OFlags::RDONLY;
    (!to_read).then_some(file)
}

/// Returns the owner of a file in a sticky, world-writable directory, unless we or the directory's owner own it. This
/// is the rule of `fs.protected_regular` and `fs.protected_fifos`, which may be switched off.
fn foreigner(file: &Stat, directory: &Stat) -> Option<u32> {
    let everybodys = Mode::SVTX | Mode::WOTH;
    let kind = FileType::from_raw_mode(file.st_mode);
    let shared = Mode::from_raw_mode(directory.st_mode).contains(everybodys)
        && matches!(kind, FileType::RegularFile | FileType::Fifo);
    let known = [rustix::process::geteuid().as_raw(), directory.st_uid].contains(&file.st_uid);
    (shared && !known).then_some(file.st_uid)
}

/// Returns whether the program exists and is executable, as a path or in `PATH`.
pub fn can_run(command: &OsStr) -> bool {
    let executable = |path: &Path| {
        let mode = |file: std::fs::Metadata| file.is_file().then(|| Permissions::mode(&file.permissions()));
        std::fs::metadata(path).ok().and_then(mode).is_some_and(|mode| mode & 0o111 != 0)
    };
    if Path::new(command).components().count() > 1 {
        return executable(Path::new(command));
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|directory| executable(&directory.join(command)))
}
