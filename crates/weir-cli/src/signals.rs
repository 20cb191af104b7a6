//! Signals as flags that the loops look at. A signal also ends `Capture::next` early (EINTR), so none waits long.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;

/// What signals have asked for.
#[derive(Debug)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    account: Arc<AtomicBool>,
    flush: Arc<AtomicBool>,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2. SIGPIPE stays ignored, as the Rust runtime leaves it: a closed
    /// pipe is an error of the write.
    pub(crate) fn install() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let account = Arc::new(AtomicBool::new(false));
        let flush = Arc::new(AtomicBool::new(false));
        // Registered first, so it sees the flag as it was before this signal: the second SIGINT ends the process at
        // once. What the kernel holds for it (programs, maps, sockets) goes with its descriptors.
        flag::register_conditional_shutdown(SIGINT, 1, Arc::clone(&stop))?;
        flag::register(SIGINT, Arc::clone(&stop))?;
        flag::register(SIGTERM, Arc::clone(&stop))?;
        if !ignored(SIGHUP) {
            flag::register(SIGHUP, Arc::clone(&stop))?;
        }
        flag::register(SIGUSR1, Arc::clone(&account))?;
        flag::register(SIGUSR2, Arc::clone(&flush))?;
        Ok(Self { stop, account, flush })
    }

    /// Somebody wants the command to end.
    pub(crate) fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Somebody wants to see the account; true once per request.
    pub(crate) fn take_account(&self) -> bool {
        self.account.swap(false, Ordering::Relaxed)
    }

    /// Somebody wants everything captured so far to be in the file; true once per request.
    pub(crate) fn take_flush(&self) -> bool {
        self.flush.swap(false, Ordering::Relaxed)
    }
}

/// The parent had `signal` ignored, as nohup(1) does with SIGHUP: it stays so.
fn ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
