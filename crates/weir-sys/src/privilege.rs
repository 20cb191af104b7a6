//! Capabilities, and dropping them.
//!
//! Capabilities belong to a thread, and are inherited by threads that it starts. A process therefore drops them before
//! it starts threads, or each thread drops its own.

use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

pub use rustix::thread::CapabilitySet as Capabilities;

use crate::CallError;
use crate::landlock::{self, Enforced, Files};
use crate::user::User;

/// Returns the calling thread's effective capabilities.
///
/// # Errors
///
/// The error of `capget(2)`.
pub fn effective() -> Result<Capabilities, CallError> {
    Ok(sets()?.effective)
}

/// Returns whether the calling thread has capabilities only because of its executable's file: it is not root, and its
/// parent has not passed them on.
///
/// # Errors
///
/// The error of `capget(2)`.
pub fn is_of_the_file() -> Result<bool, CallError> {
    let now = sets()?;
    Ok(!now.inheritable.contains(now.effective) && !rustix::process::geteuid().is_root())
}

/// Drops, for good, what the calling thread has only from its executable's file: all capabilities that its parent has not
/// passed on, unless it is root.
///
/// # Errors
///
/// The error of `capset(2)` or `prctl(2)`.
pub fn give_up_those_of_the_file() -> Result<(), CallError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { keep_only(sets()?.inheritable) }
}

/// Runs `work` with only those of the calling thread's capabilities that are in `kept`, and then restores the others.
///
/// # Errors
///
/// The error of `capset(2)`.
pub fn without_others<T>(kept: Capabilities, work: impl FnOnce() -> T) -> Result<T, CallError> {
    let before = sets()?;
    set(CapabilitySets { effective: before.effective & kept, ..before })?;
    let result = work();
    set(before)?;
    Ok(result)
}

/// Drops, for good, all of the calling thread's capabilities except those in `kept`, and the ways to get others: the
/// bounding set (if `CAP_SETPCAP` permits it), the inheritable and ambient sets, and privileges from executing files
/// (`no_new_privs`). The thread cannot pass the kept ones on to another program.
///
/// # Errors
///
/// The error of `capset(2)` or `prctl(2)`.
pub fn keep_only(kept: Capabilities) -> Result<(), CallError> {
    keep_only_as(None, kept)
}

/// Like [`keep_only`], and also switches to `user`, which then has the capabilities in `kept`.
///
/// # Errors
///
/// The errors of [`keep_only`] and [`User::switch_to`].
pub fn keep_only_as(user: Option<&User>, kept: Capabilities) -> Result<(), CallError> {
    let now = sets()?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter() {
            match capability_is_in_bounding_set(capability) {
                // Unknown to this older kernel, or already dropped.
                Err(Errno::INVAL) | Ok(false) => {}
                _ => remove_capability_from_bounding_set(capability)
                    .map_err(|error| CallError::new("drop capabilities from the bounding set", error))?,
            }
        }
    }
    clear_ambient_capability_set().map_err(|error| CallError::new("clear ambient capabilities", error))?;
    if let Some(user) = user {
        set_keep_capabilities(true)
            .map_err(|error| CallError::new("keep capabilities while changing the user", error))?;
        user.switch_to()?;
    }
    set(CapabilitySets {
        effective: now.effective & kept,
        permitted: now.permitted & kept,
        inheritable: CapabilitySet::empty(),
    })?;
    set_no_new_privs(true).map_err(|error| CallError::new("set no_new_privs", error))
}

/// The user for threads that keep nothing.
static NOBODY: OnceLock<User> = OnceLock::new();

/// Makes threads that [keep nothing](keep_nothing) from now on switch to `user`, too, if they are permitted to.
pub fn become_nobody_as(user: &User) {
    let _the_first_stays = NOBODY.set(user.clone());
}

/// Leaves the calling thread only its open descriptors: it has no capabilities and can open no files, if the kernel
/// supports that. It also switches to [another user](become_nobody_as), if one was set.
///
/// # Errors
///
/// The errors of [`keep_only`] and [`landlock::restrict`].
pub fn keep_nothing() -> Result<Enforced, CallError> {
    // A thread that already is this user may not switch again.
    let user = NOBODY.get().filter(|user| rustix::process::geteuid().as_raw() != user.uid);
    keep_only_as(user, Capabilities::empty())?;
    landlock::restrict(&Files::default())
}

fn sets() -> Result<CapabilitySets, CallError> {
    capabilities(None).map_err(|error| CallError::new("read capabilities", error))
}

fn set(sets: CapabilitySets) -> Result<(), CallError> {
    set_capabilities(None, sets).map_err(|error| CallError::new("drop capabilities", error))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{ErrorKind, Read};
    use std::thread;

    use super::*;

    /// Returns a line of the calling thread's status, as reported by the kernel.
    fn status(name: &str) -> String {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    }

    #[test]
    fn only_the_thread_itself_gives_up() {
        let names = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"];
        let before = names.map(status);
        let had_setpcap = effective().unwrap().contains(CapabilitySet::SETPCAP);
        let after = thread::spawn(move || {
            keep_only(CapabilitySet::DAC_OVERRIDE).unwrap();
            (names.map(status), status("NoNewPrivs:"))
        });
        let (sets, no_new_privs) = after.join().unwrap();
        let of = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let kept = of(&before[1]) & CapabilitySet::DAC_OVERRIDE.bits();
        assert_eq!([of(&sets[0]), of(&sets[1]), of(&sets[2]), of(&sets[4])], [0, kept, kept, 0]);
        assert_eq!(of(&sets[3]), if had_setpcap { 0 } else { of(&before[3]) });
        assert_eq!(no_new_privs, "1");
        assert_eq!(names.map(status), before);
    }

    #[test]
    fn what_was_put_aside_comes_back() {
        let before = effective().unwrap();
        assert_eq!(without_others(Capabilities::empty(), || effective().unwrap()).unwrap().bits(), 0);
        assert_eq!(effective().unwrap(), before);
    }

    #[test]
    fn nothing_is_nothing() {
        let inside = thread::spawn(|| {
            let mut open = fs::File::open("/etc/passwd").unwrap();
            let enforced = keep_nothing().unwrap();
            let opened = fs::File::open("/etc/passwd").map(drop).map_err(|error| error.kind());
            (enforced, effective().unwrap().bits(), opened, open.read(&mut [0; 8]).unwrap())
        });
        let (enforced, left, opened, bytes) = inside.join().unwrap();
        assert_eq!((left, bytes), (0, 8));
        let expected = if enforced == Enforced::Not { Ok(()) } else { Err(ErrorKind::PermissionDenied) };
        assert_eq!(opened, expected);
    }
}
