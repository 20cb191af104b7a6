//! Threads of a library, in a program that handles signals itself.

use std::io;
use std::mem::MaybeUninit;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::privilege;

/// Starts a thread on which no signal handler ever runs. Signals to the process go to the program's own threads, which
/// they may be meant to wake.
///
/// # Errors
///
/// No resources for another thread.
pub fn spawn_deaf<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A thread inherits the mask of its creator, so signals are blocked from the start.
    let before = mask_all()?;
    let started = Builder::new().name(name.to_owned()).spawn(work);
    mask(&before)?;
    started
}

/// Like [`spawn_deaf`], for a thread that needs only memory and open descriptors. It gives up everything else before
/// this returns ([`privilege::keep_nothing`]). If the kernel does not allow that, it runs with its current privileges.
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

/// Runs `work` with all signals blocked in the calling thread, and so in the threads that it starts meanwhile.
pub fn deafly<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(io::Result<libc::sigset_t>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Ok(before) = &self.0 {
                let _cannot_fail = mask(before);
            }
        }
    }
    let _restore = Restore(mask_all());
    work()
}

/// Blocks all signals for the calling thread, and returns the previous mask.
pub(crate) fn mask_all() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is writable.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: initialised by the call above, which cannot fail.
    mask(&unsafe { all.assume_init() })
}

/// Ends this process, which has one thread, after this time, by a signal that nothing handles.
pub(crate) fn end_after(time: Duration) -> io::Result<()> {
    let once = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval {
        it_interval: once,
        it_value: libc::timeval {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_usec: time.subsec_micros().into(),
        },
    };
    let mut alarm = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `alarm` is writable.
    unsafe { libc::sigemptyset(alarm.as_mut_ptr()) };
    // SAFETY: initialised by the call above, which cannot fail.
    let mut alarm = unsafe { alarm.assume_init() };
    // SAFETY: `alarm` is writable.
    unsafe { libc::sigaddset(&raw mut alarm, libc::SIGALRM) };
    // SAFETY: the default is no function of ours.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
    // SAFETY: `alarm` is only read.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const alarm, std::ptr::null_mut()) };
    // SAFETY: `timer` is only read.
    let set = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the calling thread's mask of blocked signals, and returns the previous one.
pub(crate) fn mask(blocked: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first set is only read, and the second is writable.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked, before.as_mut_ptr()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: initialised by the successful call.
    Ok(unsafe { before.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{deafly, spawn_deaf};

    /// Returns the calling thread's mask of blocked signals, as reported by the kernel.
    fn blocked() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn only_the_new_thread_is_deaf() {
        let before = blocked();
        let inside = spawn_deaf("deaf", blocked).unwrap().join().unwrap();
        // SIGKILL and SIGSTOP cannot be blocked, and the C library reserves 32 and 33.
        for signal in [1, 2, 3, 10, 14, 15] {
            assert_ne!(inside & 1 << (signal - 1), 0, "signal {signal}");
        }
        assert_eq!(blocked(), before);
        let inside = deafly(|| std::thread::scope(|scope| scope.spawn(blocked).join().unwrap()));
        assert_ne!(inside & 1 << 14, 0);
        assert_eq!(blocked(), before);
    }
}
