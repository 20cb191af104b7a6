//! Threads of a library, in a program that has other plans with its signals.

use std::io;
use std::mem::MaybeUninit;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use crate::privilege;

/// Starts a thread on which no signal handler ever runs: a signal to the process is left to the threads of the program,
/// whose sleep it may be meant to end.
///
/// # Errors
///
/// No resources for another thread.
pub fn spawn_deaf<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A thread begins with the mask of the one that starts it, so there is no moment at which it could be disturbed.
    let before = mask_all()?;
    let started = Builder::new().name(name.to_owned()).spawn(work);
    mask(&before)?;
    started
}

/// The same for a thread that needs nothing but memory and open descriptors: it gives up everything else, before this
/// returns ([`privilege::keep_nothing`]). Where the kernel does not let it, it runs with what it has.
///
/// # Errors
///
/// No resources for another thread.
pub fn spawn_bare<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let (tell, bare) = mpsc::sync_channel(1);
    let thread = spawn_deaf(name, move || {
        let _with_what_it_has = privilege::keep_nothing();
        drop(tell);
        work()
    })?;
    let _hung_up: Result<(), _> = bare.recv();
    Ok(thread)
}

/// Blocks all signals for the calling thread, and gives the mask before.
pub(crate) fn mask_all() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is valid for the call to write to.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the call above has set it; it cannot fail.
    mask(&unsafe { all.assume_init() })
}

/// Sets the calling thread's mask of blocked signals, and gives the one before.
pub(crate) fn mask(blocked: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first set is only read, the second one is valid for the call to write to.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked, before.as_mut_ptr()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: a call that succeeds has set it.
    Ok(unsafe { before.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::spawn_deaf;

    /// The calling thread's mask of blocked signals, as the kernel tells it.
    fn blocked() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn only_the_new_thread_is_deaf() {
        let before = blocked();
        let inside = spawn_deaf("deaf", blocked).unwrap().join().unwrap();
        // SIGKILL and SIGSTOP cannot be blocked, and the C library keeps 32 and 33 for itself.
        for signal in [1, 2, 3, 10, 14, 15] {
            assert_ne!(inside & 1 << (signal - 1), 0, "signal {signal}");
        }
        assert_eq!(blocked(), before);
    }
}
