//! The one place where an errno becomes an error.

use std::io;

/// A failed kernel call: the operation, its object, and the kernel's answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {source}")]
pub struct CallError {
    /// The operation and its object, for instance `bind packet socket to eth0`.
    pub operation: String,
    /// The kernel's answer.
    pub source: io::Error,
}

impl CallError {
    /// Wraps `source` with the operation that failed.
    pub fn new(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self { operation: operation.into(), source: source.into() }
    }

    /// Wraps the calling thread's `errno`.
    pub fn last(operation: impl Into<String>) -> Self {
        Self::new(operation, io::Error::last_os_error())
    }

    /// Returns the raw errno, or 0 if the error did not come from the kernel.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}
