//! The files of one run: opened, finished, and deleted when they are the oldest of a ring.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::broker::{FileBroker, Purpose};
use super::error::is_full;
use super::finished::Finished;
use super::local_broker::LocalBroker;
use super::names::Names;
use super::open::{Opened, open, refusal, stdout, unlock};
use super::refusal::Refusal;
use super::ring::Ring;
use super::template::{Found, Template};
use super::write_request::{Counted, WriteRequest};
use super::{Output, WriteError, WriterOptions, Written};

/// The file being written.
pub(super) struct OutFile {
    pub(super) output: Box<dyn Output>,
    /// The name used in errors.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// `None`: not a regular file, or closed temporarily.
    pub(super) regular: Option<Arc<File>>,
    /// Closed temporarily.
    pub(super) is_resting: bool,
    /// The file did not exist before.
    pub(super) created: bool,
    /// Bytes accepted so far, before compression.
    pub(super) bytes: u64,
    /// How many of them say again what earlier files say.
    pub(super) repeated: u64,
    pub(super) packets: u64,
    /// Packets accepted so far, by interface and queue.
    pub(super) queues: Counted,
    /// How many interfaces the file describes.
    pub(super) described: usize,
}

impl OutFile {
    pub(super) fn new(opened: Opened, path: &Path) -> Self {
        let Opened { output, name, regular, created, .. } = opened;
        Self {
            output,
            name,
            path: path.to_owned(),
            regular,
            is_resting: false,
            created,
            bytes: 0,
            repeated: 0,
            packets: 0,
            queues: Counted::new(),
            described: 0,
        }
    }

    /// Overwrites bytes of the file. Returns whether this was possible: it is not in a pipe or a compressed file.
    pub(super) fn put_over(&mut self, place: u64, bytes: &[u8]) -> io::Result<bool> {
        let Some(file) = &self.regular else { return Ok(false) };
        self.output.settle()?;
        file.write_all_at(bytes, place)?;
        Ok(true)
    }

    /// Removes all data from the file. Returns whether this was possible.
    pub(super) fn empty(&mut self) -> io::Result<bool> {
        let emptied = self.output.empty()?;
        if emptied {
            (self.bytes, self.repeated, self.packets) = (0, 0, 0);
            self.queues.clear();
        }
        Ok(emptied)
    }

    pub(super) fn put(&mut self, request: WriteRequest) -> io::Result<()> {
        self.bytes += request.data.as_ref().len() as u64;
        for run in request.content.runs() {
            self.packets += run.count;
            *self.queues.entry((run.interface, run.queue)).or_default() += run.count;
        }
        self.output.put(request)
    }

    /// Makes the file usable again after a failed write. Returns the packets that were accepted and are not in it; `None`:
    /// this is impossible.
    pub(super) fn recover(&mut self) -> Option<Counted> {
        if !self.output.recover() {
            return None;
        }
        let written = self.output.written();
        let mut lost = std::mem::replace(&mut self.queues, written.queues.clone());
        for (queue, packets) in &mut lost {
            *packets -= written.queues.get(queue).unwrap_or(&0);
        }
        lost.retain(|_, packets| *packets > 0);
        (self.bytes, self.packets) = (written.plain_bytes, written.packets);
        Some(lost)
    }
}

/// The files written by a [`Writer`](super::Writer).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileList {
    /// Number of files begun.
    pub count: u64,
    /// The first file.
    pub first: PathBuf,
    /// The file begun last.
    pub last: PathBuf,
    /// Number of files deleted because the ring or the disk was full, including files of earlier runs.
    pub deleted: u64,
    /// How many of those were deleted because the disk was full.
    pub deleted_for_room: u64,
    /// Number of files of earlier runs that were added to the ring.
    pub adopted: u64,
}

#[derive(Debug)]
pub(super) struct Files {
    pub(super) options: WriterOptions,
    pub(super) broker: Arc<dyn FileBroker>,
    template: Template,
    names: Names,
    pub(super) finished: Finished,
    list: FileList,
    /// `None`: every file is kept.
    ring: Option<Arc<Ring>>,
    /// Bytes of the largest file so far.
    largest: u64,
}

impl Files {
    pub(super) fn new(path: &Path, options: &WriterOptions) -> Result<Self, WriteError> {
        if options.rotation.rotates() && path == Path::new("-") {
            return Err(WriteError::NoRotation { name: "standard output".to_owned() });
        }
        let here = || Arc::new(LocalBroker { group_readable: options.group_readable }) as Arc<dyn FileBroker>;
        let broker = options.broker.clone().unwrap_or_else(here);
        Ok(Self {
            options: options.clone(),
            template: Template::new(path, options),
            names: Names::new(path, options.strftime, options.rotation.ring()),
            finished: Finished::new(options, &broker)?,
            list: FileList::default(),
            ring: Ring::new(options, &broker).map(Arc::new),
            broker,
            largest: 0,
        })
    }

    /// Returns the path as given.
    pub(super) fn path(&self) -> &Path {
        self.template.path()
    }

    /// Returns the files so far.
    pub(super) fn list(&self) -> FileList {
        let gone = self.ring.as_ref().map(|ring| ring.gone()).unwrap_or_default();
        FileList { deleted: gone.deleted, deleted_for_room: gone.for_room, ..self.list.clone() }
    }

    /// Returns the warnings since the last call.
    pub(super) fn warnings(&self) -> Vec<String> {
        let of_ring = self.ring.as_ref().map(|ring| ring.warnings()).unwrap_or_default();
        self.finished.warnings().into_iter().chain(of_ring).collect()
    }

    /// Opens the next file, after deleting old ones to make room for it.
    pub(super) fn open(&mut self) -> Result<OutFile, WriteError> {
        if self.list.count == 0 {
            self.adopt()?;
        }
        if let Some(ring) = &self.ring {
            ring.make_room(self.options.rotation.size.unwrap_or(self.largest));
        }
        let (path, opened) = self.open_next()?;
        if self.list.count == 0 {
            self.list.first.clone_from(&path);
        }
        opened.warnings.iter().for_each(|warning| self.finished.warn(warning.clone()));
        self.list.count += 1;
        self.list.last.clone_from(&path);
        Ok(OutFile::new(opened, &path))
    }

    /// Opens the first free name; without rotation the only name, even if the file exists.
    fn open_next(&mut self) -> Result<(PathBuf, Opened), WriteError> {
        let rotates = self.options.rotation.rotates();
        let opening = if rotates || self.options.no_clobber { Purpose::New } else { Purpose::Any };
        for candidate in self.names.next(SystemTime::now())? {
            let path = &candidate.path;
            if path == Path::new("-") {
                return Ok((path.clone(), stdout(&self.options)?));
            }
            let handed = loop {
                match self.broker.open(path, opening) {
                    Err(Refusal::Io(error)) if is_full(&error) && self.give_way() => {}
                    handed => break handed,
                }
            };
            match handed {
                Ok(handed) => {
                    let opened = open(handed, path, &self.options, self.ring.as_ref())?;
                    if rotates && opened.regular.is_none() {
                        return Err(WriteError::NoRotation { name: opened.name });
                    }
                    self.names.took(&candidate);
                    return Ok((candidate.path, opened));
                }
                Err(Refusal::Io(error)) if rotates && error.kind() == io::ErrorKind::AlreadyExists => {
                    self.passes_over(path)?;
                }
                Err(refused) => return Err(refusal(path, refused)),
            }
        }
        unreachable!("there is always another number")
    }

    /// Checks what already has this name, which matters only for the first file of a run.
    fn passes_over(&self, path: &Path) -> Result<(), WriteError> {
        if self.list.count > 0 {
            return Ok(());
        }
        if self.options.no_clobber && self.ring.is_none() {
            return Err(WriteError::Exists { path: path.to_owned() });
        }
        // Opening and closing a FIFO would signal the end to its reader.
        if fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()) {
            return Err(WriteError::NoRotation { name: path.display().to_string() });
        }
        let regular = match self.broker.open(path, Purpose::Look) {
            Ok(there) => !there.inherited && there.file.metadata().is_ok_and(|data| data.is_file()),
            Err(Refusal::Unread) => false,
            Err(refused) => return Err(refusal(path, refused)),
        };
        if regular { Ok(()) } else { Err(WriteError::NoRotation { name: path.display().to_string() }) }
    }

    fn give_way(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.give_way())
    }

    /// Adds the files of earlier runs to the ring and continues their numbering.
    fn adopt(&mut self) -> Result<(), WriteError> {
        let Some(ring) = &self.ring else { return Ok(()) };
        if !self.template.is_exact() {
            self.finished.warn(format!(
                "files of earlier runs are not counted: {} does not distinguish them from others; use %Y%m%d-%H%M%S",
                self.template.path().display()
            ));
            return Ok(());
        }
        let found = match self.broker.list(&self.template) {
            Ok(found) => found,
            Err(error) => {
                self.finished
                    .warn(format!("cannot look for files of earlier runs: {error}; they are not counted"));
                return Ok(());
            }
        };
        let (found, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|file| file.ours);
        if !others.is_empty() {
            self.finished.warn(left_alone(&others));
        }
        if let Some(locked) = found.iter().find(|file| file.locked) {
            return Err(WriteError::Locked { path: locked.path.clone(), holder: String::new() });
        }
        if let Some(number) = found.last().and_then(|newest| self.template.number(&newest.path)) {
            self.names.go_on_after(number);
        }
        self.list.adopted = found.len() as u64;
        self.largest = found.iter().map(|file| file.bytes).max().unwrap_or_default();
        ring.adopt(found);
        Ok(())
    }

    /// Closes a file whose last request is written.
    pub(super) fn finish(&mut self, file: OutFile) {
        let OutFile { output, path, regular, .. } = file;
        let bytes = output.written().bytes;
        drop(output);
        if let Some(file) = &regular {
            unlock(file);
        }
        self.largest = self.largest.max(bytes);
        self.finished.take(&path, regular);
        if let Some(ring) = &self.ring {
            ring.push(path, bytes);
        }
    }

    /// Removes a file for which not even the header could be written.
    pub(super) fn discard(&self, path: &Path) {
        let _it_stays = self.broker.remove(path);
    }
}

/// Warns about files that look like files of a ring but do not belong to it.
fn left_alone(others: &[Found]) -> String {
    const MOST: usize = 8;
    let mut names: Vec<_> = others.iter().take(MOST).map(|file| file.path.display().to_string()).collect();
    if others.len() > MOST {
        names.push(format!("and {} more", others.len() - MOST));
    }
    format!("not part of this ring and left alone: {}", names.join(", "))
}

impl Written {
    /// Adds what was written to another file.
    pub(super) fn add_file(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.plain_bytes += other.plain_bytes;
        for (queue, count) in &other.queues {
            *self.queues.entry(*queue).or_default() += count;
        }
    }
}
