//! Descriptors that a program was started with.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// Returns a copy of the descriptor `number`, if this program was started with it. Descriptors that the program opened
/// itself close on `execve`; others may not name them.
///
/// # Errors
///
/// `EBADF`: the program was not started with it. Other errors: no resources.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only reads a descriptor's flags; if it is not open, the call fails.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: creates a new descriptor; if the old one is not open, the call fails.
    match unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) } {
        // SAFETY: it is new, and only ours.
        copy @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes over the descriptor `number`: it is closed when the result is dropped, unless it is standard input, output or
/// error.
///
/// # Errors
///
/// The errors of [`inherited`].
pub fn taken(number: RawFd) -> io::Result<OwnedFd> {
    let copy = inherited(number)?;
    if number > libc::STDERR_FILENO {
        // SAFETY: nothing in this program owns it: descriptors opened here close on `execve`, and this one does not.
        unsafe { libc::close(number) };
    }
    Ok(copy)
}
