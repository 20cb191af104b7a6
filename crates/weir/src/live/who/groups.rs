//! Control groups by number, and what their paths say about containers and units.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_who::Placed;

/// The control groups of cgroup2.
#[derive(Debug)]
pub(super) struct Groups {
    mount: Option<Mount>,
    /// By the inode of the directory.
    known: HashMap<u64, Placed>,
    /// When to look again at the soonest, so that new groups take a tenth of a processor at most.
    next_look: Instant,
    /// Whether there are hierarchies of version 1.
    pub(super) version_1: bool,
}

/// Where cgroup2 is mounted.
#[derive(Debug)]
struct Mount {
    directory: PathBuf,
    /// The path of its root, from the root of all groups as this process sees it.
    root: String,
    file: File,
}

impl Groups {
    /// Finds where cgroup2 is mounted, and looks at all groups.
    pub(super) fn find() -> Self {
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounted = mounts(&table, b"cgroup2").find_map(|(root, directory)| {
            let file = File::open(&directory).ok()?;
            Some(Mount { directory, root, file })
        });
        let mount = mounted.or_else(|| {
            let file = weir_sys::cgroup::mounted().ok()?;
            let directory = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
            Some(Mount { directory, root: "/".to_owned(), file })
        });
        let version_1 = mounts(&table, b"cgroup").next().is_some();
        let mut groups = Self { mount, known: HashMap::new(), next_look: Instant::now(), version_1 };
        groups.look();
        groups
    }

    /// Returns the root's directory, if cgroup2 is mounted.
    pub(super) fn root(&self) -> Option<BorrowedFd<'_>> {
        self.mount.as_ref().map(|mount| mount.file.as_fd())
    }

    /// Returns whether the directory is the root of all groups: not where only a part of them is mounted, as in a container.
    pub(super) fn is_whole(&self) -> bool {
        /// Of the root (`cgroup_setup_root`, kernel/cgroup/cgroup.c).
        const FIRST: u64 = 1;
        self.mount.as_ref().is_some_and(|mount| mount.file.metadata().is_ok_and(|root| root.ino() == FIRST))
    }

    /// Returns a group by its number; `None` if it is gone, or not to be seen.
    pub(super) fn get(&mut self, number: u64) -> Option<&Placed> {
        if !self.known.contains_key(&number) && Instant::now() >= self.next_look {
            self.look();
        }
        self.known.get(&number)
    }

    /// Returns the number of the group with this path.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.known.iter().find(|(_, group)| group.cgroup.as_deref() == Some(path)).map(|(number, _)| *number)
    }

    /// Looks at all groups. Those that are gone stay known: their processes' packets may still come.
    fn look(&mut self) {
        /// More than any host has at a time.
        const MOST: usize = 100_000;
        const SHARE: u32 = 10;
        let began = Instant::now();
        let Some(mount) = &self.mount else { return };
        let mut found = HashMap::new();
        let mut left = vec![mount.directory.clone()];
        while let Some(directory) = left.pop() {
            let Ok(status) = fs::symlink_metadata(&directory) else { continue };
            let Ok(below) = directory.strip_prefix(&mount.directory) else { continue };
            let path = joined(&mount.root, below);
            found.insert(status.ino(), path);
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            left.extend(directories.map(|entry| entry.path()));
            if found.len() >= MOST {
                break;
            }
        }
        if self.known.len() + found.len() > 2 * MOST {
            self.known.retain(|number, _| found.contains_key(number));
        }
        for (number, path) in found {
            let group = self.known.entry(number).or_default();
            // A group can be renamed only with version 1.
            if group.cgroup.as_ref() != Some(&path) {
                *group = Placed::at(&path);
            }
        }
        self.next_look = Instant::now() + (began.elapsed() * SHARE).max(Duration::from_millis(1));
    }
}

fn joined(root: &str, below: &Path) -> String {
    let below = below.to_string_lossy();
    match (root.trim_end_matches('/'), below.as_ref()) {
        ("", below) => format!("/{below}"),
        (root, "") => root.to_owned(),
        (root, below) => format!("{root}/{below}"),
    }
}

/// Iterates over the mounts of a file system: the path inside it that is mounted, and the directory; see
/// `proc_pid_mountinfo(5)`.
fn mounts<'a>(table: &'a [u8], system: &'a [u8]) -> impl Iterator<Item = (String, PathBuf)> + 'a {
    table.split(|&byte| byte == b'\n').filter_map(move |line| {
        let mut words = line.split(|&byte| byte == b' ');
        let root = unescaped(words.nth(3)?);
        let directory = unescaped(words.next()?);
        words.find(|word| *word == b"-")?;
        (words.next()? == system)
            .then(|| (String::from_utf8_lossy(&root).into_owned(), OsString::from_vec(directory).into()))
    })
}

/// Undoes `\040` and the like.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, others)) = rest.split_first() {
        let code = others.get(..3).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| first == b'\\').and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        let table = b"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw
36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
41 31 0:38 /lxc/a\\040b /sys/fs/cgroup/un\\134ified rw shared:7 master:1 - cgroup2 cgroup2 rw
broken
";
        let found: Vec<_> = mounts(table, b"cgroup2").collect();
        assert_eq!(found, [("/lxc/a b".to_owned(), PathBuf::from("/sys/fs/cgroup/un\\ified"))]);
        assert_eq!(mounts(table, b"cgroup").count(), 1);
        assert_eq!(joined("/", Path::new("")), "/");
        assert_eq!(joined("/", Path::new("a/b")), "/a/b");
        assert_eq!(joined("/lxc/a b", Path::new("c")), "/lxc/a b/c");
        assert_eq!(joined("/lxc", Path::new("")), "/lxc");
    }

    #[test]
    fn the_own_group_is_known() {
        let mut groups = Groups::find();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::"));
        let (Some(mount), Some(own)) = (&groups.mount, own) else {
            return weir_skip::this_test("no cgroup2 is mounted");
        };
        let Some(below) = own.strip_prefix(mount.root.trim_end_matches('/')) else {
            return weir_skip::this_test("the own group is outside of what is mounted");
        };
        let directory = mount.directory.join(below.trim_start_matches('/'));
        let status = match fs::metadata(&directory) {
            Ok(status) => status,
            Err(error) => {
                return weir_skip::this_test(format_args!("cannot read {}: {error}", directory.display()));
            }
        };
        assert_eq!(groups.get(status.ino()).and_then(|group| group.cgroup.as_deref()), Some(own));
        assert_eq!(groups.get(u64::MAX), None);
    }
}
