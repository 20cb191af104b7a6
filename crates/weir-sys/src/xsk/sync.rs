//! Atomics of the standard library, or those of loom when its model checker runs the code.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64};
