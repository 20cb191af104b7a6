//! Names in a bpffs: pinned objects outlive the processes that hold them.

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

/// Pins a map, a program or a link as `path`, which must be in a bpffs and contain no dot.
///
/// # Errors
///
/// `EPERM`: not in a bpffs, or a dot. `EEXIST`: the name is taken. `ENOENT`: no such directory.
pub fn pin(object: BorrowedFd<'_>, path: &Path) -> Result<(), CallError> {
    let failed = |error| CallError::new(format!("pin {}", path.display()), error);
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    let pathname = name.as_ptr().expose_provenance() as u64;
    let attr = Object { pathname, bpf_fd: raw(object), file_flags: 0 };
    // SAFETY: `attr` begins like union bpf_attr for this command; the path is live and ends with a zero.
    unsafe { bpf(BPF_OBJ_PIN, &raw const attr) }.map(drop).map_err(failed)
}

/// Opens the object pinned as `path`.
///
/// # Errors
///
/// `ENOENT`: there is none. `EACCES`: it is not an eBPF object.
pub fn pinned(path: &Path) -> Result<OwnedFd, CallError> {
    let failed = |error| CallError::new(format!("open {}", path.display()), error);
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    let attr = Object { pathname: name.as_ptr().expose_provenance() as u64, bpf_fd: 0, file_flags: 0 };
    // SAFETY: as in `pin`.
    let fd = unsafe { bpf(BPF_OBJ_GET, &raw const attr) }.map_err(failed)?;
    // SAFETY: a descriptor that the kernel has just created for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
