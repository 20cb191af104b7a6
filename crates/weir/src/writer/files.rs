//! The files of one run: opened, finished, and deleted when they are the oldest of a ring.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use super::finished::{Finished, discard};
use super::names::Names;
use super::open::{Opened, open};
use super::piece::Piece;
use super::{Output, WriteError, WriterOptions, Written};

/// The file that is being written.
pub(super) struct OutFile {
    pub(super) output: Box<dyn Output>,
    /// As errors call it.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// `None`: a pipe or the like.
    regular: Option<Arc<File>>,
    /// Taken so far, before compression.
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// Packets taken by interface.
    pub(super) by_interface: Vec<u64>,
}

impl OutFile {
    pub(super) fn new(opened: Opened, path: &Path) -> Self {
        let Opened { output, name, regular, .. } = opened;
        Self { output, name, path: path.to_owned(), regular, bytes: 0, packets: 0, by_interface: Vec::new() }
    }

    pub(super) fn put(&mut self, piece: Piece) -> std::io::Result<()> {
        self.bytes += piece.load.as_ref().len() as u64;
        for run in piece.content.runs() {
            self.packets += run.count;
            let interface = run.interface as usize;
            if self.by_interface.len() <= interface {
                self.by_interface.resize(interface + 1, 0);
            }
            self.by_interface[interface] += run.count;
        }
        self.output.put(piece)
    }
}

/// Which files there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList {
    /// Files begun.
    pub count: u64,
    /// The first.
    pub first: PathBuf,
    /// The one begun last.
    pub last: PathBuf,
    /// The oldest ones, deleted because a ring is limited.
    pub deleted: u64,
}

#[derive(Debug)]
pub(super) struct Files {
    options: WriterOptions,
    names: Names,
    pub(super) finished: Finished,
    pub(super) list: FileList,
    /// When the first file came to be, by its file system's clock.
    since: Option<SystemTime>,
    /// Finished files that are there, with their bytes, oldest first; only those of a ring.
    ring: VecDeque<(PathBuf, u64)>,
    /// Bytes of the largest file so far.
    largest: u64,
}

impl Files {
    pub(super) fn new(path: &Path, options: &WriterOptions) -> Result<Self, WriteError> {
        if options.rotation.rotates() && path == Path::new("-") {
            return Err(WriteError::NoRotation { name: "standard output".to_owned() });
        }
        Ok(Self {
            options: options.clone(),
            names: Names::new(path, options),
            finished: Finished::new(options)?,
            list: FileList::default(),
            since: None,
            ring: VecDeque::new(),
            largest: 0,
        })
    }

    /// Opens the next file, after the oldest ones have made room for it.
    pub(super) fn open(&mut self) -> Result<OutFile, WriteError> {
        self.make_room()?;
        let first = self.list.count == 0;
        let (since, no_clobber) = (self.since, self.options.no_clobber);
        // What was written since the run began is not overwritten.
        let taken = |path: &Path| {
            let there = fs::metadata(path).ok().filter(|_| !first);
            there.is_some_and(|there| no_clobber || there.modified().ok() >= since)
        };
        let path = self.names.next(SystemTime::now(), taken)?;
        let opened = open(&path, &self.options)?;
        if first {
            self.since = opened.regular.as_ref().and_then(|file| file.metadata().ok()?.modified().ok());
            if opened.regular.is_none() && self.options.rotation.rotates() {
                return Err(WriteError::NoRotation { name: opened.name });
            }
            self.list.first.clone_from(&path);
        }
        if let Some(warning) = &opened.warning {
            self.finished.warn(warning.clone());
        }
        self.list.count += 1;
        self.list.last.clone_from(&path);
        Ok(OutFile::new(opened, &path))
    }

    /// Sees to a file whose last piece is written.
    pub(super) fn finish(&mut self, file: OutFile) {
        let OutFile { output, path, regular, .. } = file;
        let bytes = output.written().bytes;
        drop(output);
        if let Some(file) = &regular {
            // Nothing is left to be protected; without this the lock would last as long as anybody has the file open.
            let _ = flock(file, FlockOperation::Unlock);
        }
        self.largest = self.largest.max(bytes);
        self.finished.take(&path, regular);
        if self.ring_files().is_some() || self.options.rotation.keep_bytes.is_some() {
            self.ring.push_back((path, bytes));
        }
    }

    fn ring_files(&self) -> Option<usize> {
        let rotation = &self.options.rotation;
        rotation.files.filter(|_| rotation.is_ring()).map(|files| files as usize)
    }

    /// Deletes the oldest files until there is room for one more.
    fn make_room(&mut self) -> Result<(), WriteError> {
        let next = self.options.rotation.size.unwrap_or(self.largest);
        while let Some((oldest, _)) = self.ring.front() {
            let bytes: u64 = self.ring.iter().map(|(_, bytes)| bytes).sum();
            let too_many = self.ring_files().is_some_and(|files| self.ring.len() >= files);
            let too_large = self.options.rotation.keep_bytes.is_some_and(|most| bytes + next > most);
            if !too_many && !too_large {
                break;
            }
            discard(oldest)
                .map_err(|source| WriteError::Delete { path: oldest.clone(), source: Arc::new(source) })?;
            self.list.deleted += 1;
            self.ring.pop_front();
        }
        Ok(())
    }
}

impl Written {
    /// Adds what is written in another file.
    pub(super) fn add_file(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.plain_bytes += other.plain_bytes;
        for (queue, count) in &other.queues {
            *self.queues.entry(*queue).or_default() += count;
        }
    }
}
