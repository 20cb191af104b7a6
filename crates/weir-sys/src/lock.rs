//! Locks of open files that need write access (`F_OFD_SETLK`, Linux 3.15), unlike `flock`, where read access suffices.
//! A lock lasts until it is released, or all sharers of the open file have closed it.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Locks a file that is open for writing. Returns `false` if another writer has locked it.
///
/// # Errors
///
/// The file system does not support such locks, or a reader of the file has locked it against writers.
pub fn lock(file: impl AsFd) -> io::Result<bool> {
    match control(&file, libc::F_OFD_SETLK, libc::F_WRLCK) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        Err(_) if is_locked(&file)? => Ok(false),
        Err(_) => Err(io::Error::new(io::ErrorKind::WouldBlock, "a reader holds a lock")),
    }
}

/// Releases a lock taken with [`lock`].
///
/// # Errors
///
/// The error of the kernel.
pub fn unlock(file: impl AsFd) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, libc::F_UNLCK).map(drop)
}

/// Returns whether another writer has locked the file.
///
/// # Errors
///
/// The file system does not support such locks.
pub fn is_locked(file: impl AsFd) -> io::Result<bool> {
    // A read lock conflicts only with a writer's lock.
    Ok(control(file, libc::F_OFD_GETLK, libc::F_RDLCK)? != libc::F_UNLCK)
}

/// Requests a lock of the whole file, and returns the kind in the kernel's answer.
fn control(file: impl AsFd, command: libc::c_int, kind: libc::c_int) -> io::Result<libc::c_int> {
    let short = |number: libc::c_int| libc::c_short::try_from(number).unwrap_or_default();
    let mut lock =
        libc::flock { l_type: short(kind), l_whence: short(libc::SEEK_SET), l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: the descriptor is open, and `lock` is readable and writable.
    match unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) } {
        0.. => Ok(lock.l_type.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn who_reads_is_no_writer() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().write(true).open(file.path()).unwrap();
        let reader = File::open(file.path()).unwrap();
        assert!(lock(&reader).is_err(), "it may not write");
        control(&reader, libc::F_OFD_SETLK, libc::F_RDLCK).unwrap();
        assert!(!is_locked(open()).unwrap());
        assert!(lock(open()).unwrap_err().to_string().contains("reader"));
        unlock(&reader).unwrap();

        let writer = open();
        assert!(lock(&writer).unwrap() && !is_locked(&writer).unwrap());
        assert!(is_locked(&reader).unwrap() && !lock(open()).unwrap());
        unlock(&writer).unwrap();
        assert!(!is_locked(&reader).unwrap());
        assert!(lock(&writer).unwrap());
        let shared = writer.try_clone().unwrap();
        drop(writer);
        assert!(is_locked(&reader).unwrap());
        drop(shared);
        assert!(!is_locked(&reader).unwrap());
    }
}
