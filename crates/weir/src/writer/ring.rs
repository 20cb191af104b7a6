//! The finished files of a ring, those of earlier runs included: the oldest go where room is needed.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_sys::thread::spawn_deaf;

use super::keeper::Keeper;
use super::template::Found;
use super::{Rotation, WriterOptions};

/// Of the files that could not be removed, how many are tried again when there is to be another file.
const RETRIED_AT_ONCE: usize = 8;

/// Shared by who begins files and who finds the disk full.
#[derive(Debug)]
pub(super) struct Ring {
    keeper: Arc<dyn Keeper>,
    most_files: Option<usize>,
    most_bytes: Option<u64>,
    fsync: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first, with their bytes.
    files: VecDeque<(PathBuf, u64)>,
    /// Those that could not be removed when it was their turn, with their bytes.
    stuck: VecDeque<(PathBuf, u64)>,
    gone: Gone,
    warnings: Vec<String>,
}

/// How many files are no more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gone {
    pub(super) deleted: u64,
    /// Of these: because the disk was full.
    pub(super) for_room: u64,
}

impl Ring {
    /// `None`: every file is kept.
    pub(super) fn new(options: &WriterOptions, keeper: &Arc<dyn Keeper>) -> Option<Self> {
        let rotation: &Rotation = &options.rotation;
        let most_files = rotation.files.filter(|_| rotation.is_ring()).map(|files| files as usize);
        (most_files.is_some() || rotation.keep_bytes.is_some()).then(|| Self {
            keeper: Arc::clone(keeper),
            most_files,
            most_bytes: rotation.keep_bytes,
            fsync: options.fsync,
            state: Mutex::default(),
        })
    }

    /// Takes in files of earlier runs, which come in their order.
    pub(super) fn adopt(&self, found: Vec<Found>) {
        self.state().files.extend(found.into_iter().map(|file| (file.path, file.bytes)));
    }

    /// Takes in a file that is finished.
    pub(super) fn push(&self, path: PathBuf, bytes: u64) {
        self.state().files.push_back((path, bytes));
    }

    pub(super) fn gone(&self) -> Gone {
        self.state().gone
    }

    /// What was to be said since the last call.
    pub(super) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Deletes the oldest files until there may be another, of `next` bytes.
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

    /// The disk is full: deletes the oldest file, whose blocks are free once this comes back. `false`: there is none.
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

    /// Deletes the oldest that can be deleted. `at_once`: its blocks are free then. `false`: there is none.
    fn delete_oldest(&self, state: &mut State, at_once: bool) -> bool {
        while let Some((oldest, bytes)) = state.files.pop_front() {
            match self.keeper.remove(&oldest) {
                Ok(held) => {
                    state.gone.deleted += 1;
                    let directory = self.fsync.then(|| self.keeper.directory(&oldest));
                    let rest = move || {
                        drop(held);
                        // That a file is gone is nothing that a power cut may not undo, but it takes room.
                        directory.map(|directory| directory.and_then(|directory| directory.sync_all()))
                    };
                    if at_once {
                        let _of_no_consequence = rest();
                    } else {
                        // Freeing blocks can take long. Without a thread it is done here.
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

    /// Deletes of what was stuck what can be deleted by now, or is gone: some of it, since it may be much, in turns.
    fn retry(&self, state: &mut State) {
        for _ in 0..state.stuck.len().min(RETRIED_AT_ONCE) {
            let Some((path, bytes)) = state.stuck.pop_front() else { return };
            match self.keeper.remove(&path) {
                Ok(_) => state.gone.deleted += 1,
                Err(_) => state.stuck.push_back((path, bytes)),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!(
        "cannot delete {}, the oldest file: {error}; the file stays, and the capture continues",
        path.display()
    )
}
