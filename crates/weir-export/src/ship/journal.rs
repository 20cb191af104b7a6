//! Which files are shipped: `DIR/.weir-shipped`, a JSON object a line.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::files::Finished;

/// Its name.
const NAME: &str = ".weir-shipped";

/// A shipped file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    file: PathBuf,
    size: u64,
    modified: i128,
    sha256: String,
    /// Where it is, as the user said.
    to: String,
}

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    #[error("cannot use {0}: {1}; try a directory that is there, and that you may write")]
    File(PathBuf, io::Error),
    #[error("cannot ship files of {0}: there is no such directory; try that of `weir flows --to file:DIR`")]
    Missing(PathBuf),
    #[error("cannot ship files of {0}: another weir ship is at work there; end it first")]
    Taken(PathBuf),
}

/// The journal. While it is open, nobody else ships files of the directory.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    to: String,
    entries: HashMap<PathBuf, Entry>,
}

impl Journal {
    /// Opens it. Of shipped files that are gone nothing is kept.
    pub(super) fn open(dir: &Path, to: &str) -> Result<Self, JournalError> {
        let path = dir.join(NAME);
        if !dir.is_dir() {
            return Err(JournalError::Missing(dir.to_owned()));
        }
        let failed = |error| JournalError::File(path.clone(), error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::Taken(dir.to_owned())),
            Err(error) => return Err(failed(error.into())),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        // A line that a crash has cut tells nothing: its object is compared again.
        let entries = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let (mut own, mut kept) = (HashMap::new(), Vec::new());
        for entry in entries.filter(|entry: &Entry| fs::symlink_metadata(dir.join(&entry.file)).is_ok()) {
            kept.extend(line(&entry));
            if entry.to == to {
                own.insert(entry.file.clone(), entry);
            }
        }
        if kept.len() < text.len() {
            // In place, because of the lock. If that is cut short, objects are compared again.
            file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(failed)?;
            file.write_all(&kept).and_then(|()| file.sync_data()).map_err(failed)?;
        }
        Ok(Self { path, file, to: to.to_owned(), entries: own })
    }

    /// Returns whether the file is shipped, as it is now.
    pub(super) fn has(&self, file: &Finished) -> bool {
        let found = self.entries.get(&file.path);
        found.is_some_and(|entry| (entry.size, entry.modified) == (file.size, file.modified))
    }

    /// Notes that a file is shipped, for good.
    pub(super) fn add(&mut self, file: Finished, sha256: &str) -> Result<(), JournalError> {
        let Finished { path, size, modified } = file;
        let entry = Entry { file: path, size, modified, sha256: sha256.to_owned(), to: self.to.clone() };
        let written = self.file.write_all(&line(&entry)).and_then(|()| self.file.sync_data());
        written.map_err(|error| JournalError::File(self.path.clone(), error))?;
        self.entries.insert(entry.file.clone(), entry);
        Ok(())
    }
}

fn line(entry: &Entry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("its path is text");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(path: &str, size: u64) -> Finished {
        Finished { path: path.into(), size, modified: 7 }
    }

    #[test]
    fn what_is_shipped_is_known_in_the_next_run() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["a", "b", "gone"] {
            fs::write(dir.path().join(name), name).expect("a file");
        }
        let mut journal = Journal::open(dir.path(), "s3://x").expect("it is new");
        for name in ["a", "gone"] {
            assert!(!journal.has(&finished(name, 1)));
            journal.add(finished(name, 1), "00").expect("it can be written");
            assert!(journal.has(&finished(name, 1)) && !journal.has(&finished(name, 2)));
        }
        assert!(matches!(Journal::open(dir.path(), "s3://x"), Err(JournalError::Taken(_))));
        // A crash in the middle of a line.
        journal.file.write_all(b"{\"file\":\"b\",\"si").expect("it can be written");
        drop(journal);
        fs::remove_file(dir.path().join("gone")).expect("it was there");
        let mut journal = Journal::open(dir.path(), "s3://x").expect("it is there");
        assert!(journal.has(&finished("a", 1)) && !journal.has(&finished("b", 1)));
        journal.add(finished("b", 1), "00").expect("it can be written");
        drop(journal);
        let text = fs::read_to_string(dir.path().join(NAME)).expect("it is there");
        assert_eq!(text.lines().count(), 2, "{text}");
        let journal = Journal::open(dir.path(), "s3://y").expect("it is there");
        assert!(!journal.has(&finished("a", 1)), "that is elsewhere");
        drop(journal);
        assert_eq!(fs::read_to_string(dir.path().join(NAME)).expect("it is there"), text);
    }
}
