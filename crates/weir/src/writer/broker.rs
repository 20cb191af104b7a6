//! Opening and removing files: in this process, or through another one, so that the process that handles packets needs
//! no access to directories.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::refusal::Refusal;
use super::template::{Found, Template};

/// Opens and removes the files of a [`Writer`](super::Writer), and runs the program for finished files.
pub trait FileBroker: fmt::Debug + Send + Sync {
    /// Opens `path` for writing, without truncating it.
    ///
    /// # Errors
    ///
    /// The error from the kernel, or what another user has put there.
    fn open(&self, path: &Path, purpose: Purpose) -> Result<OpenedFile, Refusal>;

    /// Removes a file.
    ///
    /// Its blocks are freed when the result is dropped, which can take long. A file that does not exist is not an
    /// error.
    ///
    /// # Errors
    ///
    /// The error from the kernel.
    fn remove(&self, path: &Path) -> io::Result<Option<OwnedFd>>;

    /// Opens the directory of `path`, for `fsync`.
    ///
    /// # Errors
    ///
    /// The error from the kernel.
    fn directory(&self, path: &Path) -> io::Result<File>;

    /// Lists the existing files whose names match `template` or look like it.
    ///
    /// # Errors
    ///
    /// A directory cannot be read.
    fn list(&self, template: &Template) -> io::Result<Vec<Found>>;

    /// Runs `command` with `path` as its argument and waits for it to exit.
    ///
    /// # Errors
    ///
    /// The command could not be started, or failed; the error is a message.
    fn run(&self, command: &OsStr, path: &Path) -> Result<(), String>;
}

/// The purpose of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Purpose {
    /// Create a file to write; fails with [`io::ErrorKind::AlreadyExists`] if it exists.
    New,
    /// Write a file, whether it exists or not. An existing file of our own gets the mode of a new one.
    Any,
    /// Look at what is there.
    Look,
}

/// An opened file.
#[derive(Debug)]
pub struct OpenedFile {
    /// The file, open for writing.
    pub file: File,
    /// Whether the file was created.
    pub created: bool,
    /// Whether the file was inherited, like `/dev/stdout`: writing continues at the current position.
    pub inherited: bool,
}
