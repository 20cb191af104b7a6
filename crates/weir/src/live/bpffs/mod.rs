//! What stays in the kernel without a process has names in a bpffs, in a directory that only its owner can open.

pub(crate) mod scope;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, statfs};
use rustix::io::Errno;
use weir_sys::CallError;

use crate::Error;
use crate::live::error::Problem;

/// Where the bpffs is.
pub(crate) const BPFFS: &str = "/sys/fs/bpf";
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
/// How often to retry when another process removes the directory at the same moment.
const ATTEMPTS: u32 = 10;

/// Identifies an interface while the system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) namespace: u64,
    pub(crate) index: u32,
}

/// Returns the directory of everything that weir has pinned.
pub(crate) fn root() -> PathBuf {
    Path::new(BPFFS).join("weir")
}

/// Returns whether a bpffs is mounted here.
pub(crate) fn is_bpffs() -> bool {
    statfs(BPFFS)
        .is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| kind == u64::from(BPF_FS_MAGIC)))
}

/// Creates a directory that only its owner may access.
pub(crate) fn make_directory(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(privileged(CallError::new(format!("make {}", path.display()), error)))
        }
        _ => Ok(()),
    }
}

/// Converts the error, which may be for lack of privileges.
pub(crate) fn privileged(error: CallError) -> Error {
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: error.operation, needs: "cap_dac_override" }
        }
        _ => error.into(),
    }
}

/// Locks the directory, creating it if `make` is set. `None`: another process has the lock.
pub(crate) fn lock(directory: &Path, make: bool) -> Result<Option<File>, Error> {
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
pub(crate) fn own(directory: &Path) -> Result<(), Error> {
    let path = directory.display();
    // Not "remove": pins of somebody else's may be in it.
    let refused = |what: &str| {
        let owner = fs::symlink_metadata(directory).map(|found| format!(" (of user ID {})", found.uid()));
        Error::Pins(Problem::new(
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
        return Err(Error::Pins(Problem::new(what, format!("chmod 0700 {}", parent.display()))));
    }
    if found.mode() & 0o077 != 0 {
        opened.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Calls [`own`] if the directory exists.
pub(crate) fn own_if_there(directory: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => own(directory),
    }
}

/// Removes a directory and all that is in it, if it is there.
#[cfg_attr(not(feature = "forward"), expect(dead_code, reason = "forwarding removes its directories"))]
pub(crate) fn removed(directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CallError::new(format!("remove {}", directory.display()), error).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
