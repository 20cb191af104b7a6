//! Creates directories in the BPF file system.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::io::Errno;
use weir_sys::CallError;

use crate::Error;

/// Creates a directory that only its owner may access.
pub(super) fn make_directory(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(privileged(CallError::new(format!("make {}", path.display()), error)))
        }
        _ => Ok(()),
    }
}

/// Converts the error, which may be for lack of privileges.
pub(super) fn privileged(error: CallError) -> Error {
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::ACCESS => {
            Error::Privilege { operation: error.operation, needs: "cap_dac_override" }
        }
        _ => error.into(),
    }
}
