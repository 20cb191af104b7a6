//! Why a file was not opened.

use std::io;

use rustix::io::Errno;

/// The reason why a file was not opened.
#[derive(Debug)]
pub enum Refusal {
    /// The error from the kernel.
    Io(io::Error),
    /// A symbolic link created by another user.
    Link {
        /// The ID of that user.
        owner: u32,
    },
    /// Another user's file in a directory where everybody may create files.
    Foreign {
        /// The ID of that user.
        owner: u32,
    },
    /// A FIFO without a reader.
    Unread,
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Io(error) => error,
            Refusal::Link { .. } | Refusal::Foreign { .. } => io::ErrorKind::PermissionDenied.into(),
            Refusal::Unread => Errno::NXIO.into(),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
