//! Signals as flags that the loops check. A signal also ends `Capture::next` early (EINTR), so none waits long.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag;
use weir_sys::signals::{end_if_interrupted_again, is_ignored};

/// What standard error gets if the process ends before its work is complete.
const CUT_SHORT: &str = "\nweir: interrupted again: ended at once; a file that was being written has no end, and lacks what was \
                         still in memory; to see what it has: weir info FILE\n";

/// Requests made by signals.
#[derive(Debug)]
pub(crate) struct Signals {
    stop: Arc<AtomicBool>,
    account: Arc<AtomicBool>,
    flush: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Installs handlers for SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2. SIGPIPE stays ignored, as by default in
    /// Rust: writing to a closed pipe returns an error. `reloads`: SIGHUP is a request to read the configuration again, and does
    /// not stop the command.
    pub(crate) fn install(reloads: bool) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let account = Arc::new(AtomicBool::new(false));
        let flush = Arc::new(AtomicBool::new(false));
        let reload = Arc::new(AtomicBool::new(false));
        stop_on_interrupts(&stop)?;
        // nohup(1) stays in force for a command that SIGHUP would stop.
        if reloads || !is_ignored(SIGHUP) {
            flag::register(SIGHUP, Arc::clone(if reloads { &reload } else { &stop }))?;
        }
        flag::register(SIGUSR1, Arc::clone(&account))?;
        flag::register(SIGUSR2, Arc::clone(&flush))?;
        Ok(Self { stop, account, flush, reload })
    }

    /// Returns whether the command is to stop.
    pub(crate) fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether the account is requested; true once per request.
    pub(crate) fn take_account(&self) -> bool {
        self.account.swap(false, Ordering::Relaxed)
    }

    /// Returns whether everything captured so far is to be written; true once per request.
    pub(crate) fn take_flush(&self) -> bool {
        self.flush.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the configuration is to be read again; true once per request.
    pub(crate) fn take_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}

/// Sets the flag on SIGINT, SIGTERM and SIGHUP; another SIGINT, a second or more after the first, ends the process. For
/// programs without a [session](crate::session).
///
/// # Errors
///
/// The kernel refuses a handler.
pub fn stop_on_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    stop_on_interrupts(stop)?;
    // nohup(1) stays in force.
    if !is_ignored(SIGHUP) {
        flag::register(SIGHUP, Arc::clone(stop))?;
    }
    Ok(())
}

/// The same without SIGHUP.
fn stop_on_interrupts(stop: &Arc<AtomicBool>) -> io::Result<()> {
    // First, since from then on a signal ends nothing by itself.
    flag::register(SIGINT, Arc::clone(stop))?;
    // The process's kernel objects (programs, maps, sockets) go with its descriptors.
    end_if_interrupted_again(CUT_SHORT)?;
    flag::register(SIGTERM, Arc::clone(stop)).map(drop)
}
