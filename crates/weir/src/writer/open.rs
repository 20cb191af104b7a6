//! From a path to an open output that nobody else writes to.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::compressed::Compressed;
use super::disk::Disk;
use super::stream::Stream;
use super::{Compression, Output, WriteError, WriterOptions};

pub(super) struct Opened {
    pub(super) output: Box<dyn Output>,
    /// How errors should call it.
    pub(super) name: String,
    /// The file, locked, if it is a regular one.
    pub(super) regular: Option<Arc<File>>,
    /// What the user should know.
    pub(super) warning: Option<String>,
}

/// Opens `path`, or standard output for `-`.
pub(super) fn open(path: &Path, options: &WriterOptions) -> Result<Opened, WriteError> {
    let refused = |source| refusal(path, source);
    if path == Path::new("-") {
        let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
        let output = Stream::new(File::from(stdout), options.format).map_err(refused)?;
        let output = compressed(Box::new(output), options.compression).map_err(refused)?;
        return Ok(Opened { output, name: "standard output".to_owned(), regular: None, warning: None });
    }
    // It is emptied once nobody else writes to it.
    let mut open = OpenOptions::new();
    open.write(true).create(true).create_new(options.no_clobber).truncate(false);
    let file = open.open(path).map_err(refused)?;
    let name = path.display().to_string();
    if !file.metadata().map_err(refused)?.is_file() {
        let output = Stream::new(file, options.format).map_err(refused)?;
        let output = compressed(Box::new(output), options.compression).map_err(refused)?;
        return Ok(Opened { output, name, regular: None, warning: None });
    }
    let warning = lock(&file, path)?;
    file.set_len(0).map_err(refused)?;
    let file = Arc::new(file);
    let output = Disk::new(Arc::clone(&file), options.format);
    let output = compressed(Box::new(output), options.compression).map_err(refused)?;
    Ok(Opened { output, name, regular: Some(file), warning })
}

fn compressed(output: Box<dyn Output>, compression: Compression) -> io::Result<Box<dyn Output>> {
    Ok(match compression {
        Compression::None => output,
        compression => Box::new(Compressed::new(output, compression)?),
    })
}

/// Makes sure that nobody else writes to the file as long as it is open; a file system without locks is worth a word.
fn lock(file: &File, path: &Path) -> Result<Option<String>, WriteError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => {
            Err(WriteError::Locked { path: path.to_owned(), holder: holder(file).unwrap_or_default() })
        }
        Err(error) => Ok(Some(format!(
            "cannot lock {}: {error}; a second capture into it would not be noticed",
            path.display()
        ))),
    }
}

/// Who has the lock, as ` (process 1234, weir)`, where the kernel says so. `/proc/locks` has lines such as
/// `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`, with the device in hexadecimal, in front of the inode.
fn holder(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let line = locks
        .lines()
        .find(|line| line.contains("FLOCK") && line.split_whitespace().any(|word| word == place))?;
    let process = line.split_whitespace().nth(4)?.parse::<u32>().ok()?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let name = if name.is_empty() { String::new() } else { format!(", {}", name.trim()) };
    Some(format!(" (process {process}{name})"))
}

fn refusal(path: &Path, source: io::Error) -> WriteError {
    let kind = source.kind();
    let source = Arc::new(source);
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let path = path.to_owned();
    match kind {
        io::ErrorKind::IsADirectory => WriteError::Directory { path },
        io::ErrorKind::NotFound if !parent.exists() => {
            WriteError::NoParent { path, parent: parent.to_owned() }
        }
        io::ErrorKind::AlreadyExists => WriteError::Exists { path },
        io::ErrorKind::PermissionDenied => WriteError::NotPermitted { path, source },
        io::ErrorKind::ReadOnlyFilesystem => WriteError::ReadOnly { path, source },
        _ => WriteError::Open { path, source },
    }
}
