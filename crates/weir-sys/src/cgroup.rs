//! Control groups.

use std::fs::File;
use std::io;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::CallError;

/// Returns the root of cgroup2, mounted for this process alone and in no directory (fsmount(2), Linux 5.2): `ip netns exec`, for one,
/// hides where others have mounted it. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
///
/// `EPERM` without that capability, `ENODEV` on a kernel without cgroup2.
pub fn mounted() -> Result<File, CallError> {
    let mounted = || -> io::Result<File> {
        let system = fsopen(c"cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&system)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&mount, c".", flags, Mode::empty())?.into())
    };
    mounted().map_err(|error| CallError::new("mount cgroup2", error))
}
