//! Atomics and locks of the standard library, or those of loom when its model checker runs the code.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence},
};
pub(crate) use std::sync::TryLockError;
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence},
};
