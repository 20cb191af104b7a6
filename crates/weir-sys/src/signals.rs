//! What a process inherits of signals, for a program that it becomes; and signals that insist.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// Whether the process was started with SIGPIPE ignored. Rust ignores it before `main`.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// The dynamic loader calls it before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_THE_BEGINNING: extern "C" fn() = remember;

extern "C" fn remember() {
    // Relaxed: no other thread runs yet.
    PIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Returns whether this process ignores `signal`. Before it installs a handler, that is what its parent wanted, as nohup(1)
/// does with SIGHUP.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only reads the disposition, into a structure that is writable.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeros are valid, and so is what the call has written.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

/// Makes the program that `command` executes inherit this thread's mask of blocked signals, and whether SIGPIPE was
/// ignored when this process began, as a program that a shell executes does. [`Command`] alone clears both.
///
/// # Errors
///
/// The mask cannot be read.
pub fn pass_on(command: &mut Command) -> io::Result<&mut Command> {
    let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: only reads the mask, into a set that is writable.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), blocked.as_mut_ptr()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: initialised by the successful call.
    let blocked = unsafe { blocked.assume_init() };
    let restore = move || {
        if PIPE_IGNORED.load(Ordering::Relaxed) {
            // SAFETY: no handler of ours is replaced.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        // SAFETY: the set is only read.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: the closure only makes two calls that are safe after fork.
    Ok(unsafe { command.pre_exec(restore) })
}

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Ends the process with status 1, at once and after writing `last_words` to standard error, at a SIGINT that comes a second or
/// more after the first one. Earlier ones count as one with it: timeout(1) sends one to the process and one to its group, and
/// people press a key twice. Whoever handles the first one does so beside this. Further calls change nothing.
///
/// # Errors
///
/// The kernel refuses a handler.
pub fn end_if_interrupted_again(last_words: &'static str) -> io::Result<()> {
    static IS_SET: AtomicBool = AtomicBool::new(false);
    /// When the first one came, on the monotonic clock; 0: none yet.
    static FIRST: AtomicU64 = AtomicU64::new(0);
    // Relaxed, here and below: nothing else is told by these.
    if IS_SET.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let handler = move || {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec.unsigned_abs() * SECOND + now.tv_nsec.unsigned_abs();
        let first = FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err_and(|first| now.saturating_sub(first) >= SECOND) {
            // SAFETY: the bytes are static, and write(2) is safe in a handler.
            unsafe { libc::write(2, last_words.as_ptr().cast(), last_words.len()) };
            // SAFETY: _exit(2) is safe in a handler, too.
            unsafe { libc::_exit(1) };
        }
    };
    // SAFETY: the handler does what is safe in one (signal-safety(7)): it reads a clock, uses atomics and makes two calls.
    unsafe { signal_hook::low_level::register(libc::SIGINT, handler) }.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_known() {
        // By Rust's runtime.
        assert!(is_ignored(libc::SIGPIPE));
        assert!(!is_ignored(libc::SIGUSR2));
    }
}
