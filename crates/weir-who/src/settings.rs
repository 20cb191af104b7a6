//! What can be chosen.

/// How much a [`Register`](crate::Register) remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Sockets, open and closed.
    pub sockets: usize,
    /// How long a closed socket is remembered at least while there is room, in nanoseconds: packets may come later than the account
    /// of what became of their socket.
    pub linger: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { sockets: 100_000, linger: 120_000_000_000 }
    }
}
