//! Names in a bpffs: what has one outlives the processes that hold it.

use std::ffi::CString;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{bpf, raw};
use crate::CallError;

const BPF_OBJ_PIN: libc::c_int = 6;
const BPF_OBJ_GET: libc::c_int = 7;

/// `struct { ... }` of `union bpf_attr` for `BPF_OBJ_*`, up to the flags.
#[repr(C)]
struct Object {
    pathname: u64,
    bpf_fd: u32,
    file_flags: u32,
}

/// Gives a map, a program or a link the name `path`, which is in a bpffs and has no dot in it.
///
/// # Errors
///
/// `EPERM`: not in a bpffs, or a dot. `EEXIST`: the name is taken. `ENOENT`: there is no such directory.
pub fn pin(object: BorrowedFd<'_>, path: &Path) -> Result<(), CallError> {
    let failed = |error| CallError::new(format!("pin {}", path.display()), error);
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    let pathname = name.as_ptr().expose_provenance() as u64;
    let attr = Object { pathname, bpf_fd: raw(object), file_flags: 0 };
    // SAFETY: `attr` begins as union bpf_attr does for this command, and the path is live and ends with a zero.
    unsafe { bpf(BPF_OBJ_PIN, &raw const attr) }.map(drop).map_err(failed)
}

/// A descriptor of what is called `path`.
///
/// # Errors
///
/// `ENOENT`: nothing is. `EACCES`: it is no object of eBPF.
pub fn pinned(path: &Path) -> Result<OwnedFd, CallError> {
    let failed = |error| CallError::new(format!("open {}", path.display()), error);
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    let attr = Object { pathname: name.as_ptr().expose_provenance() as u64, bpf_fd: 0, file_flags: 0 };
    // SAFETY: as in `pin`.
    let fd = unsafe { bpf(BPF_OBJ_GET, &raw const attr) }.map_err(failed)?;
    // SAFETY: a descriptor that the kernel has just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
