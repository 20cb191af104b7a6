//! Turns an open file into an output, locked against other writers.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use weir_sys::lock;

use super::broker::OpenedFile;
use super::compressed::Compressed;
use super::disk::Disk;
use super::local_broker::{exposed, mode};
use super::path_resolution::parent;
use super::refusal::Refusal;
use super::resume_point::ResumePoint;
use super::ring::Ring;
use super::stream::Stream;
use super::{Compression, Output, WriteError, WriterOptions};

pub(super) struct Opened {
    pub(super) output: Box<dyn Output>,
    /// The name used in errors.
    pub(super) name: String,
    /// The locked file, if it is a regular file.
    pub(super) regular: Option<Arc<File>>,
    /// The file did not exist before.
    pub(super) created: bool,
    /// Warnings for the user.
    pub(super) warnings: Vec<String>,
}

/// Opens standard output.
pub(super) fn stdout(options: &WriterOptions) -> Result<Opened, WriteError> {
    let refused = |source| refusal(Path::new("-"), Refusal::Io(source));
    let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
    stream(File::from(stdout), "standard output".to_owned(), options).map_err(refused)
}

fn stream(file: File, name: String, options: &WriterOptions) -> io::Result<Opened> {
    let output = compressed(Box::new(Stream::new(file, options.format)?), options.compression)?;
    Ok(Opened { output, name, regular: None, created: false, warnings: Vec::new() })
}

/// Starts writing the file opened as `path`. `ring`: its files are deleted if the disk is full.
pub(super) fn open(
    OpenedFile { file, created, inherited }: OpenedFile,
    path: &Path,
    options: &WriterOptions,
    ring: Option<&Arc<Ring>>,
) -> Result<Opened, WriteError> {
    let refused = |source| refusal(path, Refusal::Io(source));
    let name = path.display().to_string();
    if inherited || !file.metadata().map_err(refused)?.is_file() {
        return stream(file, name, options).map_err(refused);
    }
    let mut warnings: Vec<String> = lock(&file, path)?.into_iter().collect();
    let others = exposed(&file, mode(options.group_readable));
    if let Some((owner, mode)) = others.filter(|_| !created) {
        warnings.push(format!(
            "cannot make {} private: it belongs to user {owner} and keeps mode {mode:04o}; choose another name",
            path.display()
        ));
    }
    // Truncated only now that no one else can be writing it.
    file.set_len(0).map_err(refused)?;
    let file = Arc::new(file);
    let output = Disk::new(Arc::clone(&file), options.format, &options.queue).with_ring(ring.cloned());
    let output = compressed(Box::new(output), options.compression).map_err(refused)?;
    Ok(Opened { output, name, regular: Some(file), created, warnings })
}

/// Continues a file that was closed with this `state`.
pub(super) fn go_on(
    file: Arc<File>,
    path: &Path,
    options: &WriterOptions,
    state: ResumePoint,
) -> Result<Box<dyn Output>, WriteError> {
    lock(&file, path)?;
    let output = Box::new(Disk::new(file, options.format, &options.queue).behind(state.written));
    let refused = |source| refusal(path, Refusal::Io(source));
    Ok(match options.compression {
        Compression::None => output,
        compression => {
            Box::new(Compressed::new(output, compression).map_err(refused)?.with_around(state.around))
        }
    })
}

fn compressed(output: Box<dyn Output>, compression: Compression) -> io::Result<Box<dyn Output>> {
    Ok(match compression {
        Compression::None => output,
        compression => Box::new(Compressed::new(output, compression)?),
    })
}

/// Locks the file against other writers while it is open; returns a warning if it cannot be locked.
fn lock(file: &File, path: &Path) -> Result<Option<String>, WriteError> {
    match lock::lock(file) {
        Ok(true) => {
            // `/proc/locks` shows the owner of this lock. A reader can hold it too, so it does not keep anyone from
            // writing.
            let _ = flock(file, FlockOperation::NonBlockingLockExclusive);
            Ok(None)
        }
        Ok(false) => {
            Err(WriteError::Locked { path: path.to_owned(), holder: holder(file).unwrap_or_default() })
        }
        Err(error) => Ok(Some(format!(
            "cannot lock {}: {error}; a second capture into it would go unnoticed",
            path.display()
        ))),
    }
}

/// Returns the owner of the lock, as ` (process 1234, weir)`, if the kernel reports it. Lines in `/proc/locks` look
/// like `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`: the device in hexadecimal, then the inode.
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

/// Releases the locks, which would otherwise last as long as anyone has the file open.
pub(super) fn unlock(file: &File) {
    let _ = lock::unlock(file);
    let _ = flock(file, FlockOperation::Unlock);
}

/// Converts a refusal to open `path` to an error.
pub(super) fn refusal(path: &Path, refused: Refusal) -> WriteError {
    let there = |owner, what| WriteError::Foreign { path: path.to_owned(), owner, what };
    let source = match refused {
        Refusal::Io(source) => source,
        Refusal::Link { owner } => return there(owner, "symbolic link there or on the way"),
        Refusal::Foreign { owner } => return there(owner, "file there"),
        Refusal::Unread => return WriteError::Unread { path: path.to_owned() },
    };
    let kind = source.kind();
    let source = Arc::new(source);
    let parent = parent(path).to_owned();
    let path = path.to_owned();
    match kind {
        io::ErrorKind::IsADirectory => WriteError::Directory { path },
        io::ErrorKind::NotFound if !parent.exists() => WriteError::NoParent { path, parent },
        io::ErrorKind::AlreadyExists => WriteError::Exists { path },
        io::ErrorKind::PermissionDenied => WriteError::NotPermitted { path, source },
        io::ErrorKind::ReadOnlyFilesystem => WriteError::ReadOnly { path, source },
        _ => WriteError::Open { path, source },
    }
}
