//! The finished files of a ring, including those of earlier runs. The oldest are deleted to make room.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_sys::thread::spawn_deaf;

use super::WriterOptions;
use super::broker::FileBroker;
use super::template::Found;

/// How many files that could not be deleted are retried before another file begins.
const RETRIED_AT_ONCE: usize = 8;

/// Shared by the code that begins files and the code that finds the disk full.
#[derive(Debug)]
pub(super) struct Ring {
    broker: Arc<dyn FileBroker>,
    most_files: Option<usize>,
    most_bytes: Option<u64>,
    fsync: bool,
    state: Mutex<RingFiles>,
}

#[derive(Debug, Default)]
struct RingFiles {
    /// Paths and sizes, oldest first.
    files: VecDeque<(PathBuf, u64)>,
    /// Files that could not be deleted when it was their turn.
    stuck: VecDeque<(PathBuf, u64)>,
    gone: Gone,
    warnings: Vec<String>,
}

/// The number of deleted files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gone {
    pub(super) deleted: u64,
    /// How many of those were deleted because the disk was full.
    pub(super) for_room: u64,
}

impl Ring {
    /// `None`: every file is kept.
    pub(super) fn new(options: &WriterOptions, broker: &Arc<dyn FileBroker>) -> Option<Self> {
        let rotation = &options.rotation;
        let most_files = rotation.ring().map(|files| files as usize);
        (most_files.is_some() || rotation.keep_bytes.is_some()).then(|| Self {
            broker: Arc::clone(broker),
            most_files,
            most_bytes: rotation.keep_bytes,
            fsync: options.fsync,
            state: Mutex::default(),
        })
    }

    /// Adds files of earlier runs, oldest first.
    pub(super) fn adopt(&self, found: Vec<Found>) {
        self.state().files.extend(found.into_iter().map(|file| (file.path, file.bytes)));
    }

    /// Adds a finished file.
    pub(super) fn push(&self, path: PathBuf, bytes: u64) {
        self.state().files.push_back((path, bytes));
    }

    pub(super) fn gone(&self) -> Gone {
        self.state().gone
    }

    /// Returns the warnings since the last call.
    pub(super) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Deletes the oldest files until another one of `next` bytes fits.
    pub(super) fn make_room(&self, next: u64) {
        let mut state = self.state();
        self.retry(&mut state);
        loop {
            let bytes = state.stuck.iter().chain(&state.files).map(|(_, bytes)| bytes).sum::<u64>();
            let too_many = self.most_files.is_some_and(|files| state.files.len() >= files);
            let too_large = self.most_bytes.is_some_and(|most| bytes + next > most);
            if !(too_many || too_large) || !self.delete_oldest(&mut state, false) {
                return;
            }
        }
    }

    /// Deletes the oldest file and frees its blocks, because the disk is full. `false`: there is none.
    pub(super) fn give_way(&self) -> bool {
        let mut state = self.state();
        let given = self.delete_oldest(&mut state, true);
        if given {
            state.gone.for_room += 1;
            if state.gone.for_room == 1 {
                state.warnings.push("the disk is full; deleting the oldest files one by one".to_owned());
            }
        }
        given
    }

    /// Deletes the oldest file that can be deleted. `at_once`: frees its blocks before returning. `false`: there is
    /// none.
    fn delete_oldest(&self, state: &mut RingFiles, at_once: bool) -> bool {
        while let Some((oldest, bytes)) = state.files.pop_front() {
            match self.broker.remove(&oldest) {
                Ok(held) => {
                    state.gone.deleted += 1;
                    let directory = self.fsync.then(|| self.broker.directory(&oldest));
                    let rest = move || {
                        drop(held);
                        // A deleted file may reappear after a power cut and take up space, hence the `fsync`.
                        directory.map(|directory| directory.and_then(|directory| directory.sync_all()))
                    };
                    if at_once {
                        let _of_no_consequence = rest();
                    } else {
                        // Freeing blocks can take long, so a thread does it; without one it happens here.
                        let _ = spawn_deaf("weir-discard", rest);
                    }
                    return true;
                }
                Err(error) => {
                    state.warnings.push(told(&oldest, &error));
                    state.stuck.push_back((oldest, bytes));
                }
            }
        }
        false
    }

    /// Tries again to delete files that could not be deleted: a few at a time, as there may be many.
    fn retry(&self, state: &mut RingFiles) {
        for _ in 0..state.stuck.len().min(RETRIED_AT_ONCE) {
            let Some((path, bytes)) = state.stuck.pop_front() else { return };
            match self.broker.remove(&path) {
                Ok(_) => state.gone.deleted += 1,
                Err(_) => state.stuck.push_back((path, bytes)),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, RingFiles> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!(
        "cannot delete {}, the oldest file: {error}; the file stays, and the capture continues",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::Rotation;
    use crate::writer::local_broker::LocalBroker;

    /// How many of four files of 100 bytes stay, once there is room for another one of `next` bytes.
    fn stay(rotation: Rotation, next: u64) -> usize {
        let broker: Arc<dyn FileBroker> = Arc::new(LocalBroker::default());
        let options = WriterOptions { rotation, ..WriterOptions::default() };
        let ring = Ring::new(&options, &broker).expect("a ring");
        let directory = tempfile::tempdir().unwrap();
        for number in 0..4 {
            let path = directory.path().join(number.to_string());
            std::fs::write(&path, [7; 100]).unwrap();
            ring.push(path, 100);
        }
        ring.make_room(next);
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        let known = ring.state().files.len();
        assert_eq!((known, ring.gone().deleted), (left, 4 - left as u64));
        // The newest.
        assert!((4 - left..4).all(|number| directory.path().join(number.to_string()).exists()));
        left
    }

    #[test]
    fn a_ring_that_is_exactly_full_deletes_nothing() {
        let bytes = |most| Rotation { keep_bytes: Some(most), ..Rotation::default() };
        for (most, next, left) in [
            (500, 100, 4),
            (499, 100, 3),
            (500, 101, 3),
            (400, 100, 3),
            (399, 100, 2),
            (100, 100, 0),
            (0, 100, 0),
        ] {
            assert_eq!(stay(bytes(most), next), left, "{most} {next}");
        }
        assert_eq!(stay(bytes(400), 0), 4);
    }
}
