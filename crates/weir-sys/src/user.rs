//! Users, and switching to one.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::ffi::{CStr, CString};
use std::fs;
use std::hash::BuildHasher as _;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::ptr;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::CallError;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Name, as given.
    pub name: String,
    /// User ID.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// All groups, including the primary one.
    pub groups: Vec<u32>,
}

/// Room for a line of the user database, more than any user needs.
const LINE: usize = 16 << 10;

/// Room for a line of the group database, more than any group needs.
const MOST: usize = 16 << 20;

/// Most groups to query: `NGROUPS_MAX`, Linux's limit.
const GROUPS: i32 = 65_536;

/// User IDs that systemd reserves for users that exist while a program runs: no files belong to them.
pub const PASSING: RangeInclusive<u32> = 61_184..=65_519;

/// How many of these IDs are tried.
const TRIES: u32 = 64;

impl User {
    /// Returns an unused user from [this range](PASSING): no database has its ID for a user or a group, and no process
    /// has it. Its name is its ID. `None`: there is none, or it cannot be determined.
    pub fn passing() -> Option<Self> {
        let taken = numbers_of_processes().ok()?;
        let count = PASSING.end() - PASSING.start() + 1;
        // Random, so that programs that start at the same time, perhaps in containers that do not see each other's
        // processes, choose different IDs.
        let first = u32::try_from(RandomState::new().hash_one(0) % u64::from(count)).ok()?;
        let mut numbers = (0..TRIES).map(|more| PASSING.start() + (first + more) % count);
        let number = numbers.find(|&number| !taken.contains(&number) && !is_known(number))?;
        Some(Self { name: number.to_string(), uid: number, gid: number, groups: vec![number] })
    }

    /// Looks up the user with this name in the C library's databases. `None`: there is none.
    ///
    /// # Errors
    ///
    /// The error of `getpwnam_r(3)`.
    pub fn find(name: &str) -> Result<Option<Self>, CallError> {
        let failed = |error| CallError::new("look up a user", std::io::Error::from_raw_os_error(error));
        let Ok(c_name) = CString::new(name) else { return Ok(None) };
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut line = vec![0; LINE];
        let mut found = ptr::null_mut();
        // SAFETY: the name ends with a zero; `entry`, `line` (of this length) and `found` are writable.
        let error = unsafe {
            libc::getpwnam_r(
                c_name.as_ptr(),
                entry.as_mut_ptr(),
                line.as_mut_ptr(),
                line.len(),
                &raw mut found,
            )
        };
        if error != 0 {
            return Err(failed(error));
        }
        if found.is_null() {
            return Ok(None);
        }
        // SAFETY: the call has found an entry, so it has initialised `entry`.
        let entry = unsafe { entry.assume_init() };
        let (uid, gid) = (entry.pw_uid, entry.pw_gid);
        let groups = groups(&c_name, gid).ok_or_else(|| failed(libc::E2BIG))?;
        Ok(Some(Self { name: name.to_owned(), uid, gid, groups }))
    }

    /// Switches the calling thread, and threads that it starts later, to this user and its groups, for good. Unless the
    /// user is root, the capabilities are lost.
    ///
    /// # Errors
    ///
    /// Switching to another user needs root, or `CAP_SETUID` and `CAP_SETGID`.
    pub fn switch_to(&self) -> Result<(), CallError> {
        let groups: Vec<Gid> = self.groups.iter().map(|&group| Gid::from_raw(group)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups).map_err(|error| CallError::new("set supplementary groups", error))?;
        set_thread_res_gid(gid, gid, gid).map_err(|error| CallError::new("set the group", error))?;
        set_thread_res_uid(uid, uid, uid).map_err(|error| CallError::new("set the user", error))
    }
}

/// Returns the user IDs and primary group IDs of all processes, all four of each.
fn numbers_of_processes() -> std::io::Result<HashSet<u32>> {
    let mut numbers = HashSet::new();
    for entry in fs::read_dir("/proc")? {
        // A process that has ended, or not a process.
        let Ok(status) = fs::read_to_string(entry?.path().join("status")) else { continue };
        let lines =
            status.lines().filter_map(|line| line.strip_prefix("Uid:").or_else(|| line.strip_prefix("Gid:")));
        numbers
            .extend(lines.flat_map(str::split_ascii_whitespace).filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// Returns whether a user or a group may have this ID, according to the C library's databases.
fn is_known(number: u32) -> bool {
    let mut line = vec![0; LINE];
    let mut user = MaybeUninit::<libc::passwd>::uninit();
    let mut found = ptr::null_mut();
    // SAFETY: `user`, `line` (of this length) and `found` are writable.
    let error =
        unsafe { libc::getpwuid_r(number, user.as_mut_ptr(), line.as_mut_ptr(), line.len(), &raw mut found) };
    if error != 0 || !found.is_null() {
        return true;
    }
    let mut group = MaybeUninit::<libc::group>::uninit();
    let mut found = ptr::null_mut();
    // SAFETY: `group`, `line` (of this length) and `found` are writable.
    let error = unsafe {
        libc::getgrgid_r(number, group.as_mut_ptr(), line.as_mut_ptr(), line.len(), &raw mut found)
    };
    error != 0 || !found.is_null()
}

/// Looks up the ID of the group with this name in the C library's databases. `None`: there is none.
///
/// # Errors
///
/// The error of `getgrnam_r(3)`.
pub fn group(name: &str) -> Result<Option<u32>, CallError> {
    let failed = |error| CallError::new("look up a group", std::io::Error::from_raw_os_error(error));
    let Ok(c_name) = CString::new(name) else { return Ok(None) };
    let mut room = LINE;
    loop {
        let mut entry = MaybeUninit::<libc::group>::uninit();
        let mut line = vec![0; room];
        let mut found = ptr::null_mut();
        // SAFETY: the name ends with a zero; `entry`, `line` (of this length) and `found` are writable.
        let error = unsafe {
            libc::getgrnam_r(
                c_name.as_ptr(),
                entry.as_mut_ptr(),
                line.as_mut_ptr(),
                line.len(),
                &raw mut found,
            )
        };
        match error {
            // A group with many members.
            libc::ERANGE if room < MOST => room *= 8,
            0 if found.is_null() => return Ok(None),
            // SAFETY: the call has found an entry, so it has initialised `entry`.
            0 => return Ok(Some(unsafe { entry.assume_init() }.gr_gid)),
            error => return Err(failed(error)),
        }
    }
}

/// Returns all groups of a user with primary group `gid`; `None`: too many.
fn groups(name: &CStr, gid: u32) -> Option<Vec<u32>> {
    let mut room = 64;
    while room <= GROUPS {
        let mut groups = vec![0; usize::try_from(room).ok()?];
        let mut count = room;
        // SAFETY: the name ends with a zero; `groups` has room for `count` numbers, and both are writable.
        let fits = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        if fits >= 0 {
            groups.truncate(usize::try_from(count).ok()?);
            return Some(groups);
        }
        room *= 4;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::thread;

    use super::*;

    #[test]
    fn users_that_every_system_has_and_one_that_none_has() {
        let root = User::find("root").unwrap().expect("root");
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0));
        let nobody = User::find("nobody").unwrap().expect("nobody");
        assert_eq!(nobody.uid, 65_534);
        assert_eq!(User::find("no-such-user").unwrap(), None);
        assert_eq!(User::find("a\0b").unwrap(), None);
    }

    #[test]
    fn a_passing_user_is_nobody_else() {
        for _ in 0..20 {
            let user = User::passing().expect("one of thousands");
            assert!(PASSING.contains(&user.uid), "{user:?}");
            assert_eq!(
                (user.gid, &user.groups, &user.name),
                (user.uid, &vec![user.uid], &user.uid.to_string())
            );
            assert!(!is_known(user.uid));
        }
        // The choice is random.
        let found: HashSet<_> = (0..20).filter_map(|_| User::passing()).map(|user| user.uid).collect();
        assert!(found.len() > 10, "{found:?}");
        assert!(is_known(0) && is_known(65_534));
        let own = rustix::process::geteuid().as_raw();
        assert!(numbers_of_processes().unwrap().contains(&own));
    }

    #[test]
    fn groups_that_every_system_has_and_one_that_none_has() {
        assert_eq!(group("root").unwrap(), Some(0));
        assert_eq!(group("no-such-group").unwrap(), None);
        assert_eq!(group("a\0b").unwrap(), None);
    }

    #[test]
    fn only_the_thread_becomes_another() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let nobody = User::find("nobody").unwrap().expect("nobody");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("theirs");
        rustix::fs::chown(directory.path(), Some(Uid::from_raw(nobody.uid)), None).unwrap();
        let theirs = path.clone();
        let status = thread::spawn(move || {
            nobody.switch_to().unwrap();
            fs::write(theirs, "").unwrap();
            // There is no way back.
            assert!(User::find("root").unwrap().unwrap().switch_to().is_err());
            fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        let line =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!(line("Uid:"), "65534\t65534\t65534\t65534");
        assert_eq!(line("CapPrm:"), "0000000000000000");
        assert_eq!(fs::metadata(&path).unwrap().uid(), 65_534);
        assert!(rustix::process::geteuid().is_root());
    }
}
