//! What a register has seen and forgotten.

/// Counts of a [`Register`](crate::Register), since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sockets that were sighted for the first time.
    pub sockets: u64,
    /// Of them, those that are still in the table.
    pub known: u64,
    /// Closed sockets that were forgotten for lack of room before their time.
    pub forgotten_closed: u64,
    /// Open sockets that were forgotten for lack of room. Their packets are unknown.
    pub forgotten_open: u64,
}
