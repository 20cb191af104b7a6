//! A value that threads use in turn, briefly, and never wait for.

use crate::sync::{Mutex, MutexGuard, TryLockError};

/// A value that one thread at a time may use. A thread that finds it taken does something else. Taking it costs one
/// compare-and-exchange, returning it one store, and a delayed thread never delays another.
#[derive(Debug)]
pub struct Claim<T>(Mutex<T>);

/// A claimed value; dropping this ends the claim.
#[derive(Debug)]
pub struct Claimed<'a, T>(MutexGuard<'a, T>);

impl<T> Claim<T> {
    /// Makes `thing` available to be claimed.
    pub fn new(thing: T) -> Self {
        Self(Mutex::new(thing))
    }

    /// Claims the value, unless another thread has it.
    pub fn try_claim(&self) -> Option<Claimed<'_, T>> {
        // A mutex that is only ever tried, never waited for. If an owner has panicked, that is reported elsewhere.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_claim_ends_even_if_its_owner_panics() {
        let claim = Claim::new(1);
        let mut claimed = claim.try_claim().expect("nobody has it");
        *claimed = 2;
        assert!(claim.try_claim().is_none());
        drop(claimed);
        let owner = |_: &_| panic!("with the value in hand");
        thread::scope(|scope| scope.spawn(|| claim.try_claim().as_ref().map(owner)).join())
            .expect_err("it panics");
        assert_eq!(claim.try_claim().as_deref(), Some(&2));
    }
}
