//! Writes flows to files, which have their names when they are finished.
//!
//! ```text
//! flow -> shape -> pending, in memory -> a hidden file --- the clock says so ---> synced, renamed: sent
//!                     '- the disk is full: flows are lost until there is room
//! ```
//!
//! A flow is queued until its file has its name, then it is sent. If its file cannot be finished, all its flows are lost.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use weir::flows::Flow;
use weir_service::archive::Archive;

use super::folder::Folder;
use super::outlet::{Destination, Unsent};
use super::shape::Shape;

/// Between two attempts to begin a file, and to write what could not be written.
const AGAIN: Duration = Duration::from_secs(1);
/// Files of one name that are looked for: another run may have those.
const NAMES: u64 = 100;

/// Names of interfaces, by number. They may become known as packets come.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<RwLock<Vec<String>>>);

impl Names {
    /// Adds the next interface.
    pub(super) fn add(&self, name: String) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(name);
    }

    /// Does something with the name of an interface; it may be unknown.
    pub(super) fn with<T>(&self, interface: u16, work: impl FnOnce(&str) -> T) -> T {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        work(names.get(usize::from(interface)).map(String::as_str).unwrap_or_default())
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct FileCounts {
    /// Files that have their names.
    pub(super) finished: u64,
    /// Bytes in them.
    pub(super) octets: u64,
    /// Files that could not be finished.
    pub(super) discarded: u64,
}

/// The counters, for another thread, and what the user should know.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<(FileCounts, Vec<String>)>>);

impl Watched {
    pub(super) fn counts(&self) -> FileCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns what has happened since it was asked last.
    pub(super) fn news(&self) -> Vec<String> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// Writes files.
#[derive(Debug)]
pub(super) struct Saver {
    folder: Folder,
    sensor: String,
    archive: Archive,
    names: Names,
    watched: Watched,
    counts: FileCounts,
    open: Option<Unfinished>,
    /// Those that wait are in the file that is open.
    unsent: Unsent,
    /// Files that were begun.
    number: u64,
    /// The kind of the last error, which the user knows, until something works again.
    trouble: Option<ErrorKind>,
    /// Nothing is tried before.
    again: Option<Instant>,
}

/// A file that gets flows.
#[derive(Debug)]
struct Unfinished {
    name: PathBuf,
    file: File,
    shape: Shape,
    /// What is to be written.
    pending: Vec<u8>,
    /// So much of that is written.
    begin: usize,
    octets: u64,
    /// When it is to be finished.
    due: Instant,
    /// It gets no more flows.
    is_whole: bool,
}

impl Unfinished {
    fn write(&mut self) -> io::Result<()> {
        while self.begin < self.pending.len() {
            match self.file.write(&self.pending[self.begin..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.begin += written;
                    self.octets += written as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.pending.clear();
        self.begin = 0;
        Ok(())
    }
}

impl Saver {
    pub(super) fn new(folder: Folder, archive: Archive, names: Names) -> Self {
        Self {
            sensor: folder.sensor(),
            folder,
            archive,
            names,
            watched: Watched::default(),
            counts: FileCounts::default(),
            open: None,
            unsent: Unsent::default(),
            number: 0,
            trouble: None,
            again: None,
        }
    }

    /// Returns what another thread can look at.
    pub(super) fn watched(&self) -> Watched {
        self.watched.clone()
    }

    fn tell(&self, news: Option<String>) {
        let mut watched = self.watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.0 = self.counts;
        watched.1.extend(news);
    }

    /// Takes note of an error, and tells the user what he does not know.
    fn fail(&mut self, name: &std::path::Path, error: &io::Error) {
        self.again = Some(Instant::now() + AGAIN);
        if self.trouble.replace(error.kind()) == Some(error.kind()) {
            return self.tell(None);
        }
        let advice = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space; flows are lost until then",
            ErrorKind::NotFound => "make the directory again; flows are lost until then",
            ErrorKind::PermissionDenied => {
                "give weir the right to write there, and start it again if the directory is another one; flows are lost until then"
            }
            _ => "flows are lost until that works",
        };
        let file = self.archive.directory().join(name);
        self.tell(Some(format!("cannot write flows to {}: {error}; {advice}", file.display())));
    }

    /// Takes note that writing works.
    fn succeed(&mut self) {
        self.again = None;
        let news = self.trouble.take().map(|_| format!("flows are written to {} again", self.folder));
        self.tell(news);
    }

    fn waits(&self) -> bool {
        self.again.is_some_and(|again| Instant::now() < again)
    }

    /// Begins a file, unless one is open. Returns whether there is one that takes flows.
    fn begin(&mut self) -> bool {
        if let Some(open) = &self.open {
            return !open.is_whole && open.pending.is_empty();
        }
        if self.waits() {
            return false;
        }
        let last = self.number + NAMES;
        loop {
            self.number += 1;
            let (name, left) = self.folder.name(&self.sensor, self.number, Timestamp::now());
            let begun = self.archive.begin(&name);
            match begun.and_then(|file| Ok((file, Shape::new(self.folder.format)?))) {
                Ok((file, shape)) => {
                    let due = Instant::now() + left;
                    self.open = Some(Unfinished {
                        name,
                        file,
                        shape,
                        pending: Vec::new(),
                        begin: 0,
                        octets: 0,
                        due,
                        is_whole: false,
                    });
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && self.number < last => {}
                Err(error) => {
                    self.fail(&name, &error);
                    return false;
                }
            }
        }
    }

    /// Writes what is pending, and finishes the file if it is due.
    fn write(&mut self, is_last: bool) {
        let waits = self.waits();
        let Some(open) = &mut self.open else { return };
        if !open.pending.is_empty() && !is_last && waits {
            return;
        }
        if !open.is_whole && (is_last || Instant::now() >= open.due) {
            open.is_whole = true;
            if let Err(error) = open.shape.finish(&mut open.pending) {
                return self.discard(&error);
            }
        }
        match open.write() {
            // More room may come, unless this is the end.
            Err(error) if !is_last => {
                let name = open.name.clone();
                return self.fail(&name, &error);
            }
            Err(error) => return self.discard(&error),
            Ok(()) => {}
        }
        if !open.is_whole {
            if self.trouble.is_some() {
                self.succeed();
            }
            return;
        }
        let finished = open.file.sync_all().and_then(|()| self.archive.finish(&open.name));
        if let Err(error) = finished {
            return self.discard(&error);
        }
        self.counts.finished += 1;
        self.counts.octets += open.octets;
        (self.open, self.unsent.waiting) = (None, 0);
        self.succeed();
    }

    /// Gives up the file.
    fn discard(&mut self, error: &io::Error) {
        let Some(open) = self.open.take() else { return };
        self.unsent.lost += mem::take(&mut self.unsent.waiting);
        self.counts.discarded += 1;
        self.fail(&open.name, error);
        // If it cannot be removed either, it has a name that says what it is.
        let _it_stays = self.archive.discard(&open.name);
    }
}

impl Destination for Saver {
    fn send(&mut self, flows: &[Flow]) -> io::Result<()> {
        // So many that little is pending, and the clock is looked at now and then.
        for some in flows.chunks(1000) {
            self.write(false);
            let open = if self.begin() { self.open.as_mut() } else { None };
            let Some(open) = open else {
                self.unsent.lost += some.len() as u64;
                continue;
            };
            self.unsent.waiting += some.len() as u64;
            let names = self.names.0.read().unwrap_or_else(PoisonError::into_inner);
            let added = open.shape.add(some, &names, &mut open.pending);
            drop(names);
            if let Err(error) = added {
                self.discard(&error);
            }
        }
        self.write(false);
        Ok(())
    }

    fn rest(&mut self) -> io::Result<()> {
        self.write(false);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write(true);
        Ok(())
    }

    fn unsent(&self) -> Unsent {
        self.unsent
    }
}
