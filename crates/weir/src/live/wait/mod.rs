//! Waiting for packets: when to look at the queues, and what a thread sleeps on until then.

pub(crate) mod next;
pub(crate) mod notifier;
pub(crate) mod stop;
pub(crate) mod strategy;
pub(crate) mod waker;

use std::os::fd::BorrowedFd;

/// What can be taken from a queue in one go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// Bytes of records.
    pub(crate) bytes: u32,
    /// Nothing more will be added: there is no point in waiting.
    pub(crate) closed: bool,
}

/// What a source rings when somebody waits for its queues.
pub(crate) trait Notifier: std::fmt::Debug + Send + Sync {
    /// Returns a descriptor that is readable after a ring.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Clears all rings so far. The caller checks the queues next.
    fn quiet(&self);
}
