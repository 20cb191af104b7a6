//! What a program was started with.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// A copy of the descriptor `number`, if this program was given it. What it has opened itself closes on `execve`, and is not
/// for others to name.
///
/// # Errors
///
/// `EBADF`: it was not; or no resources.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: asks for a number's flags; what is not open is an error.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: makes another descriptor; what is not open is an error.
    match unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) } {
        // SAFETY: it is new, and nobody else's.
        copy @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The descriptor `number` itself: it is closed with what this gives, unless it is standard input, output or error.
///
/// # Errors
///
/// As [`inherited`].
pub fn taken(number: RawFd) -> io::Result<OwnedFd> {
    let copy = inherited(number)?;
    if number > libc::STDERR_FILENO {
        // SAFETY: nobody in this program has it: what is opened here closes on `execve`, which it would not have.
        unsafe { libc::close(number) };
    }
    Ok(copy)
}
