//! Locks of open files that only who may write can have (`F_OFD_SETLK`, Linux 3.15): unlike those of `flock`, which who may
//! only read can take as well. One lasts until it is given up, or the open file is closed by all who share it.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Locks a file that is open to be written. `false`: another who writes has locked it.
///
/// # Errors
///
/// The file system knows no such locks; or somebody who reads the file has locked it against those who write.
pub fn lock(file: impl AsFd) -> io::Result<bool> {
    match control(&file, libc::F_OFD_SETLK, libc::F_WRLCK) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        Err(_) if is_locked(&file)? => Ok(false),
        Err(_) => Err(io::Error::new(io::ErrorKind::WouldBlock, "a reader holds a lock")),
    }
}

/// Gives up what [`lock`] has locked.
///
/// # Errors
///
/// The kernel's answer.
pub fn unlock(file: impl AsFd) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, libc::F_UNLCK).map(drop)
}

/// Whether somebody else has locked the file who may write to it.
///
/// # Errors
///
/// The file system knows no such locks.
pub fn is_locked(file: impl AsFd) -> io::Result<bool> {
    // A lock of who reads is in the way of no other.
    Ok(control(file, libc::F_OFD_GETLK, libc::F_RDLCK)? != libc::F_UNLCK)
}

/// Asks for a lock of the whole file, and gives the kind that the kernel answers with.
fn control(file: impl AsFd, command: libc::c_int, kind: libc::c_int) -> io::Result<libc::c_int> {
    let short = |number: libc::c_int| libc::c_short::try_from(number).unwrap_or_default();
    let mut lock =
        libc::flock { l_type: short(kind), l_whence: short(libc::SEEK_SET), l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: the descriptor is open, and `lock` is valid for the call to read and to write to.
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
