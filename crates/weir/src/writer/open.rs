//! From a path to an open output.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use super::stream::Stream;
use super::{Format, Output, WriteError};

/// Opens `path`, or standard output for `-`, and says how errors should call it.
pub(super) fn open(path: &Path, format: Format) -> Result<(Box<dyn Output>, String), WriteError> {
    let refused = |source| refusal(path, source);
    if path == Path::new("-") {
        let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
        let output = Stream::new(File::from(stdout), format).map_err(refused)?;
        return Ok((Box::new(output), "standard output".to_owned()));
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(refused)?;
    let name = path.display().to_string();
    if file.metadata().map_err(refused)?.is_file() {
        Ok((Box::new(Disk::new(Arc::new(file), format)), name))
    } else {
        Ok((Box::new(Stream::new(file, format).map_err(refused)?), name))
    }
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
        io::ErrorKind::PermissionDenied => WriteError::NotPermitted { path, source },
        io::ErrorKind::ReadOnlyFilesystem => WriteError::ReadOnly { path, source },
        _ => WriteError::Open { path, source },
    }
}
