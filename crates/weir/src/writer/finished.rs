//! Processing of finished files, away from the packets: `fsync`, and a program that is run for each.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use weir_sys::thread::spawn_deaf;

use super::broker::FileBroker;
use super::local_broker::can_run;
use super::{WriteError, WriterOptions};

/// Maximum number of programs that run at once.
const MOST: usize = 4;

/// Number of waiting files that is worth a warning.
const PILE: usize = 16;

/// The threads that process finished files; started with the first files.
#[derive(Debug)]
pub(super) struct Finished {
    shared: Arc<Shared>,
    files: Option<Sender<FinishedFile>>,
    queue: Arc<Mutex<Receiver<FinishedFile>>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct FinishedFile {
    path: PathBuf,
    /// The open file; `None`: a pipe, which needs no `fsync`.
    file: Option<Arc<File>>,
}

#[derive(Debug)]
struct Shared {
    broker: Arc<dyn FileBroker>,
    fsync: bool,
    command: Option<OsString>,
    /// Finished files that are waiting to be processed.
    waiting: AtomicUsize,
    /// The number of waiting files above which there is another warning.
    told: AtomicUsize,
    /// Programs that failed.
    failures: AtomicU64,
    warnings: Mutex<Vec<String>>,
    /// The first `fsync` that failed.
    failed: Mutex<Option<WriteError>>,
}

impl Finished {
    /// # Errors
    ///
    /// The program was not found.
    pub(super) fn new(options: &WriterOptions, broker: &Arc<dyn FileBroker>) -> Result<Self, WriteError> {
        // Another broker has checked this where it runs the program.
        let wanted = options.command.as_deref().filter(|_| options.broker.is_none());
        if let Some(command) = wanted.filter(|command| !can_run(command)) {
            return Err(WriteError::Command { command: command.to_string_lossy().into_owned() });
        }
        let (files, queue) = channel();
        let shared = Shared {
            broker: Arc::clone(broker),
            fsync: options.fsync,
            command: options.command.clone(),
            waiting: AtomicUsize::new(0),
            told: AtomicUsize::new(PILE - 1),
            failures: AtomicU64::new(0),
            warnings: Mutex::default(),
            failed: Mutex::default(),
        };
        let (shared, queue) = (Arc::new(shared), Arc::new(Mutex::new(queue)));
        Ok(Self { shared, files: Some(files), queue, threads: Vec::new() })
    }

    /// Processes a complete file.
    pub(super) fn take(&mut self, path: &Path, file: Option<Arc<File>>) {
        if !self.shared.fsync && self.shared.command.is_none() {
            return;
        }
        if self.threads.len() < MOST {
            let (shared, queue) = (Arc::clone(&self.shared), Arc::clone(&self.queue));
            match spawn_deaf("weir-finished", move || shared.work(&queue)) {
                Ok(thread) => self.threads.push(thread),
                Err(error) => self.warn(format!("cannot start a thread for finished files: {error}")),
            }
        }
        let waiting = self.shared.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        // Warns again each time the backlog has doubled.
        if waiting > self.shared.told.load(Ordering::Relaxed) {
            self.shared.told.store(waiting * 2, Ordering::Relaxed);
            self.warn(format!(
                "{waiting} finished files are waiting: processing a file takes longer than writing one"
            ));
        }
        if let Some(files) = &self.files {
            // The channel lives as long as `self`.
            let _ = files.send(FinishedFile { path: path.to_owned(), file });
        }
    }

    pub(super) fn warn(&self, warning: String) {
        self.shared.warn(warning);
    }

    /// Returns the warnings since the last call.
    pub(super) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until every file is processed.
    pub(super) fn wait(&mut self) -> Result<(), WriteError> {
        self.files = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let failures = self.shared.failures.swap(0, Ordering::Relaxed);
        if failures > 1 {
            let command = self.shared.command.as_deref().unwrap_or_default().to_string_lossy();
            self.warn(format!("`{command}` failed for {failures} files"));
        }
        self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

impl Shared {
    fn warn(&self, warning: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// Runs one thread, until there are no more files.
    fn work(&self, queue: &Mutex<Receiver<FinishedFile>>) {
        if self.command.is_some() {
            // Lowers the priority of this thread and the programs it starts: packets come first.
            let _ = rustix::process::setpriority_process(None, 19);
        }
        loop {
            let file = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(FinishedFile { path, file }) = file else { return };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            // The directory holds the name, so it needs `fsync` too.
            let synced = file
                .filter(|_| self.fsync)
                .map(|file| file.sync_all().and_then(|()| self.broker.directory(&path)?.sync_all()));
            if let Some(Err(error)) = synced {
                let failed = WriteError::Sync { path: path.clone(), source: Arc::new(error) };
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failed);
            }
            if let Some(command) = &self.command {
                self.run(command, &path);
            }
        }
    }

    fn run(&self, command: &OsStr, path: &Path) {
        let Err(reason) = self.broker.run(command, path) else { return };
        if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
            let command = command.to_string_lossy();
            self.warn(format!("`{command} {}` failed: {reason}; the file itself is intact", path.display()));
        }
    }
}
