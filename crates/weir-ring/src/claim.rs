//! What several threads may use in turn, each for a moment, and for which nobody waits.

use crate::sync::{Mutex, MutexGuard, TryLockError};

/// A thing that one thread at a time has. Whoever finds it taken goes on elsewhere: one compare-and-exchange to take it, one
/// store to give it back, and no thread that is held up holds up another.
#[derive(Debug)]
pub struct Claim<T>(Mutex<T>);

/// The thing, until dropped.
#[derive(Debug)]
pub struct Claimed<'a, T>(MutexGuard<'a, T>);

impl<T> Claim<T> {
    /// Lays `thing` out to be claimed.
    pub fn new(thing: T) -> Self {
        Self(Mutex::new(thing))
    }

    /// The thing, unless somebody has it.
    pub fn try_claim(&self) -> Option<Claimed<'_, T>> {
        // A mutex that is only ever tried: its word is the owner's. That one has panicked is told elsewhere.
        match self.0.try_lock() {
            Ok(guard) => Some(Claimed(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Claimed(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> std::ops::Deref for Claimed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Claimed<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
