//! What goes with this program, even if a signal ends it: its temporary files, and the programs it runs.
//!
//! Private networks need no help: the kernel removes them with the last process that is in one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::{NamedTempFile, TempDir};
use weir_sys::signals::is_ignored;

use crate::failure::{Failure, failed};
use crate::process::children_of;
use crate::style;

/// Begins the names of files and folders.
const PREFIX: &str = "weir-bench-";
/// How long programs may take to end before their files are removed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Files and folders that may still exist.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Until the guard is dropped, no signal ends this program. Once one does, this blocks for good.
pub(super) fn hold() -> Held {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

type Held = MutexGuard<'static, Vec<PathBuf>>;

/// Creates a folder for programs and other small files.
pub(super) fn folder() -> io::Result<TempDir> {
    folder_in(&std::env::temp_dir())
}

/// Creates a folder in `dir`.
pub(super) fn folder_in(dir: &Path) -> io::Result<TempDir> {
    let mut left = hold();
    let folder = TempDir::with_prefix_in(PREFIX, dir)?;
    note(&mut left, folder.path());
    Ok(folder)
}

/// Creates a file in `dir`.
pub(super) fn file_in(dir: &Path) -> io::Result<NamedTempFile> {
    let mut left = hold();
    let file = NamedTempFile::with_prefix_in(PREFIX, dir)?;
    note(&mut left, file.path());
    Ok(file)
}

fn note(left: &mut Held, path: &Path) {
    left.retain(|path| path.exists());
    left.push(path.to_owned());
}

/// From now on, SIGHUP, SIGINT and SIGTERM remove everything before they end this program. Those that the parent process
/// had ignored, as nohup(1) does, stay ignored.
pub(super) fn watch() -> Result<(), Failure> {
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::new(wanted).map_err(failed("install signal handlers"))?;
    let wait = move || signals.forever().next().map(end);
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed("start a thread"))?;
    Ok(())
}

fn end(signal: i32) {
    let left = hold();
    end_children();
    for path in left.iter() {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                style::say(format_args!("weir-bench: cannot remove {}: {error}", path.display()));
            }
            _ => {}
        }
    }
    // Ends the process; the status says by which signal.
    let _never = emulate_default_handler(signal);
}

/// Asks the programs to end, and waits for them. Those in private networks that do not end are killed by the kernel, with
/// this program ([`NetNs::spawn`](weir_lab::NetNs::spawn)); another weir-bench goes on to remove its own files.
fn end_children() {
    for child in children_of(getpid()) {
        // Some are stopped. Fails where one has ended meanwhile.
        let _ended = kill_process(child, Signal::TERM).and_then(|()| kill_process(child, Signal::CONT));
    }
    let start = Instant::now();
    while !children_of(getpid()).is_empty() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (file_in(dir.path()).unwrap(), folder_in(dir.path()).unwrap());
        let known = |path: &Path| hold().iter().any(|left| left == path);
        assert!(known(one.path()) && known(other.path()));
        let gone = one.path().to_owned();
        drop(one);
        let last = file_in(dir.path()).unwrap();
        assert!(!known(&gone) && known(other.path()) && known(last.path()));
    }
}
